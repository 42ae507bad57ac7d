"""The folds of a cross-validation: pairs of training and test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Array, Floats
from sparsvm.data.warn import warn

# As in scikit-learn.
FOLDS = 5


def default_folds(y: Array) -> int:
    """Return the number of folds where none is given: five, if there are so many samples."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest >= FOLDS:
        return FOLDS
    if largest < 2:
        raise ValueError(
            "Every class has one sample, which leaves none for training where it is tested. "
            "Cross-validation needs a class of two samples; SparseSVC fits with an alpha of yours."
        )
    warn(
        f"No class has more than {largest} samples: cross-validation has {largest} folds, not "
        f"{FOLDS}. Give cv to choose the folds yourself.",
        UserWarning,
    )
    return largest


def checked_splits(
    splits: Any, n_samples: int, weight: Floats | None = None
) -> list[tuple[Array, Array]]:
    """Return the folds as pairs of row numbers; masks are turned into those.

    With the ``weight`` of each sample in the scores, every test part needs a positive one.
    """
    try:
        pairs = [(np.asarray(train), np.asarray(test)) for train, test in splits]
    except (TypeError, ValueError) as error:
        if "unpack" not in str(error):
            raise
        raise ValueError(
            f"cv must give pairs of training and test rows, but one of its folds is none ({error})."
        ) from error
    checked = [
        (_rows(train, n_samples, number), _rows(test, n_samples, number))
        for number, (train, test) in enumerate(pairs)
    ]
    if not checked:
        raise ValueError("cv gives no folds at all. Give at least one pair of row numbers.")
    for number, (_, test) in enumerate(checked):
        if weight is not None and not np.any(weight[test] > 0.0):
            raise ValueError(
                f"All {test.size} test samples of fold {number} have the weight zero, so that it "
                "has no score. Leave samples without weight out, or give cv other folds."
            )
    return checked


def _rows(rows: Array, n_samples: int, fold: int) -> Array:
    if rows.dtype == bool and rows.shape == (n_samples,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"Fold {fold} of cv must hold the numbers of at least one training and one test row, "
            f"or masks of {n_samples} rows, but it has an array of shape {rows.shape} and type "
            f"{rows.dtype}."
        )
    if rows.min() < 0 or rows.max() >= n_samples:
        wrong = int(rows.min() if rows.min() < 0 else rows.max())
        raise ValueError(
            f"Fold {fold} of cv has the row {wrong}, but X has the rows 0 to {n_samples - 1}."
        )
    return rows
