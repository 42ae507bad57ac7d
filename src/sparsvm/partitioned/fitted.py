"""What a fit over partitions returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsvm._typing import Floats
from sparsvm.problem.solution import History, Solution, relative

# Passes where nothing is said: the hinge and Newton steps took at most 20, quasi-Newton steps 100.
PASSES = 300


class Limits(NamedTuple):
    """After how many passes over the data, or after how many seconds, a fit ends."""

    passes: int = PASSES
    seconds: float = np.inf

    @classmethod
    def of(cls, max_iter: int | None, time_limit: float | None) -> Limits:
        """Return what the parameters of an estimator mean."""
        return cls(max_iter or PASSES, np.inf if time_limit is None else float(time_limit))


@dataclass(frozen=True, eq=False)
class Round:
    """One pass over all partitions.

    Attributes
    ----------
    objective, bound : float
        Objective at this point, over all the data; the best lower bound so far.
    size : int
        Of the next problem on the driver: clusters, or features where Newton steps are taken.
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
    status: str
    rounds: tuple[Round, ...]

    @property
    def gap(self) -> float:
        """How far the objective is from its lower bound, and no more than that from the optimum."""
        return max(self.objective - self.dual_objective, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective."""
        return relative(self.gap, self.objective)

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
