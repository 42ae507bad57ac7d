"""The squared hinge over pairs of labels, for label ranking."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Bools, Floats, Labels
from sparsvm.losses.base import SLOPE, SmoothLoss


class PairwiseSquaredHinge(SmoothLoss):
    r"""Squared hinge over pairs of labels: those of a sample's set Y should score above the others.

    .. math:: c \sum_{r \in Y} \sum_{t \notin Y} \max(0, 1 - (S_r - S_t))^2

    with c = 1, or one over the number of pairs. With keys :math:`z_r = S_r - 1` for r in Y and
    :math:`z_t = S_t` elsewhere a pair counts :math:`\max(0, z_t - z_r)^2`. So once the keys of a
    sample are sorted, the pairs of r that count are all t before it: counts, sums and sums of
    squares of what came before give value, derivative and curvature, and no pair is ever formed.

    Unlike other losses, which are the same function for every data set, this one holds the label
    sets; ``y`` is the number of each sample's set. Margins are not used.

    Parameters
    ----------
    sets : bool array of shape (n_sets, n_labels)
        The distinct label sets.
    normalise : bool, default=False
        Whether to divide the loss of a sample by its number of pairs.
    """

    name = "pairwise_squared_hinge"

    def __init__(self, sets: Bools, normalise: bool = False) -> None:
        self.sets = sets
        self.normalise = normalise

    @property
    def factor(self) -> Floats:
        """The c of each set; 1 where there are no pairs."""
        own = self.sets.sum(axis=1)
        pairs = own * (self.sets.shape[1] - own)
        return np.asarray(1.0 / np.maximum(pairs, 1)) if self.normalise else np.ones(own.size)

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        own, keys, _ = self._sorted(scores, y)
        count, total, square = (_before(~own, keys**power) for power in (0, 1, 2))
        pairs = count * keys**2 - 2.0 * keys * total + square
        return np.asarray(self.factor[y] * np.sum(np.where(own, pairs, 0.0), axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        own, keys, order = self._sorted(scores, y)
        hinges = keys * _before(~own, np.ones_like(keys)) - _before(~own, keys)
        others = keys * _after(own, np.ones_like(keys)) - _after(own, keys)
        slopes = 2.0 * np.where(own, hinges, others)
        return self._unsorted(slopes, order) * self.factor[y][:, None]

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        own, keys, order = self._sorted(scores, y)
        moves = np.take_along_axis(np.asarray(direction, dtype=np.float64), order, axis=1)
        ones = np.ones_like(keys)
        pairs = moves * _before(~own, ones) - _before(~own, moves)
        others = moves * _after(own, ones) - _after(own, moves)
        product = 2.0 * np.where(own, pairs, others)
        return self._unsorted(product, order) * self.factor[y][:, None]

    def dual_entries(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the absolute values of the derivative."""
        return np.abs(self.gradient(scores, y, margins))

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        own = self.sets[y]
        least = np.where(own, scores, np.inf).min(axis=1)
        most = np.where(own, -np.inf, scores).max(axis=1)
        return np.asarray(1.0 - least + most > -SLOPE)

    def _sorted(self, scores: Floats, y: Labels) -> tuple[Bools, Floats, Labels]:
        """Return membership and keys from the largest key down, and the order of the labels."""
        own = self.sets[y]
        keys = np.asarray(scores, dtype=np.float64) - own
        # The keys only count by their differences: centred, their squares keep their digits.
        keys = keys - keys.mean(axis=1, keepdims=True)
        # Of equal keys, a kink, those of the set come first and do not count the others.
        order = np.lexsort((~own, -keys), axis=1).astype(np.int32)
        return np.take_along_axis(own, order, axis=1), np.take_along_axis(keys, order, 1), order

    @staticmethod
    def _unsorted(values: Floats, order: Labels) -> Floats:
        out = np.empty_like(values)
        np.put_along_axis(out, order, values, axis=1)
        return out


def _before(where: Bools, values: Floats) -> Floats:
    """Sums of the values at ``where`` up to each place of a row."""
    return np.asarray(np.cumsum(np.where(where, values, 0.0), axis=1))


def _after(where: Bools, values: Floats) -> Floats:
    """Sums of the values at ``where`` from each place of a row on."""
    return np.asarray(_before(where[:, ::-1], values[:, ::-1])[:, ::-1])
