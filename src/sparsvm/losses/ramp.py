"""The ramp loss, a difference of two hinges."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Array, Bools, Floats, Labels
from sparsvm.losses.base import SLOPE, Loss, differences, largest_off_class
from sparsvm.numerics.rows import row_max
from sparsvm.parameters import number

# How far beyond the kink, relative to the margin, the tangent 0 is still taken: scores of a model
# of zeros hit the kink exactly, up to rounding.
KINK = 1e-8


class Ramp(Loss):
    r"""Ramp loss: a difference of two hinges, bounded, so that outliers lose their pull.

    .. math::
        \tfrac1\mu \Bigl[\max_k(\mu m_{yk} + \Delta_k)
        - \max\bigl(0, \max_{k \ne y}(-\mu^2 m_{yk} + \Delta_k)\bigr)\Bigr]

    Parameters
    ----------
    mu : float in (0, 1], default=1.0
        Width of the ramp; the loss is bounded by ``(1 + mu) m``.
    margin : float or array of shape (K, K), default=1.0
        As for :class:`Hinge`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.losses import Hinge, Ramp
    >>> scores = np.array([[0.0, -9.0]])  # far on the wrong side
    >>> label, margins = np.array([1]), np.array([[1.0, 0.0]])
    >>> Hinge().value(scores, label, margins), Ramp().value(scores, label, margins)
    (array([10.]), array([2.]))
    """

    name = "ramp"
    convex = False

    def __init__(self, mu: float = 1.0, margin: Any = 1.0) -> None:
        self.mu = mu
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        mu = self.checked_mu()
        delta = differences(scores, y)
        # Both margins vanish on the true class, so its entry supplies the max with zero.
        convex = row_max(mu * margins + delta)
        concave = row_max(-(mu**2) * margins + delta)
        return np.asarray((convex - concave) / mu)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        mu, delta = self.checked_mu(), differences(scores, y)
        right = largest_off_class(mu * margins + delta, y) < -SLOPE
        given_up = largest_off_class(-(mu**2) * margins + delta, y) > SLOPE
        return np.asarray(~(right | given_up))

    def cost_matrix(self, n_classes: int, labels: Array | None = None) -> Floats:
        self.checked_mu()
        return super().cost_matrix(n_classes, labels)

    def checked_mu(self) -> float:
        """Return mu; a ValueError if it is not a number in (0, 1]."""
        if 0.0 < number(self.mu) <= 1.0:
            return float(self.mu)
        raise ValueError(f"Ramp needs mu in (0, 1]; got mu={self.mu!r}.")

    def off_kinks(self, scores: Floats, y: Labels, margins: Floats) -> bool:
        """Whether the second maximum has one largest term at every sample: it is linear nearby."""
        mu = self.checked_mu()
        concave = -(mu**2) * margins + differences(scores, y)
        concave[np.arange(y.size), y] = 0.0
        largest = np.partition(concave, -2, axis=1)[:, -2:]
        return bool(np.all(largest[:, 1] - largest[:, 0] > KINK * mu**2 * margins.max(axis=1)))

    def majorant(self, scores: Floats, y: Labels, margins: Floats) -> tuple[Labels, Floats, Floats]:
        r"""Return the hinge that touches the loss at ``scores`` and lies above it elsewhere.

        The second maximum of the loss is convex; where its runner-up class k is above 0, it is
        replaced by its tangent :math:`-\mu^2 m_{yk} + \Delta_k`. What remains is

        .. math:: \tfrac1\mu \max_l \bigl(\mu m_{yl} - \mu m_{yk} + S_l - S_k\bigr)
            + (1 + \mu)\, m_{yk},

        a hinge of class k: the sample is given up and takes the label of its runner-up. With two
        classes its margin is :math:`-\mu m`. On the kink, which is hit exactly by models of
        zeros, the tangent 0 is taken; 1e-8 of the margin beyond it still counts as on it.

        Returns
        -------
        labels : (n,), margins : (n, K), constants : (n,)
            The loss is at most ``hinge(labels, margins) / mu + constants``.
        """
        mu, rows = self.checked_mu(), np.arange(y.size)
        concave = -(mu**2) * margins + differences(scores, y)
        concave[rows, y] = 0.0
        runner_up = concave.argmax(axis=1)
        given_up = concave[rows, runner_up] > KINK * mu**2 * margins[rows, runner_up]
        labels = np.where(given_up, runner_up, y).astype(np.int32)
        forgone = np.where(given_up, margins[rows, labels], 0.0)
        shifted = mu * (margins - forgone[:, None])
        shifted[rows, labels] = 0.0
        return labels, shifted, (1.0 + mu) * forgone
