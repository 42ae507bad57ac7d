"""From the arguments of ``fit`` to a training set in canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsvm._typing import Array, Bools, Counts, Features, Floats, Ints
from sparsvm.data.canonical import CanonicalForm, canonical_form
from sparsvm.data.design import make_design
from sparsvm.data.inputs import (
    class_factors,
    read_per_sample,
    read_samples_and_labels,
    read_weights,
    require_two_classes,
)

# Below the sum of any two exponents of doubles.
_LOWEST = -(2**14)


@dataclass(frozen=True, eq=False)
class RowShares:
    """What part of which sample each of the user's rows is.

    Attributes
    ----------
    sample_of_row : ndarray of shape (n_rows,), int64
        The sample each of the user's rows went into; -1 for rows without weight.
    share : ndarray of shape (n_rows,)
        The row's part of that sample's weight: 1 where no other row is merged with it.
    """

    sample_of_row: Counts
    share: Floats

    def spread(self, values: Floats) -> Floats:
        """Return an array of (n_samples, K) in the user's rows; rows without weight have zeros."""
        rows = values[self.sample_of_row] * self.share[:, None]
        rows[self.sample_of_row < 0] = 0.0
        return np.asarray(rows)


@dataclass(frozen=True)
class TrainingSet:
    """The distinct weighted samples of a fit.

    Attributes
    ----------
    design : Design
        The samples, as a view of the user's matrix through a row index.
    dtype : dtype
        Type of the user's values, float32 or float64.
    y : ndarray of shape (n,), int32
        Class numbers 0 … K − 1.
    mass : ndarray of shape (n,)
        Merged sample weights times the class factors, divided by their sum; positive.
    total : float
        Their sum; 0 where no double is as small.
    margin_scale : ndarray of shape (n,), or None
        Per-sample margins.
    classes : ndarray of shape (K,)
        Labels of the classes of positive weight.
    label_numbers : ndarray of shape (K,)
        Their positions among all sorted labels of y, weightless ones included.
    labels : ndarray
        All distinct labels of y, sorted, weightless ones included.
    sample_of_row : ndarray of shape (n_rows,), int64
        The sample each of the user's rows went into; -1 for rows without weight.
    weight_of_row : ndarray of shape (n_rows,)
        The weight of each of the user's rows, as given.
    feature_names : ndarray of d str, or None
        Names of the columns, where X has names that are all strings.
    """

    design: Any
    dtype: np.dtype[Any]
    y: Features
    mass: Floats
    total: float
    margin_scale: Floats | None
    classes: Array
    label_numbers: Ints
    labels: Array
    sample_of_row: Counts
    weight_of_row: Floats
    feature_names: Array | None = None

    def class_shares(self) -> Floats:
        """Return the part of the weight that each class has."""
        return np.asarray(np.bincount(self.y, self.mass, self.classes.size), dtype=np.float64)

    def row_shares(self) -> RowShares:
        """Return what part of which sample each row is; all rows of a sample have one class."""
        kept = self.sample_of_row >= 0
        samples = self.sample_of_row[kept]
        # Of doubles near the smallest or the largest the sums would not hold.
        weight = self.weight_of_row[kept] / self.weight_of_row.max()
        share = np.zeros(self.sample_of_row.size)
        share[kept] = weight / np.bincount(samples, weight, self.y.size)[samples]
        return RowShares(self.sample_of_row, share)


@dataclass(frozen=True, eq=False)
class Samples:
    """Validated data in canonical form: what the training sets of all folds are parts of.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_rows, d)
        The user's matrix, converted only where it had to be.
    y : ndarray of shape (n_rows,)
        The labels of the rows.
    labels : ndarray
        All distinct labels, sorted.
    weight_of_row : ndarray of shape (n_rows,)
        The weight of each of the user's rows, as given.
    form : CanonicalForm
        The distinct samples.
    feature_names : ndarray of d str, or None
        Names of the columns, where X has names that are all strings.
    """

    X: Any
    y: Array
    labels: Array
    weight_of_row: Floats
    form: CanonicalForm
    feature_names: Array | None = None

    def with_weights(self, weight_of_row: Floats) -> Samples:
        """Return the same rows with other weights; X is neither read nor copied.

        The samples and their order are what reading the rows again with these weights would give.
        Rows that have no weight here stay without.
        """
        return replace(
            self, weight_of_row=weight_of_row, form=self.form.with_weights(weight_of_row)
        )

    def training_set(self, class_weight: Any = None) -> TrainingSet:
        """Return the distinct weighted samples.

        Class factors multiply the weights after identical samples are merged: c + c + c and 3 c
        may differ in the last bit, and then weighting and repetition would be two problems.
        Samples whose share of the weight vanishes in rounding count as samples without weight.
        """
        form, labels = self.form, self.labels
        weight, power = _weighted(form, labels, class_weight)
        kept = _has_share(weight)
        if not kept.all():
            form, weight = form.select(kept), weight[kept]
        present = np.unique(form.codes)
        require_two_classes(labels[present])
        number = np.zeros(labels.size, dtype=np.int32)
        number[present] = np.arange(present.size)
        total = weight.sum()
        return TrainingSet(
            design=make_design(self.X, rows=form.rows),
            dtype=self.X.dtype,
            y=number[form.codes],
            mass=weight / total,
            total=float(np.ldexp(total, power)),
            margin_scale=form.margin,
            classes=labels[present],
            label_numbers=present.astype(np.intp),
            labels=labels,
            sample_of_row=form.sample_of_row,
            weight_of_row=self.weight_of_row,
            feature_names=self.feature_names,
        )


def read_all(
    estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, sample_margin: Any = None
) -> Samples:
    """Validate the arguments of ``fit`` and bring them into canonical form."""
    X, y = read_samples_and_labels(estimator, X, y)
    weight = read_weights(sample_weight, X.shape[0])
    margin = read_per_sample(sample_margin, X.shape[0], "sample_margin")
    labels, codes = np.unique(y, return_inverse=True)
    form = canonical_form(X, codes.ravel(), weight, margin)
    return Samples(X, y, labels, weight, form, getattr(estimator, "feature_names_in_", None))


def read_training_set(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    sample_margin: Any = None,
    class_weight: Any = None,
) -> TrainingSet:
    """Validate the arguments of ``fit`` and return the training set they mean."""
    read = read_all(estimator, X, y, sample_weight=sample_weight, sample_margin=sample_margin)
    return read.training_set(class_weight)


def _weighted(form: CanonicalForm, labels: Array, class_weight: Any) -> tuple[Floats, int]:
    """Return the weights times the class factors, divided by a power of two, and that power.

    The largest is about 1. By themselves products may vanish, or factors overflow, although each
    is a notable share of the total: exponents are added as integers.
    """
    present = np.unique(form.codes)
    totals = np.bincount(form.codes, form.weight, labels.size).astype(np.float64)
    factor, factor_power = np.zeros(labels.size), np.zeros(labels.size, dtype=np.int32)
    if isinstance(class_weight, str):
        # "balanced" shares the weight among the classes that have any.
        found = class_factors(class_weight, labels[present], totals[present])
        factor[present], factor_power[present] = found
    else:
        # The keys of a dictionary are checked against every label, so that one is not unknown
        # because its class has no weight.
        factor, factor_power = class_factors(class_weight, labels, totals)
    digits, power = np.frexp(form.weight)
    digits, more = np.frexp(digits * factor[form.codes])
    power += factor_power[form.codes] + more
    power[digits == 0.0] = _LOWEST
    largest = int(power.max(initial=_LOWEST))
    return np.ldexp(digits, power - largest), largest


def _has_share(weight: Floats) -> Bools:
    """Tell the samples whose share of the total is not zero after rounding."""
    kept = weight > 0.0
    while not (share := weight[kept] / weight[kept].sum()).all():
        kept[kept] = share > 0.0
    return kept


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if the block fails or is interrupted."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
