"""The best points that a solver has found, each certified, and the history of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified, certify
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.packed import Packed
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Certificate, Control, History, Solution
from sparsvm.solvers.run.monitor import Point, Stopped
from sparsvm.solvers.run.progress import Report


class Incumbent:
    """The best primal and the best dual point seen so far.

    The two need not come from the same iterate: every feasible dual bounds every primal point.

    Parameters
    ----------
    problem : Problem
    report : Report or None
        Called with each record; a true answer ends the run.
    anyway : bool
        Keep the last iterate even if an earlier one was better: a paper's stopping rule is about
        its last iterate and no other.
    """

    intercept: Floats
    columns: Columns
    packed_dual: Packed

    def __init__(self, problem: Problem, report: Report | None, anyway: bool) -> None:
        self.problem = problem
        self.report = report
        self.name = "" if report is None else report.name
        self.anyway = anyway
        self.began = time.perf_counter()
        self.objective, self.bound, self.floor = np.inf, -np.inf, 0.0
        self.records: list[tuple[int, float, float, float, int]] = []
        if report is not None:
            report.runs(self)

    def seconds(self) -> float:
        """Return the seconds since this was made."""
        return time.perf_counter() - self.began

    @property
    def gap(self) -> float:
        """The objective of the best primal point minus the best bound, not below 0."""
        return max(self.objective - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap over the objective."""
        return self.gap / abs(self.objective) if self.objective != 0.0 else np.inf

    def within(self, tol: float) -> bool:
        """Whether the best points prove ``tol``."""
        if np.isinf(self.objective):
            return False  # nothing has been certified
        return self.objective - self.bound <= max(tol * abs(self.objective), self.floor)

    def update(
        self, iteration: int, weights: Floats, intercept: Floats, dual: Floats | None = None
    ) -> None:
        """Certify W (d, outputs), b and a dual guess, keep what is better, and record it."""
        self.consider(weights, intercept, dual, anyway=self.anyway or not self.records)
        self.record(iteration)

    def record(self, iteration: int) -> None:
        """Append the best points to the history."""
        nonzeros = int(np.count_nonzero(self.columns.values))
        record = (iteration, self.seconds(), self.objective, self.gap, nonzeros)
        self.records.append(record)
        if self.report is not None and self.report(*record, self._best):
            raise Stopped

    def _best(self) -> Point:
        return self.coef, self.intercept

    def consider(
        self, weights: Floats, intercept: Floats, dual: Floats | None, anyway: bool = False
    ) -> Certificate:
        """Certify a point without recording it."""
        return self._consider(np.ascontiguousarray(weights.T), intercept, dual, anyway)

    def _consider(
        self,
        coef: Floats | Columns,
        intercept: Floats,
        dual: Floats | None,
        anyway: bool = False,
        overwrite_dual: bool = False,
    ) -> Certificate:
        if self.problem.n_outputs > 1 and self.problem.loss.of_differences:
            # Shifting all classes alike changes neither differences of scores nor the penalty.
            if not isinstance(coef, Columns):
                free = self.problem.penalty.free
                coef[:, free] -= coef[:, free].mean(axis=0)
            intercept = intercept - intercept.mean()
        proof = certify(self.problem, coef, intercept, dual, overwrite_dual)
        if anyway or proof.objective < self.objective:
            # Only what is not zero is held while the solver goes on.
            self.columns = coef if isinstance(coef, Columns) else Columns.of(coef)
            self.intercept = intercept
            self.objective, self.floor = proof.objective, proof.floor
        if anyway or proof.dual_objective > self.bound:
            self.packed_dual = Packed(proof.dual)
            self.bound = proof.dual_objective
        return proof

    @property
    def coef(self) -> Floats:
        """The best coefficients, shape (n_outputs, d)."""
        return self.columns.dense()

    @property
    def dual(self) -> Floats:
        """The best dual point, shape (n, K)."""
        return self.packed_dual.unpacked()

    def history(self) -> History:
        """Return all records."""
        return History.of(self.records)

    def solution(
        self,
        control: Control,
        solver: str,
        n_iter: int,
        stalled: bool,
        counts: dict[str, int] | None = None,
    ) -> Solution:
        """Return the best points as what ``solver`` found."""
        return certified(
            self.problem,
            self.coef,
            self.intercept,
            self.dual,
            tol=control.tol,
            n_iter=n_iter,
            seconds=self.seconds(),
            history=replace(self.history(), counts=counts or {}),
            solver=solver,
            status_if_not="stalled" if stalled else "max_iter",
        )


class MethodIncumbent(Incumbent):
    """The best points of a method that has a ``point()``.

    Parameters
    ----------
    problem : Problem
    method : object
        Its ``point()`` returns W of shape (d, n_outputs), b and Y in units of 1 / alpha.
    report : callable or None
        As for :class:`Incumbent`.
    certified : bool
        Whether to certify the point at which the method is now.
    anyway : bool
        As for :class:`Incumbent`.
    """

    def __init__(
        self,
        problem: Problem,
        method: Any,
        report: Report | None = None,
        certified: bool = True,
        anyway: bool = False,
    ) -> None:
        super().__init__(problem, report, anyway)
        self.method = method
        if certified:
            self.renew()

    def renew(self) -> Certificate:
        """Certify the present point of the method and keep what is better than before."""
        coef, intercept, dual = self._point()
        dual *= self.problem.alpha
        return self._consider(coef, intercept, dual, self.anyway, overwrite_dual=True)

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
