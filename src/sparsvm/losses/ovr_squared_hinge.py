"""The one-vs-rest squared hinge loss."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Array, Bools, Floats, Labels
from sparsvm.losses.base import ROUNDING, SLOPE, SmoothLoss, off_class_entries


class OvrSquaredHinge(SmoothLoss):
    r"""One-vs-rest squared hinge, :math:`\sum_k \max(0, m - t_k S_k)^2` with :math:`t = \pm 1`.

    The margin m of a sample is 1, or its own, given to ``fit`` as ``sample_margin``. With two
    classes there is one score S (the difference of the two) and one term. With
    :math:`h_k = \max(0, m - t_k S_k)` the derivative is :math:`-2 t_k h_k`, the second derivative
    is diagonal, 2 where :math:`h_k > 0`, and the conjugate at :math:`\tilde Y_k = -t_k z_k` is
    :math:`\sum_k z_k^2/4 - m z_k` for :math:`z \ge 0`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.losses import OvrSquaredHinge
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(OvrSquaredHinge(), "l1", alpha=0.02).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name = "ovr_squared_hinge"
    of_differences = False

    def cost_matrix(self, n_classes: int, labels: Array | None = None) -> Floats:
        """Return ones, on the diagonal too: the true class has its own term."""
        return np.ones((n_classes, n_classes))

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return np.asarray(np.sum(self._violations(signs, outputs, margins) ** 2, axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return self._all_scores(-2.0 * signs * self._violations(signs, outputs, margins), scores)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        signs, outputs = self._outputs(scores, y)
        _, along = self._outputs(direction, y)
        active = self._violations(signs, outputs, margins) > 0.0
        return self._all_scores(np.where(active, 2.0 * along, 0.0), scores)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        if dual.shape[1] == 2:
            sizes, inside = off_class_entries(dual, y)
        else:
            signs, _ = self._outputs(dual, y)
            sizes, inside = -signs * dual, np.ones(y.size, dtype=bool)
        inside &= sizes.min(axis=1) >= -ROUNDING
        return np.where(inside, np.sum(sizes * (sizes / 4.0 - margins), axis=1), np.inf)

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
        return np.asarray(np.any(signs * outputs < margins[:, -outputs.shape[1] :] + SLOPE, axis=1))

    @staticmethod
    def _violations(signs: Floats, outputs: Floats, margins: Floats) -> Floats:
        # Every class has the margin of the sample.
        return np.maximum(0.0, margins[:, -outputs.shape[1] :] - signs * outputs)

    @staticmethod
    def _outputs(scores: Floats, y: Labels) -> tuple[Floats, Floats]:
        if scores.shape[1] == 2:
            return np.where(y == 1, 1.0, -1.0)[:, None], scores[:, 1:] - scores[:, :1]
        return np.where(np.arange(scores.shape[1]) == y[:, None], 1.0, -1.0), scores
