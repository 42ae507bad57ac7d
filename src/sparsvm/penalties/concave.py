"""Concave functions of the norms of groups, as differences of convex functions."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties.group import GroupL2Terms
from sparsvm.penalties.terms import L1Terms, PenaltyTerms


class ConcaveTerms(PenaltyTerms):
    r"""The penalty :math:`\sum_g \phi(\|Z_g\|_2)`, phi concave and increasing to ``ceiling``.

    It is g - h with g and h convex: :math:`g = \phi'(0) \sum_g \|Z_g\|_2`, and h the sum of
    :math:`\phi'(0) t - \phi(t)` at the norms t.
    """

    convex: ClassVar[bool] = False
    is_norm: ClassVar[bool] = False

    @property
    def first_slope(self) -> float:
        """Return phi'(0)."""
        raise NotImplementedError

    def of_norms(self, norms: Floats) -> Floats:
        """Return phi at the norms of the groups."""
        raise NotImplementedError

    def concave_of_norms(self, norms: Floats) -> tuple[Floats, Floats]:
        """Return phi'(0) t - phi(t) at the norms t of the groups, and its derivative there."""
        raise NotImplementedError

    def off_kinks(self, W: Floats) -> bool | None:
        return None

    def _value(self, W: Floats) -> float:
        return float(np.sum(self.of_norms(self.group_norms(W))))

    def convex_part(self) -> PenaltyTerms:
        """Return g: l1 where every group is one coefficient, otherwise l1/l2."""
        return self._convex_part

    @cached_property
    def _convex_part(self) -> PenaltyTerms:
        single = self.n_groups == self.d and (self.per_class or self.n_outputs == 1)
        terms: type[PenaltyTerms] = L1Terms if single else GroupL2Terms
        return terms(
            l1_ratio=1.0 if single else 0.0,
            groups=self.groups,
            n_groups=self.n_groups,
            per_class=self.per_class,
            omega=self.omega * self.first_slope,
            n_outputs=self.n_outputs,
        )

    def concave_slope(self, W: Floats) -> tuple[Floats, float]:
        if not np.any(W):
            return np.zeros((self.n_outputs, self.d)), 0.0
        norms = self.group_norms(W).reshape(-1)
        values, slopes = self.concave_of_norms(norms)
        factors = np.divide(slopes, norms, out=np.zeros_like(norms), where=norms > 0.0)
        flat = self._flatten(W * self.omega**2) * np.repeat(factors, self._sizes)
        return self._unflatten(flat), float(np.sum(values - slopes * norms))
