"""From handles of partitions to the fits of a model on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from sparsvm._typing import Floats
from sparsvm.certificate.finalise import inner_tolerance, tolerance
from sparsvm.losses import Hinge, as_loss
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Limits, Round
from sparsvm.partitioned.hinge import TALL_ROWS, HingeFits
from sparsvm.partitioned.in_memory import InMemoryFits
from sparsvm.partitioned.smooth import SmoothFits
from sparsvm.partitioned.survey import (
    SAMPLE_BYTES,
    Population,
    Survey,
    column_std,
    moments,
    survey,
)
from sparsvm.penalties import as_penalty
from sparsvm.problem.build import default_alpha, problem_on, require_margin
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import resolve

# Rows of the sample that the fit starts from, and the relative gap to which it is solved.
SAMPLE_ROWS, SAMPLE_TOL = 20_000, 1e-2
# Bytes of rows that the driver gathers to solve in memory, where passes over the partitions would
# not be cheaper: with as many rows for each coefficient that there may be (TALL_ROWS).
GATHERED_BYTES = 1 << 28


class Prepared:
    """Partitions that have been looked at, for one model.

    Parameters
    ----------
    engine : Engine
    parts : list of handles of partitions
    model : estimator
        Its loss, penalty, fit_intercept, class_weight, solver, tol, max_iter, random_state and
        verbose are used.
    folds : int, default=1
        Number of folds that may be left out.
    """

    def __init__(self, engine: Engine, parts: Sequence[Any], model: Any, folds: int = 1) -> None:
        self.engine, self.parts, self.model = engine, parts, model
        self.loss, self.penalty = as_loss(model.loss), as_penalty(model.penalty)
        if not (self.loss.convex and self.penalty.convex):
            raise ValueError(
                f"Fits over partitions are for convex problems; got the loss {self.loss.name!r} "
                f"with the penalty {self.penalty.name!r}. Use sparsvm.SparseSVC on data that fit "
                "in memory."
            )
        # The same bits from run to run without a seed, too.
        seed = 0 if model.random_state is None else model.random_state
        seed = int(check_random_state(seed).randint(2**31 - 1))
        count = max(1, len(parts))
        most, most_bytes = -(-SAMPLE_ROWS // count), SAMPLE_BYTES / count
        self.surveys = self._surveyed(most, most_bytes, seed, folds)
        self.population = Population.of(self.surveys, model.class_weight)
        # Whether the sample is all of the rows.
        self.whole = self._few(self.population)
        if self.whole and any(each.sample.X.shape[0] < each.n for each in self.surveys if each.n):
            self.surveys = self._surveyed(self.population.n, np.inf, seed, folds)

    def _surveyed(self, most: int, most_bytes: float, seed: int, folds: int) -> list[Survey]:
        handles = [
            self.engine.submit(survey, part, at, most, most_bytes, seed, folds)
            for at, part in enumerate(self.parts)
        ]
        found: list[Survey] = self.engine.gather(handles)
        self.engine.release(handles)
        return found

    @staticmethod
    def _few(population: Population) -> bool:
        """Whether the driver may hold all the rows, and solves them faster than passes do."""
        K = population.classes.size
        coefficients = (1 if K == 2 else K) * (population.d + 1)
        fit = population.n * population.row_bytes <= GATHERED_BYTES
        return fit and population.n < TALL_ROWS * coefficients

    def left_out(self, fold: int) -> Population:
        """Return the rows without a fold."""
        return Population.of(self.surveys, self.model.class_weight, fold)

    def problem(self, population: Population, alpha: float | None = None) -> Problem:
        """Return the problem on the sample, with loss, penalty and alpha of the whole."""
        deviation = None
        if self.penalty.needs_column_std:
            known = self.engine.broadcast(population)
            handles = [
                self.engine.submit(moments, part, at, known) for at, part in enumerate(self.parts)
            ]
            deviation = column_std(self.engine.gather(handles), population.n)
            self.engine.release([known, *handles])
        encoded = [
            population.read(each.sample, at) if self.whole else population.encoded(each.sample)
            for at, each in enumerate(self.surveys)
            if each.n > 0
        ]
        encoded = [each for each in encoded if each[1].size > 0]
        K = population.classes.size
        blocks = [each[0] for each in encoded]
        X = sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)
        margins = [each[3] for each in encoded if each[3] is not None]
        cost = self.loss.cost_matrix(population.labels.size, population.labels)
        cost = np.ascontiguousarray(cost[np.ix_(population.numbers, population.numbers)])
        margin = np.concatenate(margins) if margins else None
        require_margin(self.loss, cost, margin)
        mass: Floats = np.concatenate([each[2] for each in encoded])
        return problem_on(
            X,
            np.concatenate([each[1] for each in encoded]),
            mass / mass.sum(),
            margin,
            loss=self.loss,
            cost=cost,
            penalty=self.penalty.resolve(
                population.d, 1 if K == 2 else K, deviation, population.feature_names
            ),
            alpha=default_alpha(population.total) if alpha is None else float(alpha),
            fit_intercept=self.model.fit_intercept,
        )

    def fits(self, population: Population, first: Problem) -> InMemoryFits | HingeFits | SmoothFits:
        """Return what fits the problem at any alpha."""
        if self.whole:
            tol = tolerance(self.model.tol, population.dtype)
            return InMemoryFits(first, population.dtype, tol, self.model.solver)
        if isinstance(self.loss, Hinge):
            return HingeFits(self.engine, self.parts, population, first, self.model.solver)
        if first.penalty.only_prox:
            raise ValueError(
                "Smooth losses over partitions take the penalties of sparsvm.penalties; one of "
                f"your own, such as {self.penalty.name!r}, goes with the hinge, or in memory with "
                "sparsvm.SparseSVC."
            )
        return SmoothFits(self.engine, self.parts, population, first)

    def sample_solution(self, first: Problem) -> Start:
        """Solve the problem on the sample, roughly; not where the sample is everything."""
        if self.whole:
            return Start(np.zeros((first.n_outputs, first.d)), np.zeros(first.n_outputs))
        control = Control(tol=SAMPLE_TOL, random_state=self.model.random_state)
        solution = resolve(self.model.solver, first, control).solve(first, None, control)
        return Start(solution.coef, solution.intercept)

    @property
    def control(self) -> Control:
        """What is asked of a fit."""
        tol = inner_tolerance(self.model.tol, self.population.dtype)
        return Control(tol=tol, random_state=self.model.random_state)

    @property
    def limits(self) -> Limits:
        """When a fit ends."""
        return Limits.of(self.model.max_iter, getattr(self.model, "time_limit", None))

    @property
    def progress(self) -> Callable[[Round], None] | None:
        """What is told of every pass."""
        return _report if self.model.verbose else None


def _report(now: Round) -> None:
    gap = (now.objective - now.bound) / abs(now.objective) if now.objective else 0.0
    shown = f"gap {gap:.2e}" if np.isfinite(gap) else "no bound yet"
    print(
        f"{time.strftime('%H:%M:%S')} objective {now.objective:.6g}, {shown}, "
        f"{now.size} on the driver, {now.seconds:.1f} s",
        flush=True,
    )
