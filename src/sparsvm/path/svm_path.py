"""Following a path, and where it begins; `sparsvm.svm_path` is in the room of the estimators."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import validate_parameter_constraints

from sparsvm._typing import Floats
from sparsvm.certificate.finalise import finalised
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, Caller
from sparsvm.data.training_set import TrainingSet, read_training_set
from sparsvm.data.warn import warn
from sparsvm.losses import Loss, as_loss
from sparsvm.path.adaptive import adapted
from sparsvm.path.alpha_max import GRID_PRECISION, largest_alpha, quick_bound
from sparsvm.path.between import PointsBetween
from sparsvm.path.continuation import Continuation
from sparsvm.path.critical_steps import CriticalSteps, largest_critical_alpha
from sparsvm.path.grid import (
    LEFT_OF_LOSS,
    checked_grid,
    grid_below,
    largest_ridge_alpha,
    unchanged_below,
)
from sparsvm.path.hinge_path import HingePath
from sparsvm.path.points import Kept, PathPoints, gathered
from sparsvm.path.smooth_path import SmoothPath
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution
from sparsvm.solvers import Solver
from sparsvm.solvers.dca import NoMinimiser


def alpha_max(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    penalty: str | Penalty = "l1",
    *,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
    tol: float = 1e-6,
) -> float:
    r"""Return the smallest alpha at which every weight is zero.

    .. math:: alpha_{max} = \max_{W \ne 0,\, b} \frac{h_0 - loss(W, b)}{penalty(W)},

    where :math:`h_0` is the loss of the best intercepts (and unpenalised weights) alone. Both
    sides are certified: at the value returned a dual point proves zero optimal, and weights that
    are better than zero are known for every alpha that is smaller by more than ``tol`` of it. For
    a smooth loss it is the dual norm of one gradient; for the hinge, whose derivative at zero is a
    set, it is the least dual norm over that set.

    Parameters
    ----------
    X, y, loss, penalty, fit_intercept, class_weight, sample_weight, sample_margin
        As for :class:`~sparsvm.SparseSVC` and its ``fit``.
    tol : float, default=1e-6
        The relative distance between the value returned and a proven lower bound. From 0.05 on,
        which is what grids begin with, a few rough fits suffice.

    Returns
    -------
    float
        Infinite for a penalty that leaves no weight at zero (l2, the elastic net with
        ``l1_ratio=0``); 0 where no feature lowers the loss.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC, alpha_max
    >>> X, y = load_iris(return_X_y=True)
    >>> largest = alpha_max(X, y, penalty="l1/l2")
    >>> print(f"{largest:.4f}")
    1.3128
    >>> SparseSVC(penalty="l1/l2", alpha=0.99 * largest).fit(X, y).selected_features_
    array([2])
    """
    _, problem = read_problem(
        X,
        y,
        loss,
        penalty,
        fit_intercept,
        class_weight,
        sample_weight,
        sample_margin,
        caller="alpha_max",
        tol=tol,
    )
    return largest_alpha(problem, tol).value


class NoPath(ValueError):
    """Zero weights are optimal for every alpha."""


def follow(
    data: TrainingSet,
    steps: Continuation,
    grid: Floats,
    tol: float,
    *,
    to_the_end: bool = True,
    max_features: int | None = None,
    seen: Callable[[Kept, Solution | None], None] | None = None,
) -> PathPoints:
    """Solve at every alpha of the decreasing grid and keep what the user is shown.

    Parameters
    ----------
    to_the_end : bool, default=True
        If not, stop where nothing changes any more: at a point that is optimal for all that
        follow, or that leaves next to nothing of the loss of the first; and, with a warning,
        where a problem that is not convex has no minimiser.
    max_features : int, optional
        Stop before the first point that uses more features, which may leave none.
    seen : callable, optional
        Called with every point and its solution; None where native code follows the path.
    """
    points: list[Kept] = []
    source = _Source(data, steps, grid, tol, to_the_end and max_features is None, seen is not None)
    for t, alpha in enumerate(grid):
        try:
            point, solution = source.point(t, points[-1] if points else None)
        except NoMinimiser as error:
            if to_the_end or not points:
                raise
            warn(f"The path ends at alpha={grid[t - 1]:.3g}. {error}")
            break
        if max_features is not None and point.n_selected > max_features:
            break
        points.append(point)
        if seen is not None:
            seen(point, solution)
        if to_the_end:
            continue
        if point.loss <= LEFT_OF_LOSS * points[0].loss:
            break
        if unchanged_below(point, alpha, grid[-1], tol):
            break
    return gathered(grid, points, data.classes)


class _Source:
    """The points of a grid, from native code where there is any for them."""

    def __init__(
        self,
        data: TrainingSet,
        steps: Continuation,
        grid: Floats,
        tol: float,
        all_of_them: bool,
        with_callback: bool,
    ) -> None:
        self.data, self.steps, self.grid, self.tol = data, steps, grid, tol
        self.smooth = SmoothPath(steps) if SmoothPath.follows(steps, data.dtype) else None
        self.hinge: HingePath | None = None
        if HingePath.follows(steps):
            ahead = all_of_them and not with_callback
            self.hinge = HingePath(steps, grid, data.dtype, ahead=ahead, solutions=with_callback)
        self.between: PointsBetween | None = None
        if self.hinge is None and PointsBetween.follows(steps):
            self.between = PointsBetween(steps, grid)

    def point(self, t: int, before: Kept | None) -> tuple[Kept, Solution | None]:
        """Return the point at ``grid[t]``; t increases by one. The solution may be missing."""
        alpha = self.grid[t]
        if self.smooth is not None and (point := self.smooth.point(alpha)) is not None:
            return point, None
        if self.hinge is not None and (found := self.hinge.point(t)) is not None:
            return found
        began = time.perf_counter()
        problem = self.steps.at(alpha)
        result = self.steps.solve(alpha) if self.between is None else self.between.point(t)
        solution = finalised(problem, result, self.data.dtype, self.tol)
        point = Kept.of(solution, problem, self.data.dtype, before, time.perf_counter() - began)
        if self.smooth is not None:
            self.smooth.go_on_from(solution)
        if self.hinge is not None and self.hinge.failed:
            self.hinge = None
            if PointsBetween.follows(self.steps):
                self.between = PointsBetween(self.steps, self.grid)
        if self.hinge is not None:
            self.hinge.go_on_from(alpha, solution)
        return point, solution


def first_steps(
    problem: Problem,
    solver: str | Solver,
    control: Control,
    alphas: ArrayLike | None,
    n_alphas: int,
    eps: float,
) -> tuple[Continuation, Floats]:
    """Return the grid of alphas and a continuation that is ready at its upper end."""
    if not problem.convex:
        descents = CriticalSteps(problem, solver, control)
        if alphas is not None:
            return descents, checked_grid(alphas)
        return descents, _grid_from(largest_critical_alpha(problem), n_alphas, eps)
    # In sparse data one more feature costs only its few entries, and a second round as much as
    # the first.
    steps = Continuation(problem, solver, control, reach=2.0 if problem.design.is_sparse else 1.0)
    if alphas is not None:
        grid = checked_grid(alphas)
        if problem.penalty.l1_ratio > 0.0 or problem.penalty.is_norm:
            steps.begin_at_zero(quick_bound(problem))
        return steps, grid
    largest = largest_alpha(problem, GRID_PRECISION)
    start = largest.value
    if not np.isfinite(start):
        start = largest_ridge_alpha(problem, largest.zero)
    grid = _grid_from(start, n_alphas, eps)
    if np.isfinite(largest.value):
        steps.begin_at_zero(largest)
    return steps, grid


def _grid_from(start: float, n_alphas: int, eps: float) -> Floats:
    grid = grid_below(start, n_alphas, eps)
    if start == 0.0:
        raise NoPath(
            "Zero weights are optimal for every alpha (alpha_max is 0): no feature lowers the "
            "loss. There is no path to follow; check the features and the labels. The hinge of "
            "more than two classes has such optima where classes overlap so much that none has "
            "the majority: use loss='squared_hinge' or 'logistic' there."
        )
    return grid


def read_problem(
    X: Any,
    y: Any,
    loss: str | Loss,
    penalty: str | Penalty,
    fit_intercept: bool,
    class_weight: Any,
    sample_weight: Any,
    sample_margin: Any,
    *,
    caller: str = "svm_path",
    convex: bool = True,
    **options: Any,
) -> tuple[TrainingSet, Problem]:
    """Check the arguments of ``caller`` and return the training set and its problem.

    A problem that is not convex is refused if ``convex``.
    """
    given = {"fit_intercept": fit_intercept, "class_weight": class_weight, **options}
    constraints = {name: PARAMETER_CONSTRAINTS[name] for name in given}
    validate_parameter_constraints(constraints, given, caller_name=caller)
    data = read_training_set(
        Caller.named(caller),
        X,
        y,
        sample_weight=sample_weight,
        sample_margin=sample_margin,
        class_weight=class_weight,
    )
    alpha = default_alpha(data.total)
    kind = as_loss(loss)
    weighted = adapted(data, kind, as_penalty(penalty), fit_intercept)
    problem = regularised_problem(data, kind, weighted, alpha, fit_intercept)
    require_known(problem, convex)
    return data, problem


def require_known(problem: Problem, convex: bool = True) -> None:
    """Refuse a user's own penalty and, if ``convex``, what is not: it has no alpha_max."""
    if problem.penalty.only_prox:
        raise ValueError(
            "Paths and alpha_max need a built-in penalty: they leave out features that a user's "
            "own penalty may couple with others. Fit such models with SparseSVC, alpha by alpha, "
            "or with GridSearchCV."
        )
    if problem.convex or not convex:
        return
    raise ValueError(
        f"alpha_max and resampled paths exist for convex problems; got the loss "
        f"{problem.loss.name!r} with the penalty {problem.penalty.kind!r}. Fit such models with "
        "SparseSVC, svm_path or SparseSVCCV."
    )
