r"""A quadratic plus a penalty with a prox, on the driver.

.. math:: \min_z \; \langle g, z - z_0 \rangle + \tfrac12 (z - z_0)^\top H (z - z_0) + r(z)

by the alternating direction method of multipliers: the quadratic is minimised by solving with
:math:`H + \rho I`, the penalty by its prox, and :math:`\rho` balances the two residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.linalg

from sparsvm._typing import Floats
from sparsvm.numerics.rounding import NO_SIZE

# Settings (Boyd, Parikh, Chu, Peleato and Eckstein, sections 3.3 and 3.4).
RELAXATION = 1.6
ITERATIONS = 2000
# rho changes by this factor where one residual is so many times the other, looked at so often.
FACTOR, IMBALANCE, CHECK_EVERY = 4.0, 5.0, 20
# Added to the diagonal, relative to its mean: scores may not tell some directions apart.
RIDGE = 1e-12
# No entry of a quasi-Newton model's diagonal is below this share of the mean.
LEAST_DIAGONAL = 1e-6
# Residuals of a model's minimiser, far below what a step moves.
ACCURACY = 1e-9


class Quadratic(Protocol):
    """What the minimiser asks of H.

    Attributes
    ----------
    scale : float
        The mean of the diagonal.
    accuracy : float
        Residuals to reach, relative to the sizes of what they compare.
    """

    scale: float
    accuracy: float

    def product(self, vector: Floats) -> Floats:
        """Return H v."""

    def shifted(self, rho: float) -> Callable[[Floats], Floats]:
        """Return v -> (H + rho I)^-1 v."""


class Assembled:
    """A matrix, which is factorised."""

    accuracy = ACCURACY

    def __init__(self, H: Floats) -> None:
        size = float(np.trace(H)) / H.shape[0]
        self.scale = size if size > 0.0 else 1.0
        self.H = H + RIDGE * self.scale * np.eye(H.shape[0])

    def product(self, vector: Floats) -> Floats:
        """Return H v."""
        return np.asarray(self.H @ vector)

    def shifted(self, rho: float) -> Callable[[Floats], Floats]:
        """Return v -> (H + rho I)^-1 v."""
        factor = scipy.linalg.cho_factor(self.H + rho * np.eye(self.H.shape[0]), check_finite=False)
        return lambda v: np.asarray(scipy.linalg.cho_solve(factor, v, check_finite=False))


class QuasiNewton:
    r"""The BFGS update of a diagonal by the last steps and changes of the gradient.

    In the compact form of Byrd, Nocedal and Schnabel, with steps S and changes Y as columns and the
    diagonal :math:`B_0`,

    .. math:: H = B_0 - Q M^{-1} Q^\top, \quad Q = [B_0 S, Y], \quad
        M = \begin{pmatrix} S^\top B_0 S & L \\ L^\top & -D \end{pmatrix},

    where L is the strictly lower part of :math:`S^\top Y` and D its diagonal.
    """

    accuracy = ACCURACY

    def __init__(self, diagonal: Floats, steps: Floats, changes: Floats) -> None:
        mean = float(diagonal.mean())
        self.scale = mean if mean > 0.0 else 1.0
        self.diagonal = np.maximum(diagonal, LEAST_DIAGONAL * self.scale)
        S, Y = steps.T, changes.T
        self.Q = np.hstack([self.diagonal[:, None] * S, Y])
        inner = S.T @ Y
        lower = np.tril(inner, -1)
        first = S.T @ (self.diagonal[:, None] * S)
        self.M = np.block([[first, lower], [lower.T, -np.diag(np.diag(inner))]])

    def product(self, vector: Floats) -> Floats:
        """Return H v."""
        out = self.diagonal * vector
        if self.M.size:
            out = out - self.Q @ np.linalg.solve(self.M, self.Q.T @ vector)
        return np.asarray(out)

    def shifted(self, rho: float) -> Callable[[Floats], Floats]:
        """Return v -> (H + rho I)^-1 v, by the formula of Sherman, Morrison and Woodbury."""
        inverse = 1.0 / (self.diagonal + rho)
        if not self.M.size:
            return lambda v: inverse * v
        scaled = inverse[:, None] * self.Q
        small = np.linalg.inv(self.M - self.Q.T @ scaled)
        return lambda v: np.asarray(inverse * v + scaled @ (small @ (scaled.T @ v)))


def minimise(
    H: Quadratic, gradient: Floats, point: Floats, prox: Callable[[Floats, float], Floats]
) -> Floats:
    """Return the minimiser, an outcome of ``prox`` and hence exactly sparse.

    Parameters
    ----------
    H : Quadratic
    gradient, point : arrays of one shape with m entries
        g and z_0.
    prox : callable
        ``prox(v, t)`` minimises t r(z) + |z - v|² / 2.
    """
    linear = gradient.ravel() - H.product(point.ravel())
    rho = H.scale
    solve = H.shifted(rho)
    z, u = point.ravel().copy(), np.zeros(point.size)
    for iteration in range(1, ITERATIONS + 1):
        x = solve(rho * (z - u) - linear)
        mixed = RELAXATION * x + (1.0 - RELAXATION) * z
        before = z
        z = prox((mixed + u).reshape(point.shape), 1.0 / rho).ravel()
        u = u + mixed - z
        primal, dual = _norm(x - z), rho * _norm(z - before)
        primal_size = max(_norm(x), _norm(z), NO_SIZE)
        dual_size = max(rho * _norm(u), _norm(linear), NO_SIZE)
        if primal <= H.accuracy * primal_size and dual <= H.accuracy * dual_size:
            break
        if iteration % CHECK_EVERY == 0:
            ratio = (primal / primal_size) / max(dual / dual_size, NO_SIZE)
            change = FACTOR if ratio > IMBALANCE else 1.0 / FACTOR if ratio < 1 / IMBALANCE else 1.0
            if change != 1.0:
                rho, u = rho * change, u / change
                solve = H.shifted(rho)
    return z.reshape(point.shape)


def _norm(vector: Floats) -> float:
    return float(np.linalg.norm(vector))
