"""From multilabel targets to a training set whose classes are the distinct label sets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array

from sparsvm._typing import Array, Bools
from sparsvm.data.inputs import LIST_LENGTH, TooFewClasses
from sparsvm.data.training_set import TrainingSet, read_training_set
from sparsvm.parameters import quoted


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The samples with the number of their label set for a class.

    Attributes
    ----------
    data : TrainingSet
        ``data.y`` are rows of ``sets``.
    sets : bool array of shape (n_sets, n_labels)
    labels : ndarray of shape (n_labels,)
        What the columns stand for: their numbers, or the labels of one-dimensional targets.
    multilabel : bool
        Whether the targets were an indicator matrix.
    """

    data: TrainingSet
    sets: Bools
    labels: Array
    multilabel: bool


def read_label_sets(estimator: Any, X: Any, y: Any, sample_weight: Any) -> LabelSets:
    """Validate the arguments of ``fit``: an indicator matrix, or one label for each sample."""
    indicator = _indicator(y)
    if indicator is None:
        data = read_training_set(estimator, X, y, sample_weight=sample_weight)
        return LabelSets(data, np.eye(data.classes.size, dtype=bool), data.classes, False)
    distinct, codes = np.unique(indicator, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    if len(distinct) == 1:
        raise ValueError(
            f"All {len(codes)} samples have the same label set, so that there is nothing to "
            "learn. Give samples of at least two classes, or label sets."
        )
    with warnings.catch_warnings():
        # Label sets may be as many as samples.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        try:
            data = read_training_set(estimator, X, codes, sample_weight=sample_weight)
        except TooFewClasses as error:
            raise ValueError(
                "All samples of positive weight have the same label set, so that there is nothing "
                "to learn. Give weights to samples of at least two label sets."
            ) from error
    return LabelSets(data, distinct[data.classes], np.arange(indicator.shape[1]), True)


def _indicator(y: Any) -> Bools | None:
    """Return the indicator matrix as booleans; None for what has one label for each sample."""
    if y is None:
        return None
    Y = y if sp.issparse(y) else _array(y)
    if Y.ndim != 2 or (Y.shape[1] == 1 and not sp.issparse(Y)):
        return None
    Y = check_array(Y, accept_sparse="csr", dtype=None, input_name="y")
    check_classification_targets(Y)
    kind = type_of_target(Y, input_name="y")
    dense = Y.toarray() if sp.issparse(Y) else np.asarray(Y)
    if kind != "multilabel-indicator" or not np.isin(dense, (0, 1)).all():
        values = quoted(np.unique(dense).tolist(), most=LIST_LENGTH)
        raise ValueError(
            f"A matrix of targets must be a label indicator of zeros and ones with at least two "
            f"columns, but it has the shape {dense.shape} and the values {values}. "
            "sklearn.preprocessing.MultiLabelBinarizer makes one from lists of labels."
        )
    return np.asarray(dense != 0)


def _array(y: Any) -> Any:
    try:
        return np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y holds rows of different lengths. sklearn.preprocessing.MultiLabelBinarizer makes a "
            "label indicator from lists of labels."
        ) from error
