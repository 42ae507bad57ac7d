"""Regularisation paths, and where they begin."""

from __future__ import annotations

import numbers
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import validate_parameter_constraints

from sparsvm._typing import Array, Counts, Floats
from sparsvm.certificate.finalise import finalised, inner_tolerance, tolerance
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, Caller
from sparsvm.data.training_set import TrainingSet, read_training_set
from sparsvm.losses import Loss, as_loss
from sparsvm.parameters import number
from sparsvm.path.alpha_max import largest_alpha, quick_bound
from sparsvm.path.continuation import Continuation
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution
from sparsvm.solvers import thread_count


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
) -> float:
    r"""Return the smallest alpha at which every weight is zero.

    .. math:: alpha_{max} = \max_{W \ne 0,\, b} \frac{h_0 - loss(W, b)}{penalty(W)},

    where :math:`h_0` is the loss of the best intercepts (and unpenalised weights) alone. Both
    sides are certified: at the value returned a dual point proves zero optimal, and weights that
    are better than zero are known for every alpha more than 1e-6 of it below. For a smooth loss
    it is the dual norm of one gradient; for the hinge, whose derivative at zero is a set, it is
    the least dual norm over that set.

    Parameters
    ----------
    X, y, loss, penalty, fit_intercept, class_weight, sample_weight, sample_margin
        As for :class:`~sparsvm.SparseSVC` and its ``fit``.

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
    )
    return largest_alpha(problem).value


def alpha_max_bound(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    penalty: str | Penalty = "l1",
    *,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
) -> float:
    """Return an upper bound on :func:`alpha_max` that costs one product with X.

    It is the dual norm at one point of the set over which ``alpha_max`` minimises, hence exact for
    smooth losses; for the hinge it was between 1 and 1.6 times ``alpha_max`` on the data of the
    benchmarks. The parameters are those of ``alpha_max``.
    """
    _, problem = read_problem(
        X, y, loss, penalty, fit_intercept, class_weight, sample_weight, sample_margin
    )
    return quick_bound(problem).value


@dataclass(frozen=True, eq=False)
class SVMPath:
    """Solutions for a decreasing sequence of alphas.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Decreasing.
    coefs : list of n_alphas CSR matrices of shape (n_outputs, n_features)
        Weights, with exact zeros left out; n_outputs is 1 for two classes.
    intercepts : ndarray of shape (n_alphas, n_outputs)
    objectives : ndarray of shape (n_alphas,)
    gaps : ndarray of shape (n_alphas,)
        Certified duality gaps, relative to the objectives.
    nonzeros : ndarray of shape (n_alphas,)
        Non-zero weights.
    n_selected : ndarray of shape (n_alphas,)
        Features that any class uses.
    seconds : ndarray of shape (n_alphas,)
        Time taken by each point.
    statuses : list of str
        "optimal" where the gap met the tolerance.
    classes : ndarray
        Labels, one for each row of the weights (two for a single row).
    """

    alphas: Floats
    coefs: list[Any]
    intercepts: Floats
    objectives: Floats
    gaps: Floats
    nonzeros: Counts
    n_selected: Counts
    seconds: Floats
    statuses: list[str]
    classes: Array

    @property
    def converged(self) -> bool:
        """Whether every point met the tolerance."""
        return all(status == "optimal" for status in self.statuses)


def svm_path(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "hinge",
    penalty: str | Penalty = "l1",
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
    solver: Any = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> SVMPath:
    """Solve for many alphas, from the largest to the smallest, each from the one before.

    Every point carries its own duality gap, computed on all the data. A point is solved on the
    features that matter there: those of the point before and those whose dual norm comes close to
    its limit; all features are then priced and what was missed is added.

    Parameters
    ----------
    X, y, loss, penalty, fit_intercept, class_weight, sample_weight, sample_margin
        As for :class:`~sparsvm.SparseSVC` and its ``fit``.
    alphas : array-like of positive numbers, optional
        The strengths of the penalty, in any order. By default ``n_alphas`` values from
        :func:`alpha_max` down to ``eps * alpha_max``, evenly spaced in the logarithm.
    n_alphas : int, default=100
    eps : float, default=1e-3
    solver, tol, max_iter, n_jobs, random_state, verbose
        As for :class:`~sparsvm.SparseSVC`.

    Returns
    -------
    SVMPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(X, y, penalty="l1/l2", n_alphas=5)
    >>> path.n_selected
    array([0, 1, 2, 4, 4])
    >>> bool(path.gaps.max() <= 1e-3)
    True
    """
    threads = thread_count(n_jobs)
    data, problem = read_problem(
        X,
        y,
        loss,
        penalty,
        fit_intercept,
        class_weight,
        sample_weight,
        sample_margin,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        verbose=verbose,
    )
    control = Control(
        tol=inner_tolerance(tol, data.dtype),
        max_iter=max_iter,
        n_jobs=threads,
        random_state=random_state,
        verbose=verbose,
    )
    steps, grid = first_steps(problem, solver, control, alphas, n_alphas, eps)
    return follow(data, steps, grid, tolerance(tol, data.dtype))


def follow(data: TrainingSet, steps: Continuation, grid: Floats, tol: float) -> SVMPath:
    """Solve at every alpha of the decreasing grid and keep what the user is shown."""
    points: list[_Kept] = []
    seconds: list[float] = []
    for alpha in grid:
        began = time.perf_counter()
        solution = finalised(steps.at(alpha), steps.solve(alpha), data.dtype, tol)
        points.append(_Kept.of(solution, data.dtype, points[-1] if points else None))
        seconds.append(time.perf_counter() - began)
    return _gathered(grid, points, seconds, data.classes)


def first_steps(
    problem: Problem,
    solver: Any,
    control: Control,
    alphas: ArrayLike | None,
    n_alphas: int,
    eps: float,
) -> tuple[Continuation, Floats]:
    """Return the grid of alphas and a continuation that is ready at its upper end."""
    # In sparse data one more feature costs only its few entries, and a second round as much as
    # the first.
    steps = Continuation(problem, solver, control, reach=2.0 if problem.design.is_sparse else 1.0)
    if alphas is not None:
        grid = checked_grid(alphas)
        if problem.penalty.l1_ratio > 0.0 or problem.penalty.is_norm:
            steps.begin_at_zero(quick_bound(problem))
        return steps, grid
    largest = largest_alpha(problem)
    grid = grid_below(largest.value, problem, n_alphas, eps)
    if largest.value == 0.0:
        raise ValueError(
            "Zero weights are optimal for every alpha (alpha_max is 0): no feature lowers the "
            "loss. There is no path to follow; check the features and the labels."
        )
    steps.begin_at_zero(largest)
    return steps, grid


def grid_below(largest: float, problem: Problem, n_alphas: int, eps: float) -> Floats:
    """Return ``n_alphas`` values from ``largest`` to ``eps`` times it, evenly in the logarithm."""
    whole = isinstance(n_alphas, numbers.Integral) and n_alphas >= 1
    if not whole or not 0.0 < number(eps) < 1.0:
        raise ValueError(
            f"A grid of alphas needs n_alphas of at least 1 and eps between 0 and 1; got "
            f"n_alphas={n_alphas!r} and eps={eps!r}."
        )
    if not np.isfinite(largest):
        raise ValueError(
            f"The penalty {problem.penalty.kind!r} leaves no weight at zero, so that there is no "
            "largest alpha to begin with. Give alphas."
        )
    return largest * np.logspace(0.0, np.log10(float(eps)), int(n_alphas))


def checked_grid(alphas: ArrayLike) -> Floats:
    try:
        grid = np.array(alphas, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        grid = np.zeros(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0.0):
        raise ValueError(f"alphas must be positive, finite numbers, at least one; got {alphas!r}.")
    return np.sort(grid)[::-1]


@dataclass(frozen=True, eq=False)
class _Kept:
    """What a path keeps of a solution; ``dense`` tells whether the next one is the same."""

    dense: Floats
    coef: Any
    n_selected: int
    intercept: Floats
    objective: float
    gap: float
    status: str

    @classmethod
    def of(cls, solution: Solution, dtype: np.dtype[Any], before: _Kept | None) -> _Kept:
        if before is not None and before.dense is solution.coef:
            coef, n_selected = before.coef, before.n_selected
        else:
            coef = _sparse(solution.coef, dtype)
            n_selected = np.unique(coef.indices).size
        return cls(
            solution.coef,
            coef,
            n_selected,
            solution.intercept.astype(dtype),
            solution.objective,
            solution.relative_gap,
            solution.status,
        )


def _sparse(coef: Floats, dtype: np.dtype[Any]) -> Any:
    """Return the CSR form; scipy's own conversion takes four times as long on 3 x 7129."""
    used = np.flatnonzero(coef.any(axis=0)).astype(np.int32)
    values = coef[:, used]
    rows, columns = np.nonzero(values)
    indptr = np.searchsorted(rows, np.arange(coef.shape[0] + 1)).astype(np.int32)
    entries = values[rows, columns].astype(dtype)
    return sp.csr_matrix((entries, used[columns], indptr), shape=coef.shape)


def _gathered(grid: Floats, points: list[_Kept], seconds: list[float], classes: Array) -> SVMPath:
    return SVMPath(
        alphas=grid,
        coefs=[point.coef for point in points],
        intercepts=np.array([point.intercept for point in points]),
        objectives=np.array([point.objective for point in points]),
        gaps=np.array([point.gap for point in points]),
        nonzeros=np.array([point.coef.nnz for point in points], dtype=np.int64),
        n_selected=np.array([point.n_selected for point in points]),
        seconds=np.array(seconds),
        statuses=[point.status for point in points],
        classes=classes,
    )


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
    **options: Any,
) -> tuple[TrainingSet, Problem]:
    """Check the arguments of ``caller`` and return the training set and its convex problem."""
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
    problem = regularised_problem(data, as_loss(loss), as_penalty(penalty), alpha, fit_intercept)
    require_convex(problem)
    return data, problem


def require_convex(problem: Problem) -> None:
    """Refuse what has no duality: neither alpha_max nor a certified path exists for it."""
    if not problem.penalty.built_in:
        raise ValueError(
            "Paths and alpha_max need a built-in penalty: they leave out features that a user's "
            "own penalty may couple with others. Fit such models with SparseSVC, alpha by alpha, "
            "or with GridSearchCV."
        )
    if problem.loss.convex and problem.penalty.convex:
        return
    raise ValueError(
        f"Paths and alpha_max exist for convex problems; got the loss {problem.loss.name!r} with "
        f"the penalty {problem.penalty.kind!r}. Fit such models with SparseSVC, alpha by alpha."
    )
