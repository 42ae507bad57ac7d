"""A hinge problem in the terms of the native solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sparsvm.problem import Problem


def native_arguments(problem: Problem) -> dict[str, Any]:
    """Return what ``sdca`` and ``newton`` take of a problem, divided by alpha, feature-major."""
    penalty = problem.penalty
    return {
        "design": problem.design,
        "y": problem.y,
        "lam": problem.mass / problem.alpha,
        "cost": problem.cost,
        "margin_scale": problem.margin_scale,
        "intercept": problem.fit_intercept,
        "tilt": None if problem.tilt is None else np.ascontiguousarray(problem.tilt.T),
        "kind": penalty.kind,
        "l1_ratio": penalty.l1_ratio,
        "groups": penalty.groups,
        "n_groups": penalty.n_groups,
        "per_class": penalty.per_class,
        "omega": penalty.omega,
    }
