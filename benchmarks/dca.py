"""Difference-of-convex fits: our convex steps against the same steps by HiGHS and by CVXOPT.

Run ``python benchmarks/dca.py [--sets pima ...] [--large arcene ...] [--lambdas 1.0]
[--repetitions 3] [--output FILE]`` with SPARSVM_DATA set and CVXOPT installed. It prints three
Markdown tables.

1. The six non-convex objectives on the UCI sets, columns standardised, at each lambda = n alpha.
   The same loop of tangents runs three times, its convex problems given to the interior point, to
   HiGHS (l1 penalties: linear programs; the faster of its simplex and interior point) and to
   CVXOPT, the solver of the paper (linear programs, and quadratic ones for l2). The whole fits are
   compared: the loop with its tangents is the same, and writing a program down is part of solving
   it that way. In brackets: the share of the fit that was spent in the general solver itself, the
   steps and the objective; with the ratios: the ratio of that share to our whole fit.
2. Where the 1-norm machine is all zeros: restarts. Zeros sit on the kink of the ramp, where the
   subgradient of the paper gives no sample up, so that they are critical for every ramp objective;
   CVXOPT's zeros are not exact and leave them. ``DCA(starts=2)`` begins at alpha / 4 as well.
3. Arcene, Dexter and Dorothea at lambda = 1: seconds and iterations of our fits.

Processor time on one thread, medians of the repetitions (at least a tenth of a second of them).
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from exact_hinge.quadratic import CvxoptProgram
from objectives.benchmark_utils.programs import HighsProgram

from sparsvm.certificate.certify import certified
from sparsvm.data.design import make_design
from sparsvm.datasets import load_arcene, load_dexter, load_dorothea, load_uci
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import L0, L1, L2, CappedL1
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History
from sparsvm.solvers import DCA, InteriorPoint, Solver

OBJECTIVES = {
    "ZeroNormSVM": (Hinge(), L0()),
    "CapOneNormSVM": (Hinge(), CappedL1()),
    "RLSVM2": (Ramp(), L2()),
    "RLSVM1": (Ramp(), L1()),
    "RLSVM0": (Ramp(), L0()),
    "RLSVMC1": (Ramp(), CappedL1()),
}
UCI = ("pima", "bupa", "ionosphere", "wpbc", "sonar")
LARGE = {"arcene": load_arcene, "dexter": load_dexter, "dorothea": load_dorothea}
ASKED = {"HiGHS": 5.0, "CVXOPT": 20.0}
clock = time.process_time


class Programs(Solver):
    """A general solver for the convex problems of one data set; ``seconds`` adds its calls up."""

    name = "program"

    def __init__(self, X, make):
        self.X = X
        self.make = make
        self.seconds = 0.0

    def unsupported(self, problem):
        return None

    def solve(self, problem, start, control):
        program = self.make(problem, self.X)
        began = clock()
        point = program.solve()
        took = clock() - began
        self.seconds += took
        return certified(
            problem,
            *point,
            tol=1e-6,
            n_iter=1,
            seconds=took,
            history=History.empty(),
            solver=self.name,
        )


def problem_of(X, y, loss, penalty, lam):
    """The objective of the paper at its lambda, in our scaling."""
    y = np.unique(y, return_inverse=True)[1].astype(np.int32)
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(y.size, 1.0 / y.size),
        cost=loss.cost_matrix(2),
        n_classes=2,
        alpha=lam / y.size * (2.0 if penalty.name == "l2" else 1.0),
        loss=loss,
        penalty=penalty.resolve(X.shape[1], 1),
    )


def standardised(X):
    std = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(std > 0.0, std, 1.0))


def ours(X, y, loss, penalty, lam, repetitions, starts=1):
    """Median seconds of our fit, and its solution."""
    times = []
    while len(times) < repetitions or sum(times) < 0.1:
        problem = problem_of(X, y, loss, penalty, lam)
        began = clock()
        dca = DCA(starts, InteriorPoint())
        solution = dca.solve(problem, None, Control(tol=1e-4))
        times.append(clock() - began)
    return statistics.median(times), solution


def baselines(X, y, loss, penalty, lam):
    """Seconds and iterations of the same loop by the general solvers; the best method of HiGHS."""
    makers = {"CVXOPT": [CvxoptProgram]}
    if penalty.name != "l2":
        makers["HiGHS"] = [
            lambda problem, X: HighsProgram(problem, X, "highs-ds"),
            lambda problem, X: HighsProgram(problem, X, "highs-ipm"),
        ]
    found = {}
    for name, candidates in makers.items():
        for make in candidates:
            programs = Programs(X, make)
            problem = problem_of(X, y, loss, penalty, lam)
            began = clock()
            solution = DCA(solver=programs).solve(problem, None, Control(tol=1e-4))
            seconds = clock() - began
            if name not in found or seconds < found[name][0]:
                found[name] = (seconds, solution, programs.seconds / seconds)
    return found


def small_table(sets, lambdas, repetitions):
    yield (
        "| data | lambda | objective | ours, s (steps, value) | HiGHS, s (share, steps, value) "
        "| ratio | CVXOPT, s (share, steps, value) | ratio |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    worst = {other: [np.inf, np.inf] for other in ASKED}
    for name in sets:
        X, y = load_uci(name, return_X_y=True)
        X = standardised(X)
        for lam in lambdas:
            for objective, (loss, penalty) in OBJECTIVES.items():
                seconds, solution = ours(X, y, loss, penalty, lam, repetitions)
                cells = [name, f"{lam:g}", objective, _cell(seconds, solution)]
                others = baselines(X, y, loss, penalty, lam)
                for other in ASKED:
                    if other not in others:
                        cells += ["not linear", ""]
                        continue
                    whole = others[other][0] / seconds
                    ratios = (whole, whole * others[other][2])
                    worst[other] = list(map(min, worst[other], ratios))
                    cells += [_cell(*others[other]), f"{ratios[0]:.0f} ({ratios[1]:.0f})"]
                yield "| " + " | ".join(cells) + " |"
    yield ""
    for other, (whole, solver) in worst.items():
        yield (
            f"Smallest ratio to {other}: {whole:.1f} (asked for: {ASKED[other]:g}), "
            f"{solver:.1f} where only the time inside {other} counts."
        )


def restarts_table(sets, lambdas, repetitions):
    yield "| data | lambda | objective | one start, s (steps, value) | two starts, s |"
    yield "|---|---|---|---|---|"
    for name in sets:
        X, y = load_uci(name, return_X_y=True)
        X = standardised(X)
        for lam in lambdas:
            for objective, (loss, penalty) in OBJECTIVES.items():
                if penalty.name == "l2":
                    continue
                once = ours(X, y, loss, penalty, lam, repetitions)
                if np.any(once[1].coef):
                    continue
                twice = ours(X, y, loss, penalty, lam, repetitions, starts=2)
                yield f"| {name} | {lam:g} | {objective} | {_cell(*once)} | {_cell(*twice)} |"


def large_table(sets):
    yield "| data | " + " | ".join(OBJECTIVES) + " | together, s |"
    yield "|---|" + "---|" * (len(OBJECTIVES) + 1)
    for name in sets:
        X, y = LARGE[name](return_X_y=True)
        X = X / max(X.max(), 1.0)
        total, cells = 0.0, []
        for loss, penalty in OBJECTIVES.values():
            problem = problem_of(X, y, loss, penalty, 1.0)
            began = clock()
            solution = DCA().solve(problem, None, Control(tol=1e-4))
            seconds = clock() - began
            total += seconds
            features = np.count_nonzero(solution.coef)
            cells.append(f"{seconds:.2f} s, {solution.n_iter} steps, {features} features")
            assert solution.converged, (name, loss, penalty, solution.criticality)
        yield f"| {name} {X.shape[0]} × {X.shape[1]} | " + " | ".join(cells) + f" | {total:.1f} |"


def _cell(seconds, solution, share=None):
    words = [] if share is None else [f"{share:.0%}"]
    words += [f"{solution.n_iter}", f"{solution.objective:.5f}"]
    return f"{seconds:.3g} ({', '.join(words)})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(UCI), choices=UCI)
    parser.add_argument("--large", nargs="*", default=list(LARGE), choices=list(LARGE))
    parser.add_argument("--lambdas", nargs="*", type=float, default=[1.0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, help="also write the tables here")
    arguments = parser.parse_args()
    lines = [
        "# Non-convex fits",
        "",
        f"`python {' '.join(sys.argv)}`, one thread of a machine shared with other work, processor "
        "time.",
        "",
    ]
    tables = (
        small_table(arguments.sets, arguments.lambdas, arguments.repetitions),
        restarts_table(arguments.sets, arguments.lambdas, arguments.repetitions),
        large_table(arguments.large),
    )
    for table in tables:
        for line in table:
            print(line, flush=True)
            lines.append(line)
        print()
        lines.append("")
    if arguments.output:
        arguments.output.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
