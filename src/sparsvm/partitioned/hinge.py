"""The exact hinge over partitions.

Where coefficients are few beside the rows, by an augmented Lagrangian; else clusters are solved on
the driver and split where they lie.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from sparsvm._typing import Floats, SolverName
from sparsvm.certificate.finalise import as_type, centred
from sparsvm.partitioned.aggregation import Report, Task, divide
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Fitted, Limits, Round
from sparsvm.partitioned.model import MOST_VARIABLES
from sparsvm.partitioned.multipliers import MultiplierFits
from sparsvm.partitioned.store import Store
from sparsvm.partitioned.survey import Population
from sparsvm.path.alpha_max import GRID_PRECISION, largest_alpha
from sparsvm.problem.build import problem_on
from sparsvm.problem.problem import ROUNDING, Problem
from sparsvm.problem.solution import Control, Solution, Start, relative
from sparsvm.solvers import Solver, resolve

# Settings. More samples by themselves save passes and cost time on the driver: with 4000 and 4000
# four to six passes solved simulated data of 1e5 and 4e5 rows and MNIST to 1e-3. Later passes split
# 8000 clusters at most, so that 2e6 rows left 1.5e5 clusters, and nine passes, instead of as many
# as a fifth of the rows.
SINGLES, GROUPS, MORE = 4000, 4000, 8000
# Bytes of clusters on the driver beyond which all rows are clustered anew around the best point;
# the new clusters take at most this share of them. Solvers need about three times as much beside.
STORE_BYTES, RENEWAL_SHARE = 1 << 28, 0.25
# So often this may happen before the gap has halved; then the augmented Lagrangian goes on.
RENEWALS = 4
# A number and its index.
ENTRY_BYTES = 12.0
# The clusters need not be solved more exactly than the split ones will be, nor less than this.
SHARE_OF_GAP, SHARE_OF_TOL, LOOSEST_TOL = 0.1, 1.0 / 3.0, 1e-2
# Clusters are split at this share of the way from the best point to the solution on clusters (the
# in-out points of Ben-Ameur and Neto): that solution may be far off where clusters are coarse.
# Where fewer than this share of them are new, it no longer is: half-way the gap only halved from
# pass to pass, and 1e-5 took 9 passes instead of 6 on News20, 11 instead of 8 on MNIST.
INWARD_SHARE, SETTLED_SHARE = 0.5, 0.02
# The first clusters of a path are formed where the sample's model has some features: at this share
# of its alpha_max (as in sparsvm.path.alpha_max).
FIRST_ALPHA_SHARE = 0.7
# Where no cluster can be split, the solver is asked for more digits, so often.
SHARPER_FACTOR, SHARPENINGS = 0.1, 3


# Rows for each coefficient in use on the sample from which on the augmented Lagrangian is taken.
# Generated rows to 1e-5, processor seconds by it and by clusters: 1.3 and 0.9 with 180 rows for
# each, 4.8 and 10.7 with 840. Its second derivatives must be few enough to be assembled.
TALL_ROWS = 200.0


class _Best(NamedTuple):
    """A point, its loss over all the data, the size of what that is made of, and its penalty."""

    coef: Floats
    intercept: Floats
    loss: float
    size: float
    penalty: float

    def value(self, alpha: float) -> float:
        """Return the objective."""
        return self.loss + alpha * self.penalty

    def floor(self, alpha: float) -> float:
        """Return the rounding error of the objective."""
        return ROUNDING * (self.size + alpha * self.penalty)


class HingeFits:
    """Fits for one alpha after another, which share their clusters.

    Clusters bound the loss of their samples from below at every point, whatever alpha is.

    Parameters
    ----------
    engine : Engine
    parts : list of handles of partitions
    population : Population
    first : Problem
        On a sample of the rows; its loss, costs and penalty are those of the whole.
    solver : str or Solver
        For the problems on the driver.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Any],
        population: Population,
        first: Problem,
        solver: SolverName | Solver = "auto",
    ) -> None:
        self.engine, self.parts, self.population = engine, parts, population
        self.first, self.solver = first, solver
        self.states: list[Any] = [None] * len(parts)
        self.store: Store | None = None
        self.best: _Best | None = None
        self.solved = False
        # Rows and means, in double precision, that may be formed at once in each partition. The
        # mean of many sparse rows is as good as dense, unless all of them are not that many.
        share = RENEWAL_SHARE / 2.0 * STORE_BYTES
        row = population.row_bytes * np.dtype(np.float64).itemsize / population.dtype.itemsize
        dense = first.design.is_sparse and population.n * row > share
        mean = ENTRY_BYTES * population.d if dense else row
        self.most = share / max(1.0, row) / max(1, len(parts))
        self.most_means = share / max(1.0, row, mean) / max(1, len(parts))

    def fit(
        self,
        alpha: float,
        control: Control,
        start: Start,
        limits: Limits,
        progress: Callable[[Round], None] | None = None,
    ) -> Fitted:
        """Minimise over all partitions.

        Parameters
        ----------
        alpha : float
        control : Control
            ``tol`` is the relative gap to reach over all the data.
        start : Start
            Where the method begins: the solution on the sample, or for another alpha.
        limits : Limits
        progress : callable, optional
            Given every :class:`~sparsvm.partitioned.fitted.Round`.
        """
        if self._tall(start) or self._wide():
            fits = MultiplierFits(self.engine, self.parts, self.population, self.first)
            return fits.fit(alpha, control, start, limits, progress)
        began, rounds = time.perf_counter(), list[Round]()
        point: Start | Solution = start
        status, bound, gap, sharper, anew, halved = "max_iter", -np.inf, np.inf, 0, 0, np.inf
        # Clusters of another alpha are good ones already: no caution, and no rough solution.
        cold = self.store is None
        inward, distance = (INWARD_SHARE, 1.0) if cold else (1.0, 0.0)

        def seen() -> tuple[_Best, Store]:
            assert self.best is not None and self.store is not None
            passed = time.perf_counter() - began
            now = Round(self.best.value(alpha), bound, self.store.y.size, passed)
            rounds.append(now)
            if progress is not None:
                progress(now)
            return self.best, self.store

        if cold:
            self._visit(alpha, point, 1.0)
            seen()
        while len(rounds) < limits.passes:
            tol = max(SHARE_OF_TOL * control.tol, min(LOOSEST_TOL, SHARE_OF_GAP * distance))
            inner = replace(
                control, tol=tol * SHARPER_FACTOR**sharper, max_iter=None, verbose=False
            )
            point = self._solution(alpha, point, inner)
            bound = max(bound, point.dual_objective)
            split = self._visit(alpha, point, inward)
            best, store = seen()
            value = best.value(alpha)
            gap = max(value - bound, 0.0)
            if gap <= max(control.tol * abs(value), best.floor(alpha)):
                status = "optimal"
                break
            distance = min(1.0, relative(gap, value))
            inward = INWARD_SHARE if split > SETTLED_SHARE * store.y.size else 1.0
            sharper = 0 if split else sharper + 1
            if sharper > SHARPENINGS:
                status = "stalled"
                break
            if rounds[-1].seconds > limits.seconds:
                status = "stopped"
                break
            if store.nbytes > STORE_BYTES:
                anew, halved = (anew + 1, halved) if gap > 0.5 * halved else (1, gap)
                if anew > RENEWALS:
                    status = "full"
                    break
        if status == "full" and self._has_multipliers:
            return self._by_multipliers(alpha, control, bound, limits, rounds, progress)
        assert self.best is not None
        return Fitted(
            coef=self.best.coef,
            intercept=self.best.intercept,
            objective=self.best.value(alpha),
            dual_objective=bound,
            status=status,
            rounds=tuple(rounds),
        )

    def _by_multipliers(
        self,
        alpha: float,
        control: Control,
        bound: float,
        limits: Limits,
        rounds: list[Round],
        progress: Callable[[Round], None] | None,
    ) -> Fitted:
        """Go on from the best point by the augmented Lagrangian; the bound stays."""
        best = self.best
        assert best is not None
        self.store, self.solved, passed = None, False, rounds[-1].seconds
        self.engine.release(self.states)
        self.states = [None] * len(self.parts)
        left = Limits(max(1, limits.passes - len(rounds)), limits.seconds - passed)
        fits = MultiplierFits(self.engine, self.parts, self.population, self.first)
        found = fits.fit(alpha, control, Start(best.coef, best.intercept), left, progress, bound)
        later = [replace(each, seconds=passed + each.seconds) for each in found.rounds]
        return replace(found, rounds=(*rounds, *later))

    def _tall(self, start: Start) -> bool:
        """Whether the coefficients in use are few, beside the rows and by themselves."""
        used = np.count_nonzero(np.any(start.coef != 0.0, axis=0))
        coefficients = self.first.n_outputs * (int(used) + 1)
        few = coefficients <= min(MOST_VARIABLES, self.population.n / TALL_ROWS)
        return few and self._has_multipliers

    def _wide(self) -> bool:
        """Whether one cluster for each class and partition would be too many for the driver."""
        return self.most_means < self.population.classes.size and self._has_multipliers

    @property
    def _has_multipliers(self) -> bool:
        """Whether the augmented Lagrangian takes the penalty."""
        terms = self.first.penalty
        return not terms.only_prox and terms.free.size == 0

    def largest_alpha(self, control: Control) -> tuple[float, Start]:
        """Return an upper bound on alpha_max, and the model there.

        It is infinite where no alpha gives a model of zeros.

        At zero weights all samples of a class have the same loss, unless they have margins of
        their own or some features are not penalised. So the loss of clusters is that of their
        samples there, and where zero weights are optimal for clusters, they are for all the data.
        """
        found = largest_alpha(self.first, GRID_PRECISION)
        if not 0.0 < found.value < np.inf:
            return found.value, Start(found.zero.coef, found.zero.intercept)
        if self.store is None:
            # Clusters that the first features tell apart.
            problem = self.first.with_alpha(FIRST_ALPHA_SHARE * found.value)
            inner = replace(control, tol=LOOSEST_TOL, max_iter=None, verbose=False)
            self._visit(
                problem.alpha, resolve(self.solver, problem, inner).solve(problem, None, inner), 1.0
            )
        found = largest_alpha(self._problem(1.0), GRID_PRECISION)
        return found.value, Start(found.zero.coef, found.zero.intercept)

    def _problem(self, alpha: float) -> Problem:
        assert self.store is not None
        first, store = self.first, self.store
        return problem_on(
            store.X,
            store.y,
            store.mass / store.mass.sum(),
            store.margin,
            loss=first.loss,
            cost=first.cost,
            penalty=first.penalty,
            alpha=alpha,
            fit_intercept=first.fit_intercept,
        )

    def _solution(self, alpha: float, point: Start | Solution, control: Control) -> Solution:
        """Solve the problem on clusters, from the last dual if there is one."""
        problem = self._problem(alpha)
        assert self.store is not None
        start = Start(point.coef, point.intercept, self.store.dual if self.solved else None)
        found = resolve(self.solver, problem, control).solve(problem, start, control)
        self.store.dual, self.solved = found.dual, True
        return found

    def _visit(self, alpha: float, point: Start | Solution, inward: float) -> int:
        """Pass over the data between the best point and another; return how many clusters are new.

        The best point is replaced if this one is better. Where clusters take too much memory, all
        rows are clustered anew.
        """
        coef, intercept = point.coef, point.intercept
        if self.best is not None:
            coef = self.best.coef + inward * (coef - self.best.coef)
            intercept = self.best.intercept + inward * (intercept - self.best.intercept)
        coef = as_type(coef, self.population.dtype)
        intercept = as_type(centred(self.first, intercept), self.population.dtype)
        first, most, before = self.store is None, self.most, self.states
        if self.store is not None and self.store.nbytes > STORE_BYTES:
            self.store, self.solved = None, False
        singles, groups, more = (
            max(1, -(-least // len(self.parts))) for least in (SINGLES, GROUPS, MORE)
        )
        if self.store is None:
            self.states = [None] * len(self.parts)
            if not first:
                singles, groups = int(most), int(self.most_means)
        singles = max(1, min(singles, int(most)))
        groups, more = (max(1, min(each, int(self.most_means))) for each in (groups, more))
        task = self.engine.broadcast(
            Task(self.population, self.first.cost, coef, intercept, singles, groups, more)
        )
        both = [
            self.engine.submit(divide, part, at, state, task)
            for at, (part, state) in enumerate(zip(self.parts, self.states, strict=True))
        ]
        self.states = [self.engine.submit(itemgetter(0), each) for each in both]
        ends = [self.engine.submit(itemgetter(1), each) for each in both]
        reports: list[Report] = self.engine.gather(ends)
        # What is released can be computed again as long as something depends on it.
        self.engine.release([task, *both, *ends, *before])
        here = _Best(
            coef,
            intercept,
            float(sum(report.loss for report in reports)),
            float(sum(report.size for report in reports)),
            self.first.penalty.value(coef),
        )
        if self.best is None or here.value(alpha) < self.best.value(alpha):
            self.best = here
        split = sum(report.added.y.size for report in reports if report.added is not None)
        if self.store is None:
            self.store = Store.of(reports, self.population.classes.size)
        elif split:
            self.store = self.store.updated(reports)
        return split
