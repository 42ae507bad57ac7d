"""Proximal operators of the multiclass hinge, of group norms and of whole penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.prox.arrays import as_given, as_rows, like_rows, per_row, real_array


def prox_hinge(y: Any, margins: Any = 0.0, mass: Any = 1.0) -> Floats:
    r"""Return the proximal operator of the multiclass hinge.

    .. math:: \arg\min_u \tfrac12 \|u - y\|^2 + mass \cdot \max_k (u_k + r_k)
              = y - P(y + r)

    with the margins r and the projection P on the simplex of that mass.

    Parameters
    ----------
    y : array of shape (K,) or (n, K)
    margins : float or array of shape (K,) or (n, K), default=0.0
        In a multiclass hinge the cost of each class, which is 0 for the true one.
    mass : float or array of shape (n,), default=1.0
        Not negative.

    Returns
    -------
    array of the shape of y

    References
    ----------
    G. Chierchia, N. Pustelnik, J.-C. Pesquet and B. Pesquet-Popescu. *A Proximal Approach for
    Sparse Multiclass SVM.* 2015, Proposition 3.1.

    Examples
    --------
    >>> from sparsvm.prox import prox_hinge
    >>> prox_hinge([0.0, -2.0, 0.5], margins=[0.0, 1.0, 1.0])
    array([ 0. , -2. , -0.5])
    """
    rows = as_rows("y", y)
    shifts = like_rows("margins", margins, rows.shape)
    return as_given(_core.prox_hinge(rows, shifts, per_row("mass", mass, len(rows))), y)


def prox_group_l2(v: Any, step: Any = 1.0, weights: Any = None) -> Floats:
    r"""Return the proximal operator of a Euclidean norm.

    .. math:: \arg\min_w \tfrac12 \|w - v\|^2 + step \cdot \|\omega \circ w\|_2

    Without weights the length of v is shortened by ``step``, to no less than zero. With weights
    the answer is :math:`w_j = v_j N / (N + step\,\omega_j^2)` where :math:`N = \|\omega \circ w\|`
    is the root of a scalar equation; entries of weight 0 stay as they are.

    Parameters
    ----------
    v : array of shape (K,) or (n, K)
        One group, or one a row.
    step : float or array of shape (n,), default=1.0
        Not negative.
    weights : array of shape (K,) or (n, K), optional
        Not negative.

    Returns
    -------
    array of the shape of v

    Examples
    --------
    >>> from sparsvm.prox import prox_group_l2
    >>> prox_group_l2([3.0, -4.0], step=2.5)
    array([ 1.5, -2. ])
    >>> prox_group_l2([[3.0, -4.0], [0.3, -0.4]])
    array([[ 2.4, -3.2],
           [ 0. ,  0. ]])
    """
    return _group(_core.prox_group_l2, v, step, weights)


def prox_group_linf(v: Any, step: Any = 1.0, weights: Any = None) -> Floats:
    r"""Return the proximal operator of the largest absolute value.

    .. math:: \arg\min_w \tfrac12 \|w - v\|^2 + step \cdot \max_j |\omega_j w_j|

    which clips the absolute values: :math:`|w_j| = \min(|v_j|, T / \omega_j)` with the level T of
    :math:`\sum_j (\omega_j |v_j| - T)_+ / \omega_j^2 = step`, or T = 0 if there is none. By
    Moreau's identity and without weights it is v minus its projection on the l1 ball.

    Parameters
    ----------
    v : array of shape (K,) or (n, K)
        One group, or one a row.
    step : float or array of shape (n,), default=1.0
        Not negative.
    weights : array of shape (K,) or (n, K), optional
        Not negative; entries of weight 0 stay as they are.

    Returns
    -------
    array of the shape of v

    Examples
    --------
    >>> from sparsvm.prox import prox_group_linf
    >>> prox_group_linf([3.0, -2.0, 0.5], step=2.0)
    array([ 1.5, -1.5,  0.5])
    """
    return _group(_core.prox_group_linf, v, step, weights)


def _group(kernel: Callable[..., Any], v: Any, step: Any, weights: Any) -> Floats:
    rows = as_rows("v", v)
    omega = None if weights is None else like_rows("weights", weights, rows.shape)
    return as_given(kernel(rows, per_row("step", step, len(rows)), omega), v)


def prox_penalty(coef: Any, penalty: str | Penalty = "l1", step: float = 1.0) -> Floats:
    r"""Return the proximal operator of a penalty at coefficients.

    .. math:: \arg\min_W \tfrac12 \|W - V\|^2 + step \cdot penalty(W)

    Parameters
    ----------
    coef : array of shape (n_outputs, n_features) or (n_features,)
        V, in the shape of scikit-learn's ``coef_``.
    penalty : str or Penalty, default="l1"
        A convex penalty: its short name, or an object of :mod:`sparsvm.penalties` with groups and
        weights of its own. ``weights="scale"`` needs data and is refused.
    step : float, default=1.0
        Not negative; ``alpha`` times the step size in a proximal gradient method.

    Returns
    -------
    array of the shape of coef

    References
    ----------
    G. Chierchia, N. Pustelnik, J.-C. Pesquet and B. Pesquet-Popescu. *A Proximal Approach for
    Sparse Multiclass SVM.* 2015 (l1, l1/l2, l1/linf).

    Examples
    --------
    >>> from sparsvm.penalties import GroupL2
    >>> from sparsvm.prox import prox_penalty
    >>> V = [[3.0, 0.5], [-4.0, 0.0]]
    >>> prox_penalty(V, "l1")
    array([[ 2.,  0.],
           [-3.,  0.]])
    >>> prox_penalty(V, GroupL2(), step=2.5)
    array([[ 1.5,  0. ],
           [-2. ,  0. ]])
    """
    W = as_rows("coef", coef)
    resolved = as_penalty(penalty)
    if not resolved.convex:
        raise ValueError(
            f"prox_penalty needs a convex penalty, but {resolved} is not; take its convex "
            "relative: 'l1' or 'l1/l2'."
        )
    if resolved.needs_column_std:
        raise ValueError(
            "prox_penalty knows no data, which weights='scale' needs; give one weight a feature: "
            "X.std(axis=0)."
        )
    size = real_array("step", step)
    if size.ndim > 0:
        raise ValueError(f"step must be a number; got an array of shape {size.shape}.")
    terms = resolved.resolve(W.shape[1], W.shape[0])
    result = _core.prox_penalty(
        np.ascontiguousarray(W.T),
        float(size),
        **terms.native_arguments(),
    )
    return as_given(np.ascontiguousarray(result.T), coef)
