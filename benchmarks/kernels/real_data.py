"""Real data sets with ten non-zeros per feature, for measuring an iteration of FBPD."""

from __future__ import annotations

import csv

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as bundled

from sparsvm import datasets
from sparsvm.datasets import data_file


def standardised(X):
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def data_sets():
    """Yield (name, X, y): first what scikit-learn bundles, then what SPARSVM_DATA holds."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
        yield name, standardised(X), y
    for name in ("pima", "bupa", "ionosphere", "sonar", "wpbc"):
        X, y = datasets.load_uci(name, return_X_y=True)
        yield name, standardised(X), y
    for name in ("leukemia", "arcene"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, standardised(X), y
    yield _madelon()
    X, y = datasets.load_mnist(subset="test", return_X_y=True)
    yield "mnist", X / 255.0, y
    yield "mnist, CSR", sp.csr_array(X / 255.0), y
    for least in (2, 5):
        X, y = datasets.load_20newsgroups(min_df=least, return_X_y=True)
        yield f"20newsgroups, words in {least} or more", sp.csr_array(X), y
    yield _news20()
    yield _banking77()
    yield _amazon()


def _madelon():
    with np.load(data_file("madelon/madelon_train.npz")) as file:
        X, y = (file[name] for name in sorted(file.files))
    return "madelon", standardised(X), y


def _news20():
    X = sp.load_npz(data_file("news20_libsvm/news20_train_X.npz"))
    return (
        "news20",
        sp.csr_array(X, dtype=float),
        np.load(data_file("news20_libsvm/news20_train_y.npy")),
    )


def _banking77():
    from sklearn.feature_extraction.text import TfidfVectorizer

    with open(data_file("banking77/train.csv"), newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    X = TfidfVectorizer().fit_transform([text for text, _ in rows])
    return "banking77", sp.csr_array(X), np.array([label for _, label in rows])


def _amazon():
    X = sp.load_npz(data_file("amazon_multidomain/amazon_X.npz")).tocsc()
    X = sp.csr_array(X[:, np.diff(X.indptr) >= 10], dtype=float)
    with np.load(data_file("amazon_multidomain/amazon_y.npz")) as file:
        return "amazon, words in 10 or more", X, file["domain"]
