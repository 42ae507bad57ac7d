"""Smooth losses on every data set at hand: is the default tolerance met without a warning?

``python benchmarks/smooth/everywhere.py [--data iris wine ...] [--losses ...] [--penalties ...]
[--shares 1e-3 ...] [--output FILE]`` with SPARSVM_DATA set fits ``SparseSVC(tol=1e-4)`` with its
intercept at the given shares of alpha_max (that of l1 for l2, which has none) and prints a line of
a Markdown table for each fit: the seconds of processor time on one thread, the certified gap, the
solver and the non-zero features. It ends with status 1 if any fit missed the tolerance.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import one_thread  # noqa: F401

# isort: split

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as bundled
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

from sparsvm import SparseSVC, alpha_max, datasets
from sparsvm.datasets.folder import data_file

LOSSES = ("squared_hinge", "logistic", "ovr_squared_hinge")
PENALTIES = ("l1", "l1/l2")
HEAD = (
    "| data | n × d, classes | loss | penalty | alpha / alpha_max | seconds | gap | solver | "
    "features |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def banking77() -> tuple[Any, Any]:
    """Tf-idf of the training questions."""
    with data_file("banking77/train.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    X = TfidfVectorizer(sublinear_tf=True).fit_transform([text for text, _ in rows])
    return X, np.array([label for _, label in rows])


def madelon() -> tuple[Any, Any]:
    with np.load(data_file("madelon/madelon_train.npz")) as file:
        return file["X"].astype(np.float64), file["y"]


def amazon() -> tuple[Any, Any]:
    """Counts of words and pairs of words, with the four domains as classes."""
    X = sp.load_npz(data_file("amazon_multidomain/amazon_X.npz")).astype(np.float64)
    with np.load(data_file("amazon_multidomain/amazon_y.npz"), allow_pickle=False) as file:
        return sp.csr_matrix(X), file["domain"]


def news20_libsvm() -> tuple[Any, Any]:
    X = sp.load_npz(data_file("news20_libsvm/news20_train_X.npz"))
    return sp.csr_matrix(X.astype(np.float64)), np.load(
        data_file("news20_libsvm/news20_train_y.npy")
    )


def mnist(samples: int | None = None) -> tuple[Any, Any]:
    X, y = datasets.load_mnist(return_X_y=True)
    return X[:samples] / 255.0, y[:samples]


def two(load: Callable[..., Any], *arguments: Any) -> Callable[[], tuple[Any, Any]]:
    return partial(load, *arguments, return_X_y=True)


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": two(bundled.load_iris),
    "wine": two(bundled.load_wine),
    "breast_cancer": two(bundled.load_breast_cancer),
    "digits": two(bundled.load_digits),
    **{
        name: two(datasets.load_uci, name)
        for name in ("pima", "bupa", "ionosphere", "sonar", "wpbc")
    },
    "leukemia": two(datasets.load_leukemia),
    "arcene": two(datasets.load_arcene),
    "dexter": two(datasets.load_dexter),
    "dorothea": two(datasets.load_dorothea),
    "madelon": madelon,
    "banking77": banking77,
    "news20": two(datasets.load_20newsgroups),
    "news20_libsvm": news20_libsvm,
    "amazon": amazon,
    "mnist_5000": partial(mnist, 5000),
    "mnist": mnist,
}


def line(name: str, X: Any, y: Any, loss: str, penalty: str, share: float) -> tuple[str, bool]:
    """Fit once; return a line of the table and whether the tolerance was met."""
    alpha = share * alpha_max(X, y, loss=loss, penalty="l1" if penalty == "l2" else penalty)
    model = SparseSVC(loss=loss, penalty=penalty, alpha=alpha)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - began
    missed = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    n, d = X.shape
    text = (
        f"| {name} | {n} × {d}, {model.classes_.size} | {loss} | {penalty} | {share:g} | "
        f"{seconds:.2f} | {model.dual_gap_:.0e}{' ✗' if missed else ''} | {model.result_.solver} | "
        f"{model.selected_features_.size} |"
    )
    return text, not missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--penalties", nargs="+", default=list(PENALTIES))
    parser.add_argument("--shares", nargs="+", type=float, default=[1e-3])
    parser.add_argument("--output", type=Path, help="append the lines to this file")
    options = parser.parse_args()
    print(HEAD, flush=True)
    failures = 0
    for name in options.data:
        X, y = DATA[name]()
        for loss in options.losses:
            for penalty in options.penalties:
                for share in options.shares:
                    text, met = line(name, X, y, loss, penalty, share)
                    failures += not met
                    print(text, flush=True)
                    if options.output is not None:
                        with options.output.open("a") as file:
                            file.write(text + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
