"""The training samples in the coordinates that the hierarchical problem is solved in.

Only norms of weights and scores matter to the largest smallest margin, so the samples may be
centred (the free intercepts absorb the centre), divided by one number, and, where features
outnumber samples, rotated into the space that they span: a weight vector has no use for a part
outside that space, which changes no score and lengthens it.  Class 0 is pinned to the score zero,
which is no restriction either: adding one vector to every class changes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats, Ints
from sparsvm.numerics.rounding import EPS
from sparsvm.problem.build import column_std
from sparsvm.problem.problem import Problem

# Beyond these the interior-point method would take minutes or gigabytes (digits, 585 unknowns and
# 2 million entries, takes about 3 s; both costs grow faster than linearly).
MOST_UNKNOWNS = 3000
MOST_ENTRIES = 30_000_000
MOST_VALUES = 50_000_000


@dataclass(frozen=True, eq=False)
class ReducedSamples:
    """Samples ``Z`` of shape (n, r), with what leads back to the user's features.

    The unknowns are ``x``, of length (K - 1)(r + 1): weights and intercept of class 1, of class
    2, and so on. Class k scores ``Z u_k + c_k``, class 0 scores zero.
    """

    problem: Problem
    values: Floats
    basis: Floats | None
    features: Ints
    center: Floats
    scale: float

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.values.shape[0])

    @property
    def rank(self) -> int:
        """Number of coordinates of a sample."""
        return int(self.values.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.problem.n_classes

    @property
    def n_unknowns(self) -> int:
        """Length of ``x``."""
        return (self.n_classes - 1) * (self.rank + 1)

    def blocks(self, x: Floats) -> tuple[Floats, Floats]:
        """Return weights (K, r) and intercepts (K,) of all classes, zero for class 0."""
        table = np.zeros((self.n_classes, self.rank + 1))
        table[1:] = x.reshape(self.n_classes - 1, self.rank + 1)
        return table[:, :-1], table[:, -1]

    def scores(self, x: Floats) -> Floats:
        """Return the scores of all classes, shape (n, K)."""
        weights, intercept = self.blocks(x)
        return np.asarray(self.values @ weights.T + intercept)

    def rows(self, sample: Ints, high: Ints, low: Ints) -> sp.csr_array:
        """Return the matrix that takes x to the score of class `high` less that of `low`."""
        width = self.rank + 1
        extended = np.hstack([self.values[sample], np.ones((sample.size, 1))])
        numbers = np.arange(sample.size)
        triples = []
        for classes, sign in ((high, 1.0), (low, -1.0)):
            free = np.flatnonzero(classes > 0)
            columns = (classes[free, None] - 1) * width + np.arange(width)
            triples.append(
                (sign * extended[free].ravel(), np.repeat(numbers[free], width), columns.ravel())
            )
        value, row, column = (np.concatenate(part) for part in zip(*triples, strict=True))
        return sp.csr_array((value, (row, column)), shape=(sample.size, self.n_unknowns))

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the class numbers r < t of all pairs."""
        first, second = np.triu_indices(self.n_classes, 1)
        return first, second

    def differences(self) -> sp.csr_array:
        """Return the matrix that takes x to w_r - w_t for all pairs, one below the other."""
        first, second = self.pairs()
        coordinate = np.arange(self.rank)
        triples = []
        for classes, sign in ((first, 1.0), (second, -1.0)):
            free = np.flatnonzero(classes > 0)
            row = free[:, None] * self.rank + coordinate
            column = (classes[free, None] - 1) * (self.rank + 1) + coordinate
            triples.append((np.full(row.size, sign), row.ravel(), column.ravel()))
        value, row, column = (np.concatenate(part) for part in zip(*triples, strict=True))
        return sp.csr_array((value, (row, column)), shape=(first.size * self.rank, self.n_unknowns))

    def vectors(self, reduced: Floats) -> Floats:
        """Return vectors of length r, one per row, as vectors in the features."""
        inner = reduced if self.basis is None else reduced @ self.basis.T
        full = np.zeros((reduced.shape[0], self.problem.d))
        full[:, self.features] = inner
        return full

    def lift(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients and intercepts of ``x``, centred over the classes."""
        weights, intercept = self.blocks(x)
        if self.n_classes == 2:
            weights, intercept = weights[1:], intercept[1:]
        else:
            weights, intercept = weights - weights.mean(axis=0), intercept - intercept.mean()
        coef = self.vectors(weights / self.scale)
        moved = intercept - coef[:, self.features] @ self.center
        return coef, moved if self.n_classes == 2 else moved - moved.mean()


def split_pairs(samples: ReducedSamples, stacked: Any) -> list[Any]:
    """Cut what has r rows per pair of classes into one part per pair."""
    rank = samples.rank
    return [stacked[k * rank : (k + 1) * rank] for k in range(samples.pairs()[0].size)]


def pair_norms(samples: ReducedSamples, x: Floats) -> Floats:
    """Return ||w_r - w_t|| for all pairs r < t."""
    weights, _ = samples.blocks(x)
    first, second = samples.pairs()
    return np.asarray(np.linalg.norm(weights[first] - weights[second], axis=1))


def reduce(problem: Problem) -> ReducedSamples:
    """Bring the samples of a problem into reduced coordinates; refuse what is too large."""
    features = np.flatnonzero(column_std(problem.design, problem.mass) > 0.0)
    n, d, K = problem.n, features.size, problem.n_classes
    _require_size(n, d, K)
    values = np.asarray(problem.design.gather_columns(features.astype(np.int32)))
    center = values.mean(axis=0) if n else np.zeros(d)
    values = np.ascontiguousarray(values - center)
    basis = None
    if d >= n:
        # The triangular factor holds the samples in an orthonormal basis of their span.
        basis, triangle = np.linalg.qr(values.T)
        values = triangle.T
    lengths = np.linalg.norm(values, axis=1)
    scale = float(lengths.max(initial=0.0)) or 1.0
    values = values / scale
    if basis is not None:
        used = np.linalg.norm(values, axis=0) > n * EPS
        values, basis = values[:, used], basis[:, used]
    return ReducedSamples(problem, np.ascontiguousarray(values), basis, features, center, scale)


def _require_size(n: int, d: int, K: int) -> None:
    rank = min(n - 1, d)
    unknowns = (K - 1) * (rank + 1)
    entries = 2 * n * unknowns
    if unknowns <= MOST_UNKNOWNS and entries <= MOST_ENTRIES and n * d <= MOST_VALUES:
        return
    raise ValueError(
        f"{n} distinct samples with {d} features that vary and {K} classes are too many for "
        f"MaxMarginSVC: its second-order cone problem would have {unknowns} unknowns (at most "
        f"{MOST_UNKNOWNS}), {entries} entries (at most {MOST_ENTRIES}) and {n * d} values of X "
        f"(at most {MOST_VALUES}). Use SparseSVC(penalty='l2') with a small alpha, which comes "
        "close to the same model, or fewer samples or features."
    )
