"""What a fit over partitions returns."""

from __future__ import annotations

from dataclasses import dataclass

from sparsvm._typing import Floats


@dataclass(frozen=True, eq=False)
class Round:
    """One pass over all partitions.

    Attributes
    ----------
    objective, bound : float
        Objective at this point, over all the data; the best lower bound so far.
    size : int
        Of the next problem on the driver: clusters for the hinge, features for smooth losses.
    seconds : float
        Since the fit began.
    """

    objective: float
    bound: float
    size: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """The best point found, its certificate over all the data, and the passes that led there."""

    coef: Floats
    intercept: Floats
    objective: float
    dual_objective: float
    gap: float
    relative_gap: float
    status: str
    rounds: tuple[Round, ...]

    @property
    def converged(self) -> bool:
        """Whether the gap met the tolerance."""
        return self.status == "optimal"
