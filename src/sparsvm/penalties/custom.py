"""A user's own penalty, resolved for given data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsvm._typing import Floats
from sparsvm.penalties.terms import L1Terms, PenaltyTerms


@dataclass(frozen=True, eq=False)
class CustomTerms(PenaltyTerms):
    """A user's own penalty with a conjugate: all coefficients are one group.

    Its answers come from the ``value``, ``prox`` and ``conjugate`` of ``penalty``, each checked.
    """

    kind: ClassVar[str] = "custom"
    built_in: ClassVar[bool] = False
    only_prox: ClassVar[bool] = True
    is_norm: ClassVar[bool] = False

    penalty: Any = None

    @classmethod
    def of(cls, penalty: Any, d: int, n_outputs: int) -> CustomTerms:
        """Return the penalty for d features and n_outputs rows of coefficients."""
        return cls(
            l1_ratio=float("nan"),
            groups=np.zeros(d, dtype=np.int32),
            n_groups=1,
            per_class=False,
            omega=np.ones(d),
            n_outputs=n_outputs,
            penalty=penalty,
        )

    @property
    def by_features(self) -> bool:
        """A user's own penalty is taken as a whole."""
        return False

    def native_arguments(self) -> dict[str, Any]:
        """Return those of no penalty: native code calls ``prox`` and ``value`` instead."""
        d, none = self.d, np.zeros(self.d)
        nothing = L1Terms(1.0, np.arange(d, dtype=np.int32), d, True, none, self.n_outputs)
        return nothing.native_arguments()

    def restricted_to(self, features: NDArray[np.integer]) -> PenaltyTerms:
        """Refuse: what the penalty is on some of the features only the user knows."""
        raise ValueError(f"{self._name} cannot be restricted to some of the features.")

    def value(self, W: Floats) -> float:
        """Return the penalty of W, shape (n_outputs, d)."""
        return self._number("value", self.penalty.value(np.array(W, dtype=np.float64)))

    def value_at(self, features: NDArray[np.integer], values: Floats) -> float:
        """Return the penalty of weights (n_outputs, m) of these features, all others being zero."""
        W = np.zeros((self.n_outputs, self.d))
        W[:, features] = values
        return self.value(W)

    def prox(self, W: Floats, step: float) -> Floats:
        r"""Return :math:`\arg\min_U \frac12\|U - W\|^2 + step \cdot penalty(U)`."""
        shape = (self.n_outputs, self.d)
        found = self.penalty.prox(np.array(W, dtype=np.float64), float(step))
        try:
            U = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            U = np.full(shape, np.nan)
        if U.shape != shape or not np.isfinite(U).all():
            raise ValueError(
                f"{self._name}.prox must return finite numbers of shape {shape}, the shape of W; "
                f"got {found!r}."
            )
        return U

    def conjugate(self, G: Floats) -> float:
        """Return the convex conjugate at G; infinity where the supremum is."""
        found = self.penalty.conjugate(np.array(G, dtype=np.float64))
        return self._number("conjugate", found, infinite=True)

    @property
    def _name(self) -> str:
        return type(self.penalty).__name__

    def _number(self, method: str, found: Any, infinite: bool = False) -> float:
        try:
            number = float(found)
        except (TypeError, ValueError):
            number = np.nan
        if not (np.isfinite(number) or (infinite and number == np.inf)):
            raise ValueError(f"{self._name}.{method} must return a number; got {found!r}.")
        return number


class CustomNorm(CustomTerms):
    """A user's own norm, with its dual norm."""

    is_norm: ClassVar[bool] = True

    def dual_norm(self, G: Floats) -> float:
        """Return the dual norm of G, shape (n_outputs, d)."""
        found = self.penalty.dual_norm(np.array(G, dtype=np.float64))
        return self._number("dual_norm", found, infinite=True)

    def dual_norm_within(self, G: Floats, error: Floats) -> float:
        """Return a bound on the dual norm of all that is within ``error`` of G.

        By the triangle inequality. That no signs of an error have a larger dual norm than the
        error itself holds for norms that do not ask for signs, and for norms of matrices.
        """
        return self.dual_norm(G) + self.dual_norm(error)

    def group_dual_norms(self, G: Floats) -> Floats:
        """Return the dual norm of G, which is that of the one group."""
        return np.array([self.dual_norm(G)])

    def conjugate(self, G: Floats) -> float:
        """Return 0 where the dual norm is at most 1, and infinity elsewhere."""
        return 0.0 if self.dual_norm(G) <= 1.0 else float("inf")
