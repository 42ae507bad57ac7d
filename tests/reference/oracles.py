"""Independent solutions of any convex problem, by HiGHS and by Clarabel.

The problem is written out as one linear or conic program in the variables

    w (n_outputs * d), b (n_outputs), xi (n), u >= |omega w| entry by entry, t >= norm of a group

with slacks xi_i >= margin_ik + S_ik - S_iy for the hinge, whose multipliers are the dual Y (see
reference.smooth for the other losses). Nothing of the package's own mathematics is used except the
description of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


@dataclass(frozen=True)
class Oracle:
    """An optimum: ``value`` is what the solver reports, ``accuracy`` its own error estimate."""

    coef: np.ndarray
    intercept: np.ndarray
    dual: np.ndarray
    value: float
    accuracy: float


def dense(problem):
    """The design matrix as an array."""
    return np.asarray(problem.design.gather_columns(np.arange(problem.d, dtype=np.int32)))


def solve(problem):
    """Solve with HiGHS where the problem is linear, otherwise with Clarabel."""
    model = HighsModel if is_linear(problem) else ClarabelModel
    try:
        return model(problem, by_weight=False).solve()
    except RuntimeError:
        # Columns of very different size: scaling them by penalty weight may suit better.
        return model(problem, by_weight=True).solve()


def is_linear(problem):
    return problem.penalty.kind in ("l1", "l1/linf")


def objective(problem, W, b):
    """The objective by loops over samples, classes and groups."""
    X, terms = dense(problem), problem.penalty
    loss = 0.0
    for i in range(problem.n):
        scores = W @ X[i] + b
        if problem.n_classes == 2:
            scores = np.array([0.0, scores[0]])
        loss += problem.mass[i] * sample_loss(problem, i, scores)
    linear_term = 0.0 if problem.linear_term is None else float(np.sum(problem.linear_term * W))
    return loss + problem.alpha * (penalty_value(terms, W) - linear_term)


def sample_loss(problem, i, scores):
    """The loss of one sample at its K scores, class by class."""
    true, K = problem.y[i], problem.n_classes
    scale = 1.0 if problem.margin_scale is None else problem.margin_scale[i]
    others = [k for k in range(K) if k != true]
    if problem.loss.name == "ovr_squared_hinge":
        if K == 2:
            return max(0.0, scale + scores[1 - true] - scores[true]) ** 2
        signs = [-1.0 if k == true else 1.0 for k in range(K)]
        return sum(max(0.0, scale + signs[k] * scores[k]) ** 2 for k in range(K))
    gaps = [scale * problem.cost[true, k] + scores[k] - scores[true] for k in others]
    if problem.loss.name == "hinge":
        return max(0.0, *gaps)
    if problem.loss.name == "squared_hinge":
        return sum(max(0.0, gap) ** 2 for gap in gaps)
    return float(np.logaddexp.reduce([0.0, *gaps]))


def penalty_value(terms, W):
    """The penalty by a loop over groups."""
    Z = W * terms.omega
    l1, squares = float(np.sum(np.abs(Z))), 0.5 * float(np.sum(Z**2))
    blocks = [Z.reshape(-1)[members] for members in group_members(terms)]
    norms = float(sum(np.linalg.norm(block) for block in blocks))
    peaks = float(sum(np.max(np.abs(block)) for block in blocks))
    rho = terms.l1_ratio
    return {
        "l1": l1,
        "l2": squares,
        "elasticnet": rho * l1 + (1 - rho) * squares,
        "l1/l2": norms,
        "l1/linf": peaks,
        "sparse_group": rho * l1 + (1 - rho) * norms,
    }[terms.kind]


def group_members(terms):
    """Positions of each group in the flattened (n_outputs, d) coefficients."""
    cells = np.arange(terms.n_outputs * terms.d).reshape(terms.n_outputs, terms.d)
    for g in range(terms.n_groups):
        block = cells[:, terms.groups == g]
        if terms.per_class:
            yield from block
        else:
            yield block.reshape(-1)


class _Model:
    """Rows and costs shared by both solvers, with columns scaled to largest entry (or weight) 1."""

    def __init__(self, problem, by_weight):
        self.problem = problem
        terms = problem.penalty
        X = dense(problem)
        peak = np.abs(X).max(axis=0)
        size = np.where(terms.omega > 0.0, terms.omega, peak) if by_weight else peak
        self.column = np.where(size > 0.0, size, 1.0)
        self.X = X / self.column
        self.omega = np.tile(terms.omega / self.column, problem.n_outputs)
        self.groups = list(group_members(terms))
        n_coef = problem.n_outputs * problem.d
        has_l1 = terms.l1_ratio > 0.0
        has_groups = terms.kind in ("l1/l2", "l1/linf", "sparse_group")
        sizes = [
            n_coef,
            problem.n_outputs,
            self.n_slacks(),
            n_coef if has_l1 else 0,
            len(self.groups) if has_groups else 0,
        ]
        ends = np.cumsum(sizes)
        self.w, self.b, self.xi, self.u, self.t = (
            np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)
        )
        self.size = int(ends[-1])

    def n_slacks(self):
        return self.problem.n

    def slack_costs(self):
        return self.problem.mass

    def costs(self):
        problem, terms = self.problem, self.problem.penalty
        q = np.zeros(self.size)
        q[self.xi] = self.slack_costs()
        q[self.u] = problem.alpha * terms.l1_ratio
        q[self.t] = problem.alpha * (1.0 - terms.l1_ratio)
        if problem.linear_term is not None:
            q[self.w] = -problem.alpha * (problem.linear_term / self.column).reshape(-1)
        return q

    def hinge_rows(self):
        """Rows A x <= rhs of margin_ik + S_ik - S_iy - xi_i <= 0, for k off the true class."""
        problem, X = self.problem, self.X
        rows, rhs = [], []
        self.pairs = []
        for i, true in enumerate(problem.y):
            scale = 1.0 if problem.margin_scale is None else problem.margin_scale[i]
            for k in range(problem.n_classes):
                if k == true:
                    continue
                row = self.score_row(X[i], ((k, 1.0), (true, -1.0)))
                row[self.xi[i]] = -1.0
                rows.append(row)
                rhs.append(-scale * problem.cost[true, k])
                self.pairs.append((i, k))
        return sp.csr_matrix(np.array(rows)), np.array(rhs)

    def score_row(self, x, signed_labels):
        """The row of a signed sum of scores of one sample."""
        problem, row = self.problem, np.zeros(self.size)
        for label, sign in signed_labels:
            output = label if problem.n_classes > 2 else label - 1
            if output >= 0:
                start = output * problem.d
                row[self.w[start : start + problem.d]] += sign * x
                row[self.b[output]] += sign
        return row

    def bound_rows(self):
        """Rows of omega |w| <= u and, for l1/linf, omega |w| <= t of its group."""
        rows = []
        for cell in range(self.u.size):
            rows += [(cell, self.u[cell], sign) for sign in (1.0, -1.0)]
        if self.problem.penalty.kind == "l1/linf":
            for g, members in enumerate(self.groups):
                rows += [(cell, self.t[g], sign) for cell in members for sign in (1.0, -1.0)]
        matrix = sp.lil_matrix((len(rows), self.size))
        for r, (cell, bound, sign) in enumerate(rows):
            matrix[r, self.w[cell]] = sign * self.omega[cell]
            matrix[r, bound] = -1.0
        return matrix.tocsr(), np.zeros(len(rows))

    def oracle(self, x, multipliers, value, accuracy):
        problem = self.problem
        dual = np.zeros((problem.n, problem.n_classes))
        for (i, k), multiplier in zip(self.pairs, multipliers, strict=True):
            dual[i, k] = max(multiplier, 0.0)
        dual[np.arange(problem.n), problem.y] = np.maximum(problem.mass - dual.sum(axis=1), 0.0)
        coef = x[self.w].reshape(problem.n_outputs, problem.d) / self.column
        # An interior point pins what is fixed to rounding only, and that would be worth something.
        intercept = x[self.b] if self.problem.fit_intercept else np.zeros(self.b.size)
        return Oracle(coef, intercept, dual, float(value), float(accuracy))

    def free_of_sign(self):
        """Variables without the bound >= 0: coefficients, and intercepts where there are any."""
        return np.concatenate([self.w, self.b])


class HighsModel(_Model):
    def solve(self):
        hinge, hinge_rhs = self.hinge_rows()
        bound, bound_rhs = self.bound_rows()
        limits = np.tile([0.0, np.inf], (self.size, 1))
        limits[self.free_of_sign(), 0] = -np.inf
        if not self.problem.fit_intercept:
            limits[self.b] = 0.0
        result = linprog(
            self.costs(),
            A_ub=sp.vstack([hinge, bound]),
            b_ub=np.concatenate([hinge_rhs, bound_rhs]),
            bounds=limits,
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
                "time_limit": 60.0,  # where its simplex goes in circles
            },
        )
        if result.status != 0:
            raise RuntimeError(f"HiGHS did not solve the reference problem: {result.message}")
        multipliers = -result.ineqlin.marginals[: hinge.shape[0]]
        return self.oracle(result.x, multipliers, result.fun, 1e-9 * (1.0 + abs(result.fun)))


class ClarabelModel(_Model):
    def solve(self):
        terms = self.problem.penalty
        hinge, hinge_rhs = self.hinge_rows()
        bound, bound_rhs = self.bound_rows()
        positive = np.concatenate([self.xi, self.u, self.t])
        signs = sp.csr_matrix(
            (-np.ones(positive.size), (np.arange(positive.size), positive)),
            shape=(positive.size, self.size),
        )
        blocks, rhs = [hinge, bound, signs], [hinge_rhs, bound_rhs, np.zeros(positive.size)]
        cones = [clarabel.NonnegativeConeT(sum(block.shape[0] for block in blocks))]
        if not self.problem.fit_intercept:
            pins = sp.csr_matrix(
                (np.ones(self.b.size), (np.arange(self.b.size), self.b)),
                shape=(self.b.size, self.size),
            )
            blocks.append(pins)
            rhs.append(np.zeros(self.b.size))
            cones.append(clarabel.ZeroConeT(self.b.size))
        if terms.kind in ("l1/l2", "sparse_group"):
            for g, members in enumerate(self.groups):
                block = sp.lil_matrix((members.size + 1, self.size))
                block[0, self.t[g]] = -1.0
                for r, cell in enumerate(members, start=1):
                    block[r, self.w[cell]] = -self.omega[cell]
                blocks.append(block.tocsr())
                rhs.append(np.zeros(members.size + 1))
                cones.append(clarabel.SecondOrderConeT(members.size + 1))
        for block, right, cone in self.loss_cones():
            blocks.append(block)
            rhs.append(right)
            cones.append(cone)
        curvature = np.zeros(self.size)
        curvature[self.xi] = self.slack_curvature()
        if terms.kind in ("l2", "elasticnet"):
            curvature[self.w] = self.problem.alpha * (1.0 - terms.l1_ratio) * self.omega**2
        return self._run(sp.diags(curvature, format="csc"), blocks, rhs, cones)

    def loss_cones(self):
        """Blocks, right-hand sides and cones of the loss beyond its linear rows."""
        return []

    def slack_curvature(self):
        return 0.0

    def _run(self, P, blocks, rhs, cones):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = 1e-8
        settings.max_iter = 300
        A, right = sp.vstack(blocks, format="csc"), np.concatenate(rhs)
        solver = clarabel.DefaultSolver(P, self.costs(), A, right, cones, settings)
        result = solver.solve()
        value, below = result.obj_val, result.obj_val_dual
        if not np.isfinite(value) or abs(value - below) > 1e-6 * (1.0 + abs(value)):
            raise RuntimeError(f"Clarabel did not solve the reference problem: {result.status}")
        multipliers = np.array(result.z)[: len(self.pairs)]
        accuracy = abs(value - below) + 1e-9 * (1.0 + abs(value))
        return self.oracle(np.array(result.x), multipliers, value, accuracy)


class _Budget:
    """Change a model into the least penalty with a mean hinge of at most ``eta``."""

    def __init__(self, problem, by_weight, eta):
        super().__init__(replace(problem, alpha=1.0), by_weight)
        self.eta = eta

    def costs(self):
        q = super().costs()
        q[self.xi] = 0.0
        return q

    def bound_rows(self):
        rows, rhs = super().bound_rows()
        budget = sp.csr_matrix(
            (self.problem.mass, (np.zeros(self.xi.size, dtype=int), self.xi)), shape=(1, self.size)
        )
        return sp.vstack([rows, budget], format="csr"), np.append(rhs, self.eta)


class HighsBudgetModel(_Budget, HighsModel):
    """By HiGHS."""


class ClarabelBudgetModel(_Budget, ClarabelModel):
    """By Clarabel."""


def solve_constrained(problem, eta, clarabel_only=False):
    """The least penalty of ``problem`` with a mean hinge of at most ``eta``."""
    linear = is_linear(problem) and not clarabel_only
    model = HighsBudgetModel if linear else ClarabelBudgetModel
    try:
        return model(problem, False, eta).solve()
    except RuntimeError:
        return model(problem, True, eta).solve()
