"""The first pass over the partitions: what labels, weights and features there are, and a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Floats
from sparsvm.data.design import make_design
from sparsvm.data.inputs import (
    Caller,
    class_factors,
    read_per_sample,
    read_samples_and_labels,
)
from sparsvm.partitioned.parts import Rows, as_part

# Entries of a row from which on fewer rows are sent to the driver.
WIDE = 2000


@dataclass(frozen=True, eq=False)
class Survey:
    """What one partition says of itself.

    Attributes
    ----------
    n, d : int
        Rows and columns; d is -1 for a partition without rows.
    dtype : dtype
    labels : array
        Distinct labels of the partition, sorted.
    weights : array
        Weight of each label.
    margins : bool
        Whether rows have margins of their own.
    sample : Rows
        Some rows, drawn at random, with the weights that make them stand for all rows.
    """

    n: int
    d: int
    dtype: np.dtype[Any]
    labels: Array
    weights: Floats
    margins: bool
    sample: Rows


def read(part: Any, number: int) -> Rows:
    """Read and check the rows of a partition; messages name its number."""
    rows = as_part(part).load()
    if rows.X.shape[0] == 0:
        return rows
    try:
        X, y = read_samples_and_labels(Caller.named("fit"), rows.X, rows.y)
        # Unlike a whole training set, a partition may be without weight.
        weight = read_per_sample(rows.sample_weight, X.shape[0], "sample_weight")
        weight = np.ones(X.shape[0]) if weight is None else weight
        margin = read_per_sample(rows.sample_margin, X.shape[0], "sample_margin")
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    return Rows(X.tocsr() if sp.issparse(X) else X, y, weight, margin)


def at_most(rows: int, X: Any) -> int:
    """Return fewer rows where those of X are so wide that the driver would not hold as many."""
    wide = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    return int(max(1, min(rows, rows * WIDE / max(1.0, wide))))


def survey(part: Any, number: int, most: int, seed: int) -> Survey:
    """Look at a partition, and draw at most ``most`` of its rows."""
    rows = read(part, number)
    n = rows.X.shape[0]
    if n == 0:
        none = np.zeros(0)
        return Survey(0, -1, np.dtype(np.float32), none, none, False, Rows(None, none))
    labels, codes = np.unique(rows.y, return_inverse=True)
    weights = np.bincount(codes.ravel(), rows.sample_weight, labels.size).astype(np.float64)
    chosen = np.arange(n)
    most = at_most(most, rows.X)
    if n > most:
        chosen = np.sort(np.random.default_rng([seed, number]).choice(n, most, replace=False))
    margin = rows.sample_margin
    sample = Rows(
        rows.X[chosen],
        rows.y[chosen],
        rows.sample_weight[chosen] * (n / chosen.size),
        None if margin is None else margin[chosen],
    )
    return Survey(n, rows.X.shape[1], rows.X.dtype, labels, weights, margin is not None, sample)


@dataclass(frozen=True, eq=False)
class Population:
    """What all partitions have in common.

    Attributes
    ----------
    classes : array
        Labels of positive weight, sorted.
    factors : array
        Mass of a sample of weight 1 of each class: class factor over the sum of all weights.
    priors : array
        Share of the weight of each class.
    total : float
        Sum of the weights, class factors included.
    """

    n: int
    d: int
    dtype: np.dtype[Any]
    classes: Array
    factors: Floats
    priors: Floats
    total: float
    margins: bool

    @classmethod
    def of(cls, surveys: list[Survey], class_weight: Any) -> Population:
        """Join the surveys of all partitions."""
        filled = [each for each in surveys if each.n > 0]
        if not filled:
            raise ValueError("The partitions hold no rows. Give at least one that has some.")
        widths = sorted({each.d for each in filled})
        if len(widths) > 1:
            raise ValueError(
                f"The partitions have different numbers of features: {widths}. Give every "
                "partition the same columns."
            )
        kinds = {each.labels.dtype.kind for each in filled}
        if len(kinds) > 1 and not kinds <= set("biuf"):
            raise ValueError("The labels of the partitions are of different types; use one type.")
        labels = np.unique(np.concatenate([each.labels for each in filled]))
        totals = np.zeros(labels.size)
        for each in filled:
            totals[np.searchsorted(labels, each.labels)] += each.weights
        known = np.flatnonzero(totals > 0.0)
        digits, power = class_factors(class_weight, labels[known], totals[known])
        factors = np.ldexp(digits, power)
        kept = known[factors > 0.0]
        labels, totals, factors = labels[kept], totals[kept], factors[factors > 0.0]
        if labels.size < 2:
            raise ValueError(
                f"A classifier needs samples of at least two classes with positive weight; found "
                f"{labels.size}."
            )
        total = float(np.sum(factors * totals))
        narrow = all(each.dtype == np.float32 for each in filled)
        return cls(
            n=sum(each.n for each in filled),
            d=widths[0],
            dtype=np.dtype(np.float32 if narrow else np.float64),
            classes=labels,
            factors=factors / total,
            priors=factors * totals / total,
            total=total,
            margins=any(each.margins for each in filled),
        )

    def encoded(self, rows: Rows) -> tuple[Any, Array, Floats, Floats | None]:
        """Return X, class numbers, masses and margins of the rows that have weight."""
        X, y = rows.X, np.asarray(rows.y)
        if X.shape[0] == 0:
            return X, np.zeros(0, dtype=np.int32), np.zeros(0), None
        codes = np.minimum(np.searchsorted(self.classes, y), self.classes.size - 1)
        weight = rows.sample_weight * (self.classes[codes] == y)
        mass = weight * self.factors[codes]
        margin = rows.sample_margin
        if self.margins and margin is None:
            margin = np.ones(mass.size)
        kept = mass > 0.0
        if not kept.all():
            X, codes, mass = X[np.flatnonzero(kept)], codes[kept], mass[kept]
            margin = None if margin is None else margin[kept]
        return X, codes.astype(np.int32), mass, margin


class Moments(NamedTuple):
    """Mass, mean and sum of squared deviations of the columns of some rows; largest sizes."""

    mass: float
    mean: Floats
    squares: Floats
    largest: Floats

    def joined(self, other: Moments) -> Moments:
        """Return the moments of both (Chan, Golub and LeVeque)."""
        mass = self.mass + other.mass
        if mass == 0.0:
            return self
        step = other.mean - self.mean
        return Moments(
            mass,
            self.mean + step * (other.mass / mass),
            self.squares + other.squares + step**2 * (self.mass * other.mass / mass),
            np.maximum(self.largest, other.largest),
        )


def moments(part: Any, number: int, population: Population) -> Moments:
    """Return the moments of the columns of a partition."""
    X, _, mass, _ = population.encoded(read(part, number))
    total = float(mass.sum())
    if total == 0.0:
        zeros = np.zeros(population.d)
        return Moments(0.0, zeros, zeros, zeros)
    design = make_design(X)
    mean, variance, _, largest = design.column_stats(mass / total)
    return Moments(total, np.asarray(mean), total * np.asarray(variance), np.asarray(largest))


def column_std(found: list[Moments], n: int) -> Floats:
    """Return the deviations of all rows; exactly 0 for columns that are constant up to rounding."""
    whole = reduce(Moments.joined, found)
    deviation = np.sqrt(whole.squares / whole.mass)
    noise = 8.0 * np.finfo(np.float64).eps * np.sqrt(n) * whole.largest
    return np.where(deviation > noise, deviation, 0.0)
