"""A problem in the terms of the native solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sparsvm.penalty_terms import PenaltyTerms
    from sparsvm.problem import Problem


def penalty_arguments(terms: PenaltyTerms) -> dict[str, Any]:
    """Return what every native solver takes of a penalty."""
    return {
        "kind": terms.kind,
        "l1_ratio": terms.l1_ratio,
        "groups": terms.groups,
        "n_groups": terms.n_groups,
        "per_class": terms.per_class,
        "omega": terms.omega,
    }


def _common(problem: Problem) -> dict[str, Any]:
    return {
        "design": problem.design,
        "y": problem.y,
        "cost": problem.cost,
        "margin_scale": problem.margin_scale,
        "intercept": problem.fit_intercept,
        "tilt": None if problem.tilt is None else np.ascontiguousarray(problem.tilt.T),
        **penalty_arguments(problem.penalty),
    }


def native_arguments(problem: Problem) -> dict[str, Any]:
    """Return what ``sdca`` and ``newton`` take of a problem, divided by alpha, feature-major."""
    return {**_common(problem), "lam": problem.mass / problem.alpha}


def undivided_arguments(problem: Problem) -> dict[str, Any]:
    """Return what the solvers take that work with masses and alpha as they are, feature-major."""
    return {**_common(problem), "mass": problem.mass, "alpha": problem.alpha}
