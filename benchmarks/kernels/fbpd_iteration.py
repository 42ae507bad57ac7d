"""What an iteration of FBPD costs beyond its two matrix products.

Prints, for designs of several shapes, the time of one iteration divided by the time of its two
products alone, measured in turns within one thread: the products X W and Xᵀ Y of NumPy (BLAS) or
SciPy (sparse), less what Python takes to call them, and, behind a slash, those of this package, on
the same state and buffers. Times are of the processor, the shortest over the turns, since whatever
else the machine does only ever adds to it. The aim is at most 1.3 of NumPy's and SciPy's products
where the design has ten non-zeros per feature. ``--data`` takes the real data sets in the folder
that the environment variable SPARSVM_DATA names, ``--grid`` goes through sizes systematically, with
l1. Results are in ``results/kernels.md``.

    python benchmarks/kernels/fbpd_iteration.py [--data | --grid]
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from real_data import data_sets

from sparsvm.data.design import make_design
from sparsvm.losses import Hinge
from sparsvm.penalties import as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.solvers import FBPD, blas_threads

# name, samples, features, classes, share of non-zeros (None: dense), scalar
SHAPES = [
    ("iris-sized, dense", 150, 4, 3, None, np.float64),
    ("wine-sized, dense", 178, 13, 3, None, np.float64),
    ("glass-sized, dense", 214, 9, 6, None, np.float64),
    ("vehicle-sized, dense", 846, 18, 4, None, np.float64),
    ("vowel-sized, dense", 528, 10, 11, None, np.float64),
    ("letter-sized, dense", 20_000, 16, 26, None, np.float64),
    ("pima-sized, dense", 768, 8, 2, None, np.float64),
    ("digits-sized, dense", 1_797, 64, 10, None, np.float64),
    ("short rows, dense", 20_000, 50, 3, None, np.float64),
    ("MNIST-like, dense", 5_000, 784, 10, None, np.float64),
    ("MNIST-like, float32", 5_000, 784, 10, None, np.float32),
    ("two classes, dense", 5_000, 784, 2, None, np.float64),
    ("genes, dense", 72, 7_129, 3, None, np.float64),
    ("News20-like, CSR", 11_314, 56_436, 20, 0.0014, np.float64),
    ("short rows, CSR", 50_000, 2_000, 5, 0.01, np.float64),
]
PENALTIES = ["l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet"]

# samples, features, non-zeros per sample (None: dense)
GRID = [
    *((n, d, None) for n in (100, 1_000, 10_000) for d in (4, 8, 16, 32, 100)),
    *((100_000, d, None) for d in (4, 16)),
    *((n, d, e) for n, d in ((1_000, 100), (20_000, 1_000)) for e in (2, 10, 50)),
]
GRID_CLASSES = [2, 3, 4, 6, 8, 10, 13, 16, 26, 100]


class Ratios(NamedTuple):
    """An iteration in products of NumPy or SciPy, in our own, and its seconds."""

    library: float
    own: float
    iteration: float

    def __str__(self):
        return f"{self.library:.2f} / {self.own:.2f}"


def random_data(n, d, classes, density, scalar):
    rng = np.random.default_rng(0)
    if density is None:
        X = rng.standard_normal((n, d)).astype(scalar)
    else:
        X = sp.random_array((n, d), density=density, format="csr", rng=rng, dtype=scalar)
    # Labels that the features explain, or the model stays at zero and has no scores to compute.
    return X, (X @ rng.standard_normal((d, classes))).argmax(axis=1)


def make_problem(X, y, classes, alpha, penalty):
    n, d = X.shape
    return Problem(
        design=make_design(X),
        y=y.astype(np.int32),
        mass=np.full(n, 1 / n),
        cost=Hinge().cost_matrix(classes),
        n_classes=classes,
        alpha=alpha,
        loss=Hinge(),
        penalty=as_penalty(penalty).resolve(d, 1 if classes == 2 else classes, None),
    )


def library_products(X, outputs):
    """``run(count)`` for the two products by NumPy, without allocation, or by SciPy."""
    rng = np.random.default_rng(0)
    X = X.astype(np.float64)
    XT, W, Y = X.T, *(rng.standard_normal((size, outputs)) for size in X.shape[::-1])
    S, G = np.empty_like(Y), np.empty_like(W)

    def run(count):
        for _ in range(count):
            if sp.issparse(X):
                X @ W, XT @ Y
            else:
                np.dot(X, W, out=S), np.dot(XT, Y, out=G)

    return run


def calls_alone(X, outputs):
    """The same for one entry: what Python takes, which an iteration does not have."""
    return library_products(X[:1, :1], outputs)


def seconds(run, count):
    start = time.thread_time()
    run(count)
    return (time.thread_time() - start) / count


def measure(X, problem, turns=20, target=0.01):
    method = FBPD()._method(problem)
    runs = [make(X, problem.n_outputs) for make in (library_products, calls_alone)]
    runs += [method.products, method.run]
    method.run(40)
    count = max(1, int(target / seconds(method.run, 3)))
    library, calls, own, iteration = np.min(
        [[seconds(run, count) for run in runs] for _ in range(turns)], axis=0
    )
    return Ratios(iteration / (library - calls), iteration / own, iteration)


def print_rows(sets):
    """A line for each (name, X, y, number of classes, alpha)."""
    print("| design | n | d | K | nnz/d | " + " | ".join(PENALTIES) + " | iteration with l1 |")
    print("|---|---|---|---|---|" + "---|" * (len(PENALTIES) + 1))
    for name, X, y, classes, alpha in sets:
        n, d = X.shape
        each = (X.nnz if sp.issparse(X) else X.size) / d
        assert each >= 10
        all_of_them = [measure(X, make_problem(X, y, classes, alpha, p)) for p in PENALTIES]
        ratios = " | ".join(map(str, all_of_them))
        print(f"| {name} | {n} | {d} | {classes} | {each:.0f} | {ratios}"
              f" | {1e6 * all_of_them[0].iteration:.1f} µs |", flush=True)  # fmt: skip


def shapes():
    for name, n, d, classes, density, scalar in SHAPES:
        yield name, *random_data(n, d, classes, density, scalar), classes, 0.01 / np.sqrt(n)


def real():
    try:
        for name, X, y in data_sets():
            names, number = np.unique(y, return_inverse=True)
            if sp.issparse(X):
                X.sort_indices()
            yield name, X, number, names.size, 1 / y.size
    except FileNotFoundError as missing:
        print(missing)


def print_grid():
    print("| n | d | nnz per sample | " + " | ".join(f"K={K}" for K in GRID_CLASSES) + " |")
    print("|---|---|---|" + "---|" * len(GRID_CLASSES))
    for n, d, entries in GRID:
        ratios = []
        for classes in GRID_CLASSES:
            density = None if entries is None else entries / d
            X, y = random_data(n, d, classes, density, np.float64)
            problem = make_problem(X, y, classes, 0.01 / np.sqrt(n), "l1")
            ratios.append(str(measure(X, problem, turns=8, target=0.002)))
        print(f"| {n} | {d} | {entries or 'dense'} | " + " | ".join(ratios) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--data", action="store_true", help="real data sets, not named designs")
    which.add_argument("--grid", action="store_true", help="sizes in turn, not named designs")
    arguments = parser.parse_args()
    with blas_threads(1):
        print_grid() if arguments.grid else print_rows(real() if arguments.data else shapes())


if __name__ == "__main__":
    main()
