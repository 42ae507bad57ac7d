"""The two ends of the frontier: the model without penalty, and the least hinge of any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsvm._typing import Floats
from sparsvm.budget.frontier import FrontierPoint
from sparsvm.budget.problem import ConstrainedProblem
from sparsvm.path.alpha_max import largest_alpha
from sparsvm.path.zero_model import zero_model
from sparsvm.penalties import L1
from sparsvm.problem.build import column_std
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Solution, Start

# Solves a regularised problem from a start to a relative gap.
Solve = Callable[[Problem, Start | None, float], Solution]

# Settings.
# Relative gaps of the regularised problems: SHARP_GAP is reached as a rule, SHARPEST_GAP often.
SHARP_GAP, SHARPEST_GAP = 1e-8, 1e-10
# The least hinge is sought at alphas that fall by this factor, down to the last digit of the first,
# until the penalty costs less than this share of the mean margin.
ALPHA_FALL, LAST_ALPHA = 0.01, 1e-16
NEGLIGIBLE_COST = 1e-7
# What is infeasible is shown by a bound on the penalty of models of this share of the least hinge.
HINGE_SHARE = 0.99


class Infeasible(ValueError):
    """No model has a mean hinge within the budget."""


def zero_point(problem: ConstrainedProblem) -> FrontierPoint:
    """Return the best model of penalty 0: intercepts and unpenalised features alone."""
    zero = zero_model(problem.regularised)
    found = FrontierPoint.of(problem, np.inf, zero.coef, zero.intercept, zero.dual)
    # Where no sample asks for a margin nothing is lost by zeros, and intercepts are mere rounding.
    coef, intercept = np.zeros_like(zero.coef), np.zeros_like(zero.intercept)
    plain = FrontierPoint.of(problem, np.inf, coef, intercept, zero.dual)
    return plain if plain.hinge <= found.hinge else found


def alpha_of_zeros(problem: ConstrainedProblem) -> float:
    """Return alpha_max, from which on the model of zeros solves the regularised problem."""
    return largest_alpha(problem.regularised).value


def least_hinge(problem: ConstrainedProblem, solve: Solve) -> tuple[float, list[Floats]]:
    """Return the least mean hinge of any model, and dual points that may prove it.

    It does not depend on the penalty, so an l1 penalty on standardised columns is taken, at an
    alpha so small that it plays no part: the hinge being piecewise linear, its minimum is attained
    from some alpha on. Ends early at a hinge within the budget.
    """
    data = problem.regularised
    scale = column_std(data.design, data.mass)
    easy = L1(weights="scale").resolve(data.d, data.n_outputs, scale)
    other = ConstrainedProblem(replace(data, penalty=easy), problem.eta)
    even = np.repeat(data.mass[:, None] / data.n_classes, data.n_classes, axis=1)
    alpha = easy.dual_norm(data.transposed(data.signed_dual(even)))
    least, duals, start = np.inf, [], None
    smallest = LAST_ALPHA * alpha
    while alpha > smallest:
        alpha *= ALPHA_FALL
        found = solve(other.at(alpha), start, SHARP_GAP)
        hinge = problem.hinge(found.coef, found.intercept)
        least = min(least, hinge)
        duals.append(found.dual)
        cost = alpha * easy.value(found.coef)
        # Zeros cost nothing either, and may only mean that alpha is still too large.
        if problem.is_met_by(least) or 0.0 < cost <= NEGLIGIBLE_COST * problem.unit:
            break
        start = Start(found.coef, found.intercept, found.dual)
    return least, duals


def refuse_if_infeasible(problem: ConstrainedProblem, solve: Solve) -> None:
    """Raise where no model meets the budget."""
    judge = problem.even
    least, duals = least_hinge(judge, solve)
    if judge.is_met_by(least):
        return
    if judge is not problem:
        least, duals = least_hinge(problem, solve)
    raise Infeasible(_refusal(problem, least, duals))


def _refusal(problem: ConstrainedProblem, least: float, duals: list[Floats]) -> str:
    """Say that no model meets the budget, and what proves it."""
    text = (
        f"eta={problem.eta:g} is below the least mean hinge that any model attains on these data, "
        f"{least:.9g}"
    )
    below = HINGE_SHARE * least
    slightly_less = ConstrainedProblem(problem.regularised, below)
    largest = max(slightly_less.bound(dual).value for dual in duals)
    if largest > 0.0:
        text += f" (no model with a penalty up to {largest:.3g} has one below {below:.9g})"
    return text + f". Give an eta of at least {least:.9g}, or eta=None."
