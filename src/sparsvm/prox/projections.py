"""Projections on the simplex, the l1 ball and the epigraph of the multiclass hinge."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.prox.arrays import as_given, as_rows, like_rows, per_row


def project_simplex(y: Any, mass: Any = 1.0) -> Floats:
    r"""Project a vector, or each row of a matrix, on the simplex.

    .. math:: \arg\min_u \|u - y\|^2 \quad\text{subject to}\quad u \ge 0,\ \sum_k u_k = mass

    which is :math:`u = (y - \theta)_+` for the :math:`\theta` that gives the sum. It takes
    expected linear time, and the sum is exact to rounding of ``mass`` however large ``y`` is.

    Parameters
    ----------
    y : array of shape (K,) or (n, K)
    mass : float or array of shape (n,), default=1.0
        Not negative.

    Returns
    -------
    array of the shape of y

    References
    ----------
    L. Condat. *Fast projection onto the simplex and the l1 ball.* Mathematical Programming
    158:575–585, 2016.

    Examples
    --------
    >>> from sparsvm.prox import project_simplex
    >>> project_simplex([0.5, 1.5, -1.0])
    array([0., 1., 0.])
    >>> project_simplex([[0.5, 0.25], [3.0, 2.0]], mass=[1.0, 2.0])
    array([[0.625, 0.375],
           [1.5  , 0.5  ]])
    """
    rows = as_rows("y", y)
    return as_given(_core.project_simplex(rows, per_row("mass", mass, len(rows))), y)


def project_l1_ball(v: Any, radius: Any = 1.0) -> Floats:
    r"""Project a vector, or each row of a matrix, on the l1 ball.

    .. math:: \arg\min_u \|u - v\|^2 \quad\text{subject to}\quad \sum_k |u_k| \le radius

    Inside the ball nothing changes; outside, the absolute values are projected on the simplex of
    mass ``radius`` and keep their signs.

    Parameters
    ----------
    v : array of shape (K,) or (n, K)
    radius : float or array of shape (n,), default=1.0
        Not negative.

    Returns
    -------
    array of the shape of v

    Examples
    --------
    >>> from sparsvm.prox import project_l1_ball
    >>> project_l1_ball([0.5, -1.5, 1.0])
    array([ 0.  , -0.75,  0.25])
    """
    rows = as_rows("v", v)
    return as_given(_core.project_l1_ball(rows, per_row("radius", radius, len(rows))), v)


def project_epigraph(y: Any, zeta: Any, margins: Any = 0.0) -> tuple[Floats, Any]:
    r"""Project on the epigraph of the multiclass hinge.

    .. math:: \arg\min_{p, \theta} \|p - y\|^2 + (\theta - \zeta)^2
              \quad\text{subject to}\quad \max_k (p_k + r_k) \le \theta

    with the margins r. The answer is :math:`p_k = \min(y_k, \theta - r_k)`, where
    :math:`\theta = \zeta` if that point lies in the epigraph, and the root of
    :math:`\theta - \zeta = \sum_k (y_k + r_k - \theta)_+` otherwise.

    Parameters
    ----------
    y : array of shape (K,) or (n, K)
    zeta : float or array of shape (n,)
    margins : float or array of shape (K,) or (n, K), default=0.0

    Returns
    -------
    p : array of the shape of y
    theta : float or array of shape (n,)

    References
    ----------
    G. Chierchia, N. Pustelnik, J.-C. Pesquet and B. Pesquet-Popescu. *A Proximal Approach for
    Sparse Multiclass SVM.* 2015, Proposition 3.3.

    Examples
    --------
    >>> from sparsvm.prox import project_epigraph
    >>> p, theta = project_epigraph([3.0, 0.0], zeta=1.0)
    >>> p, theta
    (array([2., 0.]), 2.0)
    """
    rows = as_rows("y", y)
    p, theta = _core.project_epigraph(
        rows, like_rows("margins", margins, rows.shape), per_row("zeta", zeta, len(rows))
    )
    return as_given(p, y), float(theta[0]) if np.ndim(y) == 1 else theta
