"""The exact hinge over partitions: clusters are solved on the driver and split where they lie."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Floats
from sparsvm.certificate.finalise import as_type, centred
from sparsvm.partitioned.aggregation import Report, Task, divide
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Fitted, Round
from sparsvm.partitioned.survey import Population
from sparsvm.problem.build import problem_on
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start, relative
from sparsvm.solvers import resolve

# Settings. More samples by themselves save passes and cost time on the driver: with 4000 and 4000
# four to six passes solved simulated data of 1e5 and 4e5 rows and MNIST to 1e-3. Later passes split
# 8000 clusters at most, so that 2e6 rows left 1.5e5 clusters, and nine passes, instead of as many
# as a fifth of the rows.
SINGLES, GROUPS, MORE = 4000, 4000, 8000
# The clusters need not be solved more exactly than the split ones will be, nor less than this.
SHARE_OF_GAP, SHARE_OF_TOL, LOOSEST = 0.1, 1.0 / 3.0, 1e-2
# Clusters are split at this share of the way from the best point to the solution on clusters (the
# in-out points of Ben-Ameur and Neto): that solution may be far off where clusters are coarse.
INWARD = 0.5
# Where no cluster can be split, the solver is asked for more digits, so often.
SHARPER, TIMES_SHARPER = 0.1, 3
ROUNDS = 100


@dataclass(eq=False)
class _Store:
    """All clusters on the driver, in the order of the partitions, with their dual variables."""

    part: Array
    number: Array
    X: Any
    y: Array
    mass: Floats
    margin: Floats | None
    dual: Floats

    @classmethod
    def of(cls, reports: Sequence[Report], K: int) -> _Store:
        added = [(at, r.added) for at, r in enumerate(reports) if r.added is not None]
        y = np.concatenate([c.y for _, c in added])
        mass = np.concatenate([c.mass for _, c in added])
        return cls(
            part=np.concatenate([np.full(c.y.size, at) for at, c in added]),
            number=np.concatenate([c.number for _, c in added]),
            X=_stacked([c.X for _, c in added]),
            y=y,
            mass=mass,
            margin=_joined([c.margin for _, c in added]),
            dual=np.zeros((y.size, K)),
        )

    def updated(self, reports: Sequence[Report]) -> _Store:
        """Return the clusters after a split; parts inherit the dual of the whole by their mass."""
        kept = np.ones(self.y.size, dtype=bool)
        for at, report in enumerate(reports):
            kept[(self.part == at) & np.isin(self.number, report.gone)] = False
        new = _Store.of(reports, self.dual.shape[1])
        # Positions of the parents among the old clusters.
        order = np.lexsort((self.number, self.part))
        keys = self.part * (1 << 40) + self.number
        parents = np.concatenate([r.added.parent for r in reports if r.added is not None])
        at = order[np.searchsorted(keys[order], new.part * (1 << 40) + parents)]
        new.dual = self.dual[at] * (new.mass / self.mass[at])[:, None]
        rows = np.flatnonzero(kept)
        return _Store(
            part=np.concatenate([self.part[rows], new.part]),
            number=np.concatenate([self.number[rows], new.number]),
            X=_stacked([self.X[rows], new.X]),
            y=np.concatenate([self.y[rows], new.y]),
            mass=np.concatenate([self.mass[rows], new.mass]),
            margin=_joined([None if self.margin is None else self.margin[rows], new.margin]),
            dual=np.concatenate([self.dual[rows], new.dual]),
        )


def _stacked(parts: list[Any]) -> Any:
    if sp.issparse(parts[0]):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)


def _joined(parts: list[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def fit_hinge(
    engine: Engine,
    parts: Sequence[Any],
    population: Population,
    first: Problem,
    control: Control,
    start: Start,
    progress: Callable[[Round], None] | None = None,
    solver: Any = "auto",
) -> Fitted:
    """Minimise over all partitions from ``start``, mostly the solution of the sample ``first``.

    Parameters
    ----------
    engine : Engine
    parts : list of handles of partitions
    population : Population
    first : Problem
        On a sample of the rows; its loss, costs, penalty and alpha are those of the whole.
    control : Control
        ``tol`` is the relative gap to reach over all the data; ``max_iter`` limits the passes.
    start : Start
    progress : callable, optional
        Given every :class:`~sparsvm.partitioned.fitted.Round`.
    solver : str or Solver
        For the problems on the driver.
    """
    began = time.perf_counter()
    options: dict[str, Any] = {
        name: getattr(first, name) for name in ("loss", "cost", "penalty", "alpha", "fit_intercept")
    }
    inner = replace(control, tol=LOOSEST, max_iter=None, verbose=False)
    point: Start | Solution = start
    limit = control.max_iter or ROUNDS
    states: list[Any] = [None] * len(parts)
    store: _Store | None = None
    best: tuple[float, Floats, Floats] | None = None
    bound, rounds, sharper, floor = -np.inf, [], 0, 0.0
    share, inward = max(1, len(parts)), INWARD
    while True:
        coef, intercept = point.coef, point.intercept
        if best is not None:
            coef = best[1] + inward * (coef - best[1])
            intercept = best[2] + inward * (intercept - best[2])
        coef = as_type(coef, population.dtype)
        intercept = as_type(centred(first, intercept), population.dtype)
        task = engine.broadcast(
            Task(
                population,
                first.cost,
                coef,
                intercept,
                -(-SINGLES // share),
                -(-GROUPS // share),
                -(-MORE // share),
            )
        )
        both = [
            engine.submit(divide, part, at, state, task)
            for at, (part, state) in enumerate(zip(parts, states, strict=True))
        ]
        states = [engine.submit(itemgetter(0), each) for each in both]
        reports: list[Report] = engine.gather([engine.submit(itemgetter(1), e) for e in both])
        penalty = first.alpha * first.penalty.value(coef)
        objective = float(sum(report.loss for report in reports)) + penalty
        if best is None or objective < best[0]:
            best = objective, coef, intercept
            floor = 16.0 * np.finfo(np.float64).eps * (sum(r.size for r in reports) + penalty)
        split = any(report.added is not None for report in reports)
        if store is None:
            store = _Store.of(reports, population.classes.size)
        elif split:
            store = store.updated(reports)
        now = Round(best[0], bound, store.y.size, time.perf_counter() - began)
        rounds.append(now)
        if progress is not None:
            progress(now)
        gap = max(best[0] - bound, 0.0)
        done = gap <= max(control.tol * abs(best[0]), floor)
        inward = INWARD if split else 1.0
        sharper = 0 if split else sharper + 1
        if done or len(rounds) >= limit or sharper > TIMES_SHARPER:
            break
        distance = min(1.0, relative(gap, best[0]))
        tol = max(SHARE_OF_TOL * control.tol, min(LOOSEST, SHARE_OF_GAP * distance))
        inner = replace(inner, tol=tol * SHARPER**sharper)
        mass = store.mass / store.mass.sum()
        problem = problem_on(store.X, store.y, mass, store.margin, **options)
        known = store.dual if bound > -np.inf else None
        solved = resolve(solver, problem, inner).solve(
            problem, Start(point.coef, point.intercept, known), inner
        )
        store.dual, bound, point = solved.dual, max(bound, solved.dual_objective), solved
    return Fitted(
        coef=best[1],
        intercept=best[2],
        objective=best[0],
        dual_objective=bound,
        gap=gap,
        relative_gap=relative(gap, best[0]),
        status="optimal" if done else ("max_iter" if len(rounds) >= limit else "stalled"),
        rounds=tuple(rounds),
    )
