"""The best point of a method in units of 1 / alpha, and dual starts that lie where duals live."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.numerics.columns import Columns
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Certificate
from sparsvm.solvers.run.incumbent import Watch
from sparsvm.solvers.run.progress import Callback


class Best(Watch):
    """The best points of a method that has a ``point()``.

    Parameters
    ----------
    problem : Problem
    method : object
        Its ``point()`` returns W of shape (d, n_outputs), b and Y in units of 1 / alpha.
    report : callable or None
        As for :class:`Watch`.
    look : bool
        Whether to certify the point at which the method is now.
    """

    def __init__(
        self, problem: Problem, method: Any, report: Callback | None = None, look: bool = True
    ) -> None:
        super().__init__(problem, report, anyway=False)
        self.method = method
        if look:
            self.renew()

    def renew(self) -> Certificate:
        """Certify the present point of the method and keep what is better than before."""
        coef, intercept, dual = self._point()
        dual *= self.problem.alpha
        return self._consider(coef, intercept, dual, overwrite_dual=True)

    def _point(self) -> tuple[Floats | Columns, Floats, Floats]:
        weights, intercept, dual = self.method.point()
        return np.ascontiguousarray(weights.T), intercept, dual


def on_simplices(problem: Problem, dual: Floats) -> Floats:
    """Return the dual with rows that are not negative and sum to their masses."""
    rows = np.maximum(np.asarray(dual, dtype=np.float64), 0.0)
    rows[np.arange(problem.n), problem.y] = 0.0
    totals = rows.sum(axis=1)
    over = totals > problem.mass
    rows[over] *= (problem.mass[over] / totals[over])[:, None]
    rows[np.arange(problem.n), problem.y] = np.maximum(problem.mass - rows.sum(axis=1), 0.0)
    return rows
