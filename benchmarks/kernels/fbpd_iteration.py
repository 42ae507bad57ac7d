"""What an iteration of FBPD costs beyond its two matrix products.

Prints, for designs of several shapes, the time of one iteration divided by the time of its two
products alone, on the same state and buffers, measured in turns within one thread. Times are of the
processor, the shortest over the turns, since whatever else the machine does only ever adds to it.
The aim is a ratio of at most 1.3 where the design has ten non-zeros per feature. Dense designs,
and CSR of three classes or more, are passed over once for both products and the dual step, and
mostly stay below 1. ``--grid`` goes through sizes systematically, with l1. Where the aim is missed
is in ``results/kernels.md``.

    python benchmarks/kernels/fbpd_iteration.py [--grid]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

from sparsvm.design import make_design
from sparsvm.losses import Hinge
from sparsvm.penalties import as_penalty
from sparsvm.problem import Problem
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


def make_problem(n, d, classes, density, scalar, penalty):
    rng = np.random.default_rng(0)
    if density is None:
        X = rng.standard_normal((n, d)).astype(scalar)
    else:
        X = sp.random_array((n, d), density=density, format="csr", rng=rng, dtype=scalar)
    # Labels that the features explain, or the model stays at zero and has no scores to compute.
    planted = X @ rng.standard_normal((d, classes))
    y = planted.argmax(axis=1).astype(np.int32)
    outputs = 1 if classes == 2 else classes
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(n, 1 / n),
        cost=Hinge().cost_matrix(classes),
        n_classes=classes,
        alpha=0.01 / np.sqrt(n),
        loss=Hinge(),
        penalty=as_penalty(penalty).resolve(d, outputs, None),
    )


def seconds(run, count):
    start = time.thread_time()
    run(count)
    return (time.thread_time() - start) / count


def measure(problem, turns=40, target=0.01):
    """Seconds of an iteration and of its two products."""
    method = FBPD()._method(problem)
    method.run(40)
    count = max(1, int(target / seconds(method.run, 3)))
    pairs = [(seconds(method.run, count), seconds(method.products, count)) for _ in range(turns)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def print_shapes():
    print("| design | n | d | K | nnz/d | " + " | ".join(PENALTIES) + " | products with l1 |")
    print("|---|---|---|---|---|" + "---|" * (len(PENALTIES) + 1))
    for name, n, d, classes, density, scalar in SHAPES:
        times = [
            measure(make_problem(n, d, classes, density, scalar, penalty), turns=20)
            for penalty in PENALTIES
        ]
        ratios = " | ".join(f"{iteration / products:.2f}" for iteration, products in times)
        print(f"| {name} | {n} | {d} | {classes} | {n * (density or 1.0):.0f} | {ratios}"
              f" | {1e6 * times[0][1]:.1f} µs |", flush=True)  # fmt: skip


def print_grid():
    print("| n | d | nnz per sample | " + " | ".join(f"K={K}" for K in GRID_CLASSES) + " |")
    print("|---|---|---|" + "---|" * len(GRID_CLASSES))
    for n, d, entries in GRID:
        ratios = []
        for classes in GRID_CLASSES:
            density = None if entries is None else entries / d
            problem = make_problem(n, d, classes, density, np.float64, "l1")
            iteration, products = measure(problem, turns=8, target=0.002)
            ratios.append(f"{iteration / products:.2f}")
        print(f"| {n} | {d} | {entries or 'dense'} | " + " | ".join(ratios) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grid", action="store_true", help="sizes in turn, not named designs")
    arguments = parser.parse_args()
    with blas_threads(1):
        print_grid() if arguments.grid else print_shapes()


if __name__ == "__main__":
    main()
