"""One proximal step of SDCA written out: every quantity from its definition, nothing maintained.

In units of alpha, with ``Ỹ = Y - λ[k = y]`` and ``G = XᵀỸ``, the coefficients that belong to a dual
Y and a centre C minimise ``g(W) + (1/2σ)|ω(W - C)|² - <T - G, W>``, and the intercept is
``c - σ_b Σ_i Ỹ_i``. A sample moves its dual by ρ times the step that is exact as long as no
feature becomes zero or stops being so, and back on its simplex.
"""

from dataclasses import replace

import numpy as np

# The share of the curvature with all features that is always reckoned with.
CAUTION = 0.25


def nonzero(problem, W):
    """Whether each feature, or any feature of its group, has a weight that is not zero."""
    # A squared penalty takes no feature out.
    alive = W.any(axis=1) | (problem.penalty.kind == "l2")
    if problem.penalty.kind in ("l1/l2", "l1/linf", "sparse_group"):
        groups = problem.penalty.groups
        alive = np.bincount(groups, weights=alive, minlength=groups.max() + 1)[groups] > 0
    return alive


class Shuffle:
    """The orders in which the native code visits the samples, each made from the last one."""

    def __init__(self, n):
        self.state = 0x9E3779B97F4A7C15
        self.order = list(range(n))

    def next(self):
        mask = (1 << 64) - 1
        for i in range(len(self.order), 1, -1):
            self.state ^= (self.state << 13) & mask
            self.state ^= self.state >> 7
            self.state ^= (self.state << 17) & mask
            j = self.state % i
            self.order[i - 1], self.order[j] = self.order[j], self.order[i - 1]
        return self.order


def on_simplex(v, mass):
    """The nearest point with entries that are not negative and sum to the mass."""
    falling = np.sort(v)[::-1]
    levels = (np.cumsum(falling) - mass) / np.arange(1, v.size + 1)
    return np.maximum(v - levels[falling > levels][-1], 0.0)


def signed_outputs(problem, Y):
    """Ỹ, shape (n, outputs)."""
    signed = Y.copy()
    signed[np.arange(problem.n), problem.y] -= problem.mass / problem.alpha
    return signed[:, 1:] if problem.n_classes == 2 else signed


def weights(problem, X, Y, center, sigma):
    """W (d, outputs) of the dual, and the gain of each feature: its slope where it is not zero."""
    terms = problem.penalty
    omega = terms.omega[:, None]
    pull = -X.T @ signed_outputs(problem, Y)
    if problem.linear_term is not None:
        pull = pull + problem.linear_term.T
    if terms.kind in ("l2", "elasticnet"):
        rest = 1.0 - terms.l1_ratio
        excess = np.abs(pull) - terms.l1_ratio * omega
        gain = 1.0 / (rest * terms.omega**2)
        return np.sign(pull) * np.maximum(excess, 0.0) * gain[:, None], gain
    plain = replace(terms, omega=np.ones(terms.d))
    Z = plain.prox((omega * center + sigma * pull / omega).T, sigma).T
    return Z / omega, sigma / terms.omega**2


def proximal_step(problem, X, Y, center, anchor, *, sigma, sigma_b, relaxation, sweeps, shuffle):
    """Return the dual after so many sweeps, and the coefficients and intercepts it implies."""
    Y, lam = Y.copy(), problem.mass / problem.alpha
    margins = problem.margins()
    if not problem.fit_intercept:
        sigma_b = 0.0

    def point():
        W, gain = weights(problem, X, Y, center, sigma)
        return W, anchor - sigma_b * signed_outputs(problem, Y).sum(axis=0), gain

    for _ in range(sweeps):
        for i in shuffle.next():
            W, b, gain = point()
            scores = X[i] @ W + b
            all_of_them, alive = gain @ X[i] ** 2 + sigma_b, nonzero(problem, W)
            curvature = max(gain @ (alive * X[i] ** 2) + sigma_b, CAUTION * all_of_them)
            if curvature == 0.0:
                Y[i] = lam[i] * (np.arange(problem.n_classes) == np.argmax(margins[i]))
                continue
            if problem.n_classes == 2:
                slope = scores[0] + margins[i, 1] - margins[i, 0]
                t = np.clip(Y[i, 1] + relaxation * slope / curvature, 0.0, lam[i])
                Y[i] = lam[i] - t, t
            else:
                moved = Y[i] + relaxation * (scores + margins[i]) / curvature
                Y[i] = on_simplex(moved, lam[i])
    W, b, _ = point()
    return Y, W, b
