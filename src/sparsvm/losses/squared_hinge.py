"""The squared multiclass hinge loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Bools, Floats, Labels
from sparsvm.losses.base import (
    ROUNDING,
    SLOPE,
    SmoothLoss,
    balance_rows,
    differences,
    largest_off_class,
    off_class_entries,
)


class SquaredHinge(SmoothLoss):
    r"""Squared multiclass hinge, :math:`\sum_{k \ne y} \max(0, m_{yk} + \Delta_k)^2`.

    With :math:`h_k = \max(0, m_{yk} + \Delta_k)` and :math:`a_k = [h_k > 0]` for k off the true
    class, the derivative is :math:`2 h_k` (minus their sum on the true class), the second
    derivative takes u to :math:`2 a_k (u_k - u_y)` (likewise), and the conjugate at
    :math:`\tilde Y` is :math:`\sum_{k \ne y} \tilde Y_k^2 / 4 - m_{yk} \tilde Y_k`.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=1.0
        As for :class:`Hinge`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.losses import SquaredHinge
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(SquaredHinge(margin=2.0), "l1/l2", alpha=0.1).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name = "squared_hinge"

    def __init__(self, margin: Any = 1.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return np.asarray(np.sum(self._violations(scores, y, margins) ** 2, axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return balance_rows(2.0 * self._violations(scores, y, margins), y)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        active = self._violations(scores, y, margins) > 0.0
        return balance_rows(np.where(active, 2.0 * differences(direction, y), 0.0), y)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        entries, balanced = off_class_entries(dual, y)
        inside = balanced & (entries.min(axis=1) >= -ROUNDING)
        return np.where(inside, np.sum(entries * (entries / 4.0 - margins), axis=1), np.inf)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        return np.asarray(largest_off_class(margins + differences(scores, y), y) > -SLOPE)

    @staticmethod
    def _violations(scores: Floats, y: Labels, margins: Floats) -> Floats:
        violations = np.maximum(0.0, margins + differences(scores, y))
        violations[np.arange(y.size), y] = 0.0
        return violations
