"""Cold fits of smooth losses at small alphas against the path that leads to them.

``python benchmarks/smooth/cold.py [NAME ...] [--output FILE] [--no-path]`` with SPARSVM_DATA set.
Every problem is fitted by ``SparseSVC(tol=1e-4)`` from nothing at a share of its alpha_max, and by
``svm_path`` through 30 alphas that fall to it. A line for each: seconds of the processor on one
thread, certified gaps and the solver. Fits below a second are repeated, and the least counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import one_thread  # noqa: F401

# isort: split

import argparse
import functools
import json
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as bundled

from sparsvm import SparseSVC, alpha_max, datasets, svm_path
from sparsvm.penalties import GroupL2, GroupLinf, SparseGroup

TOL, POINTS = 1e-4, 30


def standardised(X):
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def rows_of(load, count):
    """Return some rows, drawn without replacement, and the columns in use there."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:count]
    X = X[rows]
    if sp.issparse(X):
        return X[:, np.flatnonzero(X.getnnz(0))].tocsr(), np.asarray(y)[rows]
    return X, np.asarray(y)[rows]


def microarray(name):
    X, y = datasets.load_microarray(name, return_X_y=True)
    return standardised(X), y


def drawn(seed, n, d, K, *, unscaled=False, correlated=False, share=1.0):
    """Gaussian classes around random means."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((K, d))[y]
    if correlated:
        X += 2.0 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    if unscaled:
        X *= 10.0 ** rng.uniform(-2.0, 2.0, d)
    if share < 1.0:
        X = sp.csr_matrix(X * (rng.random((n, d)) < share))
    return X, y


def scattered(count):
    """MNIST images by their scattering coefficients, and groups of the channels of a place."""
    X, y = rows_of(datasets.load_mnist, count)
    S = datasets.scattering(X.reshape(-1, 28, 28) / 255.0)
    return S.reshape(count, -1).astype(float), y


@functools.cache
def data(name: str) -> tuple[Any, Any]:
    """Return X and y."""
    family, _, size = name.partition(":")
    count = int(size) if size else 0
    match family:
        case "iris" | "wine" | "breast_cancer" | "digits":
            return getattr(bundled, f"load_{family}")(return_X_y=True)
        case "nci60" | "su" | "christensen" | "lymphoma":
            return microarray(family)
        case "leukemia":
            X, y = datasets.load_leukemia(return_X_y=True)
            return standardised(X), y
        case "arcene" | "dexter" | "madelon":
            return getattr(datasets, f"load_{family}")(return_X_y=True)
        case "news20":
            return rows_of(datasets.load_20newsgroups, count)
        case "banking77":
            return rows_of(datasets.load_banking77, count)
        case "coil20":
            return datasets.load_coil20(return_X_y=True)
        case "mnist":
            X, y = rows_of(datasets.load_mnist, count)
            return X / 255.0, y
        case "scattering":
            return scattered(count)
        case "large_groups":
            return drawn(1, 184, 200, 8)
        case "wide":
            return drawn(2, 100, 3000, 5, correlated=True)
        case "unscaled":
            return drawn(3, 1000, 60, 6, unscaled=True)
        case "long":
            return drawn(4, 20000, 40, 30)
        case "sparse":
            return drawn(5, 3000, 5000, 80, share=0.01)
    raise ValueError(name)


class Case(NamedTuple):
    """A problem: data, loss, penalty ("l1/l2 20": groups of 20 features), share of alpha_max."""

    data: str
    loss: str
    penalty: str
    share: float

    def __str__(self) -> str:
        return f"{self.data} {self.loss} {self.penalty} {self.share:g}"

    def penalty_object(self, d: int) -> Any:
        name, _, size = self.penalty.partition(" ")
        if not size:
            return name
        # In the scattering's order a place has one feature in each of the 81 channels.
        groups = np.arange(d) % (d // 81) if self.data.startswith("scatter") else None
        if groups is None:
            groups = np.arange(d) // int(size)
        return {"l1/l2": GroupL2, "l1/linf": GroupLinf, "sparse_group": SparseGroup}[name](
            groups=groups
        )


CASES = tuple(
    Case(name, loss, penalty, share)
    for name, loss, penalty, share in (
        ("iris", "squared_hinge", "l1/l2", 1e-3),
        ("wine", "logistic", "l1", 1e-3),
        ("breast_cancer", "logistic", "l1", 1e-3),
        ("digits", "squared_hinge", "l1/l2", 1e-3),
        ("digits", "logistic", "l1", 1e-2),
        ("leukemia", "squared_hinge", "l1/l2", 1e-3),
        ("leukemia", "logistic", "sparse_group 50", 1e-2),
        ("nci60", "logistic", "l1/l2", 1e-2),
        ("nci60", "squared_hinge", "l1/linf", 1e-3),
        ("su", "squared_hinge", "l1/l2", 3e-3),
        ("su", "logistic", "l1", 1e-3),
        ("christensen", "squared_hinge", "elasticnet", 1e-3),
        ("christensen", "logistic", "l1/l2", 1e-3),
        ("lymphoma", "ovr_squared_hinge", "l1/linf", 1e-3),
        ("news20:600", "squared_hinge", "l1/l2", 1e-2),
        ("news20:600", "logistic", "l1", 1e-2),
        ("news20:2000", "squared_hinge", "l1/l2", 3e-2),
        ("news20:2000", "ovr_squared_hinge", "l1", 1e-2),
        ("coil20", "squared_hinge", "l1/l2", 1e-2),
        ("coil20", "logistic", "l1", 1e-2),
        ("mnist:2000", "squared_hinge", "l1", 1e-2),
        ("mnist:2000", "logistic", "l1/l2", 1e-2),
        ("banking77:1500", "squared_hinge", "l1/l2", 1e-1),
        ("banking77:1500", "ovr_squared_hinge", "l1", 1e-1),
        ("dexter", "squared_hinge", "l1", 1e-3),
        ("arcene", "logistic", "l1", 1e-3),
        ("madelon", "logistic", "l1", 1e-3),
        ("large_groups", "squared_hinge", "l1/l2 67", 1e-4),
        ("large_groups", "logistic", "l1/linf 67", 1e-3),
        ("scattering:30", "squared_hinge", "l1/linf 81", 1e-2),
        ("scattering:30", "squared_hinge", "l1/l2 81", 1e-3),
        ("wide", "squared_hinge", "sparse_group 30", 1e-3),
        ("wide", "logistic", "l1/l2 30", 1e-3),
        ("unscaled", "squared_hinge", "l1", 1e-4),
        ("unscaled", "logistic", "l1/l2", 1e-4),
        ("long", "squared_hinge", "l1/l2", 1e-3),
        ("long", "logistic", "elasticnet", 1e-2),
        ("sparse", "squared_hinge", "l1/l2", 1e-1),
        ("sparse", "ovr_squared_hinge", "l1", 1e-1),
    )
)


def least_of(run) -> tuple[float, Any]:
    """Return the seconds of the processor, the least of several where they are few."""
    best, spent, result = np.inf, 0.0, None
    for _ in range(7):
        began = time.process_time()
        result = run()
        seconds = time.process_time() - began
        best, spent = min(best, seconds), spent + seconds
        if spent > 1.0:
            break
    return best, result


def measured(case: Case, with_path: bool) -> dict[str, Any]:
    """Return the figures of a problem."""
    X, y = data(case.data)
    penalty = case.penalty_object(X.shape[1])
    largest = alpha_max(X, y, loss=case.loss, penalty=penalty)
    alpha = case.share * largest
    options = {"loss": case.loss, "penalty": penalty, "tol": TOL}
    model = SparseSVC(alpha=alpha, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = least_of(lambda: model.fit(X, y))
        row = {
            "case": str(case),
            "shape": f"{X.shape[0]} x {X.shape[1]}, K = {model.classes_.size}",
            "cold": round(seconds, 4),
            "gap": float(model.dual_gap_),
            "objective": float(model.objective_),
            "solver": model.result_.solver,
            "features": int(model.selected_features_.size),
        }
        if with_path:
            alphas = np.geomspace(largest, alpha, POINTS)
            row["path"], path = least_of(lambda: svm_path(X, y, alphas=alphas, **options))
            row["path"] = round(row["path"], 4)
            row["path_gap"] = float(np.max(path.gaps))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that a problem's name must contain")
    parser.add_argument("--output", type=Path, help="append the lines to this file")
    parser.add_argument("--no-path", action="store_true")
    options = parser.parse_args()
    for case in CASES:
        if not all(word in str(case) for word in options.names):
            continue
        row = json.dumps(measured(case, not options.no_path))
        print(row, flush=True)
        if options.output is not None:
            with options.output.open("a") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
