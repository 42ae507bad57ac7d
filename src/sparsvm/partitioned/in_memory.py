"""Rows that the driver may hold: gathered once, and solved as one machine does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsvm._typing import SolverName
from sparsvm.certificate.finalise import finalised
from sparsvm.partitioned.fitted import Fitted, Limits, Round
from sparsvm.path.alpha_max import GRID_PRECISION, largest_alpha
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers import Solver, resolve
from sparsvm.solvers.run.monitor import solved_within


class InMemoryFits:
    """Fits for one alpha after another, each from the dual of the one before.

    Parameters
    ----------
    whole : Problem
        On all the rows.
    dtype : dtype
        Of the data.
    tol : float
        The relative gap promised for coefficients of that type.
    solver : str or Solver
    """

    def __init__(
        self,
        whole: Problem,
        dtype: np.dtype[Any],
        tol: float,
        solver: SolverName | Solver = "auto",
    ) -> None:
        self.whole, self.dtype, self.tol, self.solver = whole, dtype, tol, solver
        self.last: Solution | None = None

    def fit(
        self,
        alpha: float,
        control: Control,
        start: Start,
        limits: Limits,
        progress: Callable[[Round], None] | None = None,
    ) -> Fitted:
        """Minimise from ``start``; zero weights say nothing.

        Parameters
        ----------
        alpha, control, start, limits, progress
            As for :meth:`HingeFits.fit <sparsvm.partitioned.hinge.HingeFits.fit>`; there is one
            round.
        """
        began = time.perf_counter()
        problem = self.whole.with_alpha(alpha)
        dual = None if self.last is None else self.last.dual
        known = dual is not None or np.any(start.coef)
        start_at = Start(start.coef, start.intercept, dual) if known else None
        solver = resolve(self.solver, problem, control)
        limit = limits.seconds if np.isfinite(limits.seconds) else None
        found = solved_within(solver, problem, start_at, control, limit, "raise")
        self.last = found
        found = finalised(problem, found, self.dtype, self.tol)
        seconds = time.perf_counter() - began
        now = Round(found.objective, found.dual_objective, problem.n, seconds)
        if progress is not None:
            progress(now)
        return Fitted(
            coef=found.coef,
            intercept=found.intercept,
            objective=found.objective,
            dual_objective=found.dual_objective,
            status=found.status,
            rounds=(now,),
        )

    def largest_alpha(self, control: Control) -> tuple[float, Start]:
        """Return an upper bound on alpha_max, and the model there; infinite where there is none."""
        found = largest_alpha(self.whole, GRID_PRECISION)
        return found.value, Start(found.zero.coef, found.zero.intercept)
