r"""A quadratic plus a penalty with a prox, on the driver.

.. math:: \min_z \; \langle g, z - z_0 \rangle + \tfrac12 (z - z_0)^\top H (z - z_0) + r(z)

by the alternating direction method of multipliers: the quadratic is minimised with one
factorisation of :math:`H + \rho I`, the penalty by its prox, and :math:`\rho` balances the two
residuals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from sparsvm._typing import Floats

# Settings (Boyd, Parikh, Chu, Peleato and Eckstein, sections 3.3 and 3.4).
RELAXATION = 1.6
ITERATIONS = 2000
# Residuals relative to the sizes of what they compare.
ACCURACY = 1e-9
# rho changes by this factor where one residual is so many times the other, looked at so often.
FACTOR, UNBALANCED, EVERY = 4.0, 5.0, 20
# Added to the diagonal, relative to its mean: scores may not tell some directions apart.
RIDGE = 1e-12
TINY = 1e-300


def minimise(
    H: Floats, gradient: Floats, point: Floats, prox: Callable[[Floats, float], Floats]
) -> Floats:
    """Return the minimiser, an outcome of ``prox`` and hence exactly sparse.

    Parameters
    ----------
    H : array of shape (m, m)
    gradient, point : arrays of one shape with m entries
        g and z_0.
    prox : callable
        ``prox(v, t)`` minimises t r(z) + |z - v|² / 2.
    """
    size = float(np.trace(H)) / H.shape[0]
    if size <= 0.0:
        size = 1.0
    H = H + RIDGE * size * np.eye(H.shape[0])
    linear = gradient.ravel() - H @ point.ravel()
    rho = size
    factor = scipy.linalg.cho_factor(H + rho * np.eye(H.shape[0]), check_finite=False)
    z, u = point.ravel().copy(), np.zeros(point.size)
    for iteration in range(1, ITERATIONS + 1):
        x = scipy.linalg.cho_solve(factor, rho * (z - u) - linear, check_finite=False)
        mixed = RELAXATION * x + (1.0 - RELAXATION) * z
        before = z
        z = prox((mixed + u).reshape(point.shape), 1.0 / rho).ravel()
        u = u + mixed - z
        primal, dual = _norm(x - z), rho * _norm(z - before)
        primal_size = max(_norm(x), _norm(z), TINY)
        dual_size = max(rho * _norm(u), _norm(linear), TINY)
        if primal <= ACCURACY * primal_size and dual <= ACCURACY * dual_size:
            break
        if iteration % EVERY == 0:
            ratio = (primal / primal_size) / max(dual / dual_size, TINY)
            change = (
                FACTOR if ratio > UNBALANCED else 1.0 / FACTOR if ratio < 1 / UNBALANCED else 1.0
            )
            if change != 1.0:
                rho, u = rho * change, u / change
                factor = scipy.linalg.cho_factor(H + rho * np.eye(H.shape[0]), check_finite=False)
    return z.reshape(point.shape)


def _norm(vector: Floats) -> float:
    return float(np.linalg.norm(vector))
