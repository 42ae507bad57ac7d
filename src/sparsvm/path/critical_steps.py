"""Paths of problems that are not convex: at every alpha a descent to a critical point."""

from __future__ import annotations

import numpy as np

from sparsvm.path.alpha_max import GRID_PRECISION, largest_alpha, quick_bound
from sparsvm.path.continuation import Continuation
from sparsvm.path.grid import largest_ridge_alpha
from sparsvm.problem.linearise import convex_relative, tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers import Solver, blas_threads, resolve


class CriticalSteps(Continuation):
    """Solve for a sequence of alphas by DCA, from the last point and from the convex path.

    A descent from the last point alone would stay where it once was; one from the solution of
    the convex problem nearby, as :class:`~sparsvm.SparseSVC` has it, forgets what was found. Of the
    two critical points that of the lower objective is kept.

    Parameters
    ----------
    problem, solver, control
        As for :class:`~sparsvm.path.continuation.Continuation`.
    """

    def __init__(self, problem: Problem, solver: str | Solver, control: Control) -> None:
        super().__init__(problem, solver, control)
        self._convex = Continuation(convex_relative(problem), "auto", control)
        terms = self._convex.problem.penalty
        if terms.l1_ratio > 0.0 or terms.is_norm:
            self._convex.begin_at_zero(quick_bound(self._convex.problem))
        self._before: Solution | None = None

    def solve(self, alpha: float, tol: float | None = None) -> Solution:
        """Return the better critical point at ``alpha``."""
        problem, control = self.at(alpha), self.control
        starts = [self._convex.solve(alpha)]
        if self._before is not None:
            starts.append(self._before)
        solver = resolve(self.solver, problem, control)
        with blas_threads(control.n_jobs or 1):
            found = [solver.solve(problem, Start(s.coef, s.intercept), control) for s in starts]
        self._before = min(found, key=lambda solution: solution.objective)
        return self._before


def largest_critical_alpha(problem: Problem) -> float:
    """Return an alpha from which on both starts of a descent, and zero itself, have no weights.

    It is the larger one of two, to the precision of a grid: alpha_max of the convex problem that
    descents start from, and that of the tangent problem at zero weights, from which on zero is a
    critical point. A penalty that leaves no weight at zero has the start of its own grid.
    """
    relative = convex_relative(problem)
    convex = largest_alpha(relative, GRID_PRECISION)
    if not np.isfinite(convex.value):
        return largest_ridge_alpha(relative, convex.zero)
    touching = tangent(problem, convex.zero.coef, convex.zero.intercept)
    critical = largest_alpha(touching.problem, GRID_PRECISION).value / touching.scale
    return max(convex.value, critical)
