r"""Non-convex problems as differences of convex functions, and the tangents they are solved by.

The objective F of a problem with a ramp loss or a penalty l0 or capped l1 is G - H with G and H
convex. Replacing H by its tangent at a point z gives a convex function that lies above F and
touches it at z:

.. math::
    F(u) \le G(u) - H(z) - \langle \gamma, u - z \rangle, \qquad \gamma \in \partial H(z).

It is again a :class:`~sparsvm.problem.Problem`: the tangent of a penalty is a linear term, that of
a ramp loss turns the samples it gives up into samples of their runner-up class
(:meth:`sparsvm.losses.Ramp.majorant`). Where z minimises it, z is a critical point of G - H.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.losses import Hinge, Ramp
from sparsvm.problem.problem import Problem


@dataclass(frozen=True)
class Tangent:
    """The convex problem that touches a non-convex one at a point.

    Attributes
    ----------
    problem : Problem
        Its objective is ``scale`` times the tangent function.
    scale : float
    """

    problem: Problem
    scale: float


def tangent(problem: Problem, W: Floats, b: Floats, scores: Floats | None = None) -> Tangent:
    """Return the convex problem above ``problem`` that touches it at (W, b).

    ``scores`` saves their computation where they are known.
    """
    changes: dict[str, Any] = {}
    offset, scale = problem.offset, 1.0
    if isinstance(problem.loss, Ramp):
        scale = problem.loss.checked_mu()
        scores = problem.scores(W, b) if scores is None else scores
        labels, margins, constants = problem.loss.majorant(scores, problem.y, problem.margins())
        changes.update(loss=Hinge(), y=labels, margin_matrix=margins)
        offset += float(np.sum(problem.mass * constants))
    if not problem.penalty.convex:
        linear_term, constant = problem.penalty.concave_slope(W)
        changes.update(
            penalty=problem.penalty.convex_part(),
            linear_term=linear_term if linear_term.any() else None,
        )
        offset -= problem.alpha * constant
    # The convex part of a ramp is 1/mu times a hinge, so everything else counts mu times.
    touching = replace(problem, alpha=scale * problem.alpha, offset=scale * offset, **changes)
    # The design is the same, so what was computed of it need not be computed again.
    vars(touching)["column_norms"] = problem.column_norms
    return Tangent(touching, scale)


def concave_part_is_linear(problem: Problem, W: Floats, b: Floats) -> bool | None:
    """Whether H is linear around (W, b); None where it is not piecewise linear (l0, groups).

    Around such a point F is convex: a critical one is a local minimiser.
    """
    answers: list[bool | None] = []
    if isinstance(problem.loss, Ramp):
        answers.append(problem.loss.off_kinks(problem.scores(W, b), problem.y, problem.margins()))
    if not problem.penalty.convex:
        answers.append(problem.penalty.off_kinks(W))
    return None if None in answers else all(answers)


def convex_relative(problem: Problem) -> Problem:
    """Return the convex problem whose solution is the place to start: hinge for ramp, l1 for l0.

    The penalty keeps its weights: the sharpness of l0 does not enter, so that this is the ordinary
    1-norm (or group-norm, or 2-norm) machine with the same alpha.
    """
    loss = Hinge() if isinstance(problem.loss, Ramp) else problem.loss
    penalty = replace(problem.penalty.convex_part(), omega=problem.penalty.omega)
    return replace(problem, loss=loss, penalty=penalty)


def finite(problem: Problem) -> bool:
    """Whether G or H is polyhedral: then exactly solved tangents end after finitely many."""
    if isinstance(problem.loss, Ramp) and problem.penalty.convex:
        return True
    piecewise_linear = isinstance(problem.loss, (Hinge, Ramp))
    return piecewise_linear and problem.penalty.convex_part().polyhedral
