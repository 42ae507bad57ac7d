"""From the arguments of ``fit`` to a training set in canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsvm.design import make_design
from sparsvm.estimators.canonical import canonical_form
from sparsvm.estimators.inputs import (
    class_factors,
    read_per_sample,
    read_samples_and_labels,
    read_weights,
    require_two_classes,
)

Floats = npt.NDArray[np.float64]


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
    weight : ndarray of shape (n,)
        Merged sample weights times the class factors, positive.
    margin_scale : ndarray of shape (n,), or None
        Per-sample margins.
    classes : ndarray of shape (K,)
        Labels of the classes of positive weight.
    label_numbers : ndarray of shape (K,)
        Their positions among all sorted labels of y, weightless ones included.
    n_labels : int
        Number of distinct labels in y.
    sample_of_row : ndarray of shape (n_rows,), int64
        The sample each of the user's rows went into; -1 for rows without weight.
    """

    design: Any
    dtype: np.dtype[Any]
    y: npt.NDArray[np.int32]
    weight: Floats
    margin_scale: Floats | None
    classes: npt.NDArray[Any]
    label_numbers: npt.NDArray[np.intp]
    n_labels: int
    sample_of_row: npt.NDArray[np.int64]

    @property
    def mass(self) -> Floats:
        """Weights divided by their sum."""
        return np.asarray(self.weight / self.weight.sum())


def read_training_set(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    sample_margin: Any = None,
    class_weight: Any = None,
) -> TrainingSet:
    """Validate the arguments of ``fit`` and bring them into canonical form.

    Class factors multiply the weights after identical samples are merged: c + c + c and 3 c may
    differ in the last bit, and then weighting and repetition would be two problems.
    """
    X, y = read_samples_and_labels(estimator, X, y)
    weight = read_weights(sample_weight, X.shape[0])
    margin = read_per_sample(sample_margin, X.shape[0], "sample_margin")
    labels, codes = np.unique(y, return_inverse=True)
    form = canonical_form(X, codes.ravel(), weight, margin)

    present = np.unique(form.codes)
    totals = np.bincount(form.codes, form.weight, labels.size).astype(np.float64)
    factors = np.zeros(labels.size)
    factors[present] = _factors(class_weight, labels, present, totals)
    kept = np.flatnonzero(factors)
    require_two_classes(labels[kept])
    if kept.size < present.size:
        form = form.select(factors[form.codes] > 0)
    number = np.zeros(labels.size, dtype=np.int32)
    number[kept] = np.arange(kept.size)
    return TrainingSet(
        design=make_design(X, rows=form.rows),
        dtype=X.dtype,
        y=number[form.codes],
        weight=form.weight * factors[form.codes],
        margin_scale=form.margin,
        classes=labels[kept],
        label_numbers=kept,
        n_labels=labels.size,
        sample_of_row=form.sample_of_row,
    )


def _factors(
    class_weight: Any, labels: npt.NDArray[Any], present: npt.NDArray[Any], totals: Floats
) -> Floats:
    # "balanced" shares the weight among the classes that have any; the keys of a dictionary
    # are checked against every label, so a key is not unknown because its class has no weight.
    if isinstance(class_weight, str):
        return class_factors(class_weight, labels[present], totals[present])
    return np.asarray(class_factors(class_weight, labels, totals)[present])


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
