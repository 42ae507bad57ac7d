"""Naive references for the proximal kernels.

Wherever the answer is the root of a piecewise linear function it is found in exact rational
arithmetic, by sorting, and rounded once at the end: then even inputs of very different sizes have
a right answer to compare with.
"""

from fractions import Fraction

import numpy as np


def _exact(values):
    return [Fraction(float(v)) for v in values]


def _root(knots, weights, base, slope):
    """The root θ of Σ c_k max(z_k − θ, 0) + base − slope·θ, by adding knots from the top."""
    total, rate = base, slope
    for z, c in sorted(zip(knots, weights, strict=True), reverse=True):
        if rate > 0 and total / rate >= z:
            break
        total, rate = total + c * z, rate + c
    return total / rate


def _rounded(values):
    return np.array([float(v) for v in values])


def project_simplex(y, mass):
    y, mass = _exact(y), Fraction(float(mass))
    theta = _root(y, [1] * len(y), -mass, 0)
    return _rounded([max(v - theta, 0) for v in y])


def project_l1_ball(v, radius):
    if sum(abs(x) for x in _exact(v)) <= Fraction(float(radius)):
        return np.array(v, dtype=float)
    return np.copysign(project_simplex(np.abs(v), radius), v)


def prox_group_linf(v, step, omega=None):
    """|w_j| = min(|v_j|, T/ω_j) with Σ max(ω_j|v_j| − T, 0)/ω_j² = step, or T = 0."""
    omega = np.ones(len(v)) if omega is None else omega
    v, omega, step = _exact(v), _exact(omega), Fraction(float(step))
    pairs = [(abs(x), o) for x, o in zip(v, omega, strict=True) if o > 0]
    if step == 0 or not pairs:
        return _rounded(v)
    level = Fraction(0)
    if sum(x / o for x, o in pairs) > step:
        level = _root([o * x for x, o in pairs], [1 / o**2 for _, o in pairs], -step, 0)
    clipped = [
        x if o == 0 else max(-level / o, min(x, level / o)) for x, o in zip(v, omega, strict=True)
    ]
    return _rounded(clipped)


def prox_group_l2(v, step, omega=None):
    """w = v N/(N + step ω²) with N = ‖ω∘w‖ by bisection, in extended precision, unit-free."""
    v = np.asarray(v, dtype=np.longdouble)
    omega = np.ones(len(v)) if omega is None else omega
    omega = np.asarray(omega, dtype=np.longdouble)
    free = omega == 0
    size = np.abs(v[~free]).max(initial=0)
    if size == 0 or step == 0:
        return v.astype(float)
    u, t = np.where(free, 0, v / size), np.longdouble(step) / size
    if np.sum((u[~free] / omega[~free]) ** 2) <= t**2:
        return np.where(free, v, 0).astype(float)
    low, high = np.longdouble(0), np.sqrt(np.sum((omega * u) ** 2))
    for _ in range(400):
        middle = (low + high) / 2
        if np.sum((omega * u / (middle + t * omega**2)) ** 2) > 1:
            low = middle
        else:
            high = middle
    return np.where(free, v, size * u * (low / (low + t * omega**2))).astype(float)


def prox_hinge(y, margins, mass):
    """Argmin over u of ½‖u − y‖² + mass·max(u + margins): clip y + margins from above."""
    shifted = [a + b for a, b in zip(_exact(y), _exact(margins), strict=True)]
    level = _root(shifted, [1] * len(shifted), -Fraction(float(mass)), 0)
    return _rounded([min(a, level - b) for a, b in zip(_exact(y), _exact(margins), strict=True)])


def project_epigraph(y, margins, zeta):
    y, margins, zeta = _exact(y), _exact(margins), Fraction(float(zeta))
    shifted = [a + b for a, b in zip(y, margins, strict=True)]
    theta = zeta if max(shifted) <= zeta else _root(shifted, [1] * len(y), zeta, 1)
    return _rounded([min(a, theta - b) for a, b in zip(y, margins, strict=True)]), float(theta)


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


def prox_penalty(W, step, kind, l1_ratio, groups, n_groups, per_class, omega):
    """The prox of a whole penalty at W of shape (features, outputs), group by group."""
    W, omega = np.array(W, dtype=float), np.asarray(omega, dtype=float)
    each = omega[:, None] * np.ones_like(W)
    if kind == "l1":
        return soft(W, step * each)
    if kind == "l2":
        return W / (1 + step * each**2)
    if kind == "elasticnet":
        return soft(W, step * l1_ratio * each) / (1 + step * (1 - l1_ratio) * each**2)
    if kind == "sparse_group":
        W, step = soft(W, step * l1_ratio * each), step * (1 - l1_ratio)
    prox = prox_group_linf if kind == "l1/linf" else prox_group_l2
    columns = [[k] for k in range(W.shape[1])] if per_class else [list(range(W.shape[1]))]
    for g in range(n_groups):
        for some in columns:
            block = np.ix_(np.flatnonzero(groups == g), some)
            if W[block].size:
                W[block] = prox(W[block].ravel(), step, each[block].ravel()).reshape(W[block].shape)
    return W
