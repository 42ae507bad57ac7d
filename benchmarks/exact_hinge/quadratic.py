"""The two-class hinge with l1 or l2 as a linear or quadratic program for CVXOPT.

The variables are w, b, xi and, for l1, the bounds sigma of |w|: the form in which the paper of the
difference-of-convex algorithms gives them to CVXOPT, with sparse constraint matrices.
"""

from __future__ import annotations

import cvxopt
import numpy as np
import scipy.sparse as sp

cvxopt.solvers.options["show_progress"] = False


class CvxoptProgram:
    """A convex problem with two classes, margins of either sign and a linear term."""

    def __init__(self, problem, X):
        self.problem, (n, d) = problem, X.shape
        self.signs = np.where(problem.y == 1, 1.0, -1.0)
        self.quadratic = problem.penalty.kind == "l2"
        margins = problem.margins().sum(axis=1)  # zero at the true class
        linear_term = np.zeros(d) if problem.linear_term is None else problem.linear_term[0]
        costs = [-problem.alpha * linear_term, [0.0], problem.mass]
        signed = sp.csr_matrix(self.signs[:, None] * X)
        rows = [
            [-signed, -self.signs[:, None], -sp.eye(n)],
            [sp.csr_matrix((n, d)), sp.csr_matrix((n, 1)), -sp.eye(n)],
        ]
        limits = [-margins, np.zeros(n)]
        if not self.quadratic:
            costs.append(problem.alpha * problem.penalty.omega)
            none = sp.csr_matrix((n, d))
            rows = [[*row, none] for row in rows]
            for sign in (1.0, -1.0):
                rows.append([sign * sp.eye(d), None, None, -sp.eye(d)])
                limits.append(np.zeros(d))
        self.costs = cvxopt.matrix(np.concatenate(costs))
        self.rows = _sparse(sp.bmat(rows))
        self.limits = cvxopt.matrix(np.concatenate(limits))
        curvature = np.zeros(len(self.costs))
        curvature[:d] = problem.alpha * problem.penalty.omega**2
        self.curvature = _sparse(sp.diags(curvature))

    def solve(self):
        if self.quadratic:
            found = cvxopt.solvers.qp(self.curvature, self.costs, self.rows, self.limits)
        else:
            found = cvxopt.solvers.lp(self.costs, self.rows, self.limits)
        problem, (n, d) = self.problem, (self.problem.n, self.problem.d)
        x = np.array(found["x"]).ravel()
        flows = np.maximum(np.array(found["z"]).ravel()[:n], 0.0)
        dual = np.zeros((n, 2))
        dual[np.arange(n), 1 - problem.y] = flows
        dual[np.arange(n), problem.y] = np.maximum(problem.mass - flows, 0.0)
        return x[None, :d], x[d : d + 1], dual


def _sparse(matrix):
    matrix = sp.coo_matrix(matrix)
    return cvxopt.spmatrix(
        matrix.data.tolist(), matrix.row.tolist(), matrix.col.tolist(), matrix.shape
    )
