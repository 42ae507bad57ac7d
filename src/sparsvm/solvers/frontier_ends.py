"""The two ends of the frontier: the model without penalty, and the least hinge of any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsvm.constrained import Bound, ConstrainedProblem
from sparsvm.design import make_design
from sparsvm.losses import Floats
from sparsvm.penalties import L1
from sparsvm.problem import Problem, Solution, Start, column_std
from sparsvm.solvers.frontier import Point

# Solves a regularised problem from a start to a relative gap.
Solve = Callable[[Problem, Start | None, float], Solution]

# Relative gaps of the regularised problems: SHARP is reached as a rule, SHARPEST often.
SHARP, SHARPEST = 1e-8, 1e-10


def zero_model(problem: ConstrainedProblem, solve: Solve) -> Point:
    """Return the best model of penalty 0: intercepts and unpenalised features alone."""
    data = problem.regularised
    free = data.penalty.free
    columns = np.zeros((data.n, free.size + 1))
    if free.size:
        columns[:, :-1] = data.design.gather_columns(free.astype(np.int32))
    weights = np.append(np.zeros(free.size), 1.0)
    small = replace(
        data,
        design=make_design(columns),
        penalty=L1(weights=weights).resolve(free.size + 1, data.n_outputs),
        alpha=1.0,
    )
    found = solve(small, None, SHARPEST)
    coef = np.zeros((data.n_outputs, data.d))
    coef[:, free] = found.coef[:, :-1]
    return Point.of(problem, np.inf, coef, found.intercept, found.dual)


def largest_alpha(problem: ConstrainedProblem, zero: Point, solve: Solve) -> float:
    """Return alpha_max, from which on the model of zeros solves the regularised problem.

    The line from the model of zeros to a solution at a smaller alpha has the slope of a larger
    one; repeating this (Dinkelbach) rises to alpha_max, in finitely many steps where the frontier
    has corners. The l2 penalty has none: infinity.
    """
    if problem.regularised.penalty.kind == "l2":
        return np.inf
    assert zero.dual is not None
    ceiling = _alpha_of(problem, zero.dual)
    if not ceiling > 1e-10 * _alpha_of(problem, _even_dual(problem.regularised)):
        # The dual point pulls at no feature: the model of zeros is best at every alpha.
        return 0.0
    alpha, start = 0.5 * ceiling, None
    for _ in range(60):
        if not alpha > 1e-12 * ceiling:
            break
        found = solve(problem.at(alpha), start, SHARP)
        point = Point.of(problem, alpha, found.coef, found.intercept, found.dual)
        gain = zero.hinge - point.hinge
        # Less than the solves are exact to means: no better than zeros.
        if point.penalty == 0.0 or not gain > alpha * point.penalty * (1.0 - 1e-6):
            ceiling, alpha = alpha, 0.5 * alpha
            continue
        risen = min(gain / point.penalty, ceiling)
        if risen <= alpha * (1.0 + 1e-6):
            return risen
        alpha, start = risen, Start(found.coef, found.intercept, found.dual)
    return ceiling


def _alpha_of(problem: ConstrainedProblem, dual: Floats) -> float:
    """Return the alpha from which on the dual point is feasible with a model of zeros."""
    data = problem.regularised
    terms = data.penalty
    correlations = data.transposed(data.signed_dual(dual))
    if terms.is_norm:
        return terms.dual_norm(correlations)
    return float(np.abs(correlations * terms.inverse_omega).max(initial=0.0)) / terms.l1_ratio


def _even_dual(data: Problem) -> Floats:
    """Return every mass spread evenly over the classes."""
    return np.repeat(data.mass[:, None] / data.n_classes, data.n_classes, axis=1)


def least_hinge(problem: ConstrainedProblem, solve: Solve) -> tuple[float, Bound]:
    """Return the least mean hinge of any model, and what its dual point proves.

    It does not depend on the penalty, so an l1 penalty on standardised columns is taken, at an
    alpha so small that it plays no part: the hinge being piecewise linear, its minimum is attained
    from some alpha on. Ends early at a hinge within the budget.
    """
    data = problem.regularised
    scale = column_std(data.design, data.mass)
    easy = L1(weights="scale").resolve(data.d, data.n_outputs, scale)
    other = ConstrainedProblem(replace(data, penalty=easy), problem.eta)
    alpha = _alpha_of(other, _even_dual(data))
    least, bound, start = np.inf, problem.bound(None), None
    while alpha > 0.0:
        alpha *= 0.01
        found = solve(other.at(alpha), start, SHARP)
        hinge = problem.hinge(found.coef, found.intercept)
        least = min(least, hinge)
        candidate = problem.bound(found.dual)
        if candidate.value >= bound.value:
            bound = candidate
        cost = alpha * easy.value(found.coef)
        if problem.is_met_by(least) or cost <= 1e-7 * problem.unit:
            break
        start = Start(found.coef, found.intercept, found.dual)
    return least, bound


def refusal(problem: ConstrainedProblem, least: float, bound: Bound) -> str:
    """Say that no model meets the budget, and what proves it."""
    text = (
        f"eta={problem.eta:g} is below the least mean hinge that any model attains on these data, "
        f"{least:.9g}"
    )
    if bound.value > 0.0:
        # hinge >= gain - alpha penalty: a hundredth of the bound on the penalty costs a hundredth
        # of what the gain is above the budget.
        largest = 0.01 * bound.value if np.isfinite(bound.value) else np.inf
        proof = bound.gain - (bound.alpha * largest if np.isfinite(largest) else 0.0)
        text += f" (no model with a penalty up to {largest:.3g} has one below {proof:.9g})"
    return text + f". Give an eta of at least {least:.9g}, or eta=None."
