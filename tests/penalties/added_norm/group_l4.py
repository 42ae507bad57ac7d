"""Sums of l4 norms of groups."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.group import GroupTerms
from sparsvm.penalties.terms import PenaltyTerms


class GroupL4Terms(GroupTerms):
    r"""The norm :math:`\sum_g \|Z_g\|_4`."""

    kind: ClassVar[str] = "l1/l4"
    group_order: ClassVar[float | None] = 4.0
    only_prox: ClassVar[bool] = True

    def _segment_norms(self, flat: Floats) -> Floats:
        return np.asarray(np.add.reduceat(flat**4, self._starts) ** 0.25)

    def _segment_dual_norms(self, V: Floats) -> Floats:
        return np.asarray(np.add.reduceat(V ** (4.0 / 3.0), self._starts) ** 0.75)


class GroupL4(BuiltInPenalty):
    r"""Sum of l4 norms of groups, :math:`\sum_g \|W_g\|_4`.

    Parameters
    ----------
    <grouped>
    <weights>
    """

    name = "l1/l4"

    def __init__(self, groups: Any = None, per_class: bool = False, weights: Any = None) -> None:
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return GroupL4Terms, 0.0
