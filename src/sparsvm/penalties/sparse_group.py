"""Mixture of the l1 norm and the Euclidean norms of groups."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats, Ints
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.group import GroupL2Terms
from sparsvm.penalties.terms import NEWTON_STEPS, L1Terms, PenaltyTerms, euclidean


class SparseGroupTerms(GroupL2Terms):
    r"""The norm :math:`\rho \sum |Z_{kj}| + (1-\rho) \sum_g \|Z_g\|_2`.

    The dual norm of a group is the root c of :math:`\|(|V| - \rho c)_+\|_2 = (1 - \rho) c`.
    """

    kind: ClassVar[str] = "sparse_group"

    def _segment_dual_norms(self, V: Floats) -> Floats:
        return _dual_roots(V, self.l1_ratio, self._starts, self._sizes)

    def dual_norm(self, G: Floats) -> float:
        """Return the dual norm of G, shape (n_outputs, d): the largest over the groups."""
        V = self._flatten(np.abs(G) * self.inverse_omega)
        # max|V| <= root <= ||V||_2 in each group, so only groups whose Euclidean norm exceeds
        # the largest entry of all can hold the maximum: usually a handful.
        upper = euclidean(V, self._starts, self._sizes)
        keep = upper >= V.max(initial=0.0)
        sizes = self._sizes[keep]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        kept = V[np.repeat(keep, self._sizes)]
        return float(np.max(_dual_roots(kept, self.l1_ratio, starts, sizes), initial=0.0))


class SparseGroup(BuiltInPenalty):
    r"""Mixture :math:`\rho \sum |W_{kj}| + (1-\rho) \sum_g \|W_g\|_2`.

    Selects groups, and single coefficients inside them.

    Parameters
    ----------
    l1_ratio : float between 0 and 1, default=0.5
        The share :math:`\rho` of the sum of absolute values.
    <grouped>
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import SparseGroup
    >>> SparseGroup(l1_ratio=0.5).resolve(d=1, n_outputs=2).value([[3.0], [-4.0]])  # (7 + 5) / 2
    6.0
    """

    name = "sparse_group"

    def __init__(
        self,
        l1_ratio: float = 0.5,
        groups: Any = None,
        per_class: bool = False,
        weights: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        ratio = self._checked_ratio()
        ends: dict[float, type[PenaltyTerms]] = {0.0: GroupL2Terms, 1.0: L1Terms}
        return ends.get(ratio, SparseGroupTerms), ratio


def _dual_roots(V: Floats, rho: float, starts: Ints, sizes: Ints) -> Floats:
    """Root c of ||(V - rho c)_+||_2 = (1 - rho) c in each segment of V >= 0.

    The difference of the two sides is convex and decreasing in c, so Newton from a lower bound
    climbs monotonically to the root.
    """
    if V.size == 0:
        return np.zeros(0)
    c = np.maximum.reduceat(V, starts)
    for _ in range(NEWTON_STEPS):
        soft = np.maximum(V - np.repeat(rho * c, sizes), 0.0)
        norm = euclidean(soft, starts, sizes)
        rate = np.full_like(c, 1.0 - rho)
        total = np.add.reduceat(soft, starts)
        rate += rho * np.divide(total, norm, out=np.zeros_like(norm), where=norm > 0.0)
        move = (norm - (1.0 - rho) * c) / rate
        c = c + np.maximum(move, 0.0)
        if np.all(move <= 2.0 * np.finfo(float).eps * c):
            break
    return c
