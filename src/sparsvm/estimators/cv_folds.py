"""One fold of a cross-validation: a path on its training part, scores on its test part."""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Counts, Floats
from sparsvm.certificate.finalise import inner_tolerance, tolerance
from sparsvm.data.inputs import TooFewClasses
from sparsvm.estimators.linear import column_scores, highest
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.path.svm_path import first_steps, follow
from sparsvm.problem.solution import Control

# As in scikit-learn.
FOLDS = 5
# The score of a class that the training part of a fold lacks: never the largest.
_NEVER = 1e30


@dataclass(frozen=True, eq=False)
class Fold:
    """What every fold of every candidate needs to know.

    Attributes
    ----------
    X, y : validated samples and labels
    weight : ndarray of shape (n_samples,)
    margin : ndarray of shape (n_samples,) or None
    classes : ndarray
        All labels of positive weight.
    scorer : callable or None
        None means accuracy, computed here: scikit-learn's scorer takes 2 ms a model for
        validation alone, as long as solving for the model.
    score_params : dict
        Arrays for the scorer, one value for every sample.
    """

    X: Any
    y: Array
    weight: Floats
    margin: Floats | None
    classes: Array
    scorer: Any
    score_params: dict[str, Any]


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Scores and numbers of features along the path of one fold."""

    scores: Floats
    n_selected: Counts
    n_short: int
    """Points that missed the tolerance."""


def run_fold(shared: Fold, model: SparseSVC, grid: Floats, train: Array, test: Array) -> FoldResult:
    """Follow the path on the training rows and score every point of it on the test rows.

    Rows outside the training part get weight zero, which leaves them out without a copy of X.
    """
    weight = shared.weight * np.bincount(train, minlength=shared.weight.size)
    X_test, y_test = shared.X[test], shared.y[test]
    params = {name: values[test] for name, values in shared.score_params.items()}

    def scored(classes: Array, coef: Any, intercept: Floats, prior: Floats) -> float:
        if shared.scorer is None:
            weights = params.get("sample_weight")
            return _accuracy(X_test, y_test, weights, classes, coef, intercept, prior)
        fitted = _fitted(model, shared, classes, coef, intercept, prior)
        return float(shared.scorer(fitted, X_test, y_test, **params))

    try:
        data, problem = model._convex_problem(shared.X, shared.y, weight, shared.margin)
    except TooFewClasses as error:
        if not error.labels.size:
            raise
        nothing = sp.csr_matrix((1, shared.X.shape[1]))
        score = scored(error.labels, nothing, np.zeros(1), np.ones(1))
        n_selected = np.zeros(grid.size, dtype=np.int64)
        return FoldResult(np.full(grid.size, score), n_selected, 0)
    control = Control(
        tol=inner_tolerance(model.tol, data.dtype),
        max_iter=model.max_iter,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
    )
    steps, grid = first_steps(problem, model.solver, control, grid, grid.size, 0.5)
    path = follow(data, steps, grid, tolerance(model.tol, data.dtype))
    scores = np.empty(grid.size)
    for t, coef in enumerate(path.coefs):
        same = t > 0 and coef is path.coefs[t - 1]
        if same and np.array_equal(path.intercepts[t], path.intercepts[t - 1]):
            scores[t] = scores[t - 1]
        else:
            scores[t] = scored(path.classes, coef, path.intercepts[t], data.class_shares())
    n_short = sum(status != "optimal" for status in path.statuses)
    return FoldResult(scores, path.n_selected, n_short)


def _accuracy(
    X: Any,
    y: Array,
    weight: Floats | None,
    classes: Array,
    coef: Any,
    intercept: Floats,
    prior: Floats,
) -> float:
    """Return the (weighted) share of right predictions."""
    scores = column_scores(X, coef) + intercept
    if classes.size == 1:
        numbers = np.zeros(y.size, dtype=np.intp)
    else:
        numbers = highest(scores if classes.size > 2 else scores[:, 0], prior)
    right = classes[numbers] == y
    total = y.size if weight is None else float(weight.sum())
    if total == 0.0:
        return float("nan")
    return float(np.count_nonzero(right) if weight is None else weight[right].sum()) / total


def _fitted(
    model: SparseSVC, shared: Fold, classes: Array, coef: Any, intercept: Floats, prior: Floats
) -> SparseSVC:
    """Return a fitted model of all classes; one that the fold lacks is never predicted."""
    if classes.size < shared.classes.size:
        coef, intercept = _with_all_classes(shared.classes, classes, coef, intercept)
    fitted = copy.copy(model)
    fitted.classes_ = shared.classes
    fitted.coef_ = coef
    fitted.intercept_ = intercept
    fitted.class_prior_ = np.zeros(shared.classes.size)
    fitted.class_prior_[np.searchsorted(shared.classes, classes)] = prior
    fitted.n_features_in_ = shared.X.shape[1]
    return fitted


def _with_all_classes(
    all_classes: Array, classes: Array, coef: Any, intercept: Floats
) -> tuple[Any, Floats]:
    position = np.searchsorted(all_classes, classes)
    if classes.size == 2:
        # One row stands for the difference of two; the first class has the score zero.
        coef = sp.vstack([sp.csr_matrix((1, coef.shape[1])), coef])
        intercept = np.concatenate([[0.0], intercept])
    if all_classes.size == 2:
        return coef, np.array([_NEVER if position[0] == 1 else -_NEVER])
    rows = sp.csr_matrix(
        (np.ones(classes.size), (position, np.arange(classes.size))),
        shape=(all_classes.size, classes.size),
    )
    full = np.full(all_classes.size, -_NEVER)
    full[position] = intercept
    return (rows @ coef).tocsr(), full


def default_folds(y: Array) -> int:
    """Return the number of folds where none is given: five, if there are so many samples."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest >= FOLDS or largest < 2:  # of single samples scikit-learn says that none are left
        return FOLDS
    warnings.warn(
        f"No class has more than {largest} samples: cross-validation has {largest} folds, not "
        f"{FOLDS}. Give cv to choose the folds yourself.",
        UserWarning,
        stacklevel=4,
    )
    return largest


def checked_splits(splits: Any, n_samples: int) -> list[tuple[Array, Array]]:
    """Return the folds as pairs of row numbers; masks are turned into those."""
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


def one_error_rule(scores: Floats, best: int) -> int:
    """Return the first (sparsest) point within one standard error of the best point's mean."""
    if scores.shape[1] < 2:
        return best
    means = scores.mean(axis=1)
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer accepts sample_weight; those of scikit-learn ask their metric."""
    function = getattr(scorer, "_score_func", scorer)
    parameters = inspect.signature(function).parameters.values()
    return any(
        p.name == "sample_weight" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
