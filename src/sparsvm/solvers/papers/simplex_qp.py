"""Small convex quadratic programs over the simplex."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sparsvm._typing import Floats
from sparsvm.numerics.rounding import EPS, NO_SIZE

# Settings.
# Steps, an end only; the error of the end, and the growth over the least one at which rounding has
# taken over.
STEPS, FINAL_ERROR, ERROR_GROWTH = 60, 1e-15, 1e3
# Part of the way to the boundary that a step goes: a usual value. Added to the diagonal, relative
# to it, so that a singular matrix has a factor.
STEP_FRACTION, RIDGE = 0.99, 1e-14


def simplex_qp(Q: Floats, q: Floats, B: Floats) -> tuple[Floats, Floats]:
    r"""Minimise a quadratic on the simplex under homogeneous equalities.

    .. math:: \min_\theta \tfrac12 \theta^\top Q \theta - q^\top \theta, \qquad
              \theta \ge 0, \; \textstyle\sum \theta = 1, \; B \theta = 0.

    A primal-dual interior point with Mehrotra's correction, run until rounding stops it; entries
    that are then smaller than their slacks are exact zeros. ``theta`` with all weight on the first
    entry must satisfy the equalities.

    Parameters
    ----------
    Q : array of shape (m, m)
        Positive semidefinite.
    q : array of shape (m,)
    B : array of shape (k, m)

    Returns
    -------
    theta : array of shape (m,)
        Not negative, summing to 1.
    multipliers : array of shape (k,)
        Of the equalities: :math:`Q\theta - q - B^\top multipliers` is constant where
        :math:`\theta > 0` and not smaller elsewhere.
    """
    m = q.size
    scale = max(float(np.abs(q).max(initial=0.0)), float(np.abs(Q).max(initial=0.0)), NO_SIZE)
    Q, q = Q / scale, q / scale
    # Rows of length 1, so that one regularisation suits all of them.
    lengths = np.sqrt(np.sum(B * B, axis=1))
    lengths[lengths == 0.0] = 1.0
    A = np.vstack([np.ones((1, m)), B / lengths[:, None]])
    right = np.zeros(A.shape[0])
    right[0] = 1.0
    theta, slack = np.full(m, 1.0 / m), np.ones(m)
    nu = np.zeros(A.shape[0])
    best = (np.inf, theta, slack, nu)
    for _ in range(STEPS):
        dual = Q @ theta - q - A.T @ nu - slack
        primal = right - A @ theta
        mu = float(theta @ slack) / m
        error = max(mu, float(np.abs(dual).max()), float(np.abs(primal).max()))
        if error < best[0]:
            best = (error, theta, slack, nu)
        elif error > ERROR_GROWTH * best[0]:
            break
        if error <= FINAL_ERROR:
            break
        factors = _factors(Q, A, slack / theta)
        if factors is None:
            break
        affine = _step(factors, A, theta, slack, dual, primal, -theta * slack)
        far = min(_ratio(theta, affine[0]), _ratio(slack, affine[2]))
        ahead = float((theta + far * affine[0]) @ (slack + far * affine[2])) / m
        target = (ahead / mu) ** 3 * mu - theta * slack - affine[0] * affine[2]
        move = _step(factors, A, theta, slack, dual, primal, target)
        far = STEP_FRACTION * min(_ratio(theta, move[0]), _ratio(slack, move[2]))
        theta, nu, slack = theta + far * move[0], nu + far * move[1], slack + far * move[2]
    _, theta, slack, nu = best
    theta = np.where(theta > slack, theta, 0.0)
    return theta / theta.sum(), scale * nu[1:] / lengths


def _factors(Q: Floats, A: Floats, ratio: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Cholesky factor of Q + diag(ratio), A' through it, the Schur complement's inverse.

    None where the matrix is not positive definite to rounding.
    """
    H = np.array(Q, order="F")
    H[np.diag_indices_from(H)] += ratio
    H[np.diag_indices_from(H)] *= 1.0 + RIDGE
    factor, failed = dpotrf(H, lower=True, overwrite_a=True)
    if failed:
        return None
    through = dpotrs(factor, A.T, lower=True)[0]
    schur = A @ through
    values, vectors = np.linalg.eigh((schur + schur.T) / 2.0)
    # Rows of A may depend on each other: the least multipliers do.
    kept = values > values[-1] * values.size * EPS
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return factor, through, inverse


def _step(
    factors: tuple[Floats, Floats, Floats],
    A: Floats,
    theta: Floats,
    slack: Floats,
    dual: Floats,
    primal: Floats,
    target: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Newton step for the residuals, with the complementarity moved by ``target``."""
    factor, through, inverse = factors
    right = target / theta - dual
    first = dpotrs(factor, right, lower=True)[0]
    d_nu = inverse @ (primal - A @ first)
    d_theta = first + through @ d_nu
    return d_theta, d_nu, (target - slack * d_theta) / theta


def _ratio(values: Floats, move: Floats) -> float:
    """Return the largest step up to 1 that keeps ``values`` from turning negative."""
    down = move < 0.0
    return float(min(1.0, np.min(-values[down] / move[down], initial=1.0)))
