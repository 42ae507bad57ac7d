"""The problems: which data, which penalty, which lambda = 1 / (n alpha), which ratios are asked."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsvm.data.design import make_design
from sparsvm.datasets import (
    data_file,
    load_20newsgroups,
    load_arcene,
    load_leukemia,
    load_mnist,
)
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, GroupL2, GroupLinf, Penalty
from sparsvm.problem.problem import Problem


@dataclass(frozen=True)
class Case:
    """One problem: ``ratio`` and ``fbpd_ratio`` say how much slower the baselines should be.

    ``solver`` is ours, ``tol`` the relative gap to certify; without a baseline, or a ratio, that
    comparison is left out.
    """

    name: str
    data: str
    penalty: Penalty
    lam: float
    baseline: str | None
    ratio: float | None
    fbpd_ratio: float | None
    solver: str = "interior_point"
    tol: float = 1e-6

    def arrays(self):
        """Return X (dense or CSR) and the class numbers."""
        return load(self.data)

    def problem(self):
        """Return the problem afresh, so that nothing computed lazily is left from before."""
        return make_problem(*self.arrays(), self.penalty, self.lam)


def make_problem(X, y, penalty, lam):
    """The mean hinge plus alpha times the penalty, with free intercepts and unit margins."""
    n, d = X.shape
    n_classes = int(y.max()) + 1
    loss = Hinge()
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(n, 1.0 / n),
        cost=loss.cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=1.0 / (n * lam),
        loss=loss,
        penalty=penalty.resolve(d, 1 if n_classes == 2 else n_classes, None),
    )


def standardised(X):
    """Columns of mean 0 and standard deviation 1; constant ones become 0."""
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def first_of_each(y, count):
    """Positions of the first ``count`` samples of each class, in the order of the data."""
    return np.sort(np.concatenate([np.flatnonzero(y == k)[:count] for k in np.unique(y)]))


def leukemia():
    """38 patients × 7129 genes, 3 classes, columns standardised."""
    X, y = load_leukemia(return_X_y=True)
    return standardised(X), y


def mnist_raw():
    """The first 10 images of each digit, 784 pixels from 0 to 255."""
    X, y = load_mnist(return_X_y=True)
    rows = first_of_each(y, 10)
    return X[rows].astype(float), y[rows]


def mnist_100():
    """The same with pixels divided by 255."""
    X, y = mnist_raw()
    return X / 255.0, y


def mnist(count):
    """The first training images, 784 pixels divided by 255."""
    X, y = load_mnist(return_X_y=True)
    return X[:count] / 255.0, y[:count]


def arcene():
    """200 spectra (both published halves) × 10000 features, 2 classes, columns standardised."""
    X, y = load_arcene(subset="all", return_X_y=True)
    return standardised(X), y


def news20(per_class):
    """The first documents of each of the 20 classes × 56436 words, tf-idf (min_df=2)."""
    X, y = load_20newsgroups(return_X_y=True)
    rows = first_of_each(y, per_class)
    return X[rows], y[rows]


def banking77():
    """10003 questions of customers in 77 classes, tf-idf of their words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with data_file("banking77/train.csv").open(encoding="utf-8", newline="") as file:
        texts, labels = zip(*list(csv.reader(file))[1:], strict=True)
    return TfidfVectorizer().fit_transform(texts), np.array(labels)


def simulated():
    """30 × 60 Gaussian features of 3 shifted classes; needs no files."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 10)
    X = rng.standard_normal((30, 60))
    X[:, :6] += rng.standard_normal((3, 6))[y]
    return X, y


DATA = {
    "leukemia": leukemia,
    "mnist_raw": mnist_raw,
    "mnist_100": mnist_100,
    "mnist_5000": lambda: mnist(5000),
    "mnist_60000": lambda: mnist(60000),
    "arcene": arcene,
    "news20_100": lambda: news20(5),
    "news20_200": lambda: news20(10),
    "news20_1000": lambda: news20(50),
    "news20_full": lambda: load_20newsgroups(return_X_y=True),
    "banking77": banking77,
    "simulated": simulated,
}


# Large data are read again rather than kept beside each other.
@lru_cache(maxsize=2)
def load(name):
    """Return the arrays of a data set, labels as int32 class numbers."""
    X, y = DATA[name]()
    return X, np.unique(y, return_inverse=True)[1].astype(np.int32)


def _cases(name, data, penalty, lams, baseline, ratio, fbpd_ratio, solver="interior_point"):
    for lam in lams:
        yield Case(f"{name}_{lam:g}", data, penalty, lam, baseline, ratio, fbpd_ratio, solver)


def _all_cases():
    blocks = {"groups": 5, "per_class": True}
    yield from _cases("leukemia_l1", "leukemia", L1(), (0.05, 0.1, 1), "highs", 100, 1000)
    for name, penalty, baseline in (
        ("l1l2_blocks", GroupL2(**blocks), "clarabel"),
        ("l1linf_blocks", GroupLinf(**blocks), "highs"),
        ("l1l2_rows", GroupL2(), "clarabel"),
        ("l1linf_rows", GroupLinf(), "highs"),
    ):
        yield from _cases(f"leukemia_{name}", "leukemia", penalty, (0.1, 1), baseline, 100, 300)
    blocks = {"groups": 4, "per_class": True}
    # Divided by 255, which makes lambda 255 times smaller: there the optimum is W = 0 at 0.1.
    for name, penalty, baseline in (
        ("l1", L1(), "highs"),
        ("l1l2_blocks", GroupL2(**blocks), "clarabel"),
        ("l1linf_blocks", GroupLinf(**blocks), "highs"),
    ):
        yield from _cases(f"mnist_raw_{name}", "mnist_raw", penalty, (0.01, 0.1), baseline, 20, 100)
        yield from _cases(f"mnist_{name}", "mnist_100", penalty, (1, 10), baseline, 20, 100)
    yield from _cases("arcene_l1", "arcene", L1(), (0.1, 1), "highs", 50, None)
    for data in ("news20_100", "news20_200"):
        yield from _cases(f"{data}_rows", data, GroupL2(), (10, 1), "clarabel", 50, 100, "auto")
    yield from _cases("simulated_l1", "simulated", L1(), (1,), "highs", 1, 1)
    yield from _cases("simulated_rows", "simulated", GroupL2(), (1,), "clarabel", 1, 1)


def _text():
    """Joint l1/l2 on documents; names end in the gap asked for and lambda."""
    rows = GroupL2()
    for tol in (1e-3, 1e-6):
        for lam in (1, 3, 10):
            name = f"many_news20_1000_rows_{tol:.0e}_{lam:g}"
            yield Case(name, "news20_1000", rows, lam, "clarabel", 50, 100, "auto", tol)
    for tol, ratio in ((1e-3, 50), (1e-5, None)):
        for lam in (0.1, 0.3, 1):
            name = f"many_news20_full_rows_{tol:.0e}_{lam:g}"
            yield Case(name, "news20_full", rows, lam, None, None, ratio, "sdca", tol)
    for lam in (0.3, 1):
        name = f"many_banking77_rows_1e-03_{lam:g}"
        yield Case(name, "banking77", rows, lam, None, None, None, "sdca", 1e-3)


def _many_samples():
    """Problems beyond the interior point; names end in the gap asked for."""
    yield from _text()
    for lam in (0.01, 0.1):
        for tol, ratio in ((1e-3, 50), (1e-6, None)):
            name = f"many_mnist_5000_l1_{tol:.0e}_{lam:g}"
            yield Case(name, "mnist_5000", L1(), lam, None, None, ratio, "auto", tol)
    for tol, lam in ((1e-3, 0.01), (1e-4, 0.01), (1e-3, 0.1)):
        name = f"many_mnist_60000_l1_{tol:.0e}_{lam:g}"
        yield Case(name, "mnist_60000", L1(), lam, None, None, None, "newton", tol)


CASES = {case.name: case for case in (*_all_cases(), *_many_samples())}
