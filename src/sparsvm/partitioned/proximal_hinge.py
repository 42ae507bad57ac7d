"""The hinge of an augmented Lagrangian."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Bools, Floats, Ints, Labels
from sparsvm.losses import SmoothLoss
from sparsvm.losses.base import differences
from sparsvm.numerics.rows import row_max, row_sum
from sparsvm.prox import project_simplex


class ProximalHinge(SmoothLoss):
    r"""The hinge with a proximal term around multipliers, which makes it smooth.

    With :math:`t_k = m_{yk} + S_k - S_y` the hinge is the largest of :math:`\langle q, t \rangle`
    over the unit simplex; this is

    .. math:: \max_{q \in \text{simplex}} \; \langle q, t \rangle
        - \tfrac{1}{2\sigma} \|q - q_0\|^2,

    at most the hinge. The maximiser :math:`q` is the projection of :math:`q_0 + \sigma t`; less 1
    on the true class it is the derivative in the scores. The second derivative is
    :math:`\sigma (\mathrm{diag}(1_A) - 1_A 1_A^\top / |A|)`, A being where :math:`q > 0`.

    Parameters
    ----------
    sigma : float
        The larger, the closer to the hinge.
    multipliers : array of shape (n, K), optional
        :math:`q_0`; by default 1/K everywhere.
    """

    name = "proximal_hinge"
    within_masses = True

    def __init__(self, sigma: float, multipliers: Floats | None = None) -> None:
        self.sigma, self.multipliers = sigma, multipliers
        self._known: tuple[Floats, Floats] | None = None

    def around(self, multipliers: Floats | None) -> ProximalHinge:
        """Return the loss of samples that have these multipliers."""
        return ProximalHinge(self.sigma, multipliers)

    def only(self, rows: Ints, scores: Floats) -> ProximalHinge:
        """Return the loss of some samples, at scores where q of all is known."""
        assert self._known is not None
        kept = None if self.multipliers is None else self.multipliers[rows]
        out = ProximalHinge(self.sigma, kept)
        out._known = scores, self._known[1][rows]
        return out

    def shares(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return q of every sample."""
        if self._known is None or self._known[0] is not scores:
            point = self.sigma * (margins + differences(scores, y))
            if self.multipliers is not None:
                point += self.multipliers
            self._known = scores, project_simplex(point)
        return self._known[1]

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        q = self.shares(scores, y, margins)
        centre = 1.0 / q.shape[1] if self.multipliers is None else self.multipliers
        gain = row_sum(q * (margins + differences(scores, y)))
        return np.asarray(gain - row_sum((q - centre) ** 2) / (2.0 * self.sigma))

    def hinge(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the hinge itself."""
        return row_max(margins + differences(scores, y))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        out = self.shares(scores, y, margins).copy()
        out[np.arange(y.size), y] -= 1.0
        return out

    def curved(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        """Say for every sample whether it has a second derivative."""
        return np.asarray(self._active(scores, y, margins) > 1)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        active = self.shares(scores, y, margins) > 0.0
        inside = np.where(active, direction, 0.0)
        mean = row_sum(inside) / self._active(scores, y, margins)
        return self.sigma * np.where(active, direction - mean[:, None], 0.0)

    def _active(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return how many entries of q are not zero."""
        return row_sum((self.shares(scores, y, margins) > 0.0).astype(np.float64))
