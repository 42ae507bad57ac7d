"""Half the squared Euclidean norm."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.terms import PenaltyTerms


class SquaredTerms(PenaltyTerms):
    r"""Mixture :math:`\rho \sum |Z_{kj}| + \frac{1-\rho}2 \sum Z_{kj}^2`, with rho below 1."""

    is_norm: ClassVar[bool] = False
    separable: ClassVar[bool] = True

    def _rest(self, W: Floats) -> float:
        Z = np.ascontiguousarray(W * self.omega).reshape(-1)
        return 0.5 * float(np.sum(Z * Z))

    def _prox_rest(self, W: Floats, step: float) -> Floats:
        return np.asarray(W / (1.0 + step * self.omega**2))

    def conjugate(self, G: Floats) -> float:
        r"""Return :math:`\sum (|V|-\rho)_+^2 / (2(1-\rho))` with :math:`V = G/\omega`.

        Unpenalised features are left out.
        """
        V = np.abs(G) * self.inverse_omega
        excess = np.maximum(V - self.l1_ratio, 0.0).reshape(-1)
        return float(np.sum(excess * excess)) / (2.0 * (1.0 - self.l1_ratio))


class L2Terms(SquaredTerms):
    r"""The squared part alone, :math:`\frac12 \sum Z_{kj}^2`."""

    kind: ClassVar[str] = "l2"
    quadratic: ClassVar[bool] = True


class L2(BuiltInPenalty):
    r"""Half the squared Euclidean norm, :math:`\frac12 \sum_{kj} W_{kj}^2`: selects nothing.

    Parameters
    ----------
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import L2
    >>> L2().resolve(d=3, n_outputs=1).value([[1.0, -2.0, 0.0]])
    2.5
    """

    name = "l2"

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return L2Terms, 0.0
