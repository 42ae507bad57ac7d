"""Certificates on all features, or at another alpha, made from known ones."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified, recertified
from sparsvm.certificate.gap import repaired_dual
from sparsvm.losses import Hinge
from sparsvm.numerics.rounding import OTHER_ROUNDINGS, UNIT
from sparsvm.problem.problem import Problem
from sparsvm.problem.restriction import Restriction, group_strength
from sparsvm.problem.solution import Attempt, History, Solution

# Means and multiples of proven bounds are rounded down by this: two operations, and two to spare.
DOWN_FACTOR = 1.0 - 4.0 * UNIT


def lifted(part: Restriction, found: Solution, strength: Floats, tol: float) -> Solution:
    """Certify on all features what was found on some.

    Parameters
    ----------
    part : Restriction
    found : Solution
        Certified for ``part.part``.
    strength : array
        ``group_strength(part.whole, found.dual)``.
    tol : float
        Decides the status.
    """
    short = "stalled" if found.converged else found.status
    coef = part.lift(found.coef)
    if not homogeneous(part.whole):
        return recertified(part.whole, found, coef, found.intercept, tol, short)
    # The primal value is that of the part, since all other weights are zero. The dual point meets
    # the equalities and masses already; one factor brings the dual norm of all features to 1, and
    # the dual value is proportional to it. A certificate from scratch would repeat all this.
    largest = float(strength.max(initial=0.0)) + _rounding(part.whole, found.dual)
    return _scaled(part.whole, replace(found, coef=coef), 1.0 / max(1.0, largest), tol, short)


class Lifted(NamedTuple):
    """A solution on all features from some of them.

    ``dual`` belongs to the part, before it was scaled for all features; ``strength`` is what
    :func:`group_strength` says of it, and ``penalty`` what alpha multiplies in the objective.
    """

    solution: Solution
    dual: Floats
    strength: Floats
    penalty: float


def vouched(part: Restriction, attempt: Attempt, tol: float) -> Lifted:
    """Certify on all features what a solver vouches for on some; for homogeneous problems.

    Parameters
    ----------
    part : Restriction
    attempt : Attempt
        For ``part.part``.
    tol : float
        Decides the status.
    """
    small, coef, intercept = part.part, attempt.coef, attempt.intercept
    margins = small.margins()
    losses = small.loss.value(small.scores(coef, intercept), small.y, margins)
    penalty = small.penalty.value(coef)
    entries = repaired_dual(small, attempt.dual)
    strength = group_strength(part.whole, entries)
    largest = float(strength.max(initial=0.0)) + _rounding(part.whole, entries)
    found = Solution(
        coef=part.lift(coef),
        intercept=intercept,
        dual=entries,
        objective=float(np.sum(small.mass * losses)) + small.alpha * penalty,
        dual_objective=float(np.sum(entries * margins)),
        gap=np.inf,
        relative_gap=np.inf,
        floor=small.floor(coef, intercept),
        status="stalled",
        n_iter=attempt.n_iter,
        seconds=0.0,
        history=History.empty(),
        solver=attempt.solver,
    )
    solution = _scaled(part.whole, found, 1.0 / max(1.0, largest), tol, "stalled")
    return Lifted(solution, entries, strength, penalty)


def with_scaled_dual(
    problem: Problem, old: Solution, share: float, objective: float, *, tol: float
) -> Solution:
    """Certify a solution at ``share`` times its alpha with ``share`` times its dual entries.

    For the hinge with a norm these entries are feasible because the old ones were, and the dual
    value is ``share`` times the old one; elsewhere the certificate is computed from scratch.

    Parameters
    ----------
    problem : Problem
        At the new alpha.
    old : Solution
    share : float
        In (0, 1].
    objective : float
        That of the old coefficients in ``problem``.
    tol : float
        Decides the status.
    """
    if homogeneous(problem):
        old = replace(old, objective=objective, n_iter=0, seconds=0.0, history=History.empty())
        return _scaled(problem, old, share, tol, "stalled")
    return certified(
        problem,
        old.coef,
        old.intercept,
        share * old.dual,
        tol=tol,
        n_iter=0,
        seconds=0.0,
        history=History.empty(),
        solver=old.solver,
    )


def interpolated(
    problem: Problem,
    line: Solution,
    above: tuple[float, Solution],
    below: tuple[float, Solution],
    *,
    tol: float,
) -> Solution:
    r"""Certify a solution by the dual points of two other alphas; for homogeneous problems.

    At :math:`\alpha = \theta \alpha_1 + (1 - \theta) \alpha_2` the entries
    :math:`\theta Y_1 + (1 - \theta) Y_2` are feasible and have the value
    :math:`\theta D_1 + (1 - \theta) D_2`.

    Parameters
    ----------
    problem : Problem
        At the alpha between.
    line : Solution
        Coefficients and their objective in ``problem``.
    above, below : tuple of float and Solution
        The two alphas, none smaller than the second, each with a solution certified there.
    tol : float
        Decides the status.
    """
    (first, one), (second, two) = above, below
    share = (problem.alpha - second) / (first - second) if first > second else 1.0
    found = replace(
        line,
        dual=share * one.dual + (1.0 - share) * two.dual,
        dual_objective=share * one.dual_objective + (1.0 - share) * two.dual_objective,
        n_iter=0,
        seconds=0.0,
        history=History.empty(),
    )
    return _scaled(problem, found, DOWN_FACTOR, tol, "stalled")


def homogeneous(problem: Problem) -> bool:
    """Whether the dual value is linear in the entries and the penalty bounds a norm of them."""
    linear = (
        isinstance(problem.loss, Hinge) and problem.linear_term is None and problem.offset == 0.0
    )
    return linear and problem.penalty.is_norm


def _scaled(problem: Problem, old: Solution, share: float, tol: float, short: str) -> Solution:
    """Return ``old`` with its dual scaled by ``share`` and the certificate that belongs to it."""
    rows = np.arange(problem.n)
    dual = share * old.dual
    dual[rows, problem.y] = 0.0
    dual[rows, problem.y] = np.maximum(problem.mass - dual.sum(axis=1), 0.0)
    bound = share * old.dual_objective * DOWN_FACTOR
    gap = max(old.objective - bound, 0.0)
    size = abs(old.objective)
    return replace(
        old,
        dual=dual,
        dual_objective=bound,
        gap=gap,
        relative_gap=gap / size if size > 0.0 else (0.0 if gap == 0.0 else np.inf),
        status="optimal" if gap <= max(tol * size, old.floor) else short,
    )


def _rounding(problem: Problem, dual: Floats) -> float:
    """Bound the rounding error of the computed largest strength.

    A sum of n products errs by at most (n + 2) u |x_j| |y_k|; the dual norms are monotone and obey
    the triangle inequality, so the error of the norm is at most the norm of the errors.
    """
    signed = problem.signed_dual(dual)
    size = float(np.sqrt(np.max(np.sum(signed * signed, axis=0))))
    relative = (
        (problem.n + problem.penalty.largest_group + 2 + OTHER_ROUNDINGS) * UNIT / problem.alpha
    )
    return relative * size * problem.column_dual_norm
