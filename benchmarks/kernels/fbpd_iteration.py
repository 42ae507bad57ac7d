"""What an iteration of FBPD costs beyond its two matrix products.

Prints, for designs of several shapes, the time of one iteration divided by the time of its two
products alone, on the same state and buffers, measured in turns within one thread. Times are of the
processor, the shortest over the turns, since whatever else the machine does only ever adds to it.
The aim is a ratio of at most 1.3 where the design has ten non-zeros per feature. Small dense
designs of up to twelve classes are passed over once for both products and the dual step and mostly
stay below 1. What misses the aim are six classes or more on so few features that the design lies in
the first caches (glass 1.4, letter 1.7): there BLAS runs at the machine's peak, and
sorting a row takes as many operations as multiplying it.

    python benchmarks/kernels/fbpd_iteration.py
"""

from __future__ import annotations

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
PENALTIES = ["l1", "l1/l2", "l1/linf"]


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


def main():
    print(f"{'design':22s} {'n':>6s} {'d':>6s} {'K':>3s} {'nnz/d':>7s} {'penalty':9s}"
          f" {'iteration':>11s} {'products':>11s} {'ratio':>6s}")  # fmt: skip
    with blas_threads(1):
        for name, n, d, classes, density, scalar in SHAPES:
            for penalty in PENALTIES:
                problem = make_problem(n, d, classes, density, scalar, penalty)
                iteration, products = measure(problem)
                per_feature = n * (density or 1.0)
                ratio = iteration / products
                print(
                    f"{name:22s} {n:6d} {d:6d} {classes:3d} {per_feature:7.1f} {penalty:9s}"
                    f" {1e6 * iteration:8.1f} µs {1e6 * products:8.1f} µs {ratio:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
