r"""Points of the frontier of penalty against mean hinge, and the ways from them to a budget.

The least penalty :math:`p(\eta)` within a budget is a convex, decreasing function. A solution of
the regularised problem at :math:`\alpha` is one of its points, with slope :math:`-1/\alpha` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sparsvm._typing import Floats
from sparsvm.budget.problem import ConstrainedProblem
from sparsvm.numerics.rounding import EPS

# Settings.
# Newton steps to the budget, or factors by a rounding onto the margins: either ends long before.
MOST_STEPS = 100
# A few roundings to the safe side, relative and of the whole way.
SAFETY, SAFETY_SHARE = 1e-14, 1e-16
# Units of the last place by which a classifier is lengthened that falls short of a margin.
LENGTHENING = 4.0 * EPS
# Doublings of a stretch that the first order got wrong.
DOUBLINGS = 5
# A slope so many times that of the chord, or so many times less, is that of a corner: a rule of
# thumb.
CORNER = 5.0


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """A model on the frontier, or near it: what a regularised solve at ``alpha`` returned."""

    alpha: float
    coef: Floats = field(repr=False)
    intercept: Floats = field(repr=False)
    scores: Floats = field(repr=False)
    penalty: float
    hinge: float
    dual: Floats | None = field(repr=False, default=None)

    @classmethod
    def of(
        cls,
        problem: ConstrainedProblem,
        alpha: float,
        coef: Floats,
        intercept: Floats,
        dual: Floats | None = None,
    ) -> FrontierPoint:
        """Evaluate a model."""
        scores = problem.regularised.scores(coef, intercept)
        return cls(
            alpha=alpha,
            coef=coef,
            intercept=intercept,
            scores=scores,
            penalty=problem.penalty(coef),
            hinge=problem.hinge_of_scores(scores),
            dual=dual,
        )

    @property
    def share(self) -> float:
        """The part of the penalty in ``hinge + alpha penalty``."""
        total = self.hinge + self.alpha * self.penalty
        return self.alpha * self.penalty / total if 0.0 < total < np.inf else 1.0


def on_margins(problem: ConstrainedProblem, point: FrontierPoint) -> FrontierPoint | None:
    """Return the point lengthened or shortened until every margin just holds, if it can be."""
    factor = hard_margin_factor(problem, point.scores)
    if factor is None:
        return None
    coef, intercept = factor * point.coef, factor * point.intercept
    return FrontierPoint.of(problem, point.alpha, coef, intercept, point.dual)


def models(
    problem: ConstrainedProblem, over: FrontierPoint, under: FrontierPoint | None
) -> Iterator[tuple[Floats, Floats]]:
    """Yield models within the budget near the two points that enclose it.

    The point ``under`` itself, the mixture of both that spends the whole budget, and, with no
    feature more than either has, each of them made longer or shorter until it does.
    """
    if under is not None:
        yield under.coef, under.intercept
        share = last_within(problem, under.scores, over.scores)
        if 0.0 < share < 1.0:
            yield (
                under.coef + share * (over.coef - under.coef),
                under.intercept + share * (over.intercept - under.intercept),
            )
    for point in (under, over):
        model = None if point is None else on_budget(problem, point)
        if model is not None:
            yield model


def on_budget(problem: ConstrainedProblem, point: FrontierPoint) -> tuple[Floats, Floats] | None:
    """Return the model made longer or shorter until it spends the budget, if it can be."""
    if problem.eta == 0.0:
        factor = hard_margin_factor(problem, point.scores)
    elif point.hinge <= problem.eta:
        factor = 1.0 - last_within(problem, point.scores, np.zeros_like(point.scores))
    else:
        factor = stretch_into(problem, point)
    return None if factor is None else (factor * point.coef, factor * point.intercept)


def last_within(problem: ConstrainedProblem, inside: Floats, outside: Floats) -> float:
    """Return how far one may go from scores within the budget to others and stay within.

    The mean hinge is convex and piecewise linear on the way, so Newton from the far end falls to
    the crossing in finitely many steps. The result is between 0 and 1.
    """
    hinge_inside = problem.hinge_of_scores(inside)
    budget = max(problem.eta, hinge_inside)
    step = outside - inside
    share = 1.0
    for _ in range(MOST_STEPS):
        hinge, slope = _hinge_along(problem, inside, step, share)
        if hinge <= budget:
            return share
        if not slope > 0.0:
            break
        # A few roundings to the safe side end the approach, which would otherwise be to the bit.
        share = share - (hinge - budget) / slope * (1.0 + SAFETY) - SAFETY_SHARE
        if not share > 0.0:
            break
    return 0.0


def _hinge_along(
    problem: ConstrainedProblem, start: Floats, step: Floats, share: float
) -> tuple[float, float]:
    """Mean hinge at ``start + share step``, and its derivative to the left in ``share``."""
    data = problem.regularised
    rows = np.arange(data.n)
    raised = start + share * step
    terms = problem.margins + raised - raised[rows, data.y][:, None]
    rates = step - step[rows, data.y][:, None]
    top = terms.max(axis=1)
    # Among the classes at the top the slowest counts to the left.
    slow = np.where(terms >= top[:, None], rates, np.inf).min(axis=1)
    return float(np.sum(data.mass * top)), float(np.sum(data.mass * slow))


def stretch_into(problem: ConstrainedProblem, over: FrontierPoint) -> float | None:
    """Return a factor above 1 that brings a model from over the budget into it, if one does.

    To first order ``hinge + alpha penalty`` stays as it is on a ray, so a factor of
    ``1 + (hinge - eta) / (alpha penalty)`` is about right; it is doubled a few times if need be.
    """
    cost = over.alpha * over.penalty
    if not 0.0 < cost < np.inf:
        return None
    more = (over.hinge - problem.eta) / cost
    if not more > 0.0:
        return None
    for _ in range(DOUBLINGS):
        if problem.hinge_of_scores((1.0 + more) * over.scores) <= problem.eta:
            far = (1.0 + more) * over.scores
            return 1.0 + more * (1.0 - last_within(problem, far, over.scores))
        more *= 2.0
    return None


def hard_margin_factor(problem: ConstrainedProblem, scores: Floats) -> float | None:
    """Return the factor that brings the smallest score difference onto its margin, if any does."""
    data = problem.regularised
    lead = scores[np.arange(data.n), data.y][:, None] - scores
    asked = problem.margins > 0.0
    if not np.all(lead[asked] > 0.0):
        return None
    factor = float(np.max(problem.margins[asked] / lead[asked], initial=0.0))
    for _ in range(MOST_STEPS):
        # Rounding of the scaled scores may leave a margin short by a few units of the last place.
        if problem.hinge_of_scores(factor * scores) <= 0.0:
            return factor
        factor *= 1.0 + LENGTHENING
    return factor


def slope_between(eta: float, over: FrontierPoint, under: FrontierPoint) -> float:
    """Return an alpha whose solution should have a mean hinge of ``eta``.

    The slope at eta of the cubic through both points of the frontier with the slopes known there.
    At a corner the slope of one side says nothing of the other, which shows in a slope far from
    that of the chord; then a parabola goes without it.
    """
    width = over.hinge - under.hinge
    t = (eta - under.hinge) / width
    chord = (over.penalty - under.penalty) / width
    left, right = -1.0 / under.alpha, -1.0 / over.alpha
    # The model of zeros lies at the end of the frontier, where the slope jumps to 0.
    known_right = over.penalty > 0.0 and right < chord / CORNER
    if left < CORNER * chord:
        left = 2.0 * chord - right if known_right else chord
    if not known_right:
        right = min(2.0 * chord - left, 0.5 * chord)
    slope = (
        6.0 * t * (1.0 - t) * chord
        + (1.0 - t) * (1.0 - 3.0 * t) * left
        + t * (3.0 * t - 2.0) * right
    )
    return -1.0 / slope if left < slope < right else chord_alpha(over, under)


def chord_alpha(over: FrontierPoint, under: FrontierPoint) -> float:
    """Return the alpha at which both points have the same ``hinge + alpha penalty``.

    Where the frontier is straight between them, both are solutions there, and every mixture is.
    """
    return (over.hinge - under.hinge) / (under.penalty - over.penalty)
