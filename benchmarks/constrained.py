"""The least penalty within a hinge budget: the default against fbpd_epigraph and fbpd_linear.

Run ``python benchmarks/constrained.py`` with ``SPARSVM_DATA`` set. The error of a model is the
larger of the relative error of its penalty (against a certified optimum) and its violation divided
by eta. Seconds are of the processor, one thread. The default is timed as a whole, certificate
included; of the proximal methods only the iterations are, with the better of the last iterate and
the mean. They start with three ratios of their steps, and the best one after a tenth of the limit
goes on; the limit is 21 times the time of the default.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time

import numpy as np
from exact_hinge.cases import CASES
from threadpoolctl import threadpool_limits

from sparsvm.budget import BudgetSearch, FBPDEpigraph, FBPDLinear
from sparsvm.budget.fbpd_budget import default_ratio
from sparsvm.budget.frontier_ends import zero_point
from sparsvm.budget.problem import ConstrainedProblem
from sparsvm.problem.solution import Control

PROBLEMS = [
    f"{data}_{penalty}_1"
    for data in ("leukemia", "mnist")
    for penalty in ("l1", "l1l2_blocks", "l1linf_blocks")
]
RATIOS = (0.3, 3.0, 30.0)
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
TARGET = 1e-5


class Run:
    """A proximal method in slices, with the time at which each level of error was reached."""

    def __init__(self, kind, problem, factor, optimum, alpha):
        self.problem = problem
        self.optimum = optimum
        self.factor = factor
        self.method = kind(ratio=factor * default_ratio(problem, alpha)).native(problem, alpha)
        self.seconds, self.done, self.window = 0.0, 0, 0
        self.error = np.inf
        self.reached = {}

    def advance(self, until):
        """Iterate until so many seconds are spent or the target is reached."""
        while self.seconds < until and TARGET not in self.reached:
            if self.done > 2 * self.window:
                self.window = self.done
                self.method.forget()
            began = time.process_time()
            self.done += self.method.run(max(50, self.done // 16))
            self.seconds += time.process_time() - began
            self.error = min(self._error(self.method.last()), self._error(self.method.mean()))
            for level in LEVELS:
                if self.error <= level and level not in self.reached:
                    self.reached[level] = self.seconds

    def _error(self, iterate):
        coef, intercept = np.ascontiguousarray(iterate[0].T), iterate[1]
        return error(self.problem, coef, intercept, self.optimum)


def error(problem, coef, intercept, optimum):
    """The larger of the relative error of the penalty and the violation over eta."""
    penalty = abs(problem.penalty(coef) / optimum - 1.0)
    return max(penalty, problem.violation(coef, intercept) / problem.eta)


def default(make, optimum, repeats=3):
    """Seconds, error and number of solves of the default, the median of a few calls."""
    times = []
    for _ in range(repeats):
        problem = make()
        began = time.process_time()
        found = BudgetSearch().solve(problem, None, Control(tol=TARGET))
        times.append(time.process_time() - began)
    return float(np.median(times)), error(problem, found.coef, found.intercept, optimum), found


def proximal(kind, problem, optimum, limit):
    """The best of the ratios, after a tenth of the limit, taken to the limit."""
    alpha = 0.4 * problem.bound(zero_point(problem).dual).alpha
    runs = [Run(kind, problem, factor, optimum, alpha) for factor in RATIOS]
    for run in runs:
        run.advance(0.1 * limit)
    best = min(runs, key=lambda run: (run.reached.get(TARGET, np.inf), run.error))
    best.advance(limit)
    return best


def row(name, eta):
    """One line of the table."""

    def make():
        return ConstrainedProblem(CASES[name].problem(), eta)

    problem = make()
    exact = BudgetSearch().solve(problem, None, Control(tol=1e-7))
    seconds, ours, found = default(make, exact.objective)
    limit = 21.0 * seconds
    cells = [
        name.removesuffix("_1"),
        f"{eta:g}",
        f"{exact.relative_gap:.0e}",
        f"{seconds:.3f}",
        str(found.n_iter),
        f"{ours:.0e}",
    ]
    for kind in (FBPDEpigraph, FBPDLinear):
        run = proximal(kind, problem, exact.objective, limit)
        levels = [f"{run.reached[a]:.2f}" if a in run.reached else "–" for a in LEVELS[:3]]
        total = f"{run.seconds:.2f}" if TARGET in run.reached else f"> {run.seconds:.2f}"
        factor = f"{run.seconds / seconds:.0f}"
        cells += [" / ".join(levels), total, f"{run.error:.0e}"]
        cells.append(factor if TARGET in run.reached else f"> {factor}")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS, help="which, by their names")
    parser.add_argument("--eta", nargs="*", type=float, default=[0.3, 0.05], help="the budgets")
    options = parser.parse_args()
    head = ["problem", "eta", "gap of the optimum", "default (s)", "solves", "error"]
    for name in ("epigraph", "linear"):
        head += [f"{name}: s to 1e-1 / 1e-2 / 1e-3", "s to 1e-5", "its error", "ratio"]
    print("| " + " | ".join(head) + " |", flush=True)
    print("|" + " --- |" * len(head), flush=True)
    for name in options.problems:
        for eta in options.eta:
            print("| " + " | ".join(row(name, eta)) + " |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
