"""000 Fig. 4 and section 4.3: l2 by Algorithms 1 and 2 and by SVM-struct; features of l1/linf."""

from __future__ import annotations

import time
import warnings

from harness import Experiment, distinct, markdown_table, pick, subplots, values, verdict

# isort: split

import numpy as np
from samples import scattered_draw

from sparsvm import ConstrainedSparseSVC, SparseSVC
from sparsvm.budget import FBPDEpigraph
from sparsvm.penalties import L2, GroupLinf
from sparsvm.plots.style import COLOURS, DASHES
from sparsvm.solvers import FBPD, CuttingPlane, Observed

STOP = 1e-3
ALPHAS = (0.1, 1.0)
# Draws of each number of images per class, of the paper's ten.
DRAWS = {3: 10, 5: 10, 10: 10, 50: 3, 100: 2, 500: 1}
SIZES = tuple(DRAWS)
ALGORITHMS = ("Algorithm 1", "Algorithm 2", "SVM-struct", "our default")
# Runs to the same accuracy, a relative gap, at one alpha: what the rules leave is not the same.
EQUAL, EQUAL_GAP, EQUAL_ALPHA, EQUAL_SIZES = "{}, gap 1e-2", 1e-2, 1.0, (3, 10, 50, 500)
EQUAL_SECONDS = 100.0
PAIR = ("Algorithm 1", "SVM-struct")
# tau / sigma of Algorithm 1, which the paper does not give: of 100 to 60000 at 3 per class it came
# nearest to the optimum at both alphas. Algorithm 2 did so with its default.
RATIO_PER_SAMPLE = 100.0
THRESHOLD = 1e-5
TOL = 1e-2  # of the fits whose weights are counted
PAPER = {"l2": 158214, "l1/linf": 42795}


def model(algorithm, alpha, n):
    """Return the classifier.

    The paper's l2 has no half, and its lambda = 1 / alpha is of a sum: our alpha is 2 alpha / n.
    The budget eta is alpha, as in the paper's section 4.1; SVM-struct gets the same problem as
    Algorithm 1.
    """
    if algorithm == "Algorithm 2":
        solver = FBPDEpigraph(stopping="change")
        return ConstrainedSparseSVC(penalty=L2(), eta=min(alpha, 0.9), solver=solver, tol=STOP)
    solver = {
        "Algorithm 1": FBPD(stopping="change", ratio=RATIO_PER_SAMPLE * n),
        "SVM-struct": CuttingPlane(stopping="violation"),
        "our default": "auto",
    }[algorithm]
    return SparseSVC(penalty=L2(), alpha=2.0 * alpha / n, solver=solver, tol=STOP)


def to_equal_gap(algorithm, alpha, n):
    """The same classifier, stopped by its gap or after some time."""
    solver = {
        EQUAL.format("Algorithm 1"): FBPD(ratio=RATIO_PER_SAMPLE * n, max_iter=1_000_000),
        EQUAL.format("SVM-struct"): CuttingPlane(max_iter=1_000_000),
    }[algorithm]
    began = time.process_time()
    observed = Observed(solver, lambda _: time.process_time() - began > EQUAL_SECONDS)
    return SparseSVC(penalty=L2(), alpha=2.0 * alpha / n, solver=observed, tol=EQUAL_GAP)


def measure_times(cell, quick):
    X, y = scattered_draw(cell["per_class"], cell["draw"])
    make = model if cell["algorithm"] in ALGORITHMS else to_equal_gap
    fitted = make(cell["algorithm"], cell["alpha"], len(y))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(X, y)
    return [
        {
            "seconds": time.process_time() - began,
            "iterations": int(fitted.result_.n_iter),
            "gap": float(fitted.dual_gap_),
        }
    ]


def cells_times(quick):
    runs = [(alpha, name) for alpha in ALPHAS for name in ALGORITHMS]
    equal = [(EQUAL_ALPHA, EQUAL.format(name)) for name in PAIR]
    sizes = SIZES[:1] if quick else SIZES
    pairs = [(size, repetition) for size in sizes for repetition in range(DRAWS[size])]
    if quick:
        pairs, runs = pairs[:1], runs[: len(ALGORITHMS)]
    # What is cheap comes first, so that a short run has several draws of the small sizes.
    return [
        {"per_class": size, "draw": repetition, "alpha": alpha, "algorithm": name}
        for size, repetition in sorted(pairs, key=lambda pair: pair[0] * (pair[1] + 1))
        for alpha, name in (*runs, *(equal if size in EQUAL_SIZES and not quick else ()))
    ]


def _mean(rows, size, alpha, algorithm, key="seconds"):
    found = pick(rows, per_class=size, alpha=alpha, algorithm=algorithm)
    return float(np.mean([row[key] for row in found])) if found else None


def tell_times(rows):
    table = []
    for size in sorted(distinct(rows, "per_class")):
        for alpha in sorted(distinct(rows, "alpha")):
            for algorithm in (*ALGORITHMS, *map(EQUAL.format, PAIR)):
                seconds = _mean(rows, size, alpha, algorithm)
                if seconds is None:
                    continue
                draws = len(pick(rows, per_class=size, alpha=alpha, algorithm=algorithm))
                others = [_mean(rows, size, alpha, algorithm, key) for key in ("iterations", "gap")]
                others[0] = f"{others[0]:.0f}"
                if algorithm not in ALGORITHMS and others[1] > EQUAL_GAP:
                    others[0] = "ended by time"
                each = values(rows, "seconds", per_class=size, alpha=alpha, algorithm=algorithm)
                shown = f"{seconds:.2f}"
                shown += f" ({min(each):.2f} to {max(each):.2f})" if draws > 1 else ""
                table.append((size, alpha, algorithm, draws, shown, *others))
    header = ("per class", "alpha", "algorithm", "draws", "seconds", "iterations", "relative gap")
    return (
        "MNIST with scattering features and the squared l2 norm. Every method stops at 1e-3 by "
        "its own rule: the relative change of two iterates for Algorithms 1 and 2, the violation "
        "for SVM-struct, the relative duality gap for our default. These are not the same "
        "accuracy: the last column has the relative gap each one reached, of its own problem. Runs "
        f"to the same gap, of {EQUAL_GAP:g}, are therefore given too; they end after "
        f"{EQUAL_SECONDS:g} s. The ratio of Algorithm 1's steps, which the paper does not give, is "
        "the best one at 3 images per class. "
        "Means over the draws, of processor seconds, with the least and the largest; the paper has "
        "10 draws of each size. At 500 images per class only what the table lists was run, "
        "at another time than the rest; the features alone take 635 MB.\n\n"
        + markdown_table(header, table)
        + "\n\nA small relative change stops Algorithms 1 and 2 far from the optimum where steps "
        "are short, so that the gaps they leave grow with the number of images; SVM-struct's rule "
        "is a bound on the objective, and keeps its meaning. The paper's order is therefore judged "
        "by the runs to the same gap."
    )


def draw_times(rows):
    alphas = sorted(distinct(rows, "alpha"))
    figure, axes = subplots(1, len(alphas), (5 * len(alphas), 3.6))
    for ax, alpha in zip(axes.flat, alphas, strict=True):
        for algorithm, colour, dash in zip(ALGORITHMS, COLOURS, DASHES, strict=False):
            points = [
                (size, seconds)
                for size in sorted(distinct(rows, "per_class"))
                if (seconds := _mean(rows, size, alpha, algorithm)) is not None
            ]
            if points:
                ax.loglog(*zip(*points, strict=True), dash, marker="o", color=colour)
                ax.lines[-1].set_label(algorithm)
        ax.set(title=f"alpha = {alpha:g}", xlabel="images per class", ylabel="seconds")
        sizes = sorted(distinct(rows, "per_class"))
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
    axes.flat[0].legend(frameon=False, fontsize=8)
    return figure


def _equal(rows, sizes):
    """Seconds of Algorithm 1 and of SVM-struct to the same gap, by draw, and in words."""
    found, told = [], []
    for size in sizes:
        runs = [pick(rows, per_class=size, algorithm=EQUAL.format(name)) for name in PAIR]
        both = set.intersection(*({row["draw"] for row in run} for run in runs))
        if not both:
            continue
        shown = []
        for run in runs:
            run[:] = sorted((r for r in run if r["draw"] in both), key=lambda row: row["draw"])
            missed = [row["gap"] for row in run if row["gap"] > EQUAL_GAP]
            mean = np.mean(values(run, "seconds"))
            shown.append(f"only {max(missed):.2g}" if missed else f"{mean:.2f} s")
        seconds = [[r["seconds"] if r["gap"] <= EQUAL_GAP else np.inf for r in run] for run in runs]
        found.append(np.array(seconds))
        draws = f"{len(both)} draw{'s' if len(both) > 1 else ''}"
        told.append(f"{size} per class, {draws}: {' and '.join(shown)}")
    return found, f"Algorithm 1 and SVM-struct to a gap of {EQUAL_GAP:g}: " + "; ".join(told)


def _few(rows):
    found, told = _equal(rows, EQUAL_SIZES[:2])
    if not found:
        return "not testable here", "needs both"
    means = [seconds.mean(axis=1) for seconds in found]
    return verdict([bool(a <= 2.0 * b) for a, b in means]), f"{told} ('competitive': a factor of 2)"


def _many(rows):
    found, told = _equal(rows, EQUAL_SIZES[2:])
    if not found:
        return "not testable here", "needs 50 or 500 per class"
    return verdict([bool(a > b) for a, b in (seconds.mean(axis=1) for seconds in found)]), told


def measure_features(cell, quick):
    X, y = scattered_draw(cell["per_class"], 0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell["penalty"] == "l1/linf":
            coef, gap = _fitted_on_few(X, y, cell["alpha"])
        else:
            fitted = SparseSVC(penalty=L2(), alpha=2.0 * cell["alpha"] / len(y), tol=TOL).fit(X, y)
            coef, gap = fitted.coef_, fitted.dual_gap_
    return [
        {
            "significant": int(np.count_nonzero(np.abs(coef) > THRESHOLD)),
            "all": int(coef.size),
            "gap": float(gap),
            "seconds": time.process_time() - began,
        }
    ]


def _fitted_on_few(X, y, alpha):
    """Return the weights with l1/linf of all samples and their relative gap.

    Most samples are beyond the margin in the end, and have no part in the solution. So the problem
    is solved on some, the paper's sum of losses over them, and those that it leaves within the
    margin join. Their losses are what the gap of the part lacks: the dual variables of the part
    are feasible for all, with zeros for the others.
    """
    penalty = GroupLinf(groups=81, per_class=True)
    own = np.arange(len(y)), np.searchsorted(np.unique(y), y)
    inside = np.concatenate([np.flatnonzero(y == k)[:20] for k in np.unique(y)])
    while True:
        inside = np.sort(inside)
        model = SparseSVC(
            penalty=penalty, alpha=alpha / len(inside), solver="interior_point", tol=TOL / 2
        ).fit(X[inside], y[inside])
        scores = model.decision_function(X)
        margins = 1.0 + scores - scores[own][:, None]
        margins[own] = 0.0
        losses = margins.max(axis=1)
        losses[inside] = 0.0
        part = model.objective_ * len(inside)
        gap = (model.dual_gap_ * part + losses.sum()) / (part + losses.sum())
        joining = np.argsort(-losses)[: min(np.count_nonzero(losses), len(inside))]
        if gap <= TOL or joining.size == 0:
            return model.coef_, gap
        inside = np.append(inside, joining)


def cells_features(quick):
    sizes = (3,) if quick else (10, 50, 100, 500)
    return [
        {"per_class": size, "penalty": penalty, "alpha": 1.0} for size in sizes for penalty in PAPER
    ]


def tell_features(rows):
    rows = sorted(rows, key=lambda row: row["per_class"])
    table = [
        (
            row["per_class"], row["penalty"], row["significant"], row["all"],
            row["gap"], row["seconds"],
        )
        for row in rows
    ]  # fmt: skip
    table += [(500, f"{name} (the paper)", count, 158760, "", "") for name, count in PAPER.items()]
    header = ("per class", "penalty", "weights above 1e-5", "of", "relative gap", "seconds")
    return (
        "Weights above 1e-5 of the hinge with l2 and with l1/linf in blocks of 81, alpha = 1 in "
        "the paper's scale, which does not give its own; fitted to a relative duality gap of 1e-2 "
        "on all samples. Most samples end beyond the margin, so with l1/linf the interior point "
        "gets those only that are not, in rounds.\n\n"
        + markdown_table(header, table)
        + "\n\nl2 has all but some hundreds of the weights, as in the paper. With l1/linf their "
        "number grows with that of the images, and stays below the paper's at 500 per class, whose "
        "alpha is not known. Iterates of a first-order method that has not come to its end may "
        "also have more weights above 1e-5 than the solution has."
    )


def draw_features(rows):
    figure, axes = subplots(1, 1, (5.5, 3.6))
    for name, colour, dash in zip(PAPER, COLOURS, DASHES, strict=False):
        chosen = sorted(pick(rows, penalty=name), key=lambda row: row["per_class"])
        sizes = [row["per_class"] for row in chosen]
        shares = [100.0 * row["significant"] / row["all"] for row in chosen]
        axes[0, 0].semilogx(sizes, shares, dash, marker="o", color=colour, label=name)
        share = 100.0 * PAPER[name] / 158760
        axes[0, 0].plot(500, share, "x", color=colour, markersize=9, label=f"{name}, the paper")
    axes[0, 0].set(xlabel="images per class", ylabel="weights above 1e-5 in %", ylim=(0, 105))
    sizes = sorted({500, *distinct(rows, "per_class")})
    axes[0, 0].set_xticks(sizes, [str(size) for size in sizes])
    axes[0, 0].minorticks_off()
    axes[0, 0].legend(frameon=False, fontsize=8, loc="center left")
    return figure


def _fewer(rows):
    told, true = [], True
    for size in sorted(distinct(rows, "per_class")):
        both = [pick(rows, per_class=size, penalty=name) for name in PAPER]
        if not all(both):
            continue
        dense, sparse = (found[0]["significant"] for found in both)
        true &= sparse < dense
        told.append(f"{size} per class: {dense} and {sparse}")
    return ("confirmed" if true else "refuted"), "; ".join(told)


EXPERIMENTS = (
    Experiment(
        "000 Fig. 4",
        "times with l2: Algorithms 1 and 2 and SVM-struct",
        cells_times,
        measure_times,
        tell_times,
        draw_times,
        (
            ("The proposed algorithms are competitive on few training data", _few),
            ("SVM-struct is faster on larger ones", _many),
        ),
        alternative="Seconds against images per class, one panel for each alpha",
    ),
    Experiment(
        "000 Section 4.3",
        "significant features of l2 and of l1/linf",
        cells_features,
        measure_features,
        tell_features,
        draw_features,
        (("l1/linf needs far fewer features than l2 (42795 of 158214)", _fewer),),
        alternative="Share of weights above 1e-5 against images per class",
    ),
)

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
