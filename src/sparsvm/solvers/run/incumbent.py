"""The best points that a solver has passed, and the history of looking at them."""

from __future__ import annotations

import time

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certify
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.packed import Packed
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Certificate, History
from sparsvm.solvers.run.progress import Callback


class Watch:
    """The best primal and the best dual point seen so far.

    The two need not come from the same iterate: every feasible dual bounds every primal point.

    Parameters
    ----------
    problem : Problem
    report : callable or None
        Called with each record, at most five times a second.
    anyway : bool
        Keep the last iterate even if an earlier one was better: a paper's stopping rule is about
        its last iterate and no other.
    """

    intercept: Floats
    columns: Columns
    packed_dual: Packed

    def __init__(self, problem: Problem, report: Callback | None, anyway: bool) -> None:
        self.problem = problem
        self.report = report
        self.anyway = anyway
        self.began = time.perf_counter()
        self.reported = -np.inf
        self.objective, self.bound, self.floor = np.inf, -np.inf, 0.0
        self.records: list[tuple[int, float, float, float, int]] = []

    def seconds(self) -> float:
        """Return the seconds since the watch was made."""
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
            return False  # nothing has been looked at
        return self.objective - self.bound <= max(tol * abs(self.objective), self.floor)

    def look(
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
        if self.report is not None and record[1] >= self.reported + 0.2:
            self.reported = record[1]
            self.report(*record)

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
        columns = list(zip(*self.records, strict=True))
        return History(
            iteration=np.array(columns[0], dtype=np.int64),
            seconds=np.array(columns[1]),
            objective=np.array(columns[2]),
            gap=np.array(columns[3]),
            nonzeros=np.array(columns[4], dtype=np.int64),
        )
