"""Independent oracles of the hierarchical problem: HiGHS and Clarabel on plain formulations."""

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


def _rows(X, y, K):
    """Rows of 1 + S_ik - S_{i y_i} - xi_i <= 0 in the unknowns (W, b, xi); all classes free."""
    n, d = X.shape
    rows = []
    for i in range(n):
        for k in range(K):
            if k == y[i]:
                continue
            row = np.zeros(K * d + K + n)
            row[k * d : (k + 1) * d] = X[i]
            row[y[i] * d : (y[i] + 1) * d] = -X[i]
            row[K * d + k] = 1.0
            row[K * d + y[i]] = -1.0
            row[K * d + K + i] = -1.0
            rows.append(row)
    return sp.csr_matrix(np.array(rows))


def least_hinge_by_highs(X, y, weight=None):
    """Return the least total hinge."""
    n, d = X.shape
    K = int(y.max()) + 1
    weight = np.ones(n) if weight is None else weight
    A = _rows(X, y, K)
    cost = np.r_[np.zeros(K * d + K), weight]
    bounds = [(None, None)] * (K * d + K) + [(0, None)] * n
    found = linprog(cost, A_ub=A, b_ub=-np.ones(A.shape[0]), bounds=bounds, method="highs")
    assert found.status == 0
    return found.fun


def least_norm_by_clarabel(X, y, hinge, squares_within=None, slack=1e-7):
    """Return the least max ||w_r - w_t|| with total hinge at most (1 + slack) hinge + slack.

    With `squares_within`, the least sum of squares of all ||w_r - w_t|| where none exceeds it.
    """
    # Neither the origin of the samples nor what all classes have in common changes the problem, but
    # unless both are fixed, the last digits of the data decide whether Clarabel gives up.
    X = X - X.mean(axis=0)
    n, d = X.shape
    K = int(y.max()) + 1
    A = sp.hstack([_rows(X, y, K), sp.csr_matrix((n * (K - 1), 1))])
    m = K * d + K + n + 1
    positive = sp.hstack([sp.csr_matrix((n, K * d + K)), -sp.eye(n), sp.csr_matrix((n, 1))])
    budget = sp.csr_matrix(np.r_[np.zeros(K * d + K), np.ones(n), 0.0][None])
    blocks = [A, positive, budget]
    bound = [-np.ones(A.shape[0]), np.zeros(n), [hinge * (1 + slack) + slack]]
    cones = [clarabel.NonnegativeConeT(A.shape[0] + n + 1)]
    P = np.zeros((m, m))
    for r in range(K):
        for t in range(r + 1, K):
            block = np.zeros((d + 1, m))
            block[0, -1] = -1.0
            block[1:, r * d : (r + 1) * d] = -np.eye(d)
            block[1:, t * d : (t + 1) * d] = np.eye(d)
            blocks.append(sp.csr_matrix(block))
            bound.append(np.zeros(d + 1))
            cones.append(clarabel.SecondOrderConeT(d + 1))
            P += 2 * block[1:].T @ block[1:]
    q = np.zeros(m)
    if squares_within is None:
        P = np.zeros((m, m))
        q[-1] = 1.0
    else:
        last = np.zeros((1, m))
        last[0, -1] = 1.0
        blocks.append(sp.csr_matrix(last))
        bound.append([squares_within * (1 + slack)])
        cones.append(clarabel.NonnegativeConeT(1))
    # Class 0 has weights and intercept 0.
    kept = np.r_[d : K * d, K * d + 1 : m]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(P[np.ix_(kept, kept)]), format="csc"),
        q[kept],
        sp.vstack(blocks).tocsc()[:, kept],
        np.concatenate(bound),
        cones,
        settings,
    ).solve()
    # "AlmostSolved" will do where the dual objective proves the digits that are compared.
    assert "Solved" in str(found.status), found.status
    assert abs(found.obj_val - found.obj_val_dual) <= 1e-6 * abs(found.obj_val)
    return found.obj_val
