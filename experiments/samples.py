"""The data of the papers as their experiments use them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from sparsvm.datasets import load_20newsgroups, load_leukemia, load_mnist, scattering

CACHE = Path(__file__).parents[1] / "build" / "experiments"


@lru_cache
def leukemia(genes="as measured"):
    """Training and test patients: as measured, standardised, or logarithms (floor 20)."""
    X, y = load_leukemia(return_X_y=True)
    X_test, y_test = load_leukemia(subset="test", return_X_y=True)
    if genes == "log":
        X, X_test = (np.log10(np.clip(part, 20.0, 16000.0)) for part in (X, X_test))
    if genes != "as measured":
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    return X, y, X_test, y_test


def draw(y, per_class, seed):
    """Rows of a training subset with the same number of samples of every class."""
    rng = np.random.default_rng([seed, per_class])
    rows = [rng.permutation(np.flatnonzero(y == k))[:per_class] for k in np.unique(y)]
    return np.sort(np.concatenate(rows))


@lru_cache
def digits(subset="train"):
    """MNIST as integers."""
    return load_mnist(subset=subset, return_X_y=True)


def scattered(X):
    """Scattering features of digits, 196 positions of 81 channels each: blocks of 81 columns."""
    features = scattering(X.reshape(-1, 28, 28) / 255.0)
    return np.ascontiguousarray(features.transpose(0, 2, 3, 1)).reshape(len(X), -1)


@lru_cache
def scattered_draw(per_class, seed):
    """A training subset of MNIST as float64 scattering features."""
    X, y = digits()
    rows = draw(y, per_class, seed)
    return scattered(X[rows]).astype(np.float64), y[rows]


@lru_cache
def scattered_test(n_samples):
    """The first test images of MNIST; the whole set is kept in a file, since it takes seconds."""
    X, y = digits("test")
    path = CACHE / f"mnist_test_scattering_{n_samples}.npy"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, scattered(X[:n_samples]))
    return np.load(path, mmap_mode="r"), y[:n_samples]


@lru_cache
def news(subset="train"):
    """20 newsgroups by date, tf-idf of the words in at least five training documents: 25941."""
    X, y = load_20newsgroups(subset=subset, min_df=5, return_X_y=True)
    return X, y
