"""The dual of a convex problem, checked and valued by direct dense computation."""

from __future__ import annotations

from math import fsum

import numpy as np
from scipy.optimize import brentq

from reference.oracles import dense, group_members


def violations(problem, dual):
    """How far ``dual`` is from feasible: the largest violation of each kind, by name.

    Equalities are relative to the mean absolute column (weighted by mass for the hinge, by the
    entries for other losses), the penalty's constraint to 1.
    """
    X, n, K = dense(problem), problem.n, problem.n_classes
    signed = signed_dual(problem, dual)
    simplex = problem.loss.name in ("hinge", "logistic")
    weight = problem.mass if problem.loss.name == "hinge" else 0.5 * np.abs(signed).sum(axis=1)
    total = fsum(weight) or 1.0
    found = {
        "sign": max(0.0, -float(dual.min())),
        "mass": simplex
        * max(abs(fsum(dual[i]) - problem.mass[i]) / problem.mass[i] for i in range(n)),
        "intercept": 0.0,
        "free features": 0.0,
        "penalty": 0.0,
    }
    if problem.fit_intercept:
        found["intercept"] = max(abs(fsum(signed[:, k])) for k in range(K)) / total
    for j in np.flatnonzero(problem.penalty.omega == 0.0):
        size = fsum(weight * np.abs(X[:, j])) or 1.0
        worst = max(abs(fsum(X[:, j] * signed[:, k])) for k in range(K)) / size
        found["free features"] = max(found["free features"], worst)
    if problem.penalty.is_norm:
        point = slope(problem, dual)
        found["penalty"] = max(0.0, dual_norm(problem.penalty, point) - 1.0)
    return found


def signed_dual(problem, dual):
    """The dual with minus the sum of the others in place of the true class's entry.

    Subtracting the mass from that entry is the same but for a rounding of the size of the mass,
    beside which small entries would be lost. One-vs-rest with more than two classes only turns
    its sign.
    """
    signed = np.array(dual)
    for i, true in enumerate(problem.y):
        if problem.loss.name == "ovr_squared_hinge" and problem.n_classes > 2:
            signed[i, true] = -dual[i, true]
            continue
        signed[i, true] = -fsum(np.delete(dual[i], true))
    return signed


def slope(problem, dual):
    """``V - G / alpha``, the point at which the penalty's conjugate is taken.

    The sums of G are exact before they are rounded once: with a tiny alpha anything less would
    not tell a bound that is too large from rounding.
    """
    X = dense(problem)
    point = np.zeros((problem.n_outputs, problem.d))
    for k in range(problem.n_outputs):
        rows, values = _entries_of(problem, dual, k + problem.n_classes - problem.n_outputs)
        for j in range(problem.d):
            point[k, j] = -_exact_dot(X[rows, j], values) / problem.alpha
    return point if problem.linear_term is None else point + problem.linear_term


def rounding_of_entries(problem, dual):
    """How much the dual norm may gain when the entries of a feasible point are rounded to doubles.

    The bound is that of the point before: its entries times one factor. With a tiny alpha the last
    digits of large entries that cancel are 1e-9 of the dual ball and more.
    """
    moved = 2.0**-53 * (np.abs(signed_dual(problem, dual)).T @ np.abs(dense(problem)))
    return dual_norm(problem.penalty, moved[-problem.n_outputs :] / problem.alpha)


def _entries_of(problem, dual, k):
    """Samples and signed entries whose sum is column k of the signed dual."""
    if problem.loss.name == "ovr_squared_hinge" and problem.n_classes > 2:
        return np.arange(problem.n), np.where(problem.y == k, -dual[:, k], dual[:, k])
    own, others = np.flatnonzero(problem.y == k), np.flatnonzero(problem.y != k)
    lost = np.delete(dual[own], k, axis=1)
    rows = np.concatenate([others, np.repeat(own, lost.shape[1])])
    return rows, np.concatenate([dual[others, k], -lost.reshape(-1)])


def _exact_dot(x, y):
    """The sum of products, rounded once: products of halves of 26 bits have no error."""
    return fsum(np.concatenate([a * b for a in _halves(x) for b in _halves(y)]))


def _halves(x):
    shifted = 134217729.0 * x  # 2^27 + 1
    high = shifted - (shifted - x)
    return high, x - high


def dual_norm(terms, point):
    """The dual norm of a norm penalty, group by group; unpenalised features are left out."""
    scaled = np.zeros_like(point)
    kept = terms.omega > 0.0
    scaled[:, kept] = point[:, kept] / terms.omega[kept]
    flat = np.abs(scaled).reshape(-1)
    if terms.kind == "l1":
        return float(flat.max(initial=0.0))
    blocks = [flat[members] for members in group_members(terms)]
    if terms.kind == "l1/l2":
        return max(float(np.linalg.norm(block)) for block in blocks)
    if terms.kind == "l1/linf":
        return max(fsum(block) for block in blocks)
    return max(_sparse_group_root(block, terms.l1_ratio) for block in blocks)


def _sparse_group_root(block, rho):
    def excess(c):
        return np.linalg.norm(np.maximum(block - rho * c, 0.0)) - (1.0 - rho) * c

    top = float(np.linalg.norm(block))
    # The norm itself is at most the Euclidean one; a little more guards against rounding.
    return brentq(excess, 0.0, 1.01 * top, xtol=1e-15 * top, rtol=1e-14) if top > 0.0 else 0.0


def dual_value(problem, dual):
    """The dual objective: what the loss gains, minus alpha times the penalty's conjugate."""
    terms = problem.penalty
    gain = fsum(_gain(problem, i, dual[i]) for i in range(problem.n))
    if terms.is_norm:
        return gain
    point, rho = slope(problem, dual), terms.l1_ratio
    conjugate = 0.0
    for j in np.flatnonzero(terms.omega > 0.0):
        for k in range(problem.n_outputs):
            excess = max(abs(point[k, j]) / terms.omega[j] - rho, 0.0)
            conjugate += excess**2 / (2.0 * (1.0 - rho))
    return gain - problem.alpha * conjugate


def _gain(problem, i, row):
    """Minus the conjugate of one sample's loss, times its mass."""
    true, mass, name = problem.y[i], problem.mass[i], problem.loss.name
    scale = 1.0 if problem.margin_scale is None else problem.margin_scale[i]
    if name == "ovr_squared_hinge":
        if problem.n_classes == 2:
            row = np.delete(row, true)
        return fsum(row * scale) - fsum(row**2) / (4.0 * mass)
    gain = fsum(row * scale * problem.cost[true])
    if name == "squared_hinge":
        return gain - fsum(np.delete(row, true) ** 2) / (4.0 * mass)
    if name == "logistic":
        return gain - mass * fsum(v / mass * np.log(v / mass) for v in row if v > 0.0)
    return gain
