"""The multinomial logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from sparsvm._typing import Bools, Floats, Labels
from sparsvm.losses.base import ROUNDING, SmoothLoss, balance_rows, differences, off_class_entries


class Logistic(SmoothLoss):
    r"""Multinomial logistic loss, :math:`\log(1 + \sum_{k \ne y} \exp(m_{yk} + \Delta_k))`.

    With :math:`q_k` proportional to :math:`\exp(m_{yk} + \Delta_k)` and summing to 1, the
    derivative is :math:`q - e_y`, the second derivative takes u to
    :math:`q \circ (u - q^\top u)`, and the conjugate at :math:`\tilde Y = Y - e_y` is
    :math:`\sum_k Y_k \log Y_k - m_{yk} Y_k` for Y in the unit simplex.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=0.0
        Zero gives multinomial logistic regression; otherwise as for :class:`Hinge`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.losses import Logistic
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(Logistic(), "l1/l2", alpha=0.02).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    name = "logistic"
    within_masses = True

    def __init__(self, margin: Any = 0.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(margins + differences(scores, y), axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return balance_rows(self._probabilities(scores, y, margins), y)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        probabilities = self._probabilities(scores, y, margins)
        means = np.sum(probabilities * direction, axis=1, keepdims=True)
        return np.asarray(probabilities * (direction - means))

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        entries, balanced = off_class_entries(dual, y)
        rest = 1.0 - entries.sum(axis=1)
        inside = balanced & (entries.min(axis=1) >= -ROUNDING) & (rest >= -ROUNDING)
        entries, rest = np.maximum(entries, 0.0), np.maximum(rest, 0.0)
        values = np.sum(xlogy(entries, entries) - margins * entries, axis=1) + xlogy(rest, rest)
        return np.where(inside, values, np.inf)

    @staticmethod
    def _probabilities(scores: Floats, y: Labels, margins: Floats) -> Floats:
        exponents = margins + differences(scores, y)
        exponents -= exponents.max(axis=1, keepdims=True)
        probabilities = np.exp(exponents)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return np.asarray(probabilities)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        return np.ones(y.size, dtype=bool)
