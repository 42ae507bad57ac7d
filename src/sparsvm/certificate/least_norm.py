"""Of equally good models the one whose unpenalised weights are smallest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified, recertified
from sparsvm.losses import Hinge, Logistic, SquaredHinge
from sparsvm.losses.base import differences
from sparsvm.numerics.cone_program import solve_cone_program
from sparsvm.problem.problem import Problem
from sparsvm.problem.recession import Recession, inequalities
from sparsvm.problem.solution import History, Solution

# Settings.
# Inequalities (samples times other classes) up to which the quadratic program is solved: about a
# second.
MOST_ROWS = 20_000
# Of the intercepts, so that they are determined too.
INTERCEPT = 1e-6
# Score differences of a logistic model that has no optimum: probabilities of one minus 1e-9.
SATURATED_SCORE = 20.0
# Of the largest margin, so that rounding leaves none of it.
MARGIN_FACTOR = 1.0 + 1e-9
# Of the quadratic program: weights are to lose nothing that the certificate would see.
ACCURACY = 1e-10


def without_minimum(problem: Problem, direction: Recession | None) -> bool:
    """Whether the objective tends to zero along the direction, and is zero nowhere."""
    return direction is not None and direction.complete and isinstance(problem.loss, Logistic)


def far_along(problem: Problem, direction: Recession, tol: float) -> Solution:
    """Return a model with every sample far on its class's side, where there is one.

    The logistic loss has no minimum then. Other losses are zero, which is one.
    """
    needed = (
        SATURATED_SCORE
        if isinstance(problem.loss, Logistic)
        else MARGIN_FACTOR * max(1.0, problem.margins().max())
    )
    coef = np.zeros((problem.n_outputs, problem.d))
    coef[:, problem.penalty.free] = needed * direction.coef / direction.least
    return certified(
        problem,
        coef,
        needed * direction.intercept / direction.least,
        None,
        tol=tol,
        n_iter=0,
        seconds=0.0,
        history=History.empty(),
        solver="linear program",
        status_if_not="stalled",
    )


def least_norm(
    problem: Problem, solution: Solution, direction: Recession | None, tol: float
) -> Solution:
    """Return the solution with the unpenalised weights of least norm that lose nothing.

    Of collinear features only the scores they make together are determined: the weights are
    projected on the row space of the (centred) columns, which leaves every score as it is. Where
    the features separate classes, a hinge has minima of any size: the norm is minimised subject
    to no sample's loss being larger.
    """
    free = problem.penalty.free
    if free.size == 0 or not problem.convex:
        return solution
    columns = np.asarray(problem.design.gather_columns(free.astype(np.int32)))
    coef, intercept = solution.coef.copy(), solution.intercept.copy()
    if direction is not None and isinstance(problem.loss, (Hinge, SquaredHinge)):
        coef, intercept = _within_losses(problem, columns, coef, intercept)
    mean = columns.mean(axis=0) if problem.fit_intercept else np.zeros(free.size)
    weights = coef[:, free]
    inner = np.linalg.pinv(columns - mean)
    projected = weights @ (inner @ (columns - mean)).T
    coef[:, free] = projected
    if problem.fit_intercept:
        intercept += (weights - projected) @ mean
    better = recertified(problem, solution, coef, intercept, tol, solution.status)
    allowed = max(tol, solution.relative_gap)
    if better.relative_gap > allowed or (solution.converged and not better.converged):
        return solution
    return replace(better, seconds=solution.seconds)


def _within_losses(
    problem: Problem, columns: Floats, coef: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    """Minimise the norm of the unpenalised weights, no sample's loss rising."""
    outputs, free, y = problem.n_outputs, problem.penalty.free, problem.y
    if problem.n * max(1, outputs - 1) > MOST_ROWS:
        return coef, intercept
    rows = inequalities(problem, columns, np.arange(problem.n))
    if rows is None:
        return coef, intercept
    others = np.arange(problem.n_classes) != y[:, None]
    excess = problem.margins() + differences(problem.scores(coef, intercept), y)
    rest = np.where(others, np.maximum(excess, 0.0), 0.0)
    if isinstance(problem.loss, Hinge):
        rest[:] = rest.max(axis=1, keepdims=True)
    present = np.hstack([coef[:, free], intercept[:, None]]).ravel()
    least = rows @ present + (excess - rest)[others]
    width = free.size + 1
    weight = np.tile(np.append(np.ones(free.size), INTERCEPT), outputs)
    found = solve_cone_program(
        np.zeros(outputs * width),
        [(-rows, -least, "nonnegative")],
        quadratic=sp.diags_array(weight),
        tol=ACCURACY,
    )
    if not np.isfinite(found.x).all():
        return coef, intercept
    values = found.x.reshape(outputs, width)
    coef = coef.copy()
    coef[:, free] = values[:, :-1]
    return coef, values[:, -1] if problem.fit_intercept else intercept
