"""001 Figs 2 to 4 and section 5.2: objective, accuracy and non-zero rows against time.

Multiclass squared hinge with l1/l2 on rows, no intercept, from zero, lambda = 1e-3 and 1e-5. The
solvers are observed by a callback; looking at the coefficients is not counted, certificates are.
Times are of the processor.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache

from harness import Experiment, distinct, markdown_table, plain_log, subplots, values

# isort: split

import numpy as np
from samples import fifths
from sklearn.exceptions import ConvergenceWarning
from solver_claims import (
    COUNTED,
    OPTIMUM,
    SHRINKING,
    STEPS,
    TARGETS,
    accuracy_first,
    bcd_and_fobos,
    bcd_wins,
    constant_fista_worse,
    distances_of,
    first_steps,
    first_to_sparsity,
    fista_ahead_of_sparsa,
    fobos_comparable,
    fobos_dense,
    last_of,
    least_objective,
    line_search_helps,
    no_shrinking,
    on_rcv1,
    pairs_of,
    reached,
    runs_of,
    same_rows_in_the_limit,
    search_matters_more_to_fista,
    slow_at_small_lambda,
    slower_to_sparsity,
    step_matters,
    two_phases,
)

from sparsvm import SparseSVC
from sparsvm.plots.style import COLOURS, DASHES
from sparsvm.solvers import BCD, FISTA, FOBOS, Observed, SpaRSA

# As the paper: in turn with a line search, at random with constant steps.
SOLVERS = {
    "BCD (LS)": BCD(check_every=2),
    "BCD (CST)": BCD(step="CST", check_every=2),
    "FISTA (LS)": FISTA(check_every=5),
    "FISTA (CST)": FISTA(step="CST", check_every=5),
    "SpaRSA": SpaRSA(check_every=5),
    "FOBOS": FOBOS(check_every=2, max_iter=10_000),
}
MORE = {
    SHRINKING: BCD(shrinking=True, check_every=2),
    **{f"FOBOS, eta0 = {eta:g}": FOBOS(eta, check_every=2, max_iter=10_000) for eta in STEPS},
}
EPOCHS = 50  # of the paper's 200 at most
DATA = ("news20", "mnist")
# Samples of which four fifths are trained on; "all" is the paper's.
ALL, FEW = "all", 4_000
FIGURES = {"001 Fig. 2": 1e-3, "001 Fig. 3": 1e-5}
SAMPLES = {
    ("news20", 1e-3): ALL,
    ("mnist", 1e-3): FEW,
    ("news20", 1e-5): FEW,
    ("mnist", 1e-5): FEW,
}
SMALL = dict.fromkeys(SAMPLES, FEW)  # of section 5.2
# Seconds that every algorithm is given (on few documents at 1e-3 three do), and our default.
SECONDS, EASY, EASY_SECONDS = {ALL: 30.0, FEW: 20.0}, ("news20", 1e-3, FEW), 3.0
OPTIMUM_SECONDS = 120.0


@lru_cache
def load(name, samples, quick):
    return fifths(name, 0, 800 if quick else None if samples == ALL else samples)


def cells(sizes, quick, names=(OPTIMUM, *SOLVERS)):
    """The cells of every data set and lambda with its number of samples."""
    quickly = (OPTIMUM, "BCD (LS)", "FISTA (LS)", COUNTED)
    names = [n for n in names if n in quickly] if quick else names
    return [
        {"data": name, "lambda": lam, "solver": solver, "samples": samples}
        for (name, lam), samples in sizes.items()
        for solver in names
        if not quick or name == DATA[0]
    ]


def shown(rows, sizes):
    """The rows of every data set and lambda with its number of samples."""
    return [row for row in rows if sizes.get((row["data"], row["lambda"])) == row["samples"]]


def measure(cell, quick):
    X, y, X_test, y_test = load(cell["data"], cell["samples"], quick)
    options = {"alpha": cell["lambda"], "fit_intercept": False}
    classes = np.unique(y)

    def row(seconds, coef, objective, gap):
        scores = X_test @ coef.T
        return {
            "seconds": seconds,
            "objective": float(objective),
            "accuracy": float(np.mean(classes[np.asarray(scores).argmax(axis=1)] == y_test)),
            "rows": float(np.any(coef != 0.0, axis=0).mean()),
            "gap": float(gap),
        }

    if cell["solver"] == OPTIMUM:
        began = time.process_time()
        limit = 2.0 if quick else OPTIMUM_SECONDS
        solver = Observed("auto", lambda _: time.process_time() - began > limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SparseSVC("squared_hinge", "l1/l2", solver=solver, tol=1e-6, **options)
            model.fit(X, y)
        seconds = time.process_time() - began
        return [row(seconds, model.coef_, model.objective_, model.dual_gap_)]
    if cell["solver"] == COUNTED:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver = BCD(stopping="violation", max_iter=5 if quick else EPOCHS)
            model = SparseSVC("squared_hinge", "l1/l2", solver=solver, **options).fit(X, y)
        found = row(time.process_time() - began, model.coef_, model.objective_, model.dual_gap_)
        return [{**found, **model.result_.history.counts}]
    rows, clock = [], [0.0]
    easy = (cell["data"], cell["lambda"], cell["samples"]) == EASY
    limit = 1.0 if quick else EASY_SECONDS if easy else SECONDS[cell["samples"]]

    def look(progress):
        now = time.process_time()
        if progress.iteration == 0:  # FOBOS has chosen its first step by then, as in the paper
            clock[0] = now
        seconds = now - clock[0]
        point = progress.coefficients()
        if point is not None:
            rows.append(row(seconds, point[0], progress.objective, progress.gap))
        clock[0] += time.process_time() - now
        return seconds > limit

    solver = Observed({**SOLVERS, **MORE}[cell["solver"]], look)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SparseSVC("squared_hinge", "l1/l2", solver=solver, tol=1e-6, **options).fit(X, y)
    return rows


def draw_times(lam, rows):
    names = distinct(rows, "data")
    figure, axes = subplots(len(names), 2, (11, 3.6 * len(names)))
    for line, name in zip(axes, names, strict=True):
        for solver, colour, dash in zip(SOLVERS, COLOURS, DASHES, strict=False):
            seconds, distance = distances_of(rows, name, lam, solver)
            style = {"color": colour, "linestyle": dash, "label": solver}
            line[0].loglog(seconds[1:], np.maximum(distance[1:], 1e-6), **style)
            accuracy = 100 * np.array(values(runs_of(rows, name, lam, solver), "accuracy"))
            line[1].semilogx(seconds[1:], accuracy[1:], **style)
        for ax in line:
            plain_log(ax.xaxis)
        line[0].set(xlabel="seconds", ylabel=f"{name}\n(F − F*) / F*")
        line[1].set(xlabel="seconds", ylabel="test accuracy in %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def draw_rows(rows):
    names, lambdas = distinct(rows, "data"), sorted(distinct(rows, "lambda"), reverse=True)
    figure, axes = subplots(len(names), len(lambdas), (5.5 * len(lambdas), 3.4 * len(names)))
    for line, name in zip(axes, names, strict=True):
        for ax, lam in zip(line, lambdas, strict=True):
            for solver, colour, dash in zip(SOLVERS, COLOURS, DASHES, strict=False):
                chosen = runs_of(rows, name, lam, solver)[1:]
                shares = 100 * np.array(values(chosen, "rows"))
                style = {"color": colour, "linestyle": dash, "label": solver}
                ax.semilogx(values(chosen, "seconds"), shares, **style)
            for row in runs_of(rows, name, lam, OPTIMUM):
                ax.axhline(100 * row["rows"], color="0.6", linewidth=0.8)
            plain_log(ax.xaxis)
            ax.set(xlabel="seconds", ylabel="non-zero rows in %", title=f"{name}, λ = {lam:g}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def protocol(sizes):
    told = []
    for (name, lam), size in sizes.items():
        seconds = EASY_SECONDS if (name, lam, size) == EASY else SECONDS[size]
        count = "all" if size == ALL else f"{size}"
        told.append(f"{name}, λ = {lam:g}: {count} samples, {seconds:g} s")
    return (
        "Multiclass squared hinge with l1/l2 on rows, no intercept, four fifths of the samples for "
        f"training, from zero. Samples, and processor seconds of every algorithm: "
        f"{'; '.join(told)}. news20 has 18846 documents of 130107 words (the paper: "
        "18846 × 130088), mnist 70000 images. FOBOS chooses its first step beforehand, on held-out "
        "samples, as in the paper. Points are the best so far; the time for certificates, which "
        "the paper's codes do without, is counted. Sector, RCV1 and Amazon7 could not be had. The "
        "paper gives figures only, so there are no values to put beside ours, only its sentences."
    )


DIFFERENCES = {
    1e-3: "On news20, which is sparse, block coordinate descent is the first within a hundredth, "
    "as in the paper; by the end SpaRSA and FISTA have come nearer still. On mnist it does not "
    "lead: here the images are a dense matrix, whose full gradient is one matrix product at the "
    "speed of BLAS, while block coordinate descent goes through the columns one by one. The paper, "
    "which counts 19 % non-zero features, presumably held them as sparse data. Half a minute on "
    "all 56000 training images brought neither form of it within a tenth, so that 4000 are taken.",
    1e-5: "F* is that of our default solver, whose gap is in the table: distances are true. On "
    "news20 block coordinate descent and FISTA with line searches come within a tenth together, "
    "SpaRSA a little later; on mnist the full-gradient methods do, and block coordinate descent "
    "slows down at twice the optimum. The most accurate iterates are early ones of the full-"
    "gradient methods: at this λ the optimum itself is overfitted, on news20 by eight points.",
}


def tell_times(lam, rows):
    table = []
    for name in distinct(rows, "data"):
        for row in runs_of(rows, name, lam, OPTIMUM):
            shown = f"{100 * row['accuracy']:.2f}", f"{100 * row['rows']:.2f}"
            above = f"{row['objective'] / least_objective(rows, name, lam) - 1.0:.1e}"
            label = f"our default, {row['seconds']:.0f} s, relative gap {row['gap']:.0e}"
            table.append((name, label, "", "", "", above, *shown))
        for solver in SOLVERS:
            chosen = runs_of(rows, name, lam, solver)
            if not chosen:
                continue
            times = [reached(rows, name, lam, solver, target) for target in TARGETS]
            shown = ["–" if t is None else f"{t:.2f}" for t in times]
            last = chosen[-1]
            above = f"{last['objective'] / least_objective(rows, name, lam) - 1.0:.1e}"
            shown += [above, f"{100 * last['accuracy']:.2f}", f"{100 * last['rows']:.2f}"]
            table.append((name, solver, *shown))
    header = (
        "data",
        "algorithm",
        "s to 1",
        "s to 0.1",
        "s to 0.01",
        "last distance",
        "last accuracy in %",
        "last non-zero rows in %",
    )
    return (
        f"λ = {lam:g}. {protocol(_of(lam))} Distances are (F − F*) / F* with the least "
        f"objective known for F*; where that is not certified, the relative gap says so.\n\n"
        f"{markdown_table(header, table)}\n\n{DIFFERENCES[lam]}"
    )


def tell_rows(rows):
    table = []
    for name, lam in sorted(pairs_of(rows), reverse=True):
        ends = [runs_of(rows, name, lam, s) for s in (OPTIMUM, *SOLVERS)]
        shown = [f"{100 * chosen[-1]['rows']:.2f}" if chosen else "" for chosen in ends]
        table.append((name, f"{lam:g}", *shown))
    header = ("data", "lambda", "our default", *SOLVERS)
    return (
        "Non-zero rows in % at the end of each run; grey lines in the figure are those of our "
        "default solver, whose accuracy Figs 2 and 3 certify. The runs are those of Figs 2 and 3. "
        f"{protocol(SAMPLES)}\n\n{markdown_table(header, table)}"
    )


def tell_more(rows):
    table = []
    for lam in FIGURES.values():
        for solver in ("BCD (LS)", *MORE, "FOBOS"):
            chosen = runs_of(rows, "news20", lam, solver)
            if chosen:
                distance, seconds = last_of(rows, solver, lam)
                share = f"{100 * chosen[-1]['accuracy']:.2f}"
                table.append((f"{lam:g}", solver, f"{seconds:.1f}", f"{distance:.1e}", share))
    header = ("lambda", "algorithm", "seconds", "distance", "test accuracy in %")
    documents = {key: size for key, size in SMALL.items() if key[0] == "news20"}
    return (
        "Block coordinate descent with shrinking, and FOBOS from several first steps, on news20; "
        f"the steps of the line search over at most {EPOCHS} outer iterations. "
        f"{protocol(documents)}\n\n{markdown_table(header, table)}"
    )


def _at(sizes, function):
    return lambda rows: function(shown(rows, sizes))


def _of(lam):
    return {key: size for key, size in SAMPLES.items() if key[1] == lam}


EXPERIMENTS = (
    *(
        Experiment(
            item,
            f"objective and accuracy against time, lambda = {lam:g}",
            lambda quick, lam=lam: cells(_of(lam), quick),
            measure,
            lambda rows, lam=lam: tell_times(lam, shown(rows, _of(lam))),
            lambda rows, lam=lam: draw_times(lam, shown(rows, _of(lam))),
            (
                ("BCD outperforms FISTA and SpaRSA in speed", _at(_of(lam), bcd_wins)),
                ("BCD outperforms them in test accuracy too", _at(_of(lam), accuracy_first)),
                ("BCD outperforms FOBOS on News20", _at(_of(lam), bcd_and_fobos)),
                ("FOBOS is comparable to BCD on MNIST", _at(_of(lam), fobos_comparable)),
                ("BCD with a line search is slightly faster than without",
                 _at(_of(lam), line_search_helps)),
                ("FISTA with constant steps is always worse than with a line search",
                 _at(_of(lam), constant_fista_worse)),
                ("A line search matters less to BCD than to FISTA",
                 _at(_of(lam), search_matters_more_to_fista)),
                ("FISTA (LS) has a slight advantage over SpaRSA",
                 _at(_of(lam), fista_ahead_of_sparsa)),
            ),
            alternative="Relative distance to the best objective and accuracy against seconds",
            data="001_solvers",
        )
        for item, lam in FIGURES.items()
    ),
    Experiment(
        "001 Fig. 4",
        "non-zero rows against time",
        lambda quick: cells(SAMPLES, quick),
        measure,
        _at(SAMPLES, tell_rows),
        _at(SAMPLES, draw_rows),
        (
            ("FOBOS obtains much less sparse solutions than BCD", _at(SAMPLES, fobos_dense)),
            ("BCD first increases the number of non-zero rows, then decreases it",
             _at(SAMPLES, two_phases)),
            ("BCD is always the fastest to reach the sparsity of the solution",
             _at(SAMPLES, first_to_sparsity)),
            ("FISTA and SpaRSA reduce the rows more slowly than BCD",
             _at(SAMPLES, slower_to_sparsity)),
            ("In the limit they have rows like BCD's", _at(SAMPLES, same_rows_in_the_limit)),
            ("On RCV1 BCD has less than 5 % of the rows, FOBOS 80 %", on_rcv1),
        ),
        alternative="Share of non-zero rows against seconds, two data sets, two lambdas",
        data="001_solvers",
    ),
    Experiment(
        "001 Section 5.2",
        "shrinking, the steps of the line search, and the first step of FOBOS",
        lambda quick: [
            cell
            for cell in cells(SMALL, quick, (OPTIMUM, *SOLVERS, *MORE, COUNTED))
            if cell["solver"] == COUNTED
            or (cell["data"] == "news20" and cell["lambda"] == 1e-3)
            or (cell["data"] == "news20" and "eta0" not in cell["solver"])
        ],
        measure,
        _at(SMALL, tell_more),
        claims=(
            ("Shrinking helps only slightly in high dimensions", _at(SMALL, no_shrinking)),
            ("BCD may be slow to converge at very small lambda", _at(SMALL, slow_at_small_lambda)),
            ("Tuning the first step of FOBOS is crucial", _at(SMALL, step_matters)),
            ("The line search usually accepts its first step", _at(SMALL, first_steps)),
        ),
        data="001_solvers",
    ),
)  # fmt: skip

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
