"""The l1 norm."""

from __future__ import annotations

from typing import Any

from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.terms import L1Terms, PenaltyTerms


class L1(BuiltInPenalty):
    r"""Sum of absolute values, :math:`\sum_{kj} |W_{kj}|`: selects single coefficients.

    Parameters
    ----------
    <weights>

    Examples
    --------
    >>> L1().resolve(d=3, n_outputs=1).value([[1.0, -2.0, 0.0]])
    3.0
    """

    name = "l1"

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return L1Terms, 1.0
