"""Mixture of the l1 norm and half the squared Euclidean norm."""

from __future__ import annotations

from typing import Any, ClassVar

from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.l2 import L2Terms, SquaredTerms
from sparsvm.penalties.terms import L1Terms, PenaltyTerms


class ElasticNetTerms(SquaredTerms):
    r"""The mixture :math:`\rho \sum |Z_{kj}| + \frac{1-\rho}2 \sum Z_{kj}^2`."""

    kind: ClassVar[str] = "elasticnet"


class ElasticNet(BuiltInPenalty):
    r"""Mixture :math:`\rho \sum |W_{kj}| + \frac{1-\rho}{2} \sum W_{kj}^2`.

    Parameters
    ----------
    l1_ratio : float between 0 and 1, default=0.5
        The share :math:`\rho` of the sum of absolute values.
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import ElasticNet
    >>> ElasticNet(l1_ratio=0.5).resolve(d=3, n_outputs=1).value([[1.0, -2.0, 0.0]])
    2.75
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5, weights: Any = None) -> None:
        self.l1_ratio = l1_ratio
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        ratio = self._checked_ratio()
        ends: dict[float, type[PenaltyTerms]] = {0.0: L2Terms, 1.0: L1Terms}
        return ends.get(ratio, ElasticNetTerms), ratio
