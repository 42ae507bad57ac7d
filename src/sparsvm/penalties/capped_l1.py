"""Norms cut off at a level."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.concave import ConcaveTerms
from sparsvm.penalties.terms import PenaltyTerms

# Norms that close to the cap, relative to it, count as on it.
KINK = 1e-8


class CappedL1Terms(ConcaveTerms):
    r"""The penalty :math:`\sum_g \min(a, \|Z_g\|_2)`, with a = ``shape``."""

    kind: ClassVar[str] = "capped_l1"

    @property
    def ceiling(self) -> float:
        return self.shape

    @property
    def first_slope(self) -> float:
        return 1.0

    def of_norms(self, norms: Floats) -> Floats:
        return np.minimum(self.shape, norms)

    def concave_of_norms(self, norms: Floats) -> tuple[Floats, Floats]:
        # At the kink the slope is 1.
        return np.maximum(norms - self.shape, 0.0), (norms >= self.shape).astype(np.float64)

    def off_kinks(self, W: Floats) -> bool | None:
        if not self.convex_part().polyhedral:
            return None
        return bool(np.all(np.abs(self.group_norms(W) - self.shape) > KINK * self.shape))


class CappedL1(BuiltInPenalty):
    r"""Absolute values cut off at a, :math:`\sum_g \min(a, \|W_g\|_2)`; not convex.

    Parameters
    ----------
    cap : float, default=1.0
        The level a from which on a coefficient costs no more.
    groups : None, int, or one label per feature, default=None
        None caps single coefficients; otherwise groups, as in :class:`GroupL2` (1 makes each
        feature a group).
    per_class : bool, default=False
        Whether every class has its own copy of each group.
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import CappedL1
    >>> CappedL1(cap=1.5).resolve(d=3, n_outputs=1).value([[1.0, -2.0, 0.0]])
    2.5
    """

    name = "capped_l1"
    convex = False

    def __init__(
        self, cap: float = 1.0, groups: Any = None, per_class: bool = False, weights: Any = None
    ) -> None:
        self.cap = cap
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return CappedL1Terms, 0.0

    def _shape(self) -> float:
        return self._checked_positive("cap")
