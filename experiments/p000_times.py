"""000 Fig. 3 and the time figures of 002: seconds of the algorithms, and distance against seconds.

MNIST with scattering features and l1/linf, 3, 5 and 10 images per class. A callback sees the
iterates of every algorithm on their way, and compares them with the solution, which our default
solvers find to a duality gap of 1e-6.
"""

from __future__ import annotations

import math
import time
import warnings
from functools import lru_cache, partial

from harness import Experiment, distinct, markdown_table, pick, plain_log, subplots, verdict

# isort: split

import numpy as np
from samples import scattered_draw

from sparsvm import ConstrainedSparseSVC, SparseSVC
from sparsvm.budget import FBPDEpigraph, FBPDLinear
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.penalties import GroupLinf
from sparsvm.plots.style import COLOURS, DASHES
from sparsvm.solvers import FBPD, FISTA, ForwardBackward, Observed

STOP = 1e-5
# Gaps of the solutions: of the hinge, and of the smooth losses, which take a minute to the former.
SOLVED, SOLVED_SMOOTH = 1e-6, 1e-3
SECONDS, QUICK_SECONDS = 10.0, 0.3
# What counts as near the optimum: the objective is at most so much above it.
NEAR = (0.1, 0.05, 0.02, 0.01)
PENALISED = {
    "Algorithm 1": (Hinge(), FBPD),
    "square, FISTA": (SquaredHinge(), FISTA),
    "logit, forward-backward": (Logistic(margin=1.0), ForwardBackward),
    "one-vs-all, FISTA": (OvrSquaredHinge(), FISTA),
}
SMOOTH = tuple(PENALISED)[1:]
BUDGETED = {"Algorithm 2": FBPDEpigraph, "linear constraints": FBPDLinear}
ALGORITHMS = ("Algorithm 1", "Algorithm 2", *list(BUDGETED)[1:], *SMOOTH)
CLAIMED = ("Algorithm 1", "Algorithm 2", "linear constraints", "logit, forward-backward")
SQUARE = "square, FISTA"
ALIKE = 2.0
# Two runs whose seconds differ by no more than this have tied: on a busy machine an iteration of
# the same algorithm on the same data took 1.2 to 1.6 ms.
TIE = 1.25
# The alpha with the best accuracy: of the penalised losses from Fig. 1 (within 0.1 points at every
# size); of the budgets .003 to .1 were within the noise of six draws, .3 three points worse.
BEST = dict.fromkeys(PENALISED, 1.0) | dict.fromkeys(BUDGETED, 0.1)
BEST["logit, forward-backward"] = 0.1
# Draws of each number of images per class, of the paper's ten.
DRAWS = {3: 3, 5: 2, 10: 1}
SIZES = tuple(DRAWS)
# tau / sigma, which the paper does not give: of 1, 10, 100 and 1000 times our defaults the last
# came nearest to the solution, of all three algorithms, in six seconds at 3 images per class.
RATIO_PER_SAMPLE, RATIO = 2000.0, 20.0
POSITIONS, CHANNELS = 196, 81


def model(algorithm, alpha, n, solver="auto", tol=STOP):
    """The paper's lambda = 1 / alpha of a sum is our alpha / n of a mean; its eta = alpha n."""
    penalty = GroupLinf(groups=CHANNELS, per_class=True)
    if algorithm in BUDGETED:
        return ConstrainedSparseSVC(penalty=penalty, eta=alpha, solver=solver, tol=tol)
    loss, _ = PENALISED[algorithm]
    return SparseSVC(loss, penalty, alpha=alpha / n, solver=solver, tol=tol)


def with_ones(X, algorithm, alpha, solver):
    """The smooth problem with the intercept as the paper has it: one more feature, not penalised.

    Our own solvers take the intercept of centred features, which is another, better conditioned
    problem; Algorithms 1 and 2 and the linear constraints have the paper's.
    """
    groups = np.append(np.repeat(np.arange(POSITIONS), CHANNELS), POSITIONS)
    weights = np.append(np.ones(POSITIONS), 0.0)
    penalty = GroupLinf(groups=groups, per_class=True, weights=weights)
    n = len(X)
    fitted = SparseSVC(PENALISED[algorithm][0], penalty, alpha=alpha / n, fit_intercept=False)
    return np.column_stack([X, np.ones(n)]), fitted.set_params(solver=solver, tol=STOP)


def method(algorithm, n):
    """The algorithm of the paper, with its stopping rule."""
    if algorithm in BUDGETED:
        return BUDGETED[algorithm](stopping="change", ratio=RATIO)
    kind = PENALISED[algorithm][1]
    options = {"ratio": RATIO_PER_SAMPLE * n} if kind is FBPD else {}
    return kind(stopping="change", **options)


def posed(X, algorithm, alpha, solver):
    """Return the features and the classifier with which the paper's problem is solved."""
    if algorithm in SMOOTH:
        return with_ones(X, algorithm, alpha, solver)
    return X, model(algorithm, alpha, len(X), solver)


def problem_of(algorithm):
    """Algorithms of the same problem share their solution."""
    return next(iter(BUDGETED)) if algorithm in BUDGETED else algorithm


@lru_cache
def solution(per_class, repetition, problem, tol):
    """Coefficients, objective and gap of the solution, and the seconds it took."""
    X, y = scattered_draw(per_class, repetition)
    began = time.process_time()
    found = model(problem, BEST[problem], len(y), tol=tol).fit(X, y)
    objective, gap = float(found.objective_), float(found.dual_gap_)
    return found.coef_, objective, gap, time.process_time() - began


def measure(cell, quick):
    algorithm, where = cell["algorithm"], (cell["per_class"], cell["draw"])
    X, y = scattered_draw(*where)
    n, d = X.shape
    tol = 1e-3 if quick else SOLVED_SMOOTH if algorithm in SMOOTH else SOLVED
    exact, least, proved, taken = solution(*where, problem_of(algorithm), tol)
    limit = QUICK_SECONDS if quick else SECONDS
    size = float(np.linalg.norm(exact)) or 1.0
    rows = []
    clock = {"watching": 0.0}

    def look(progress):
        now = time.process_time()
        seconds = now - clock["began"] - clock["watching"]
        coef, _ = progress.coefficients()
        rows.append(
            {
                "iterations": int(progress.iteration),
                "seconds": seconds,
                "distance": float(np.linalg.norm(coef[:, :d] - exact)) / size,
                "excess": float(progress.objective) / least - 1.0,
                "gap": float(progress.gap),
                "settled": 0,
                "solution_gap": proved,
                "solution_seconds": taken,
            }
        )
        clock["watching"] += time.process_time() - now
        return seconds > limit

    observed = Observed(method(algorithm, n), look)
    X, fitted = posed(X, algorithm, BEST[algorithm], observed)
    clock["began"] = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(X, y)
    rows[-1]["settled"] = int(fitted.result_.status != "stopped")
    return rows


def cells(sizes, algorithms, quick):
    if quick:
        return [{"per_class": 3, "draw": 0, "algorithm": name} for name in algorithms[:2]]
    # First draws come first, and of them what the claims are about.
    cells = [
        {"per_class": size, "draw": repetition, "algorithm": name}
        for size in sizes
        for repetition in range(DRAWS[size])
        for name in algorithms
    ]
    return sorted(cells, key=lambda cell: (cell["draw"], cell["algorithm"] not in CLAIMED))


def _runs(rows, size, algorithm):
    """The looks at an algorithm, one list for each draw."""
    found = pick(rows, per_class=size, algorithm=algorithm)
    return [pick(found, draw=repetition) for repetition in sorted(distinct(found, "draw"))]


def _at_end(rows, size, algorithm, key):
    """Mean over the draws of what the last look saw; None where it was not run."""
    ends = [run[-1][key] for run in _runs(rows, size, algorithm)]
    return float(np.mean(ends)) if ends else None


def _until(rows, size, algorithm, near):
    """Mean seconds until the objective stays so near the optimum; infinite if one never did."""
    each = []
    for run in _runs(rows, size, algorithm):
        seconds = math.inf
        for row in run:
            if not abs(row["excess"]) <= near:
                seconds = math.inf
            elif seconds == math.inf:
                seconds = row["seconds"]
        each.append(seconds)
    return float(np.mean(each)) if each else math.inf


def draw(sizes, algorithms, rows):
    sizes = [size for size in sizes if pick(rows, per_class=size)]
    figure, axes = subplots(len(sizes), 2, (10, 3.2 * len(sizes)))
    for row_of_axes, size in zip(axes, sizes, strict=True):
        for algorithm, colour, dash in zip(algorithms, COLOURS, DASHES, strict=False):
            line = pick(rows, per_class=size, draw=0, algorithm=algorithm)
            line = [row for row in line if row["seconds"] > 0]
            seconds = [row["seconds"] for row in line]
            style = {"linestyle": dash, "color": colour, "label": algorithm}
            if not line:
                continue
            row_of_axes[0].semilogx(seconds, [row["distance"] for row in line], **style)
            heights = [
                abs(row["excess"]) if 0.0 < abs(row["excess"]) < np.inf else np.nan for row in line
            ]
            row_of_axes[1].loglog(seconds, heights, **style)
        row_of_axes[0].set(ylabel=f"{size} per class\ndistance to the solution")
        row_of_axes[1].set(ylabel="objective above the optimum")
    for ax in axes.flat:
        ax.tick_params(axis="x", which="minor", labelbottom=False)
    for ax in axes[:, 1]:
        plain_log(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def _seconds(value):
    return f"{value:.1f}" if math.isfinite(value) else "not reached"


def tell(sizes, algorithms, rows):
    table = []
    for size in sizes:
        for algorithm in algorithms:
            runs = _runs(rows, size, algorithm)
            if not runs:
                continue
            end = partial(_at_end, rows, size, algorithm)
            table.append(
                (
                    size,
                    algorithm,
                    f"{BEST[algorithm]:g}",
                    len(runs),
                    f"{end('iterations'):.0f}",
                    f"{end('seconds'):.1f}",
                    end("distance"),
                    end("excess"),
                    *(_seconds(_until(rows, size, algorithm, near)) for near in NEAR),
                    f"{end('solution_seconds'):.1f}",
                )
            )
    header = (
        "per class",
        "algorithm",
        "alpha",
        "draws",
        "iterations",
        "seconds",
        "distance",
        "above the optimum",
        *(f"seconds to {100 * near:g} %" for near in NEAR),
        "our default's seconds",
    )
    return (
        "Means over the draws, of which the paper has 10, at the alpha with which each algorithm "
        "is the most accurate (see [Fig. 1](000_figure_1.md)); the figure shows the first draw. A "
        f"run ends after {SECONDS:g} processor seconds, or at a relative change of {STOP:g} "
        "between two iterates. *Distance* is that of the last iterate to the solution, relative "
        f"to its norm: the solution of our default solver, to a duality gap of {SOLVED:g} "
        f"({SOLVED_SMOOTH:g} of the smooth losses), where the paper takes the point at which the "
        "same algorithm stopped. *Above the optimum* is the relative excess of its objective (of "
        "Algorithm 2 and the linear constraints, of the penalty of the iterate once it is "
        "stretched to meet the budget), and *seconds to 10 %* are those after which it stays that "
        "near, *not reached* where it did not in one of the draws. Seconds are of the processor, "
        "certificates on the way included, which are a tenth of them or less. The paper does not "
        "give the ratio of the steps of Algorithms 1 and 2 and of the linear constraints: each has "
        "the one that, of 1 to 1000 times our defaults, came nearest to the solution at 3 images "
        "per class. The intercept of logistic regression is the paper's: a feature that is 1 and "
        "is not penalised. Times until the paper's stopping rule against alpha are on the page of "
        "the [left half](000_figure_3_left.md).\n\n"
        + markdown_table(header, table)
        + "\n\n"
        + _told(rows)
    )


def _told(rows):
    settled = [row["distance"] for row in rows if row["settled"]]
    words = "No run met the paper's rule within its seconds. "
    if settled:
        words = (
            f"{len(settled)} runs met the paper's rule within their seconds, at distances of "
            f"{min(settled):.2g} to {max(settled):.2g} to the solution. "
        )
    slowest = max(row["solution_seconds"] for row in rows)
    return words + (
        f"Our default solvers took at most {slowest:.1f} s for any of these problems, to a gap "
        f"of {max(row['solution_gap'] for row in rows):.1g}. "
        "\n\nAt the best alpha of each, the three algorithms of the hinge are about as fast as one "
        "another to a given excess of the objective; in the distance to the solution, which is the "
        "paper's measure, Algorithm 1 is the nearest of them at every end. Logistic regression is "
        "far behind all of them, as in the paper, because of the intercept: with the features "
        "centred forward-backward was as near as Algorithm 2 with our default steps. FISTA, on "
        "the square and the one-vs-all loss, begins far above the optimum and is the first to "
        "come within a hundredth of it at 3 and 5 images per class. Steps matter more than the "
        "choice among the three: with our default ones Algorithm 1, Algorithm 2 and the linear "
        "constraints were 18, 14 and 17 % above the optimum after 10 s at 3 images per class and "
        "alpha = 0.3. A time that was not reached counts as that of the end of the run (where "
        "that is a tie, what is left at the end decides), and times within a quarter as equal: "
        "the machine was busy."
    )


def _faster(mine, others, rows):
    """Whether ``mine`` is near the optimum before each of ``others``, at every size.

    Judged at the sharpest accuracy that any of them reached; where none did, by what is left.
    """
    won, told = [], []
    for size in distinct(rows, "per_class"):
        if not all(_runs(rows, size, name) for name in (mine, *others)):
            continue
        for near in sorted(NEAR):
            first = _until(rows, size, mine, near)
            rivals = [_until(rows, size, name, near) for name in others]
            if math.isfinite(min(first, *rivals)):
                ends = [_at_end(rows, size, name, "seconds") for name in (mine, *others)]
                least = np.minimum([first, *rivals], ends)
                sooner = _sooner(float(least[0]), least[1:].tolist())
                if sooner is None and not math.isfinite(max(first, *rivals)):
                    left = [abs(_at_end(rows, size, name, "excess")) for name in (mine, *others)]
                    sooner = _sooner(left[0], left[1:])
                won.append(sooner)
                shown = ", ".join(_seconds(seconds) for seconds in rivals)
                told.append(f"{size} per class, s to {near:.0%}: {_seconds(first)} against {shown}")
                break
        else:
            first, *rivals = (abs(_at_end(rows, size, a, "excess")) for a in (mine, *others))
            won.append(_sooner(first, rivals))
            shown = ", ".join(f"{excess:.2g}" for excess in rivals)
            told.append(f"{size} per class: {first:.2g} against {shown} above the optimum")
    if not won:
        return "not testable here", "needs the runs of all of them"
    return verdict(won), f"in {SECONDS:g} s, " + "; ".join(told)


def _sooner(first, rivals):
    """Whether a number is below all others; None where it is as large as one of them."""
    least = min(rivals)
    if max(first, least) <= TIE * min(first, least):
        return None
    return first < least


def _dearer(rows):
    """Compare the milliseconds of an iteration, which the paper puts down to the projections."""
    true, told = [], []
    for size in distinct(rows, "per_class"):
        if not all(_runs(rows, size, name) for name in CLAIMED[:2]):
            continue
        first, second = (
            1e3 * _at_end(rows, size, a, "seconds") / _at_end(rows, size, a, "iterations")
            for a in CLAIMED[:2]
        )
        true.append(_sooner(second, (first,)))
        told.append(f"{size} per class: {first:.1f} and {second:.1f} ms")
    if not true:
        return "not testable here", "needs both algorithms"
    return verdict(true), "; ".join(told) + f" (a tie: {TIE - 1.0:.0%})"


def _comparable(rows):
    """Judge Algorithm 2 and the square loss: seconds to the same accuracy, or what is left."""
    true, told = [], []
    pair = ("Algorithm 2", SQUARE)
    for size in distinct(rows, "per_class"):
        if not all(_runs(rows, size, name) for name in pair):
            continue
        for near in sorted(NEAR):
            found = [_until(rows, size, name, near) for name in pair]
            if all(map(math.isfinite, found)):
                what = f"s to {near:.0%}"
                break
        else:
            found = [abs(_at_end(rows, size, name, "excess")) for name in pair]
            what = f"above the optimum after {SECONDS:g} s"
        true.append(max(found) <= ALIKE * min(found))
        told.append(f"{size} per class, {what}: {found[0]:.2g} and {found[1]:.2g}")
    if not true:
        return "not testable here", "the square loss was not run"
    return ("confirmed" if all(true) else "refuted"), (
        "; ".join(told) + f" ('comparable': a factor of {ALIKE:g})"
    )


SLIDES = ("Algorithm 1", "Algorithm 2", "linear constraints", "square, FISTA", "one-vs-all, FISTA")
EXPERIMENTS = (
    Experiment(
        "000 Fig. 3",
        "distance to the solution against time",
        lambda quick: cells(SIZES, ALGORITHMS, quick),
        measure,
        lambda rows: tell(SIZES, ALGORITHMS, rows),
        lambda rows: draw(SIZES, ALGORITHMS, rows),
        (
            *(
                (
                    f"{name} is faster than {what}",
                    lambda rows, name=name, other=other: _faster(name, (other,), rows),
                )
                for other, what in zip(
                    CLAIMED[2:], ("linear constraints", "logistic regression"), strict=True
                )
                for name in CLAIMED[:2]
            ),
            (
                "Algorithm 2 converges faster than Algorithm 1",
                lambda rows: _faster("Algorithm 2", ("Algorithm 1",), rows),
            ),
            ("An iteration of Algorithm 1 costs more than one of Algorithm 2", _dearer),
            ("Their times are comparable to those of the square hinge loss", _comparable),
        ),
        alternative="Distance to the solution, and objective above the optimum, against seconds",
        data="000_times",
    ),
    Experiment(
        "002 times",
        "execution times at 3 and 10 images per class",
        lambda quick: cells((3, 10), SLIDES, quick),
        measure,
        lambda rows: tell((3, 10), SLIDES, rows),
        lambda rows: draw((3, 10), SLIDES, rows),
        (
            *(
                (
                    f"{name} is faster than linear constraints",
                    lambda rows, name=name: _faster(name, CLAIMED[2:3], rows),
                )
                for name in CLAIMED[:2]
            ),
        ),
        alternative="Distance to the solution, and objective above the optimum, against seconds",
        data="000_times",
    ),
)

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
