"""What a solver is given besides the problem, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from sparsvm._typing import Counts, Floats


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of how good a point is.

    Attributes
    ----------
    objective : float
        The objective at the given coefficients.
    dual_objective : float
        A lower bound on the objective of every W and b.
    floor : float
        Rounding error of the objective itself; gaps below it mean nothing.
    dual : array of shape (n, K)
        The feasible dual point behind the bound, as described in :class:`Solution`.
    criticality : float
        NaN where the problem is convex. Otherwise there is no bound (``dual_objective`` and the
        gaps are NaN), and this is how far the point is from critical: the gap of the
        convex problem with the concave part replaced by its tangent at the point
        (:mod:`sparsvm.problem.linearise`), to which ``dual`` belongs.
    """

    objective: float
    dual_objective: float
    floor: float
    dual: Floats = field(repr=False)
    criticality: float = float("nan")

    @property
    def gap(self) -> float:
        """How far the point is from the optimum at most."""
        return max(self.objective - self.dual_objective, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap over the objective."""
        return relative(self.gap, self.objective)

    def within(self, tol: float) -> bool:
        """Whether the gap, or the criticality, is at most ``max(tol * |objective|, floor)``."""
        residual = self.gap if np.isnan(self.criticality) else self.criticality
        return residual <= max(tol * abs(self.objective), self.floor)


@dataclass(frozen=True, eq=False)
class Start:
    """A point to start from: coefficients, intercepts and, if known, the dual."""

    coef: Floats
    intercept: Floats
    dual: Floats | None = None

    def with_masses(self, mass: Floats) -> Start:
        """Return it with the rows of the dual scaled to these masses.

        A dual of another number of samples is left out.
        """
        if self.dual is None or self.dual.shape[0] != mass.size:
            return replace(self, dual=None)
        return replace(self, dual=self.dual * (mass / self.dual.sum(axis=1))[:, None])


class Attempt(NamedTuple):
    """A point, its dual, and a lower bound of the objective by the solver's own account."""

    coef: Floats
    intercept: Floats
    dual: Floats
    bound: float
    n_iter: int = 0
    solver: str = ""


@dataclass(frozen=True)
class Control:
    """When to stop and how to run.

    ``max_iter=None`` is the solver's own default, ``n_jobs`` a number of threads (None is one).
    ``monitor`` is told how far a run is and keeps its best points
    (:mod:`sparsvm.solvers.run.monitor`).
    """

    tol: float = 1e-4
    max_iter: int | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool = False
    monitor: Any = None


@dataclass(frozen=True, eq=False)
class History:
    """What a solver recorded on its way, one entry per record.

    ``gap`` is absolute; ``relative_gap`` is what ``tol`` and ``dual_gap_`` speak of. ``counts`` has
    totals of the whole run, by name, where a solver keeps any.
    """

    iteration: Counts
    seconds: Floats
    objective: Floats
    gap: Floats
    nonzeros: Counts
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def relative_gap(self) -> Floats:
        """The gaps relative to the objectives, infinite where one is zero or not known yet."""
        sizes = np.abs(self.objective)
        ratios = np.full(sizes.size, np.inf)
        np.divide(self.gap, sizes, out=ratios, where=(sizes > 0.0) & np.isfinite(sizes))
        return ratios

    @classmethod
    def empty(cls) -> History:
        """Return a history without records."""
        none, counts = np.zeros(0), np.zeros(0, dtype=np.int64)
        return cls(iteration=counts, seconds=none, objective=none, gap=none, nonzeros=counts)

    @classmethod
    def of(cls, records: Sequence[tuple[int, float, float, float, int]]) -> History:
        """Return the history of at least one (iteration, seconds, objective, gap, non-zeros)."""
        columns = list(zip(*records, strict=True))
        return cls(
            iteration=np.array(columns[0], dtype=np.int64),
            seconds=np.array(columns[1], dtype=np.float64),
            objective=np.array(columns[2], dtype=np.float64),
            gap=np.array(columns[3], dtype=np.float64),
            nonzeros=np.array(columns[4], dtype=np.int64),
        )


def relative(gap: float, objective: float) -> float:
    """Return the gap relative to the objective, 0 where there is none."""
    if gap == 0.0 or np.isnan(gap):
        return gap
    return gap / abs(objective) if objective != 0.0 else float("inf")


@dataclass(frozen=True, eq=False)
class Solution:
    r"""What a solver returns: a point, its dual and the certificate of both.

    Attributes
    ----------
    coef : array of shape (n_outputs, d)
    intercept : array of shape (n_outputs,)
    dual : array of shape (n, K)
        The feasible dual point behind ``dual_objective``, not negative. Off the true class the
        entries stand for :math:`p_i\, \partial \ell_i / \partial S_{ik}`. On the true class they
        hold the rest of the mass :math:`p_i` for the hinge and the logistic loss, whose rows lie
        in a simplex, and 0 for the squared hinge; for one-vs-rest with more than two classes they
        stand for :math:`-p_i\, \partial \ell_i / \partial S_{i y_i}`. The signed matrix is
        :meth:`~sparsvm.problem.Problem.signed_dual`.
    objective, dual_objective, gap, relative_gap, floor : float
        As in :class:`Certificate`; ``gap`` is absolute.
    status : {"optimal", "max_iter", "stalled", "stopped"}
        "stopped": a time limit, a callback or Ctrl-C ended the run.
    n_iter : int
    seconds : float
    history : History
    solver : str
    criticality : float
        As in :class:`Certificate`: NaN where the problem is convex; where it is not, the distance
        to a critical point in units of the objective, and what ``status`` is about.
    local_minimum : bool or None
        None where the problem is convex. Where it is not, True if no point nearby has an objective
        smaller by more than ``criticality``: the point is critical to the tolerance, and not on a
        kink of the concave part, which is piecewise linear. False on a kink or where it is not
        critical; None where the concave part is curved (l0, groups), which leaves it open.
    """

    coef: Floats
    intercept: Floats
    dual: Floats = field(repr=False)
    objective: float
    dual_objective: float
    gap: float
    relative_gap: float
    floor: float
    status: str
    n_iter: int
    seconds: float
    history: History = field(repr=False)
    solver: str
    criticality: float = float("nan")
    local_minimum: bool | None = None

    @property
    def converged(self) -> bool:
        """Whether the gap (where not convex: the criticality) met the tolerance asked for."""
        return self.status == "optimal"

    def within(self, tol: float) -> bool:
        """Whether the gap is at most ``max(tol * |objective|, floor)``."""
        return self.gap <= max(tol * abs(self.objective), self.floor)

    def joined(self, later: Solution, tol: float) -> Solution:
        """Return the better point of two solutions of a convex problem with the better bound.

        Both are proven already, each by itself: a bound holds for every point. Where rounding ends
        one run's primal and another one's dual, the two together may be within the tolerance.
        """
        point = later if later.objective < self.objective else self
        bound = later if later.dual_objective > self.dual_objective else self
        if point is bound:
            return point
        gap = max(point.objective - bound.dual_objective, 0.0)
        found = replace(
            point,
            dual=bound.dual,
            dual_objective=bound.dual_objective,
            gap=gap,
            relative_gap=relative(gap, point.objective),
        )
        return replace(found, status="optimal" if found.within(tol) else point.status)
