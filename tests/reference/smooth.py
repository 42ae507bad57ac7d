"""Independent solutions of problems with a smooth loss, as conic programs for Clarabel.

The squared losses have one slack per pair of sample and class, at quadratic cost; the logistic loss
has t_i >= log sum_k exp(z_ik) as sum_k u_ik <= 1 with u_ik >= exp(z_ik - t_i), exponential cones.
"""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp

from reference.oracles import ClarabelModel, Oracle


def solve(problem):
    """Solve with Clarabel; the dual is the derivative of the loss at the solution."""
    kind = {
        "squared_hinge": SquaredHingeModel,
        "ovr_squared_hinge": OneVsRestModel,
        "logistic": LogisticModel,
        "pairwise_squared_hinge": RankingModel,
    }[problem.loss.name]
    try:
        return kind(problem, by_weight=False).solve()
    except RuntimeError:
        return kind(problem, by_weight=True).solve()


class _SmoothModel(ClarabelModel):
    def oracle(self, x, multipliers, value, accuracy):
        problem = self.problem
        coef = x[self.w].reshape(problem.n_outputs, problem.d) / self.column
        # Found wrong by 5e-9 where it reported 1e-9.
        return Oracle(coef, x[self.b], None, float(value), 10.0 * float(accuracy))

    def scale(self, i):
        return 1.0 if self.problem.margin_scale is None else self.problem.margin_scale[i]

    def margin(self, i, k):
        return self.scale(i) * self.problem.cost[self.problem.y[i], k]

    def off_true(self):
        problem = self.problem
        return [
            (i, k) for i in range(problem.n) for k in range(problem.n_classes) if k != problem.y[i]
        ]


class SquaredHingeModel(_SmoothModel):
    def terms(self):
        """(sample, signed labels, margin) of every squared term."""
        y = self.problem.y
        return [(i, ((k, 1.0), (y[i], -1.0)), self.margin(i, k)) for i, k in self.off_true()]

    def n_slacks(self):
        return len(self.terms())

    def slack_costs(self):
        return 0.0

    def slack_curvature(self):
        return np.array([2.0 * self.problem.mass[i] for i, _, _ in self.terms()])

    def hinge_rows(self):
        self.pairs, rows, rhs = [], [], []
        for slack, (i, labels, margin) in zip(self.xi, self.terms(), strict=True):
            row = self.score_row(self.X[i], labels)
            row[slack] = -1.0
            rows.append(row)
            rhs.append(-margin)
        return sp.csr_matrix(np.array(rows)), np.array(rhs)


class OneVsRestModel(SquaredHingeModel):
    def terms(self):
        problem = self.problem
        if problem.n_classes == 2:
            y = problem.y
            return [(i, ((1 - y[i], 1.0), (y[i], -1.0)), self.scale(i)) for i in range(problem.n)]
        return [
            (i, ((k, -1.0 if k == problem.y[i] else 1.0),), self.scale(i))
            for i in range(problem.n)
            for k in range(problem.n_classes)
        ]


class RankingModel(SquaredHingeModel):
    """One slack a pair of a label of the set and another label."""

    def terms(self):
        problem = self.problem
        own = problem.loss.sets[problem.y]
        return [
            (i, ((t, 1.0), (r, -1.0)), 1.0)
            for i in range(problem.n)
            for r in np.flatnonzero(own[i])
            for t in np.flatnonzero(~own[i])
        ]

    def slack_curvature(self):
        weight = 2.0 * self.problem.mass * self.problem.loss.factor[self.problem.y]
        return np.array([weight[i] for i, _, _ in self.terms()])


class LogisticModel(_SmoothModel):
    def n_slacks(self):
        return self.problem.n * (1 + self.problem.n_classes)

    def slack_costs(self):
        return np.concatenate(
            [self.problem.mass, np.zeros(self.problem.n * self.problem.n_classes)]
        )

    def hinge_rows(self):
        """Rows of sum_k u_ik <= 1."""
        self.pairs = []
        n, K = self.problem.n, self.problem.n_classes
        matrix = sp.lil_matrix((n, self.size))
        for i in range(n):
            matrix[i, self.xi[n + i * K : n + (i + 1) * K]] = 1.0
        return matrix.tocsr(), np.ones(n)

    def loss_cones(self):
        n, K, y = self.problem.n, self.problem.n_classes, self.problem.y
        for i in range(n):
            for k in range(K):
                labels = () if k == y[i] else ((k, 1.0), (y[i], -1.0))
                block = np.zeros((3, self.size))
                block[0] = -self.score_row(self.X[i], labels)
                block[0, self.xi[i]] = 1.0
                block[2, self.xi[n + i * K + k]] = -1.0
                right = np.array([0.0 if k == y[i] else self.margin(i, k), 1.0, 0.0])
                yield sp.csr_matrix(block), right, clarabel.ExponentialConeT()
