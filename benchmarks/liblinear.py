"""Time to equal objective against LIBLINEAR's Crammer-Singer SVM (l2, no intercept, News20).

Run ``python benchmarks/liblinear.py`` with SPARSVM_DATA set. For each C it finds, among tolerances
3^-k, the coarsest with which ``LinearSVC(multi_class="crammer_singer", fit_intercept=False)`` has
an objective within 1e-3 or 1e-6 (relative) of the best lower bound, and how long ``sdca`` takes to
an objective as good; both are whole calls in seconds of processor time, one thread. Our own stop,
at a certified gap, comes later: that time is given too.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np
from exact_hinge.cases import load, make_problem
from sklearn.svm import LinearSVC

from sparsvm.penalties import L2
from sparsvm.problem.solution import Control
from sparsvm.solvers import SDCA

clock = time.process_time


def liblinear(X, y, problem, C, goal):
    """Return the seconds of the coarsest tolerance whose objective is at most ``goal``."""
    for power in range(15):
        model = LinearSVC(
            multi_class="crammer_singer",
            fit_intercept=False,
            C=C,
            tol=3.0**-power,
            max_iter=1_000_000,
            random_state=0,
        )
        began = clock()
        model.fit(X, y)
        seconds = clock() - began
        if problem.objective(model.coef_, np.zeros(problem.n_outputs)) <= goal:
            return seconds
    return np.inf


def ours(problem, goal):
    """Return the seconds until a look at the iterate finds an objective of at most ``goal``."""
    began = clock()
    method = SDCA()._method(problem, Control())
    method.start(None, np.zeros(problem.n_outputs), None)
    while method.sweeps < 20_000:
        method.run(np.inf, 1000)
        if problem.alpha * method.values()["objective"] <= goal:
            return clock() - began
    return np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load("news20_full")
    print("| C | relative error | LIBLINEAR (s) | sdca (s) | ratio | sdca, certified (s) |")
    print("|" + " --- |" * 6)
    for C in options.C:
        problem = replace(make_problem(X, y, L2(), C), fit_intercept=False)
        best = SDCA().solve(problem, None, Control(tol=1e-6)).dual_objective
        for error in (1e-3, 1e-6):
            goal = best * (1.0 + error)
            theirs, mine = liblinear(X, y, problem, C, goal), ours(problem, goal)
            began = clock()
            SDCA().solve(problem, None, Control(tol=error))
            whole = clock() - began
            print(
                f"| {C:g} | {error:.0e} | {theirs:.2f} | {mine:.2f} | {theirs / mine:.2f} "
                f"| {whole:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
