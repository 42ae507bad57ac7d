"""The multiclass hinge loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Bools, Floats, Labels
from sparsvm.losses.base import ROUNDING, SLOPE, Loss, differences, largest_off_class
from sparsvm.numerics.rows import row_max


class Hinge(Loss):
    r"""Multiclass hinge loss of Crammer and Singer.

    .. math:: \ell(y, S) = \max_k \bigl(m_{yk} + S_k - S_y\bigr), \qquad m_{yy} = 0.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=1.0
        One margin for every pair of classes, or a cost matrix whose row is the true class and
        whose diagonal is zero, in sorted order of the labels; a frame with labelled rows and
        columns is aligned with them, and labels that y lacks are left out. Per-sample margins are
        given to ``fit`` as ``sample_margin`` and multiply it.

    Examples
    --------
    >>> Hinge()
    Hinge()
    >>> Hinge(margin=2.0).cost_matrix(2)
    array([[0., 2.],
           [2., 0.]])
    """

    name = "hinge"
    within_masses = True

    def __init__(self, margin: Any = 1.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return row_max(margins + differences(scores, y))

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        return np.asarray(largest_off_class(margins + differences(scores, y), y) > -SLOPE)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        r"""Return the conjugate of every sample's loss at ``dual``, shape (n,).

        With :math:`Y_i = \tilde Y_i + e_{y_i}` the conjugate is
        :math:`-\sum_k m_{y_i k} Y_{ik}` where :math:`Y_i` lies in the unit simplex and infinite
        elsewhere; membership is judged to one part in 10^12.
        """
        simplex = np.array(dual, dtype=np.float64)
        simplex[np.arange(y.size), y] += 1.0
        inside = (simplex.min(axis=1) >= -ROUNDING) & (
            np.abs(simplex.sum(axis=1) - 1.0) <= ROUNDING
        )
        return np.where(inside, -np.sum(simplex * margins, axis=1), np.inf)
