"""The one-vs-rest squared hinge loss."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Bools, Floats, Labels
from sparsvm.losses.base import ROUNDING, SLOPE, SmoothLoss, off_class_entries


class OvrSquaredHinge(SmoothLoss):
    r"""One-vs-rest squared hinge, :math:`\sum_k \max(0, 1 - t_k S_k)^2` with :math:`t = \pm 1`.

    With two classes there is one score S (the difference of the two) and one term. With
    :math:`h_k = \max(0, 1 - t_k S_k)` the derivative is :math:`-2 t_k h_k`, the second derivative
    is diagonal, 2 where :math:`h_k > 0`, and the conjugate at :math:`\tilde Y_k = -t_k z_k` is
    :math:`\sum_k z_k^2/4 - z_k` for :math:`z \ge 0`.
    """

    name = "ovr_squared_hinge"
    uses_margin = False
    of_differences = False

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return np.asarray(np.sum(np.maximum(0.0, 1.0 - signs * outputs) ** 2, axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return self._all_scores(-2.0 * signs * np.maximum(0.0, 1.0 - signs * outputs), scores)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        signs, outputs = self._outputs(scores, y)
        _, along = self._outputs(direction, y)
        return self._all_scores(np.where(signs * outputs < 1.0, 2.0 * along, 0.0), scores)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        if dual.shape[1] == 2:
            sizes, inside = off_class_entries(dual, y)
        else:
            signs, _ = self._outputs(dual, y)
            sizes, inside = -signs * dual, np.ones(y.size, dtype=bool)
        inside &= sizes.min(axis=1) >= -ROUNDING
        return np.where(inside, np.sum(sizes * (sizes / 4.0 - 1.0), axis=1), np.inf)

    def dual_entries(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the absolute derivatives; for two classes, 0 on the true class."""
        entries = np.abs(self.gradient(scores, y, margins))
        if scores.shape[1] == 2:
            entries[np.arange(y.size), y] = 0.0
        return np.asarray(entries)

    @staticmethod
    def _all_scores(outputs: Floats, scores: Floats) -> Floats:
        """Derivatives in the one difference of two classes become those in both scores."""
        if scores.shape[1] == 2:
            return np.hstack([-outputs, outputs])
        return np.asarray(outputs)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        signs, outputs = self._outputs(scores, y)
        return np.asarray(np.any(signs * outputs < 1.0 + SLOPE, axis=1))

    @staticmethod
    def _outputs(scores: Floats, y: Labels) -> tuple[Floats, Floats]:
        if scores.shape[1] == 2:
            return np.where(y == 1, 1.0, -1.0)[:, None], scores[:, 1:] - scores[:, :1]
        return np.where(np.arange(scores.shape[1]) == y[:, None], 1.0, -1.0), scores
