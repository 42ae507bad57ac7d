"""The linear programs of difference-of-convex steps, written out and given to HiGHS.

``binary_step`` follows the formulas for two classes with labels ±1 and plain sums; ``step`` is the
form for any number of classes, weights and margins. Neither knows how the package states them.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def ramp(t, mu):
    return np.where(t < -(mu**2), mu + 1.0, np.where(t > mu, 0.0, 1.0 - t / mu))


def penalty(w, kind, a):
    if kind == "l0":
        return np.sum(1.0 - np.exp(-a * np.abs(w)))
    return np.sum(np.minimum(a, np.abs(w)) if kind == "capped_l1" else np.abs(w))


def penalty_slope(w, kind, a):
    """Gradient or subgradient of the convex function subtracted in the penalty."""
    if kind == "l0":
        return np.where(w >= 0.0, a * (1.0 - np.exp(-a * w)), -a * (1.0 - np.exp(a * w)))
    if kind == "capped_l1":
        return np.where(np.abs(w) >= a, np.sign(w), 0.0)
    return np.zeros_like(w)


def binary_objective(X, labels, w, b, lam, *, mu, kind, a):
    t = labels * (X @ w + b)
    losses = np.maximum(0.0, 1.0 - t) if mu is None else ramp(t, mu)
    return np.sum(losses) + lam * penalty(w, kind, a)


def binary_step(X, labels, w0, b0, lam, *, mu, kind, a):
    """Least value of G - H(z0) - <gamma, z - z0> for the subgradient at z0 = (w0, b0)."""
    n, d = X.shape
    level = 1.0 if mu is None else mu
    slope_w, slope_b = lam * penalty_slope(w0, kind, a), 0.0
    subtracted = lam * (np.sum(np.abs(w0)) * (a if kind == "l0" else 1.0) - penalty(w0, kind, a))
    if mu is not None:
        t = labels * (X @ w0 + b0)
        given_up = t < -(mu**2)
        slope_w = slope_w - X[given_up].T @ labels[given_up] / mu
        slope_b = -np.sum(labels[given_up]) / mu
        subtracted += np.sum(np.maximum(0.0, -(mu**2) - t)) / mu
    # Variables w, b, xi, sigma.
    cost = np.concatenate(
        [
            -slope_w,
            [-slope_b],
            np.full(n, 1.0 / level),
            np.full(d, lam * (a if kind == "l0" else 1)),
        ]
    )
    eye, none = np.eye(d), np.zeros((d, n + 1))
    margin_rows = np.hstack([-labels[:, None] * X, -labels[:, None], -np.eye(n), np.zeros((n, d))])
    rows = np.vstack([margin_rows, np.hstack([eye, none, -eye]), np.hstack([-eye, none, -eye])])
    limits = np.concatenate([np.full(n, -level), np.zeros(2 * d)])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * (n + d)
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    assert found.status == 0, found.message
    return found.fun - subtracted + slope_w @ w0 + slope_b * b0


def step(problem, W0, b0, X):
    """Least value of the tangent function of a ramp or hinge with l1, l0 or capped l1."""
    n, d, K, outputs = problem.n, problem.d, problem.n_classes, problem.n_outputs
    is_ramp = problem.loss.name == "ramp"
    mu = problem.loss.mu if is_ramp else 1.0
    kind, a, omega = problem.penalty.kind, problem.penalty.shape, problem.penalty.omega
    margins = problem.margins()
    n_w = outputs * d
    cost = np.zeros(2 * n_w + outputs + n)
    at_b, at_xi = 2 * n_w, 2 * n_w + outputs

    def score_row(i, k):
        """Score of class k for sample i as a row over the variables."""
        row, o = np.zeros(cost.size), k - (K - outputs)
        if o >= 0:
            row[o * d : (o + 1) * d] = X[i]
            row[n_w + o * d : n_w + (o + 1) * d] = -X[i]
            row[at_b + o] = 1.0 if problem.fit_intercept else 0.0
        return row

    def score(i, k):
        o = k - (K - outputs)
        return X[i] @ W0[o] + b0[o] if o >= 0 else 0.0

    constant, rows, limits = 0.0, [], []
    for i, true in enumerate(problem.y):
        weight = problem.mass[i] / mu
        cost[at_xi + i] += weight
        for k in range(K):
            row = score_row(i, k) - score_row(i, true)
            row[at_xi + i] = -1.0
            rows.append(row)
            limits.append(-mu * margins[i, k])
        if is_ramp:
            others = [k for k in range(K) if k != true]
            lead = [-(mu**2) * margins[i, k] + score(i, k) - score(i, true) for k in others]
            if max(lead) > 0.0:
                k = others[int(np.argmax(lead))]
                cost -= weight * (score_row(i, k) - score_row(i, true))
                constant += weight * mu**2 * margins[i, k]
    radius = np.tile(omega * (a if kind == "l0" else 1.0), outputs)
    z0 = (W0 * omega).reshape(-1)
    slope = penalty_slope(z0, kind, a)
    linear_term = slope * np.tile(omega, outputs)
    cost[:n_w] += problem.alpha * (radius - linear_term)
    cost[n_w : 2 * n_w] += problem.alpha * (radius + linear_term)
    size = np.sum(np.abs(z0)) * (a if kind == "l0" else 1.0)
    constant -= problem.alpha * (size - penalty(z0, kind, a) - slope @ z0)
    bounds = [(0, None)] * (2 * n_w) + [(None, None)] * outputs + [(0, None)] * n
    found = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds, method="highs")
    assert found.status == 0, found.message
    return found.fun + constant
