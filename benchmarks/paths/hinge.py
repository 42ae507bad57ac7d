"""Hinge paths of 100 alphas beside the logistic paths of R's glmnet on the same data.

``python benchmarks/paths/hinge.py [NAME ...]`` needs Rscript with glmnet and the data of
``sparsvm.datasets``. The alphas go from alpha_max, known to 5 %, to a hundredth of it; every one is
solved. Ours are processor seconds of one thread, the search of alpha_max included, glmnet's those
of its multinomial path: ungrouped beside l1, grouped beside the norms of rows. ``--growth`` prints
the seconds of generated sets of growing n, d and K instead, with the exponents of their growth.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import argparse
import time
import warnings

import numpy as np
from against_glmnet import prepared
from peers import glmnet

from problems import DATA, genes
from sparsvm import alpha_max, svm_path

# Seconds that glmnet may take.
LIMIT = 600
# The penalty of glmnet's path, and what the goal allows of its time.
PENALTIES = {
    "l1": ("l1", 2.0),
    "l1/l2": ("l1/l2", 2.0),
    "l1/linf": ("l1/l2", 3.0),
}
SIZES = {
    "n": [(60, 4000, 5), (120, 4000, 5), (240, 4000, 5)],
    "d": [(120, 2000, 5), (120, 8000, 5), (120, 32000, 5)],
    "K": [(120, 4000, 3), (120, 4000, 6), (120, 4000, 12)],
}


def hinge_path(X, code, penalty, tol):
    """Return our path, its seconds, and those of the search of alpha_max."""
    began = time.process_time()
    largest = alpha_max(X, code, penalty=penalty, tol=0.05)
    bracket = time.process_time() - began
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = svm_path(
            X, code, penalty=penalty, alphas=largest * np.logspace(0.0, -2.0, 100), tol=tol
        )
    return path, time.process_time() - began, bracket


def compare(names, penalties, tol):
    """Print a line for every set and penalty."""
    print(
        "| data | samples × features, classes | penalty | glmnet (s) | ours (s) | of it alpha_max "
        "| ours / glmnet | goal | largest gap | features at the end |\n|" + "---|" * 10
    )
    for name in names:
        X, code = prepared(*DATA[name]())
        seconds = {}
        for penalty in penalties:
            kind, goal = PENALTIES[penalty]
            if kind not in seconds:
                seconds[kind] = glmnet(X, code, kind, LIMIT)[0]
            theirs = seconds[kind]
            path, ours, bracket = hinge_path(X, code, penalty, tol)
            print(
                f"| {name} | {X.shape[0]} × {X.shape[1]}, {code.max() + 1} | {penalty} | "
                f"{theirs:.2f} | {ours:.2f} | {bracket:.2f} | {ours / theirs:.2f} | {goal:.0f} | "
                f"{path.gaps.max():.0e} | {path.n_selected[-1]} |",
                flush=True,
            )


def grow(penalties, tol):
    """Print the seconds of generated sets, and the exponents between the first and the last."""
    print("| grows | sizes | " + " | ".join(penalties) + " |\n|---|---|" + "---|" * len(penalties))
    for axis, sizes in SIZES.items():
        times = np.zeros((len(sizes), len(penalties)))
        for row, size in enumerate(sizes):
            X, code = prepared(*genes(*size))
            for column, penalty in enumerate(penalties):
                times[row, column] = hinge_path(X, code, penalty, tol)[1]
            cells = " | ".join(f"{value:.2f}" for value in times[row])
            print(f"| {axis} | {' × '.join(map(str, size[:2]))}, {size[2]} | {cells} |", flush=True)
        position = "ndK".index(axis)
        ratio = np.log(sizes[-1][position] / sizes[0][position])
        exponents = np.log(times[-1] / times[0]) / ratio
        print(f"| {axis} | exponent | " + " | ".join(f"{e:.2f}" for e in exponents) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(DATA)}; all by default")
    parser.add_argument("--penalties", nargs="*", default=list(PENALTIES), choices=list(PENALTIES))
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    if options.growth:
        grow(options.penalties, options.tol)
    else:
        compare(options.names or list(DATA), options.penalties, options.tol)


if __name__ == "__main__":
    main()
