r"""The constrained problem as one cone program, for what the search cannot solve.

The regularised problems of the search become hard where a column is millions of times larger than
the others of its l1/linf group: its weights cost nothing as long as they stay below those of the
group, they drift, and scores of :math:`10^7` whose differences count lose their last digits. With
every column scaled to size 1 and all samples at once, small problems of that kind are easy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsvm.certificate import repaired_flows
from sparsvm.cone_program import Block, solve_cone_program
from sparsvm.constrained import ConstrainedProblem
from sparsvm.dual_slope import with_slope_on_edge
from sparsvm.losses import Floats
from sparsvm.solution import Start

Ints = NDArray[np.intp]

GROUPED = ("l1/l2", "l1/linf", "sparse_group")
# Entries of the constraints: about a second's work.
MOST_ENTRIES = 300_000


def fits_cone_program(problem: ConstrainedProblem) -> bool:
    """Whether the problem is small enough to be written out."""
    data = problem.regularised
    per_row = data.d * (1 if data.n_classes == 2 else 2)
    return data.n * (data.n_classes - 1) * per_row <= MOST_ENTRIES


def by_cone_program(problem: ConstrainedProblem) -> Start:
    """Solve the whole problem at once; how well is for the caller's certificate to say."""
    return _Model(problem).solve()


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


class _Model:
    """The program in weights of columns that are centred and of largest entry 1."""

    def __init__(self, problem: ConstrainedProblem) -> None:
        self.problem = problem
        data = problem.regularised
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
            data.n if problem.eta > 0.0 else 0,
            self.cells if terms.kind in ("l1", "elasticnet", "sparse_group") else 0,
            int(self.groups.max()) + 1 if terms.kind in GROUPED else 0,
        )

    def _group_of_cell(self) -> Ints:
        """Return the group of every weight, output by output."""
        terms = self.problem.regularised.penalty
        groups = np.tile(terms.groups.astype(np.intp), self.outputs)
        if terms.per_class:
            groups += terms.n_groups * np.repeat(np.arange(self.outputs), self.d)
        return groups

    def solve(self) -> Start:
        data = self.problem.regularised
        blocks = [self._margins(), *self._budget(), *self._sizes(), *self._cones()]
        found = solve_cone_program(
            self._costs(), blocks, quadratic=sp.diags_array(self._curvature()), tol=1e-11
        )
        coef = found.x[self.at.w].reshape(self.outputs, self.d) / self.column
        intercept = np.zeros(self.outputs)
        if data.fit_intercept:
            intercept = found.x[self.at.b] - coef @ self.mean
        flows = np.zeros((data.n, data.n_classes))
        flows[self.sample, self.other] = np.maximum(found.dual[0], 0.0)
        return Start(coef, intercept, self.problem.filled(self._mended(flows, coef)))

    def _mended(self, flows: Floats, coef: Floats) -> Floats:
        """Let the slopes of weights strictly inside their l1/linf group vanish, as they should.

        What the cone solver leaves of them, 1e-15 of a column of 1e6, counts in the dual norm.
        """
        data = self.problem.regularised
        if data.penalty.kind != "l1/linf":
            return flows
        sizes = np.abs(coef * data.penalty.omega).ravel()
        largest = np.zeros(int(self.groups.max()) + 1)
        np.maximum.at(largest, self.groups, sizes)
        # Groups of zeros have slopes.
        largest[largest <= 1e-9 * largest.max()] = 0.0
        inside = (sizes < (1.0 - 1e-6) * largest[self.groups]).reshape(coef.shape)
        for _ in range(2):
            # Balancing comes first, which would undo what is mended; twice, because the first
            # change leaves a rounding error of its size.
            flows = repaired_flows(data, self.problem.filled(flows))
            G = data.transposed(data.signed_dual(flows)) / data.alpha
            changed = with_slope_on_edge(data, flows, inside, G)
            flows = flows if changed is None else changed
        return flows

    def _margins(self) -> Block:
        """Every other class below the true one by its margin, less the slack of the sample."""
        data = self.problem.regularised
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
            parts.append(self._matrix(entries.ravel(), where, columns.ravel(), count))
            if data.fit_intercept:
                signs = np.full(int(kept.sum()), sign)
                columns = self.at.b.start + output[kept]
                parts.append(self._matrix(signs, rows[kept], columns, count))
        if self.problem.eta > 0.0:
            columns = self.at.xi.start + self.sample
            parts.append(self._matrix(np.full(count, -1.0), rows, columns, count))
        return sum(parts), -self.problem.margins[self.sample, self.other], "nonnegative"

    def _budget(self) -> list[Block]:
        """Slacks that are not negative, with a mean of at most eta."""
        n, eta = self.problem.regularised.n, self.problem.eta
        if eta == 0.0:
            return []
        columns = np.arange(self.at.xi.start, self.at.xi.stop)
        mass = self.problem.regularised.mass
        positive = self._matrix(np.full(n, -1.0), np.arange(n), columns, n)
        mean = self._matrix(mass, np.zeros(n, dtype=np.intp), columns, 1)
        return [(positive, np.zeros(n), "nonnegative"), (mean, np.array([eta]), "nonnegative")]

    def _sizes(self) -> list[Block]:
        """|weight| below its own bound (l1) or below that of its group (l1/linf)."""
        terms, cells = self.problem.regularised.penalty, np.arange(self.cells)
        bounds = []
        if self.at.u.stop > self.at.u.start:
            bounds.append(self.at.u.start + cells)
        if terms.kind == "l1/linf":
            bounds.append(self.at.t.start + self.groups)
        found: list[Block] = []
        for bound in bounds:
            above = self._matrix(np.full(self.cells, -1.0), cells, bound, self.cells)
            for sign in (1.0, -1.0):
                weights = self._matrix(sign * self.omega, cells, cells, self.cells)
                found.append((weights + above, np.zeros(self.cells), "nonnegative"))
        return found

    def _cones(self) -> list[Block]:
        """The Euclidean norm of every group below its bound."""
        if self.problem.regularised.penalty.kind not in ("l1/l2", "sparse_group"):
            return []
        found: list[Block] = []
        for group in range(self.at.t.stop - self.at.t.start):
            members = np.flatnonzero(self.groups == group)
            count = members.size + 1
            columns = np.append(self.at.t.start + group, members)
            entries = -np.append(1.0, self.omega[members])
            matrix = self._matrix(entries, np.arange(count), columns, count)
            found.append((matrix, np.zeros(count), "second_order"))
        return found

    def _costs(self) -> Floats:
        rho = self.problem.regularised.penalty.l1_ratio
        costs = np.zeros(self.at.size)
        costs[self.at.u] = rho
        costs[self.at.t] = 1.0 - rho
        return costs

    def _curvature(self) -> Floats:
        terms, curvature = self.problem.regularised.penalty, np.zeros(self.at.size)
        if not terms.is_norm:
            curvature[self.at.w] = (1.0 - terms.l1_ratio) * self.omega**2
        return curvature

    def _matrix(self, entries: Floats, rows: Ints, columns: Ints, count: int) -> sp.csr_array:
        return sp.csr_array((entries, (rows, columns)), shape=(count, self.at.size))
