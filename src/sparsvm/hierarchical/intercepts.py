"""The shortest intercepts that keep a classifier on the face of least hinge."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from sparsvm._typing import Floats
from sparsvm.hierarchical.least_hinge import Face


def shortest_intercepts(lifted: Floats, face: Face, intercept: Floats) -> Floats:
    r"""Minimise :math:`\|b\|` for given weights, within the rows of a face.

    All rows bound differences: :math:`b_k - b_l \le D_{kl}`. The least-distance problem is solved
    by non-negative least squares (Lawson and Hanson), which ends after finitely many steps and
    does not mind constraints that leave no interior, as two active margins do.

    Parameters
    ----------
    lifted : array of shape (n, K)
        The values f_ik of the rows.
    face : Face
    intercept : array of shape (K,)
        The intercepts they were computed with.
    """
    n, K = lifted.shape
    room = np.full((K, K), np.inf)
    slack = np.maximum(lifted[np.arange(n), face.top][:, None] - lifted, 0.0)
    slack[face.tied] = 0.0
    for k in range(K):
        np.minimum.at(room[k], face.top, slack[:, k])
    sample, high = np.nonzero(face.tied)
    # Classes that tie on the whole face may move together only.
    room[face.top[sample], high] = 0.0
    np.fill_diagonal(room, np.inf)
    above, below = np.nonzero(np.isfinite(room))
    sign = np.zeros((above.size, K))
    sign[np.arange(above.size), below] = 1.0
    sign[np.arange(above.size), above] = -1.0
    least = sign @ intercept - room[above, below]
    size = max(float(np.abs(intercept).max()), 1e-300)
    system = np.vstack([sign.T, least / size])
    target = np.zeros(K + 1)
    target[-1] = 1.0
    solution, residual = nnls(system, target, maxiter=100 * max(K * K, 30))
    if residual <= 1e-12:
        return intercept
    rest = target - system @ solution
    shortest = -size * rest[:-1] / rest[-1]
    # Far below the rounding of the margins, which are of order 1.
    return np.where(np.abs(shortest) < np.finfo(np.float64).eps, 0.0, shortest)
