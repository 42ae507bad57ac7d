"""What a fit over partitions returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsvm._typing import Floats
from sparsvm.problem.solution import History, Solution


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

    def solution(self, n_classes: int) -> Solution:
        """Return it as a solution of a problem in memory, without dual variables."""
        return Solution(
            coef=self.coef,
            intercept=self.intercept,
            dual=np.zeros((0, n_classes)),
            objective=self.objective,
            dual_objective=self.dual_objective,
            gap=self.gap,
            relative_gap=self.relative_gap,
            floor=0.0,
            status=self.status,
            n_iter=len(self.rounds),
            seconds=self.rounds[-1].seconds,
            history=History.empty(),
            solver="partitions",
        )

    @property
    def converged(self) -> bool:
        """Whether the gap met the tolerance."""
        return self.status == "optimal"
