"""The first pass over the partitions: what labels, weights and features there are, and a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Floats, Ints
from sparsvm.data.design import make_design
from sparsvm.data.inputs import (
    Caller,
    class_factors,
    read_per_sample,
    read_samples_and_labels,
)
from sparsvm.partitioned.parts import Rows, as_part
from sparsvm.problem.build import beyond_rounding

# Bytes of the sample that is sent to the driver.
SAMPLE_BYTES = 1 << 28
# Bytes of an index and of a row's end in sparse data.
INDEX_BYTES, END_BYTES = 4.0, 8.0


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
    weights : array of shape (n_labels, n_folds)
        Weight of each label in each fold.
    margins : bool
        Whether rows have margins of their own.
    sample : Rows
        Some rows, drawn at random, with the weights that make them stand for all rows.
    row_bytes : float
        Mean size of a row.
    names : tuple of str, optional
        Names of the columns of a frame.
    """

    n: int
    d: int
    dtype: np.dtype[Any]
    labels: Array
    weights: Floats
    margins: bool
    sample: Rows
    row_bytes: float = 0.0
    names: tuple[str, ...] | None = None


def read(part: Any, number: int) -> Rows:
    """Read and check the rows of a partition; messages name its number."""
    return _read(part, number)[0]


def _read(part: Any, number: int) -> tuple[Rows, tuple[str, ...] | None]:
    """Return the rows of a partition, and the names of its columns if they have any."""
    rows, caller = as_part(part).load(), Caller.named("fit")
    if rows.X.shape[0] == 0:
        return rows, None
    try:
        X, y = read_samples_and_labels(caller, rows.X, rows.y)
        # Unlike a whole training set, a partition may be without weight.
        weight = read_per_sample(rows.sample_weight, X.shape[0], "sample_weight")
        weight = np.ones(X.shape[0]) if weight is None else weight
        margin = read_per_sample(rows.sample_margin, X.shape[0], "sample_margin")
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    names = getattr(caller, "feature_names_in_", rows.names)
    kept = Rows(X.tocsr() if sp.issparse(X) else X, y, weight, margin)
    return kept, None if names is None else tuple(names)


def row_bytes(X: Any) -> float:
    """Return the mean size of a row, as the driver holds it."""
    if sp.issparse(X):
        entry = X.dtype.itemsize + INDEX_BYTES
        return float(entry * X.nnz / max(1, X.shape[0]) + END_BYTES)
    return float(X.dtype.itemsize * X.shape[1])


def folds_of(y: Array, number: int, count: int) -> Ints:
    """Return the fold of each row of partition ``number``: its rank in its class, modulo count.

    Ranks are within the partition and begin at the number of it, so that every fold has its share
    of each class in every partition and of small partitions too.
    """
    order = np.argsort(y, kind="stable")
    begins = np.ones(y.size, dtype=bool)
    begins[1:] = y[order][1:] != y[order][:-1]
    places = np.arange(y.size)
    folds = np.empty(y.size, dtype=np.int64)
    folds[order] = (places - np.maximum.accumulate(np.where(begins, places, 0)) + number) % count
    return folds


def survey(part: Any, number: int, most: int, most_bytes: float, seed: int, folds: int) -> Survey:
    """Look at a partition, and draw at most ``most`` of its rows, of at most so many bytes."""
    rows, names = _read(part, number)
    n = rows.X.shape[0]
    if n == 0:
        none = np.zeros(0)
        weights = np.zeros((0, folds))
        return Survey(0, -1, np.dtype(np.float32), none, weights, False, Rows(None, none))
    labels, codes = np.unique(rows.y, return_inverse=True)
    cells = codes.ravel() * folds + folds_of(rows.y, number, folds)
    weights = np.bincount(cells, rows.sample_weight, labels.size * folds).astype(np.float64)
    chosen = np.arange(n)
    most = max(1, int(min(most, most_bytes / max(1.0, row_bytes(rows.X)))))
    if n > most:
        chosen = np.sort(np.random.default_rng([seed, number]).choice(n, most, replace=False))
    margin = rows.sample_margin
    sample = Rows(
        rows.X[chosen],
        rows.y[chosen],
        rows.sample_weight[chosen] * (n / chosen.size),
        None if margin is None else margin[chosen],
    )
    return Survey(
        n,
        rows.X.shape[1],
        rows.X.dtype,
        labels,
        weights.reshape(labels.size, folds),
        margin is not None,
        sample,
        row_bytes(rows.X),
        names,
    )


@dataclass(frozen=True, eq=False)
class Population:
    """What all partitions have in common.

    Attributes
    ----------
    labels : array
        All labels, sorted.
    numbers : array of int
        Which of them are the classes: those of positive weight.
    factors : array
        Mass of a sample of weight 1 of each class: class factor over the sum of all weights.
    priors : array
        Share of the weight of each class.
    total : float
        Sum of the weights, class factors included.
    row_bytes : float
        Mean size of a row on the driver.
    names : tuple of str, optional
        Names of the features, where partitions are frames.
    folds : int
        Number of folds that the rows are divided into.
    left_out : int
        The fold whose rows are not trained on; -1 for none.
    """

    n: int
    d: int
    dtype: np.dtype[Any]
    labels: Array
    numbers: Ints
    factors: Floats
    priors: Floats
    total: float
    margins: bool
    row_bytes: float
    names: tuple[str, ...] | None = None
    folds: int = 1
    left_out: int = -1

    @property
    def feature_names(self) -> Array | None:
        """Names of the features as estimators have them."""
        return None if self.names is None else np.array(self.names, dtype=object)

    @property
    def classes(self) -> Array:
        """Labels of positive weight, sorted."""
        return self.labels[self.numbers]

    @classmethod
    def of(cls, surveys: list[Survey], class_weight: Any, left_out: int = -1) -> Population:
        """Join the surveys of all partitions; one fold may be left out."""
        filled = [each for each in surveys if each.n > 0]
        if not filled:
            raise ValueError("The partitions hold no rows. Give at least one that has some.")
        widths = sorted({each.d for each in filled})
        if len(widths) > 1:
            raise ValueError(
                f"The partitions have different numbers of features: {widths}. Give every "
                "partition the same columns."
            )
        names = {each.names for each in filled}
        if len(names) > 1:
            raise ValueError(
                "The columns of the partitions have different names, or stand in another order. "
                "Select the same columns of every partition, in one order."
            )
        kinds = {each.labels.dtype.kind for each in filled}
        if len(kinds) > 1 and not kinds <= set("biuf"):
            raise ValueError("The labels of the partitions are of different types; use one type.")
        labels = np.unique(np.concatenate([each.labels for each in filled]))
        totals = np.zeros(labels.size)
        for each in filled:
            used = each.weights.sum(axis=1)
            if left_out >= 0:
                used = np.delete(each.weights, left_out, axis=1).sum(axis=1)
            totals[np.searchsorted(labels, each.labels)] += used
        known = np.flatnonzero(totals > 0.0)
        digits, power = class_factors(class_weight, labels[known], totals[known])
        factors = np.ldexp(digits, power)
        kept = known[factors > 0.0]
        totals, factors = totals[kept], factors[factors > 0.0]
        if kept.size < 2:
            where = "" if left_out < 0 else f" in the training part of fold {left_out}"
            raise ValueError(
                f"A classifier needs samples of at least two classes with positive weight; found "
                f"{kept.size}{where}."
            )
        total = float(np.sum(factors * totals))
        narrow = all(each.dtype == np.float32 for each in filled)
        return cls(
            n=sum(each.n for each in filled),
            d=widths[0],
            dtype=np.dtype(np.float32 if narrow else np.float64),
            labels=labels,
            numbers=kept,
            factors=factors / total,
            priors=factors * totals / total,
            total=total,
            margins=any(each.margins for each in filled),
            row_bytes=sum(each.n * each.row_bytes for each in filled) / sum(e.n for e in filled),
            names=names.pop(),
            folds=filled[0].weights.shape[1],
            left_out=left_out,
        )

    def name_features(self, model: Any) -> None:
        """Give a model the number of the features and, where they have any, their names."""
        model.n_features_in_ = self.d
        model.__dict__.pop("feature_names_in_", None)
        if self.feature_names is not None:
            model.feature_names_in_ = self.feature_names

    def read(self, part: Any, number: int) -> tuple[Any, Array, Floats, Floats | None]:
        """Read the rows of a partition that are trained on: see :meth:`encoded`."""
        rows = read(part, number)
        if self.left_out < 0 or rows.X.shape[0] == 0:
            return self.encoded(rows)
        out = folds_of(rows.y, number, self.folds) == self.left_out
        return self.encoded(replace(rows, sample_weight=np.where(out, 0.0, rows.sample_weight)))

    def encoded(self, rows: Rows) -> tuple[Any, Array, Floats, Floats | None]:
        """Return X, class numbers, masses and margins of the rows that have weight."""
        X, y = rows.X, np.asarray(rows.y)
        if X.shape[0] == 0:
            return X, np.zeros(0, dtype=np.int32), np.zeros(0), None
        classes = self.classes
        codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        weight = rows.sample_weight * (classes[codes] == y)
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
    X, _, mass, _ = population.read(part, number)
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
    return beyond_rounding(deviation, whole.largest, n)
