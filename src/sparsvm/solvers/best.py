"""The best point a solver has seen, and dual starts that lie where duals live."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sparsvm.losses import Floats
from sparsvm.problem import Certificate, History, Problem


class Best:
    """The best primal and the best dual point of a method so far, certified.

    The two need not come from the same iterate: every feasible dual bounds every primal point.

    Parameters
    ----------
    problem : Problem
    method : object
        Its ``point()`` returns W of shape (d, n_outputs), b and Y in units of 1 / alpha.
    """

    coef: Floats
    intercept: Floats
    dual: Floats

    def __init__(self, problem: Problem, method: Any) -> None:
        self.problem = problem
        self.method = method
        self.began = time.perf_counter()
        self.objective, self.bound, self.floor = np.inf, -np.inf, 0.0
        self.records: list[tuple[int, float, float, float, int]] = []
        self.look()

    @property
    def gap(self) -> float:
        return max(self.objective - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / abs(self.objective) if self.objective != 0.0 else np.inf

    def within(self, tol: float) -> bool:
        return self.gap <= max(tol * abs(self.objective), self.floor)

    def look(self) -> Certificate:
        """Certify the present point of the method and keep what is better than before."""
        problem = self.problem
        weights, intercept, dual = self.method.point()
        coef = np.ascontiguousarray(weights.T)
        if problem.n_outputs > 1:
            # Shifting all classes alike changes neither differences of scores nor the penalty.
            free = problem.penalty.free
            coef[:, free] -= coef[:, free].mean(axis=0)
            intercept = intercept - intercept.mean()
        proof = problem.certificate(coef, intercept, dual * problem.alpha)
        if proof.objective < self.objective:
            self.coef, self.intercept = coef, intercept
            self.objective, self.floor = proof.objective, proof.floor
        if proof.dual_objective > self.bound:
            self.dual, self.bound = proof.dual, proof.dual_objective
        return proof

    def record(self, iteration: int) -> tuple[int, float, float, float, int]:
        """Append the state after ``iteration`` to the history, and return it."""
        seconds = time.perf_counter() - self.began
        nonzeros = int(np.count_nonzero(self.coef))
        self.records.append((iteration, seconds, self.objective, self.gap, nonzeros))
        return self.records[-1]

    def history(self) -> History:
        """Return what was recorded."""
        columns = list(zip(*self.records, strict=True)) or [()] * 5
        return History(
            iteration=np.array(columns[0], dtype=np.int64),
            seconds=np.array(columns[1], dtype=np.float64),
            objective=np.array(columns[2], dtype=np.float64),
            gap=np.array(columns[3], dtype=np.float64),
            nonzeros=np.array(columns[4], dtype=np.int64),
        )


def on_simplices(problem: Problem, dual: Floats) -> Floats:
    """Return the dual with rows that are not negative and sum to their masses."""
    rows = np.maximum(np.asarray(dual, dtype=np.float64), 0.0)
    rows[np.arange(problem.n), problem.y] = 0.0
    totals = rows.sum(axis=1)
    over = totals > problem.mass
    rows[over] *= (problem.mass[over] / totals[over])[:, None]
    rows[np.arange(problem.n), problem.y] = np.maximum(problem.mass - rows.sum(axis=1), 0.0)
    return rows
