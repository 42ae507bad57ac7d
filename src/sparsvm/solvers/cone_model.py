r"""Hinge problems written out as cone programs, with every column scaled to size 1.

Small problems only: all pairs of a sample and a wrong class are constraints at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats, Ints
from sparsvm.numerics.cone_program import Block, Look, solve_cone_program
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt

# Entries of the constraints: about a second's work.
MOST_ENTRIES = 300_000
# What the cone solver aims at, near what it can do in double precision.
ACCURACY = 1e-11


def cone_entries(problem: Problem) -> int:
    """Return how many entries the constraints on the margins have."""
    per_row = problem.d * (1 if problem.n_classes == 2 else 2)
    return problem.n * (problem.n_classes - 1) * per_row


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the variables are: weights, intercepts, slacks, |weights|, norms of groups."""

    w: slice
    b: slice
    xi: slice
    u: slice
    t: slice

    @classmethod
    def of(cls, *counts: int) -> _Layout:
        ends = np.cumsum(counts)
        return cls(*(slice(int(e - c), int(e)) for c, e in zip(counts, ends, strict=True)))

    @property
    def size(self) -> int:
        return int(self.t.stop)


class ConeModel:
    """The program in weights of columns that are centred and of largest entry 1.

    Parameters
    ----------
    problem : Problem
        Data and penalty.
    margins : array of shape (n, K)
        By how much each class is to lie below the true one.
    slacks : bool
        Whether samples may fall short of them.
    """

    def __init__(self, problem: Problem, margins: Floats, *, slacks: bool) -> None:
        self.problem, self.margins, self.slacks = problem, margins, slacks
        data = problem
        self.outputs, self.d = data.n_outputs, data.d
        values = np.asarray(data.design.gather_columns(np.arange(data.d, dtype=np.int32)))
        self.mean = values.mean(axis=0) if data.fit_intercept else np.zeros(data.d)
        values = values - self.mean
        size = np.abs(values).max(axis=0)
        self.column = np.where(size > 0.0, size, 1.0)
        self.values = values / self.column
        self.omega = np.tile(data.penalty.omega / self.column, self.outputs)
        self.cells = data.n_outputs * data.d
        self.groups = self._group_of_cell()
        terms = data.penalty
        self.at = _Layout.of(
            self.cells,
            self.outputs if data.fit_intercept else 0,
            data.n if slacks else 0,
            self.cells if terms.l1_ratio > 0.0 else 0,
            int(self.groups.max(initial=-1)) + 1 if terms.group_order else 0,
        )

    def _group_of_cell(self) -> Ints:
        """Return the group of every weight, output by output."""
        terms = self.problem.penalty
        groups = np.tile(terms.groups.astype(np.intp), self.outputs)
        if terms.per_class:
            groups += terms.n_groups * np.repeat(np.arange(self.outputs), self.d)
        return groups

    def solve(
        self,
        costs: Floats,
        more: list[Block],
        max_iter: int | None = None,
        look: Look | None = None,
    ) -> Attempt:
        """Minimise ``costs`` and the curvature of the penalty, with ``more`` constraints.

        The dual is that of the margins, zero at the true classes; there is no bound.
        """
        data = self.problem
        blocks = [self._margins(), *more, *self._sizes(), *self._cones()]
        found = solve_cone_program(
            costs,
            blocks,
            quadratic=sp.diags_array(self._curvature()),
            tol=ACCURACY,
            max_iter=max_iter,
            look=look,
        )
        coef = found.x[self.at.w].reshape(self.outputs, self.d) / self.column
        intercept = np.zeros(self.outputs)
        if data.fit_intercept:
            intercept = found.x[self.at.b] - coef @ self.mean
        dual = np.zeros((data.n, data.n_classes))
        dual[self.sample, self.other] = np.maximum(found.dual[0], 0.0)
        return Attempt(coef, intercept, dual, -np.inf, found.iterations)

    def _margins(self) -> Block:
        """Every other class below the true one by its margin, less the slack of the sample."""
        data = self.problem
        y = data.y.astype(np.intp)
        self.sample, self.other = np.nonzero(np.arange(data.n_classes) != y[:, None])
        rows, count = np.arange(self.sample.size), self.sample.size
        parts = []
        for classes, sign in ((self.other, 1.0), (y[self.sample], -1.0)):
            # Of two classes one has the score 0.
            output = classes - (data.n_classes - self.outputs)
            kept = output >= 0
            first = output[kept] * self.d
            columns = first[:, None] + np.arange(self.d)
            entries = sign * self.values[self.sample[kept]]
            where = np.repeat(rows[kept], self.d)
            parts.append(self.matrix(entries.ravel(), where, columns.ravel(), count))
            if data.fit_intercept:
                signs = np.full(int(kept.sum()), sign)
                columns = self.at.b.start + output[kept]
                parts.append(self.matrix(signs, rows[kept], columns, count))
        if self.slacks:
            columns = self.at.xi.start + self.sample
            parts.append(self.matrix(np.full(count, -1.0), rows, columns, count))
        return sum(parts), -self.margins[self.sample, self.other], "nonnegative"

    def no_negative_slacks(self) -> Block:
        """Slacks of at least 0."""
        n = self.problem.n
        columns = np.arange(self.at.xi.start, self.at.xi.stop)
        return self.matrix(np.full(n, -1.0), np.arange(n), columns, n), np.zeros(n), "nonnegative"

    def _sizes(self) -> list[Block]:
        """|weight| below its own bound (l1) or below that of its group (l1/linf)."""
        terms, cells = self.problem.penalty, np.arange(self.cells)
        bounds = []
        if self.at.u.stop > self.at.u.start:
            bounds.append(self.at.u.start + cells)
        if terms.group_order == np.inf:
            bounds.append(self.at.t.start + self.groups)
        found: list[Block] = []
        for bound in bounds:
            above = self.matrix(np.full(self.cells, -1.0), cells, bound, self.cells)
            for sign in (1.0, -1.0):
                weights = self.matrix(sign * self.omega, cells, cells, self.cells)
                found.append((weights + above, np.zeros(self.cells), "nonnegative"))
        return found

    def _cones(self) -> list[Block]:
        """The Euclidean norm of every group below its bound."""
        if self.problem.penalty.group_order != 2.0:
            return []
        found: list[Block] = []
        for group in range(self.at.t.stop - self.at.t.start):
            members = np.flatnonzero(self.groups == group)
            count = members.size + 1
            columns = np.append(self.at.t.start + group, members)
            entries = -np.append(1.0, self.omega[members])
            matrix = self.matrix(entries, np.arange(count), columns, count)
            found.append((matrix, np.zeros(count), "second_order"))
        return found

    def penalty_costs(self) -> Floats:
        """Return the linear part of the penalty."""
        rho = self.problem.penalty.l1_ratio
        costs = np.zeros(self.at.size)
        costs[self.at.u] = rho
        costs[self.at.t] = 1.0 - rho
        return costs

    def _curvature(self) -> Floats:
        terms, curvature = self.problem.penalty, np.zeros(self.at.size)
        if not terms.is_norm:
            curvature[self.at.w] = (1.0 - terms.l1_ratio) * self.omega**2
        return curvature

    def matrix(self, entries: Floats, rows: Ints, columns: Ints, count: int) -> sp.csr_array:
        """Return ``count`` rows over all variables."""
        return sp.csr_array((entries, (rows, columns)), shape=(count, self.at.size))
