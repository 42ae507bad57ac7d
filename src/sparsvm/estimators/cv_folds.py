"""One fold of a cross-validation: a path on its training part, scores on its test part."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Bools, Counts, Floats, Ints
from sparsvm.data.inputs import TooFewClasses
from sparsvm.data.training_set import Samples
from sparsvm.estimators.cv_progress import Tick
from sparsvm.estimators.cv_proof import Proof
from sparsvm.estimators.linear import column_scores, highest
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.estimators.svm_path import SVMPath, path_points
from sparsvm.path.grid import grid_below
from sparsvm.path.points import Kept, sparse_rows
from sparsvm.path.svm_path import NoPath
from sparsvm.path.zero_model import zero_model
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Solution

# The score of a class that the training part of a fold lacks: never the largest.
_NEVER = 1e30
# Scores computed at a time: half a megabyte of models that follow each other, which share features.
_SCORES = 1 << 16


@dataclass(frozen=True, eq=False)
class Shared:
    """What every fold of every candidate needs to know; arrays are mapped, not copied.

    Attributes
    ----------
    samples : Samples
        All the data, validated and in canonical form.
    classes : ndarray
        All labels of positive weight.
    scorer : callable or None
        None means accuracy, computed here: scikit-learn's scorer takes 2 ms a model for
        validation alone, as long as solving for the model.
    score_params : dict
        Arrays for the scorer, one value for every sample.
    """

    samples: Samples
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
    seconds: Floats
    selected: list[Ints]
    """Features that each point uses."""


@dataclass(frozen=True, eq=False)
class Whole:
    """The path on all samples, and what proves its points."""

    path: SVMPath
    proofs: list[Proof]
    zeros: int
    """Points at its beginning that use no penalised feature."""


def whole_path(
    shared: Shared,
    model: SparseSVC,
    alphas: Any,
    n_alphas: int,
    eps: float,
    max_features: int | None,
    tick: Tick | None,
) -> Whole:
    """Follow the path on all samples; where no feature helps, over alphas that are as good."""
    data = shared.samples.training_set(model.class_weight)
    problem = model._path_problem(data)
    proofs: list[Proof] = []

    def seen(point: Kept, solution: Solution | None) -> None:
        known = Proof.of_native(point) if solution is None else Proof.of(problem, solution)
        proofs.append(known)
        if tick is not None:
            tick()

    try:
        points = path_points(
            model, data, problem, alphas, n_alphas, eps, max_features=max_features, seen=seen
        )
    except NoPath:
        points = path_points(model, data, problem, grid_below(1.0, n_alphas, eps), seen=seen)
    zeros = without_features(points.coefs, problem) if problem.convex else 0
    return Whole(SVMPath.of(points, model, data), proofs, zeros)


def without_features(coefs: list[Any], problem: Problem) -> int:
    """Return how many of the first models use unpenalised features only."""
    unpenalised = np.zeros((problem.n_outputs, problem.d))
    unpenalised[:, problem.penalty.free] = 1.0
    free: Bools = np.any(problem.folded(unpenalised), axis=0)
    return next((t for t, coef in enumerate(coefs) if not free[coef.indices].all()), len(coefs))


def run_fold(
    shared: Shared,
    model: SparseSVC,
    grid: Floats,
    train: Array,
    test: Array,
    tick: Tick | None,
    zeros: int = 0,
) -> FoldResult:
    """Follow the path on the training rows and score every point of it on the test rows.

    Rows outside the training part get weight zero, which leaves them out without a copy of X. At
    the first ``zeros`` alphas the model of all samples has no features, and so has that of the
    fold: with fewer samples alpha_max is larger, and the scores would be those of other models. (Of
    the hinge on classes that overlap, one alpha may part no features from nearly all of them.)
    """
    all_rows = shared.samples
    weight = all_rows.weight_of_row * np.bincount(train, minlength=all_rows.y.size)
    X_test, y_test = all_rows.X[test], all_rows.y[test]
    params = {name: values[test] for name, values in shared.score_params.items()}

    def scored(classes: Array, coefs: list[Any], intercepts: Floats, prior: Floats) -> Floats:
        if shared.scorer is None:
            weights = params.get("sample_weight")
            return _accuracies(X_test, y_test, weights, classes, coefs, intercepts, prior)
        models = (
            _fitted(model, shared, classes, coef, intercept, prior)
            for coef, intercept in zip(coefs, intercepts, strict=True)
        )
        return np.array([shared.scorer(fitted, X_test, y_test, **params) for fitted in models])

    try:
        data = all_rows.with_weights(weight).training_set(model.class_weight)
    except TooFewClasses as error:
        if not error.labels.size:
            raise
        nothing = sp.csr_matrix((1, X_test.shape[1]))
        score = scored(error.labels, [nothing], np.zeros((1, 1)), np.ones(1))[0]
        n_selected = np.zeros(grid.size, dtype=np.int64)
        none = [np.zeros(0, dtype=np.intp)] * grid.size
        return FoldResult(np.full(grid.size, score), n_selected, 0, np.zeros(grid.size), none)
    seen = None if tick is None else lambda *_: tick()
    problem = model._path_problem(data)
    points: list[tuple[Any, Floats]] = []
    if zeros:
        zero = zero_model(problem)
        coef = sparse_rows(problem.folded(zero.coef), data.dtype)
        points = [(coef, zero.intercept.astype(data.dtype))] * zeros
        for _ in range(zeros):
            if tick is not None:
                tick()
    seconds, n_short = np.zeros(grid.size), 0
    if zeros < grid.size:
        path = path_points(model, data, problem, grid[zeros:], seen=seen)
        points += zip(path.coefs, path.intercepts, strict=True)
        seconds[zeros:] = path.seconds
        n_short = sum(status != "optimal" for status in path.statuses)
    # Models that are the same, one after the other, are scored once.
    new = [
        t == 0 or coef is not points[t - 1][0] or not np.array_equal(intercept, points[t - 1][1])
        for t, (coef, intercept) in enumerate(points)
    ]
    coefs, intercepts = zip(*(points[t] for t in np.flatnonzero(new)), strict=True)
    scores = scored(data.classes, list(coefs), np.array(intercepts), data.class_shares())
    scores = scores[np.cumsum(new) - 1]
    selected = [np.unique(coef.indices).astype(np.intp) for coef, _ in points]
    n_selected = np.array([features.size for features in selected])
    return FoldResult(scores, n_selected, n_short, seconds, selected)


def _accuracies(
    X: Any,
    y: Array,
    weight: Floats | None,
    classes: Array,
    coefs: list[Any],
    intercepts: Floats,
    prior: Floats,
) -> Floats:
    """Return the (weighted) share of right predictions of models, scored some at a time."""
    places = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    number = np.where(classes[places] == y, places, -1)
    mass = np.ones(y.size) if weight is None else weight
    if not mass.sum() > 0.0:
        return np.full(len(coefs), np.nan)
    n_outputs = intercepts.shape[1]
    step = max(1, _SCORES // (max(y.size, 1) * n_outputs))
    right = np.empty(len(coefs))
    for first in range(0, len(coefs), step):
        some = coefs[first : first + step]
        outputs = column_scores(X, _above_each_other(some)).reshape(y.size, len(some), n_outputs)
        for t, intercept in enumerate(intercepts[first : first + step]):
            scores = outputs[:, t] + intercept
            if classes.size == 1:
                predicted = np.zeros(y.size, dtype=np.intp)
            else:
                predicted = highest(scores if classes.size > 2 else scores[:, 0], prior)
            right[first + t] = mass[predicted == number].sum()
    return np.asarray(right / mass.sum())


def _above_each_other(coefs: list[Any]) -> Any:
    """Return the rows of CSR matrices in one; of a hundred small ones scipy takes 5 ms."""
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(c.indptr) for c in coefs]))])
    data, indices = (
        np.concatenate([getattr(c, name) for c in coefs]) for name in ("data", "indices")
    )
    return sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, coefs[0].shape[1]))


def _fitted(
    model: SparseSVC, shared: Shared, classes: Array, coef: Any, intercept: Floats, prior: Floats
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
    fitted.n_features_in_ = shared.samples.X.shape[1]
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


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer accepts sample_weight; those of scikit-learn ask their metric."""
    function = getattr(scorer, "_score_func", scorer)
    parameters = inspect.signature(function).parameters.values()
    return any(
        p.name == "sample_weight" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
