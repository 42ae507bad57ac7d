"""Data for benchmarks of paths: real sets of ``sparsvm.datasets`` and generated ones.

The generated sets stand for data that are not at hand: ``genes`` for microarrays (a few pathways,
some marker genes in every class, skewed noise), ``curves`` for spectra (smooth, so that features
next to each other hardly differ), ``documents`` for counts of words with rare classes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from sparsvm import datasets


def genes(n, d, K, seed=0):
    """Return expressions that share thirty pathways, with marker genes of every class."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0))))
    y[: 2 * K] = np.repeat(np.arange(K), 2)
    X = rng.standard_normal((n, 30)) @ rng.standard_normal((30, d)) / np.sqrt(30)
    X += 0.5 * rng.gamma(2.0, 1.0, (n, d)) * rng.gamma(1.0, 1.0, d)
    for k in range(K):
        markers = rng.choice(d, d // 40, replace=False)
        X[np.ix_(y == k, markers)] += 1.2 * rng.standard_normal(markers.size)
    return X, y


def curves(n, d, K, seed=0):
    """Return smooth curves: a mean of each class, smooth deviations and a little noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    t = np.linspace(0.0, 1.0, d)
    waves = np.array([np.cos(np.pi * f * t) / (1.0 + f) for f in range(40)])
    means = rng.standard_normal((K, 40)) @ waves
    return means[y] + 1.5 * rng.standard_normal((n, 40)) @ waves + 0.3 * rng.standard_normal(
        (n, d)
    ), y


def documents(n, d, K, seed=0):
    """Return weighted counts of words, rows of length one; the sizes of classes fall as 1/k."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, K + 1)
    y = rng.choice(K, n, p=share / share.sum())
    y[: 2 * K] = np.repeat(np.arange(K), 2)
    common = 1.0 / np.arange(1, d + 1)
    rows, columns = [], []
    for k in range(K):
        topic = common * rng.gamma(0.1, 10.0, d)
        topic = np.cumsum(0.6 * common / common.sum() + 0.4 * topic / topic.sum())
        for i in np.flatnonzero(y == k):
            length = 20 + rng.poisson(60)
            rows.append(np.full(length, i))
            columns.append(np.minimum(np.searchsorted(topic, rng.random(length)), d - 1))
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    X = sp.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n, d))
    X = X[:, np.flatnonzero(X.getnnz(0))]
    X = X @ sp.diags(np.log(n / X.getnnz(0)) + 1.0)
    return sp.csr_matrix(sp.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X), y


def some_rows(load, n, **options):
    """Return ``n`` samples drawn from a set, without the columns that are empty there."""
    X, y = load(return_X_y=True, **options)
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:n])
    X, y = X[rows], np.asarray(y)[rows]
    return (X[:, np.flatnonzero(X.getnnz(0))] if sp.issparse(X) else X), y


def first_mnist(n):
    X, y = datasets.load_mnist(return_X_y=True)
    return X[:n], y[:n]


DATA = {
    "leukemia": partial(datasets.load_leukemia, return_X_y=True),
    "lymphoma": partial(datasets.load_microarray, "lymphoma", return_X_y=True),
    "su": partial(datasets.load_microarray, "su", return_X_y=True),
    "christensen": partial(datasets.load_microarray, "christensen", return_X_y=True),
    "nci60": partial(datasets.load_microarray, "nci60", return_X_y=True),
    "genes_83": partial(genes, 83, 2308, 4),
    "genes_174": partial(genes, 174, 12533, 11),
    "genes_105": partial(genes, 105, 22283, 10),
    "digits": partial(load_digits, return_X_y=True),
    "curves": partial(curves, 4509, 256, 5),
    "mnist_2000": partial(first_mnist, 2000),
    "mnist_5000": partial(first_mnist, 5000),
    "coil20": partial(datasets.load_coil20, return_X_y=True),
    "news20_1000": partial(some_rows, datasets.load_20newsgroups, 1000),
    "banking77_2000": partial(some_rows, datasets.load_banking77, 2000),
    "documents": partial(documents, 2568, 8000, 52),
}
