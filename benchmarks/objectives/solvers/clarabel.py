"""Clarabel, an interior point method for cone programs."""

from typing import ClassVar

import numpy as np
from benchmark_utils.peer import LIMIT, Peer
from benchmark_utils.problems import PROBLEMS
from benchmark_utils.programs import ClarabelProgram
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    import cvxpy as cp

GROUPS = PROBLEMS["multiclass hinge, l1/l2"]


class Solver(Peer):
    """The hinge with l1/l2 in the dual form, which was the fastest; the others by CVXPY."""

    name = "clarabel"
    requirements: ClassVar = ["pip::cvxpy"]
    kinds = tuple(PROBLEMS.values())

    def prepare(self):
        if self.problem == GROUPS:
            self.program = ClarabelProgram(self.problem.on(self.X, self.y, self.alpha), self.X)
            return
        rows = 1 if self.problem.binary else self.y.max() + 1
        self.W = cp.Variable((rows, self.X.shape[1]))
        self.program = cp.Problem(cp.Minimize(self.loss() + self.alpha * self.penalty()))
        self.data, self.chain, self.inverse = self.program.get_problem_data(cp.CLARABEL)

    def loss(self):
        S, n = self.X @ self.W.T, len(self.y)
        if self.problem.binary:
            signed = cp.multiply(np.where(self.y == 1, 1.0, -1.0), S[:, 0])
            hinge = self.problem.loss == "hinge"
            return cp.sum(cp.pos(1 - signed) if hinge else cp.logistic(-signed)) / n
        truth = np.eye(self.y.max() + 1)[self.y]
        if self.problem.loss == "ovr_squared_hinge":
            return cp.sum_squares(cp.pos(1 - cp.multiply(2 * truth - 1, S))) / n
        own = cp.sum(cp.multiply(truth, S), axis=1)
        if self.problem.loss == "logistic":
            return cp.sum(cp.log_sum_exp(S, axis=1) - own) / n
        lead = 1 - truth + S - cp.reshape(own, (n, 1), order="C")
        if self.problem.loss == "hinge":
            return cp.sum(cp.max(lead, axis=1)) / n
        return cp.sum_squares(cp.multiply(1 - truth, cp.pos(lead))) / n

    def penalty(self):
        return {
            "l1": lambda W: cp.sum(cp.abs(W)),
            "l2": lambda W: 0.5 * cp.sum_squares(W),
            "l1/l2": lambda W: cp.sum(cp.norm(W, 2, axis=0)),
            "l1/linf": lambda W: cp.sum(cp.max(cp.abs(W), axis=0)),
        }[self.problem.penalty](self.W)

    def fit(self, tol):
        if self.problem == GROUPS:
            return self.program.solve(tol, LIMIT)[0]
        options = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, "time_limit": LIMIT}
        found = self.chain.solve_via_data(
            self.program, self.data, solver_opts={**options, "max_threads": 1}
        )
        self.program.unpack_results(found, self.chain, self.inverse)
        return self.W.value
