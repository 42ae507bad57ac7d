"""004 Figs 10 to 14 and Table 2: five UCI sets, eight classifiers, and the width mu of the ramp.

Columns are standardised. RLSVM2 is fitted at mu = 0.1 ... 1 (at the lambda that was chosen at
mu = 1) and at the mu chosen by five-fold cross-validation, of equal accuracies the smallest.
"""

from __future__ import annotations

import time
from functools import partial

from harness import (
    SURE,
    Experiment,
    distinct,
    markdown_table,
    pick,
    plain_log,
    standard_error,
    subplots,
    values,
    verdict,
)

# isort: split

import numpy as np
from dc_protocol import (
    CLASSIFIERS,
    accuracy,
    bars,
    choose,
    fit_all,
    judge,
    mean_std,
    means,
    with_mu,
)
from sklearn.model_selection import StratifiedKFold

from sparsvm.datasets import load_arcene, load_dexter, load_uci
from sparsvm.plots.style import COLOURS, DASHES

SETS = ("pima", "bupa", "ionosphere", "wpbc", "sonar")
WIDTHS = tuple(float(mu) for mu in np.round(np.arange(1, 11) / 10, 1))
RLSVM2 = next(classifier for classifier in CLASSIFIERS if classifier.name == "RLSVM2")
NAMES = tuple(c.name for c in CLASSIFIERS)
NON_CONVEX = tuple(c.name for c in CLASSIFIERS if c.name != c.start)
RAMPS = tuple(name for name in NON_CONVEX if name.startswith("RL"))
FEW = 5  # iterations
REPETITIONS = 20
PROTOCOL = (
    "70 % of the samples train and 30 % test, lambda by five-fold cross-validation from 0.1 ... "
    "10, columns standardised, 20 repetitions; mean and standard deviation."
)
# Accuracy and share of support vectors at mu = 1 and at the chosen mu, and that mu.
PAPER = {
    "wpbc": ("0.79", "0.33", "0.78", "0.24", "0.61"),
    "pima": ("0.76", "0.22", "0.76", "0.10", "0.49"),
    "ionosphere": ("0.86", "0.22", "0.86", "0.17", "0.60"),
    "sonar": ("0.74", "0.45", "0.75", "0.38", "0.68"),
    "bupa": ("0.69", "0.41", "0.68", "0.21", "0.57"),
}


def load(name):
    if name == "arcene":
        X, labels = load_arcene(subset="all", return_X_y=True)
    elif name == "dexter":
        X, labels = load_dexter(subset="all", return_X_y=True)
        X = np.asarray(X.todense()) if hasattr(X, "todense") else X
    else:
        X, labels = load_uci(name, return_X_y=True)
    deviation = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return np.asarray(X), np.unique(labels, return_inverse=True)[1].astype(np.int32)


def split(y, seed):
    order = np.random.default_rng(seed).permutation(y.size)
    cut = round(0.7 * y.size)
    return order[:cut], order[cut:]


def choose_mu(X, y, lam, seed):
    """The mu with the best five-fold accuracy, the smallest among equals.

    The folds are not those that lambda was chosen on at mu = 1, which would favour that mu.
    """
    totals = np.zeros(len(WIDTHS))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed + 1000).split(X, y):
        for at, mu in enumerate(WIDTHS):
            solution = fit_all(X[train], y[train], lam, (with_mu(RLSVM2, mu),))["RLSVM2"]
            totals[at] += accuracy(solution, X[test], y[test])
    return WIDTHS[int(np.argmax(np.round(totals, 9)))]


def cells(quick):
    if quick:
        return [{"data": "bupa", "seed": 0}]
    return [{"data": name, "seed": seed} for seed in range(REPETITIONS) for name in SETS]


def measure(cell, quick):
    """All classifiers at mu = 1, and RLSVM2 at every mu."""
    X, y = load(cell["data"])
    train, test = split(y, cell["seed"])
    data = (X[train], y[train]), (X[test], y[test])
    rows = []
    chosen = choose(*data[0], cell["seed"])
    for name, (form, lam) in chosen.items():
        rows.append({"classifier": name, "mu": 1.0, "lambda": lam, **_judged(form, lam, data)})
    lam = chosen["RLSVM2"][1]
    for mu in (1.0, 0.5) if quick else WIDTHS:
        rows.append(
            {
                "classifier": "RLSVM2 by mu",
                "mu": mu,
                "lambda": lam,
                **_judged(with_mu(RLSVM2, mu), lam, data),
            }
        )
    mu = 0.5 if quick else choose_mu(*data[0], lam, cell["seed"])
    rows.append(
        {
            "classifier": "RLSVM2 at chosen mu",
            "mu": mu,
            "lambda": lam,
            **_judged(with_mu(RLSVM2, mu), lam, data),
        }
    )
    return rows


def _judged(form, lam, data):
    began = time.process_time()
    solution = fit_all(*data[0], lam, (form,))[form.name]
    seconds = time.process_time() - began
    row = judge(form, solution, *data)
    objective = solution.history.objective
    return {
        **{key: value for key, value in row.items() if key != "selected"},
        "seconds": seconds,
        "objectives": " ".join(f"{value:.6g}" for value in objective),
    }


def _by_set(rows):
    return {name: partial(_is, name) for name in distinct(rows, "data")}


def _is(name, row):
    return row["data"] == name


def _bar_figure(number, title, key, names, claims=(), note=""):
    def tell(rows):
        table = means(rows, key, _by_set(rows), names)
        shown = markdown_table(("classifier", *_by_set(rows)), table)
        return "\n\n".join((PROTOCOL, shown, note))

    return Experiment(
        item=f"004 Fig. {number}",
        title=title,
        cells=cells,
        measure=measure,
        tell=tell,
        draw=lambda rows: bars(rows, key, _by_set(rows), names, "", title),
        claims=claims,
        alternative=f"Bars: {title} of the classifiers on five data sets",
        data="004_uci",
    )


SAME_PENALTY = (
    ("RLSVM2", "SVM"),
    ("RLSVM1", "OneNormSVM"),
    ("RLSVM0", "ZeroNormSVM"),
    ("RLSVMC1", "CapOneNormSVM"),
)


def _fewer_support(rows):
    """Judge by the differences of the repetitions: what two standard errors hold is a tie."""
    outcomes, told = [], []
    for name in distinct(rows, "data"):
        for ramp, hinge in SAME_PENALTY:
            ends = [
                np.array(values(rows, "support", data=name, classifier=c), dtype=float)
                for c in (ramp, hinge)
            ]
            each = ends[0] - ends[1]
            doubt = standard_error(each)
            tie = abs(each.mean()) <= SURE * doubt
            outcomes.append(None if tie else bool(each.mean() < 0.0))
            if outcomes[-1] is not True:
                told.append(f"{name}: {ramp} {each.mean():+.3f} ± {doubt:.3f} above {hinge}")
    fewer = f"fewer in {outcomes.count(True)} of {len(outcomes)} pairs"
    return verdict(outcomes), "; not on ".join([fewer, *told])


def _sparser_norms(rows):
    true, told = True, []
    for name in distinct(rows, "data"):
        shares = [
            float(np.mean(values(rows, "features", data=name, classifier=c)))
            for c in ("SVM", "OneNormSVM", "ZeroNormSVM")
        ]
        true &= name == "bupa" or shares[0] >= shares[1] >= shares[2]
        told.append(f"{name} " + " / ".join(f"{share:.2f}" for share in shares))
    return _verdict(true), "features with l2 / l1 / l0: " + ", ".join(told)


def _comparable(rows):
    worst, where = 0.0, ""
    for name in distinct(rows, "data"):
        found = {c: np.mean(values(rows, "accuracy", data=name, classifier=c)) for c in NAMES}
        spread = float(max(found.values()) - min(found.values()))
        if spread > worst:
            worst, where = spread, f"{name}: {min(found, key=found.get)} last"
    return _verdict(worst <= 0.05), f"at most {100 * worst:.1f} points apart ({where}; limit 5)"


def _fewer_with_mu(rows):
    chosen, rises = pick(rows, classifier="RLSVM2 by mu"), []
    mus = sorted(set(values(chosen, "mu")))
    for name in distinct(chosen, "data"):
        line = [np.mean(values(chosen, "support", data=name, mu=mu)) for mu in mus]
        rises.append(float(max(np.array(line[:-1]) - np.array(line[1:]))))
    return _verdict(max(rises) <= 0.01), (
        f"as mu falls by 0.1 the share rises by at most {max(rises):.3f}"
    )


def _same_for_all_mu(rows):
    chosen, told = pick(rows, classifier="RLSVM2 by mu"), {}
    for name in distinct(chosen, "data"):
        means_by_mu = [
            np.mean(values(chosen, "accuracy", data=name, mu=mu))
            for mu in sorted(set(values(chosen, "mu")))
        ]
        told[name] = 100 * float(max(means_by_mu) - min(means_by_mu))
    return _verdict(max(told.values()) <= 5.0), "points between the best and the worst mu: " + (
        ", ".join(f"{name} {points:.1f}" for name, points in told.items()) + " (limit 5)"
    )


def _few_on_two_sets(rows):
    found = {
        name: max(float(np.mean(values(rows, "steps", data=name, classifier=c))) for c in RAMPS)
        for name in distinct(rows, "data")
    }
    two = [found[name] for name in ("ionosphere", "sonar") if name in found]
    if len(two) < 2:
        return "not testable here", "needs ionosphere and sonar"
    shown = ", ".join(f"{name} {steps:.1f}" for name, steps in found.items())
    return _verdict(max(two) <= FEW), (
        f"largest mean of the four ramp machines: {shown} ('a few': {FEW})"
    )


def _start_is_the_end(rows):
    found = {}
    for name in distinct(rows, "data"):
        steps = [r["steps"] for r in pick(rows, data=name) if r["classifier"] in RAMPS]
        found[name] = float(np.mean([count <= 1 for count in steps]))
    shown = ", ".join(f"{name} {share:.0%}" for name, share in found.items())
    return _verdict(max(found.values()) > 0.0), f"ramp fits of a single iteration: {shown}"


def _few_with_hinge(rows):
    found = {c: float(np.mean(values(rows, "steps", classifier=c))) for c in NON_CONVEX}
    true = max(found["ZeroNormSVM"], found["CapOneNormSVM"]) < min(
        found[c] for c in ("RLSVM0", "RLSVMC1")
    )
    return _verdict(true), "means " + ", ".join(f"{c} {steps:.1f}" for c, steps in found.items())


def _seconds_but_for_l0(rows):
    slowest = {c: float(max(values(rows, "seconds", classifier=c))) for c in NON_CONVEX}
    others = max(seconds for c, seconds in slowest.items() if c != "RLSVM0")
    return _verdict(slowest["RLSVM0"] > 10.0 * others), (
        f"slowest fit: RLSVM0 {slowest['RLSVM0']:.2f} s, others {others:.2f} s"
    )


def _bars_within_sixteen(rows):
    """Judge what the paper's figure shows: means over the repetitions, with their deviations."""
    ends = {}
    for name in distinct(rows, "data"):
        for c in NON_CONVEX:
            steps = values(rows, "steps", data=name, classifier=c)
            ends[f"{c} on {name}"] = float(np.mean(steps) + np.std(steps))
    most = max(ends, key=ends.get)
    return _verdict(ends[most] <= 16.0), f"mean and deviation at most {ends[most]:.1f} ({most})"


def _within_sixteen(rows):
    steps = [row["steps"] for row in rows if row["classifier"] in NON_CONVEX]
    return (
        _verdict(max(steps) <= 16),
        f"at most {max(steps):.0f} iterations in {len(steps)} runs, median {np.median(steps):.0f}",
    )


def _mu_tell(rows):
    table, off = [], []
    for name in distinct(rows, "data"):
        one = pick(rows, data=name, classifier="RLSVM2")
        best = pick(rows, data=name, classifier="RLSVM2 at chosen mu")
        found = [
            mean_std([row[key] for row in part])
            for part in (one, best)
            for key in ("accuracy", "support")
        ]
        mu = mean_std([row["mu"] for row in best])
        pairs = zip((*found, mu), PAPER[name], strict=True)
        table.append([name, *(f"{ours} ({theirs})" for ours, theirs in pairs)])
        means = [float(ours.split()[0]) for ours in found]
        off.append([abs(a - float(b)) for a, b in zip(means, PAPER[name], strict=False)])
    accuracy, support = (np.max(np.array(off)[:, at::2]) for at in (0, 1))
    header = ("data", "accuracy, mu = 1", "support", "accuracy, mu chosen", "support", "mu")
    return (
        f"{PROTOCOL} In parentheses the paper's values.\n\n{markdown_table(header, table)}\n\n"
        f"Accuracies are at most {accuracy:.2f} from the paper's, shares of support vectors at "
        f"most {support:.2f}: its splits and folds are not given. wpbc, where the chosen shares "
        "differ most, is here without the time to the outcome, which the paper may have used "
        "(Table A1)."
    )


def _same_accuracy(rows):
    worst = 0.0
    for name in distinct(rows, "data"):
        ends = [
            np.mean(values(rows, "accuracy", data=name, classifier=c))
            for c in ("RLSVM2", "RLSVM2 at chosen mu")
        ]
        worst = max(worst, float(ends[0] - ends[1]))
    return _verdict(worst <= 0.02), f"at most {100 * worst:.1f} points lost"


def _fewer_at_chosen(rows):
    told, true = [], True
    for name in distinct(rows, "data"):
        ends = [
            float(np.mean(values(rows, "support", data=name, classifier=c)))
            for c in ("RLSVM2", "RLSVM2 at chosen mu")
        ]
        true &= ends[1] < ends[0]
        told.append(f"{name} {ends[0]:.2f} and {ends[1]:.2f}")
    return _verdict(true), "share at mu = 1 and at the chosen mu: " + ", ".join(told)


def _mu_tell_figure(rows):
    chosen = pick(rows, classifier="RLSVM2 by mu")
    table = [
        [
            name,
            *(
                mean_std(values(chosen, "support", data=name, mu=mu))
                for mu in sorted(set(values(chosen, "mu")))
            ),
        ]
        for name in distinct(chosen, "data")
    ]
    header = ("support vectors", *(f"mu = {mu:g}" for mu in sorted(set(values(chosen, "mu")))))
    return (
        f"RLSVM2. {PROTOCOL}\n\n{markdown_table(header, table)}\n\nAs in the paper, a narrow ramp "
        "leaves few support vectors and hardly costs accuracy; on ionosphere, wpbc and sonar the "
        "share no longer falls below mu = 0.3."
    )


def _mu_draw(rows):
    chosen = pick(rows, classifier="RLSVM2 by mu")
    figure, axes = subplots(1, 2, (9, 3.4))
    for ax, key in zip(axes[0], ("support", "accuracy"), strict=True):
        for name, colour, dash in zip(distinct(chosen, "data"), COLOURS, DASHES, strict=False):
            mus = sorted(set(values(chosen, "mu")))
            line = [np.mean(values(chosen, key, data=name, mu=mu)) for mu in mus]
            ax.plot(mus, line, color=colour, linestyle=dash, marker="o", markersize=3, label=name)
        ax.set(xlabel="mu", ylim=(0.0, 1.0))
        ax.set_ylabel("share of support vectors" if key == "support" else key)
    axes[0, 0].legend(frameon=False)
    return figure


def _objective_lines(rows):
    """Mean over repetitions of F at each iteration over F at the start, the last value kept."""
    lines = {}
    for name in distinct(rows, "data"):
        runs = [
            np.array(str(row["objectives"]).split(), dtype=float)
            for row in pick(rows, data=name, classifier="RLSVM0")
        ]
        longest = max(run.size for run in runs)
        padded = [np.pad(run, (0, longest - run.size), mode="edge") / run[0] for run in runs]
        lines[name] = np.mean(padded, axis=0)
    return lines


def _objective_draw(rows):
    figure, axes = subplots(1, 1, (7, 3.8))
    for (name, line), colour, dash in zip(
        _objective_lines(rows).items(), COLOURS, DASHES, strict=False
    ):
        axes[0, 0].plot(line, color=colour, linestyle=dash, marker="o", markersize=3, label=name)
    axes[0, 0].set(xlabel="iteration", ylabel="objective / first objective")
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].legend(frameon=False)
    return figure


def _objective_tell(rows):
    table = [[name, float(line[-1])] for name, line in _objective_lines(rows).items()]
    header = ("data", "last objective / first objective of RLSVM0, mean")
    return (
        f"{PROTOCOL}\n\n{markdown_table(header, table)}\n\nOn ionosphere and sonar most of "
        "the fall is in the first five iterations; on wpbc most models are without features, and "
        "there is little to lower."
    )


def _never_rises(rows):
    worst = 0.0
    for row in rows:
        if row["classifier"] in NON_CONVEX:
            line = np.array(str(row["objectives"]).split(), dtype=float)
            worst = max([worst, *np.diff(line) / line[0]])
    return _verdict(worst <= 1e-5), f"largest rise in one iteration {worst:.1e} of the first value"


def _half(rows):
    """Judged by the run that gained most; "up to" is not an average."""
    means = {name: float(line[-1]) for name, line in _objective_lines(rows).items()}
    ends = []
    for row in pick(rows, classifier="RLSVM0"):
        line = [float(value) for value in str(row["objectives"]).split()]
        ends.append(line[-1] / line[0])
    most, best = 100 * (1.0 - min(ends)), min(means, key=means.get)
    return _verdict(most >= 50.0), (
        f"by {most:.0f} % in one run; on average by {100 * (1.0 - means[best]):.0f} % on {best}, "
        "the most of all sets"
    )


def _verdict(true):
    return "confirmed" if true else "refuted"


def _larger_cells(quick):
    sets = ("sonar",) if quick else ("arcene", "dexter")
    return [{"data": name, "classifier": c} for name in sets for c in NON_CONVEX]


def _larger_measure(cell, quick):
    X, y = load(cell["data"])
    form = next(c for c in CLASSIFIERS if c.name == cell["classifier"])
    rows = []
    for lam in (1.0,):
        began = time.process_time()
        solution = fit_all(X, y, lam, (form,))[form.name]
        rows.append(
            {"lambda": lam, "steps": float(solution.n_iter), "seconds": time.process_time() - began}
        )
    return rows


def _larger_tell(rows):
    table = [
        [
            c,
            *(
                f"{row['steps']:.0f} iteration{'s' * (row['steps'] != 1)}, {row['seconds']:.2f} s"
                for row in pick(rows, classifier=c)
            ),
        ]
        for c in distinct(rows, "classifier")
    ]
    return (
        "All 200 samples of Arcene (10000 features; training and validation set) and all 600 of "
        "Dexter (20000), which stands in for Gisette, which could not be had; standardised, "
        "lambda = 1. The seconds include the convex start.\n\n"
        + markdown_table(("classifier", *distinct(rows, "data")), table)
        + "\n\nThe paper shows bars without numbers: few iterations for all. Here that holds for "
        "all but l0, whose weights move on the curved part of the penalty with 10000 features and "
        "more, so that it takes 18 to 35 iterations; on Arcene no fewer by the paper's own stop, a "
        "change of 1e-3."
    )


def _larger_draw(rows):
    figure, axes = subplots(1, 2, (9, 3.6))
    names = distinct(rows, "classifier")
    for ax, key in zip(axes[0], ("steps", "seconds"), strict=True):
        for at, data in enumerate(distinct(rows, "data")):
            heights = [values(rows, key, data=data, classifier=c)[0] for c in names]
            ax.bar(
                np.arange(len(names)) + 0.4 * at - 0.2, heights, 0.4, color=COLOURS[at], label=data
            )
        ax.set_xticks(np.arange(len(names)), names, rotation=30, ha="right", fontsize=8)
        ax.set_ylabel("iterations" if key == "steps" else "seconds")
    axes[0, 1].set_yscale("log")
    plain_log(axes[0, 1].yaxis)
    axes[0, 0].legend(frameon=False, loc="upper center")
    return figure


def _few_steps(rows):
    most = max(row["steps"] for row in rows)
    return _verdict(most <= 16), f"at most {most:.0f} iterations"


OF_PARAMETERS = (
    "As in the paper, parameters fall from l2 to l0 and from hinge to ramp, most on pima and "
    "bupa. On wpbc a model without any feature is nearly as accurate as all others, and is "
    "chosen in most repetitions by the sparse penalties: all its samples are support vectors, "
    "for hinge and ramp alike, which is the one exception."
)
OF_ITERATIONS = (
    "A few runs take longer than the paper's 16, which is the largest of its own splits; the "
    "means are of its size. Runs end here where the objective no longer falls; the page of "
    "[Theorem 3.1](004_theorem_31.md) counts iterations to the paper's own stop, a small change of "
    "the parameters. Where the convex start is already critical, one iteration is "
    "needed to see it."
)
OF_SECONDS = (
    "Hundredths of a second where the paper has seconds to minutes: each convex program "
    "starts from the one before, and the solver is not a general interior point package. "
    "RLSVM0 takes no longer than the others."
)
EXPERIMENTS = (
    _bar_figure(10, "share of parameters", "parameters", NAMES,
                (("Ramp losses use fewer support vectors than the hinge with the same penalty",
                  _fewer_support),
                 ("Fewer features from l2 to l1 to l0, except on bupa", _sparser_norms),
                 ("All classifiers have comparable accuracies", _comparable)),
                OF_PARAMETERS),
    Experiment("004 Table 2", "ramp with l2: mu = 1 against mu by cross-validation", cells,
               measure, _mu_tell, None,
               (("Choosing mu does not cost accuracy", _same_accuracy),
                ("It leaves fewer support vectors", _fewer_at_chosen)), data="004_uci"),
    Experiment("004 Fig. 11", "support vectors and accuracy against mu", cells, measure,
               _mu_tell_figure, _mu_draw,
               (("The number of support vectors falls with mu", _fewer_with_mu),
                ("Accuracies are comparable for all mu", _same_for_all_mu)), data="004_uci"),
    _bar_figure(12, "DCA iterations", "steps", NON_CONVEX,
                (("All methods converge within 16 iterations", _bars_within_sixteen),
                 ("Every single run of DCA does", _within_sixteen),
                 ("Non-convex penalties with the hinge take especially few", _few_with_hinge),
                 ("Ramp machines take a few on ionosphere and sonar", _few_on_two_sets),
                 ("On some sets the start is already optimal", _start_is_the_end)),
                OF_ITERATIONS),
    Experiment("004 Fig. 13", "objective of RLSVM0 by iteration", cells, measure, _objective_tell,
               _objective_draw,
               (("The objective never rises", _never_rises),
                ("DCA lowers it by up to 50 %", _half)), data="004_uci"),
    _bar_figure(14, "training seconds", "seconds", NON_CONVEX,
                (("All take seconds but RLSVM0, which takes minutes", _seconds_but_for_l0),),
                OF_SECONDS),
    Experiment("004 Fig. 15", "iterations and seconds on Arcene and Dexter (for Gisette)",
               _larger_cells, _larger_measure, _larger_tell, _larger_draw,
               (("Few iterations suffice on larger sets too", _few_steps),)),
)  # fmt: skip

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
