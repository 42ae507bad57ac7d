"""A smooth count of non-zeros."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.concave import ConcaveTerms
from sparsvm.penalties.terms import PenaltyTerms


class L0Terms(ConcaveTerms):
    r"""The penalty :math:`\sum_g 1 - \exp(-a \|Z_g\|_2)`, with a = ``shape``."""

    kind: ClassVar[str] = "l0"

    @property
    def ceiling(self) -> float:
        return 1.0

    @property
    def first_slope(self) -> float:
        return self.shape

    def of_norms(self, norms: Floats) -> Floats:
        return np.asarray(-np.expm1(-self.shape * norms))

    def concave_of_norms(self, norms: Floats) -> tuple[Floats, Floats]:
        decay = np.expm1(-self.shape * norms)
        return self.shape * norms + decay, -self.shape * decay


class L0(BuiltInPenalty):
    r"""Smooth count of non-zeros, :math:`\sum_g 1 - \exp(-a \|W_g\|_2)`; not convex.

    Parameters
    ----------
    sharpness : float, default=4.0
        The parameter a; the larger, the closer to counting.
    groups : None, int, or one label per feature, default=None
        None counts single coefficients; otherwise groups, as in :class:`GroupL2` (1 makes each
        feature a group).
    per_class : bool, default=False
        Whether every class has its own copy of each group.
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import L0
    >>> penalty = L0(sharpness=10.0).resolve(d=3, n_outputs=1)
    >>> round(penalty.value([[1.0, -2.0, 0.0]]), 3)  # two weights
    2.0
    """

    name = "l0"
    convex = False

    def __init__(
        self,
        sharpness: float = 4.0,
        groups: Any = None,
        per_class: bool = False,
        weights: Any = None,
    ) -> None:
        self.sharpness = sharpness
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return L0Terms, 0.0

    def _shape(self) -> float:
        return self._checked_positive("sharpness")
