"""Paths of label ranking: where they begin, and the points on them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sparsvm._typing import Array, Floats
from sparsvm.certificate.finalise import finalised
from sparsvm.certificate.ranking_gap import balanced
from sparsvm.path.points import Kept, PathPoints, gathered
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.restriction import group_strength
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import Solver


def largest_ranking_alpha(problem: RankingProblem) -> float:
    """Return the smallest alpha at which every penalised weight is zero; infinite for l2.

    The loss is smooth, so it is the dual norm of the derivative at the best free coefficients.
    """
    scores, *_ = balanced(problem, np.zeros((problem.n, problem.n_outputs)))
    return float(group_strength(problem.with_alpha(1.0), scores).max(initial=0.0))


def ranking_path(
    problem: RankingProblem,
    solver: Solver,
    control: Control,
    alphas: Floats,
    labels: Array,
    dtype: np.dtype[Any],
    tol: float,
) -> PathPoints:
    """Solve at decreasing alphas, each from the solution before."""
    start: Start | None = None
    points: list[Kept] = []
    for alpha in alphas:
        began = time.perf_counter()
        at = problem.with_alpha(float(alpha))
        solution = solver.solve(at, start, control)
        start = Start(solution.coef, solution.intercept)
        shown = finalised(at, solution, dtype, tol)
        before = points[-1] if points else None
        points.append(Kept.of(shown, at, dtype, before, time.perf_counter() - began))
    return gathered(np.asarray(alphas, dtype=np.float64), points, labels)
