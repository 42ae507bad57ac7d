"""A problem in the terms of the native solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.problem import Problem
from sparsvm.problem.ranking import RankingProblem


class FeatureMajor:
    """A user's own penalty for coefficients of shape (d, n_outputs), as native code has them."""

    def __init__(self, terms: PenaltyTerms) -> None:
        self.terms = terms

    def prox(self, W: Floats, step: float) -> Floats:
        """Return the prox at W."""
        return np.ascontiguousarray(self.terms.prox(W.T, step).T)

    def value(self, W: Floats) -> float:
        """Return the penalty of W."""
        return self.terms.value(W.T)


def own_penalty(problem: Problem) -> FeatureMajor | None:
    """Return what native first-order methods call for the penalty; None if the core knows it."""
    return None if problem.penalty.built_in else FeatureMajor(problem.penalty)


def undivided_arguments(problem: Problem) -> dict[str, Any]:
    """Return the arguments that both kinds of native problems share, feature-major."""
    return {
        "design": problem.design,
        "y": problem.y,
        "mass": problem.mass,
        "alpha": problem.alpha,
        "cost": problem.cost,
        "margin_scale": problem.margin_scale,
        "intercept": bool(problem.fit_intercept),
        "linear_term": None
        if problem.linear_term is None
        else np.ascontiguousarray(problem.linear_term.T),
        **problem.penalty.native_arguments(),
    }


def hinge_problem(problem: Problem) -> Any:
    """Return the problem as the native solvers of the hinge take it, checked and feature-major."""
    return _core.HingeProblem(
        **undivided_arguments(problem),
        margins=problem.margin_matrix,
        offset=problem.offset,
    )


def smooth_problem(problem: Problem) -> Any:
    """Return the problem as the native solvers of smooth losses take it, checked, feature-major."""
    if isinstance(problem, RankingProblem):
        return _core.RankingProblem(
            **problem.samples,
            alpha=problem.alpha,
            intercept=bool(problem.fit_intercept),
            **problem.penalty.native_arguments(),
        )
    return _core.SmoothProblem(loss=problem.loss.name, **undivided_arguments(problem))


def first_order(native: Any, **options: Any) -> Any:
    """Return a native full-gradient method on a ``smooth_problem``."""
    ranking = isinstance(native, _core.RankingProblem)
    return (_core.RankingFirstOrder if ranking else _core.FirstOrder)(native, **options)


def bcd(native: Any, **options: Any) -> Any:
    """Return native block coordinate descent on a ``smooth_problem``."""
    ranking = isinstance(native, _core.RankingProblem)
    return (_core.RankingBcd if ranking else _core.Bcd)(native, **options)
