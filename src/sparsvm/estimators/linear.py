"""Prediction with a sparse linear model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Ints
from sparsvm.data.design import make_design
from sparsvm.data.inputs import read_samples
from sparsvm.estimators.named_parts import NamedParts
from sparsvm.estimators.selected import SelectedFeatures, used_columns
from sparsvm.numerics.rows import row_blocks
from sparsvm.numerics.sparse_format import checked_coefficients, dense_coefficients
from sparsvm.problem.solution import History

# Scores at a time of sparse samples: half a megabyte.
BLOCK = 2**16
# Entries of dense samples that are gathered at a time: eight megabytes at most.
GATHERED_ENTRIES = 2**20
# Looking for the features in use reads all coefficients, which takes longer than the scores of a
# few samples do: dense ones, or sparse ones with so many times fewer entries than features.
FEW_SAMPLES = 8
FEW_ENTRIES = 8

Self = TypeVar("Self", bound="SparseLinearClassifier")


class SparseLinearClassifier(ClassifierMixin, SelectedFeatures, NamedParts):
    """What fitted linear classifiers share: scores from the features that are used.

    Which features are in use is not kept: ``coef_`` is read at each call, of a few samples only
    what they need of it, so an edited ``coef_`` counts at once.
    """

    coef_: Any
    intercept_: Any
    result_: Any
    classes_: Array
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes, ``X coef_ᵀ + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            One score per class; with two classes the score of ``classes_[1]``, which is
            predicted where it is positive.
        """
        check_is_fitted(self, "coef_")
        X = read_samples(self, X)
        if reads_little(X, self.coef_):
            return self._few_scores(X)
        coef, intercept = self._checked_coefficients()
        return _scores(X, coef, intercept)

    def predict(self, X: Any) -> Array:
        """Return the label with the highest score for each sample.

        Equal scores go to the class of the largest weight in training (``class_prior_``).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        check_is_fitted(self, "coef_")
        X = read_samples(self, X)
        if reads_little(X, self.coef_):
            return np.asarray(self.classes_[highest(self._few_scores(X), self._prior())])
        coef, intercept = self._checked_coefficients()
        if not sp.issparse(X):
            return np.asarray(self.classes_[highest(_scores(X, coef, intercept), self._prior())])
        # Scores of all samples may take more than sparse samples do.
        numbers = np.empty(X.shape[0], dtype=np.intp)
        for rows, scores in sparse_scores(X, coef):
            numbers[rows] = highest(_with_intercept(scores, intercept), self._prior())
        return np.asarray(self.classes_[numbers])

    def _prior(self) -> Array | None:
        """Return ``class_prior_``; None of a model that was put together by hand."""
        prior = getattr(self, "class_prior_", None)
        return prior if prior is not None and len(prior) == len(self.classes_) else None

    def sparsify(self: Self) -> Self:
        """Store ``coef_`` as a scipy CSR matrix, and drop what only tells how it was found.

        A model of few features then takes little more than its weights, also when it is pickled:
        the dual variables and the history of ``result_`` are as large as the training data's
        labels times classes, and go. The certificate (``dual_gap_`` and the values in
        ``result_``) stays.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = sp.csr_matrix(checked_coefficients(self.coef_))
        self._keep_in_result(dual=None, history=History.empty())
        self.__dict__.pop("_row_shares", None)
        return self

    def densify(self: Self) -> Self:
        """Store ``coef_`` as a NumPy array again.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = dense_coefficients(self.coef_)
        self._keep_in_result()
        return self

    def _keep_in_result(self, **values: Any) -> None:
        """Let ``result_`` share ``coef_``, so that there is one array, and replace other fields."""
        result = vars(self).get("result_")
        if result is None:
            return
        known = {field.name for field in fields(result)}
        values = {name: value for name, value in values.items() if name in known}
        self.result_ = replace(result, coef=self.coef_, **values)

    def _few_scores(self, X: Any) -> Array:
        """Return the scores of a few samples, without reading all of ``coef_``.

        What is read of it is checked by what comes out.
        """
        coef, intercept = self._shaped_coefficients()
        try:
            scores = _with_intercept(few_scores(X, coef), intercept)
            if np.isfinite(scores).all():
                return scores
        except (TypeError, ValueError):
            pass  # of a type that is none of numbers
        coef, intercept = self._checked_coefficients()
        return _scores(X, coef, intercept)

    def _checked_coefficients(self) -> tuple[Any, Array]:
        """Return ``coef_`` and ``intercept_`` after checking that an edit left them usable."""
        coef, intercept = self._shaped_coefficients()
        _require_finite("coef_", coef.data if sp.issparse(coef) else coef)
        _require_finite("intercept_", intercept)
        return coef, intercept

    def _n_outputs(self) -> int:
        """Return the number of rows that ``coef_`` should have."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _shaped_coefficients(self) -> tuple[Any, Array]:
        n_outputs = self._n_outputs()
        coef = checked_coefficients(self.coef_)
        intercept = np.asarray(self.intercept_)
        expected = (n_outputs, self.n_features_in_)
        for name, shape, wanted in (
            ("coef_", coef.shape, [expected]),
            ("intercept_", intercept.shape, [(n_outputs,), ()]),
        ):
            if shape not in wanted:
                raise ValueError(
                    f"{name} has shape {shape}, but this model of {len(self.classes_)} classes "
                    f"and {self.n_features_in_} features needs {wanted[0]}. Restore {name} or "
                    "fit again."
                )
        return coef, intercept


def _scores(X: Any, coef: Any, intercept: Array) -> Array:
    return _with_intercept(column_scores(X, coef), intercept)


def _with_intercept(scores: Array, intercept: Array) -> Array:
    scores = scores + intercept
    return np.asarray(scores.ravel() if scores.shape[1] == 1 else scores)


def highest(scores: Array, prior: Array | None = None) -> Ints:
    """Return the number of the class with the highest score, of equals that of largest prior."""
    if scores.ndim == 1:
        second = prior is not None and prior[1] > prior[0]
        return np.asarray(scores >= 0 if second else scores > 0, dtype=np.intp)
    if prior is None or np.all(prior[1:] <= prior[:-1]):
        return np.asarray(scores.argmax(axis=1), dtype=np.intp)
    order = np.argsort(-prior, kind="stable")
    return np.asarray(order[scores[:, order].argmax(axis=1)], dtype=np.intp)


def _require_finite(name: str, values: Any) -> None:
    if values.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} holds values of type {values.dtype}, but numbers are needed. "
            f"Restore {name} or fit again."
        )
    # Both are NaN where any value is.
    if not np.isfinite([values.min(initial=0.0), values.max(initial=0.0)]).all():
        raise ValueError(f"{name} contains NaN or infinite values. Restore {name} or fit again.")


def reads_little(X: Any, coef: Any) -> bool:
    """Whether scores of X need so little of the coefficients that they are not looked through."""
    if sp.issparse(X):
        return bool(X.format == "csr" and FEW_ENTRIES * X.nnz <= X.shape[1])
    return bool(X.shape[0] <= FEW_SAMPLES and not sp.issparse(coef))


def few_scores(X: Any, coef: Any) -> Array:
    """Return X coefᵀ of a few samples from the coefficients of the features that they have."""
    dtype = np.result_type(X.dtype, coef.dtype)
    if not sp.issparse(X):
        return np.asarray(X @ coef.T)
    if sp.issparse(coef):
        scores = (X.astype(np.float64) @ coef.T).toarray()
    elif X.shape[0] == 1:
        # Building a matrix of the features in use takes as long as all the rest.
        entries = slice(X.indptr[0], X.indptr[1])
        weights = coef[:, X.indices[entries]].astype(np.float64)
        scores = (weights @ X.data[entries].astype(np.float64))[None]
    else:
        present, places = np.unique(X.indices, return_inverse=True)
        shape = (X.shape[0], present.size)
        part = sp.csr_array((X.data, places.reshape(-1), X.indptr), shape=shape)
        scores = part @ coef[:, present].T.astype(np.float64)
    return np.asarray(scores).astype(dtype, copy=False)


def column_scores(X: Any, coef: Any) -> Array:
    """Return X coefᵀ from the columns where coef is not zero."""
    if sp.issparse(X):
        blocks = [scores for _, scores in sparse_scores(X, coef)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    columns, weights = used_weights(coef)
    # Gathering columns pays up to about half of them; beyond that the plain product is faster
    # (10000 x 784: 5 ms for 200 columns against 10 ms).
    if columns.size == X.shape[1]:
        return np.asarray(X @ weights)
    scores = np.empty((X.shape[0], weights.shape[1]), np.result_type(X.dtype, weights.dtype))
    # By blocks: the columns of all samples may be half of them.
    for rows in row_blocks(X.shape[0], columns.size, GATHERED_ENTRIES):
        # np.take is faster than indexing in C order and much slower in Fortran order.
        block = X[rows]
        used = np.take(block, columns, axis=1) if X.flags.c_contiguous else block[:, columns]
        np.matmul(used, weights, out=scores[rows])
    return scores


def used_weights(coef: Any) -> tuple[Ints, Array]:
    """Return the columns in use and coefᵀ at them, of an array or a CSR matrix.

    All columns where more than half are in use: a copy would be as large as all.
    """
    columns = used_columns(coef)
    n_outputs, d = coef.shape
    if 2 * columns.size > d:
        columns = np.arange(d)
    if not sp.issparse(coef):
        return columns, (coef if columns.size == d else coef[:, columns]).T
    # Columns of a small CSR matrix take scipy longer than the scores of a hundred samples.
    rows = np.repeat(np.arange(n_outputs), np.diff(coef.indptr))
    used = coef.data != 0
    places = np.searchsorted(columns, coef.indices[used]) * n_outputs + rows[used]
    weights = np.bincount(places, coef.data[used], columns.size * n_outputs)
    return columns, weights.reshape(-1, n_outputs).astype(coef.dtype, copy=False)


def sparse_scores(X: Any, coef: Any) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of the rows of a CSR or CSC matrix with X coefᵀ, X being read where it is."""
    columns, weights = used_weights(coef)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    dtype = np.result_type(X.dtype, coef.dtype)
    design = make_design(X)
    for rows in row_blocks(X.shape[0], coef.shape[0], BLOCK):
        scores = design.scores_range(rows.start, rows.stop, columns.astype(np.int32), weights)
        yield rows, np.asarray(scores).astype(dtype, copy=False)
