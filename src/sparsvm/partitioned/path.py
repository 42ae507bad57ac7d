"""Paths over partitions: one alpha after another on the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsvm._typing import ClassWeight, LossName, PenaltyName, SolverName
from sparsvm.certificate.finalise import tolerance
from sparsvm.estimators.sparse_svc import SparseSVC as OnOneMachine
from sparsvm.estimators.svm_path import SVMPath, checked_limit
from sparsvm.losses import Loss
from sparsvm.partitioned.engine import Engine, Threads
from sparsvm.partitioned.parts import as_parts
from sparsvm.partitioned.prepare import Prepared
from sparsvm.partitioned.survey import Population
from sparsvm.partitioned.zero import class_intercepts
from sparsvm.path.grid import (
    LEFT_OF_LOSS,
    checked_grid,
    grid_below,
    largest_ridge_alpha,
    unchanged_below,
)
from sparsvm.path.points import Kept, PathPoints, gathered
from sparsvm.path.svm_path import NoPath, require_known
from sparsvm.path.zero_model import zero_model
from sparsvm.penalties import Penalty
from sparsvm.problem.solution import Start
from sparsvm.solvers import Solver, blas_threads, thread_count


def svm_path(
    X: Any,
    y: Any = None,
    *,
    loss: LossName | Loss = "hinge",
    penalty: PenaltyName | Penalty = "l1",
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    max_features: int | None = None,
    fit_intercept: bool = True,
    class_weight: ClassWeight = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
    solver: SolverName | Solver = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> SVMPath:
    """Solve for many alphas on data larger than memory, each from the one before.

    Every point is certified over all the data. For the hinge the clusters of one alpha serve the
    next, so that a point takes one or two passes where it is close to the one before.

    Parameters
    ----------
    X, y, sample_weight, sample_margin
        As for :meth:`sparsvm.partitioned.SparseSVC.fit`.
    loss, penalty, fit_intercept, class_weight, solver, tol, max_iter, n_jobs, random_state, verbose
        As for :class:`sparsvm.partitioned.SparseSVC`; ``max_iter`` limits the passes of a point.
    alphas, n_alphas, eps, max_features
        As for :func:`sparsvm.svm_path`. By default alphas begin at an upper bound on alpha_max
        (an estimate where samples have margins of their own or features no penalty).

    Returns
    -------
    SVMPath
        Its models are ordinary ones, for data in memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import split_rows, svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(split_rows(X, y, rows=40), penalty="l1/l2", alphas=[0.5, 0.1, 0.05])
    >>> path.n_selected
    array([1, 1, 2])
    >>> bool(path.gaps.max() <= 1e-3)
    True
    """
    model = OnOneMachine(
        loss,
        penalty,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        verbose=verbose,
    )
    engine = Threads(thread_count(n_jobs))
    try:
        parts = as_parts(X, y, sample_weight, sample_margin)
        return path_of(engine, parts, model, alphas, n_alphas, eps, max_features)
    finally:
        engine.close()


def path_of(
    engine: Engine,
    parts: Sequence[Any],
    model: OnOneMachine,
    alphas: ArrayLike | None,
    n_alphas: int,
    eps: float,
    max_features: int | None,
) -> SVMPath:
    """Follow the path of a model over handles of partitions."""
    model._validate_params()
    limit = checked_limit(max_features)
    if alphas is None:
        grid_below(1.0, n_alphas, eps)  # refuses what is no grid
    with blas_threads(1):
        prepared = Prepared(engine, parts, model)
        points = follow(prepared, prepared.population, alphas, n_alphas, eps, limit)
    return as_path(points, model, prepared.population)


def as_path(points: PathPoints, model: OnOneMachine, population: Population) -> SVMPath:
    """Return the points as models."""
    names = population.feature_names
    return SVMPath(**vars(points), model=model, class_prior=population.priors, feature_names=names)


def follow(
    prepared: Prepared,
    population: Population,
    alphas: ArrayLike | None,
    n_alphas: int = 1,
    eps: float = 0.5,
    max_features: int | None = None,
    start: Start | None = None,
) -> PathPoints:
    """Fit at every alpha; a grid of its own (``alphas=None``) ends where nothing changes."""
    first = prepared.problem(population, 1.0)
    require_known(first)
    fits, control = prepared.fits(population, first), prepared.control
    if alphas is None:
        largest, start = fits.largest_alpha(control)
        if not np.isfinite(largest):
            largest = largest_ridge_alpha(first, zero_model(first))
        grid = grid_below(largest, n_alphas, eps)
        if largest <= 0.0:
            raise NoPath(
                "Zero weights are optimal for every alpha (alpha_max is 0): no feature lowers the "
                "loss. There is no path to follow; check the features and the labels."
            )
    else:
        grid = checked_grid(alphas)
        if start is None or start.coef.shape != (first.n_outputs, first.d):
            start = prepared.sample_solution(first.with_alpha(float(grid[0])))
        if not np.any(start.coef) and first.penalty.free.size == 0:
            start = Start(start.coef, class_intercepts(population, first))
    tol = tolerance(prepared.model.tol, population.dtype)
    points: list[Kept] = []
    for alpha in grid:
        began = time.perf_counter()
        fitted = fits.fit(float(alpha), control, start, prepared.limits, prepared.progress)
        start = Start(fitted.coef, fitted.intercept)
        point = Kept.of(
            fitted.solution(population.classes.size),
            first.with_alpha(float(alpha)),
            population.dtype,
            points[-1] if points else None,
            time.perf_counter() - began,
        )
        if max_features is not None and point.n_selected > max_features:
            break
        points.append(point)
        if alphas is None and (
            point.loss <= LEFT_OF_LOSS * points[0].loss
            or unchanged_below(point, float(alpha), float(grid[-1]), tol)
        ):
            break
    if not points:
        raise ValueError(
            f"max_features={max_features}, but the model at the largest alpha, {grid[0]:g}, uses "
            "more features already. Raise max_features, give larger alphas, or use a penalty that "
            "selects features."
        )
    return gathered(grid, points, population.classes)
