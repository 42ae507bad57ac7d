"""Seconds of the hinge solvers side by side: where the table behind ``solver="auto"`` comes from.

Run ``python benchmarks/auto.py [--limit SECONDS] [--data digits ...]``. Every line is one problem
to one relative gap; a solver is stopped after the limit, in seconds of processor time. The
objective is the mean hinge plus alpha times the penalty with alpha = 1/(lambda n); data are bundled
with scikit-learn or simulated.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import multiprocessing
import signal
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from sparsvm.data.design import make_design
from sparsvm.losses import Hinge
from sparsvm.penalties import as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import as_solver

SOLVERS = ("interior_point", "sdca", "newton")


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def gaussians(n, d, K):
    """One feature in five matters, and the classes overlap."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, K)) * (rng.random((d, 1)) < 0.2)
    return X, np.argmax(X @ W + 2.0 * rng.standard_normal((n, K)), axis=1)


def documents(n, d, K):
    """Counts of words whose frequencies fall like 1/rank, some of them tied to a class."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    frequency = 1.0 / np.arange(1, d + 1)
    tilt = np.exp(1.5 * rng.standard_normal((K, d)) * (rng.random(d) < 0.1))
    counts = np.array([rng.multinomial(120, f / f.sum()) for f in (frequency * tilt)[y]])
    return TfidfTransformer().fit_transform(counts), y


DATA = {
    "wine": wine,
    "digits": digits,
    "genes 60 x 5000, K = 3": lambda: gaussians(60, 5000, 3),
    "dense 400 x 300, K = 4": lambda: gaussians(400, 300, 4),
    "dense 2000 x 300, K = 4": lambda: gaussians(2000, 300, 4),
    "sparse 100 x 5000, K = 5": lambda: documents(100, 5000, 5),
    "sparse 1000 x 5000, K = 10": lambda: documents(1000, 5000, 10),
}


def make_problem(X, y, penalty, lam):
    n, K = y.size, int(y.max()) + 1
    return Problem(
        design=make_design(X),
        y=y.astype(np.int32),
        mass=np.full(n, 1.0 / n),
        cost=Hinge().cost_matrix(K),
        n_classes=K,
        alpha=1.0 / (lam * n),
        loss=Hinge(),
        penalty=as_penalty(penalty).resolve(X.shape[1], 1 if K == 2 else K, None),
    )


def timed(problem, name, tol, limit):
    """Return what one solver did, from a forked process which a timer ends."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_solve, args=(problem, name, tol, limit, sender))
    child.start()
    sender.close()
    try:
        text = receiver.recv()
    except EOFError:
        text = f"> {limit:g} s"
    child.join()
    return text


def _solve(problem, name, tol, limit, sender):
    signal.setitimer(signal.ITIMER_PROF, limit)
    warnings.simplefilter("ignore")
    began = time.process_time()
    solution = as_solver(name).solve(problem, None, Control(tol=tol))
    seconds = time.process_time() - began
    missed = "" if solution.converged else f" ({solution.relative_gap:.0e})"
    sender.send(f"{seconds:.3g} s{missed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--data", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--penalties", nargs="*", default=["l1", "l1/l2", "l1/linf", "l2"])
    parser.add_argument("--lambdas", nargs="*", type=float, default=[1.0, 100.0])
    options = parser.parse_args()
    print("| data | penalty | λ | gap | " + " | ".join(SOLVERS) + " |")
    print("|" + " --- |" * (4 + len(SOLVERS)))
    for name in options.data:
        X, y = DATA[name]()
        for penalty in options.penalties:
            for lam in options.lambdas:
                problem = make_problem(X, y, penalty, lam)
                for tol in (1e-4, 1e-6):
                    cells = [timed(problem, solver, tol, options.limit) for solver in SOLVERS]
                    shown = " | ".join(cells)
                    print(f"| {name} | {penalty} | {lam:g} | {tol:g} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
