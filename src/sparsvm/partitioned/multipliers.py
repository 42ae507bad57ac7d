r"""The exact hinge by an augmented Lagrangian, whose multipliers stay with their partitions.

The multipliers of a sample are its dual variables :math:`q_i` in the unit simplex. A round of the
method minimises the smooth

.. math:: \sum_i p_i \max_{q \in \text{simplex}} \bigl( \langle q, t_i(W, b) \rangle
    - \tfrac{1}{2\sigma} \|q - q_i\|^2 \bigr) + \alpha\, \mathrm{penalty}(W)

by semismooth Newton steps, like any smooth loss, and lets the maximisers be the next multipliers
(the proximal point method on the dual). They are feasible dual variables but for the equality of
the intercepts and the dual norm, which the certificate repairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparsvm._typing import Features, Floats
from sparsvm.certificate.finalise import as_type, centred
from sparsvm.partitioned.derivatives import Place, Slopes, advanced, slopes
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Fitted, Limits, Round
from sparsvm.partitioned.model import Model
from sparsvm.partitioned.proximal_hinge import ProximalHinge
from sparsvm.partitioned.smooth import balancing_factors, dual_scale, line_search, working_set
from sparsvm.partitioned.sums import Sums
from sparsvm.partitioned.survey import Population
from sparsvm.problem.problem import ROUNDING, Problem
from sparsvm.problem.solution import Control, Start

# Settings.
# The first sigma, over the mean cost of a mistake, and its growth from round to round.
SIGMA, GROWTH = 10.0, 4.0
# It stays as it is where fewer samples than so many a coefficient have a second derivative, and
# the round took more steps than so many: then Newton's model is good on a short way only.
CURVED_ROWS, EASY_STEPS = 5.0, 3
# A round ends where the model expects less than this share of what the proximal term takes away.
# The gap is of first order in what is missing, and the model of second: with 0.1 multipliers of 900
# rows wandered about for 300 passes, with 0.001 they proved 1e-5 in 60.
INNER_SHARE = 1e-3
# The certificate takes a pass, and is asked for where it is expected to prove this much of tol, or
# to leave this share of the gap.
CERTIFICATE_LEVEL, SHARE_OF_GAP = 0.9, 0.03
# Newton steps go on where the samples' own part of the gap is this share of it.
COMPLEMENTARY = 0.7
# So many rounds may follow each other without a step.
IDLE_ROUNDS = 6


class _Best(NamedTuple):
    """The best point so far, its objective and the rounding error of that."""

    coef: Floats
    intercept: Floats
    value: float
    floor: float


class MultiplierFits:
    """Fits for one alpha after another.

    Parameters
    ----------
    engine, parts, population, first
        As for :class:`~sparsvm.partitioned.hinge.HingeFits`; every feature must be penalised.
    """

    def __init__(
        self, engine: Engine, parts: Sequence[Any], population: Population, first: Problem
    ) -> None:
        self.engine, self.parts = engine, parts
        self.population, self.first = population, first

    def fit(
        self,
        alpha: float,
        control: Control,
        start: Start,
        limits: Limits,
        progress: Callable[[Round], None] | None = None,
        bound: float = -np.inf,
    ) -> Fitted:
        """Minimise over all partitions from ``start``.

        Parameters
        ----------
        alpha, control, start, limits, progress
            As for :meth:`HingeFits.fit <sparsvm.partitioned.hinge.HingeFits.fit>`.
        bound : float
            A lower bound that is known already.
        """
        run = _Run(self, alpha, control, progress)
        run.bound = bound
        run.begin(start)
        status = "max_iter"
        idle = 0
        while not run.optimal:
            late = run.rounds[-1].seconds > limits.seconds
            if late or len(run.rounds) >= limits.passes or idle > IDLE_ROUNDS:
                status = "stopped" if late else ("stalled" if idle > IDLE_ROUNDS else "max_iter")
                run.certify()
                break
            features = working_set(run.problem, run.place.coef, run.here)
            step, shift, change = run.model.step(run.place, run.here, features)
            wanted, moved = -change > INNER_SHARE * run.error or run.infeasible, False
            if wanted:
                moved = run.step(step, shift, change, features)
            idle = 0 if moved else idle + 1
            if run.provable:
                run.certify()
            if run.optimal or moved:
                continue
            if wanted and -change > INNER_SHARE * run.error:
                run.soften(features)
            else:
                run.advance(features)
        best = run.best
        return Fitted(
            coef=best.coef,
            intercept=best.intercept,
            objective=best.value,
            dual_objective=run.bound,
            status="optimal" if run.optimal else status,
            rounds=tuple(run.rounds),
        )


class _Run:
    """One fit: the point, the Lagrangian around the multipliers, bounds and rounds so far."""

    def __init__(
        self,
        fits: MultiplierFits,
        alpha: float,
        control: Control,
        progress: Callable[[Round], None] | None,
    ) -> None:
        self.population, self.alpha = fits.population, alpha
        self.problem = fits.first.with_alpha(alpha)
        self.control, self.progress = control, progress
        self.sums = Sums(fits.engine, fits.parts)
        self.model = Model(self.problem, self.sums)
        cost = self.problem.cost
        self.loss = ProximalHinge(SIGMA / float(cost.sum() / (cost.size - len(cost))))
        self.bound, self.rounds = -np.inf, list[Round]()
        self.began = time.perf_counter()
        self.steps = 0  # since the last multipliers
        self.asked = False  # whether the certificate has been computed at this point

    def begin(self, start: Start) -> None:
        """Evaluate the first point."""
        self.place = self.at(start.coef, start.intercept)
        used = np.flatnonzero(np.any(self.place.coef != 0.0, axis=0)).astype(np.int32)
        self.here: Slopes = self.sums.of(slopes, self.place, self.model.assembled(used))
        self.best = self._point()
        self._seen(used)

    def at(self, coef: Floats, intercept: Floats) -> Place:
        """Return a point in the type of the data."""
        problem, dtype = self.problem, self.population.dtype
        return Place(
            self.population,
            self.loss,
            problem.cost,
            problem.penalty,
            as_type(coef, dtype),
            as_type(centred(problem, intercept), dtype),
        )

    @property
    def enough(self) -> float:
        """The gap to reach."""
        return max(self.control.tol * abs(self.best.value), self.best.floor)

    @property
    def optimal(self) -> bool:
        """Whether it is reached."""
        return self.best.value - self.bound <= self.enough

    @property
    def error(self) -> float:
        """What the proximal term takes away from the objective."""
        return max(self.here.exact - self.here.loss, 0.0)

    @property
    def provable(self) -> bool:
        """Whether the multipliers at this point are expected to prove it optimal, or nearly so."""
        if self.asked:
            return False
        value = self.best.value
        worth = SHARE_OF_GAP * (value - max(self.bound, 0.0))
        return value - self._guess()[1] <= max(CERTIFICATE_LEVEL * self.enough, worth)

    @property
    def infeasible(self) -> bool:
        """Whether the multipliers would prove the point optimal if they were feasible."""
        dual, feasible = self._guess()
        value = self.best.value
        # Where the equalities do not hold yet, the second is an upper bound.
        complementary = min(abs(value - dual), self.error)
        return complementary <= COMPLEMENTARY * self.enough < value - feasible

    def step(self, step: Floats, shift: Floats, change: float, features: Features) -> bool:
        """Take the step, or a share of it; return whether there was one."""
        place, old = self.place, self.here
        value = old.loss + self.alpha * self.problem.penalty.value(place.coef)
        coef, intercept, here, _, moved = line_search(
            self.sums,
            self.at,
            self.problem,
            (place.coef, place.intercept, old, value),
            (step, shift, change),
            self.model.assembled(features),
        )
        if moved:
            self.steps += 1
            self.place, self.here, self.asked = self.at(coef, intercept), here, False
            self.model.learn((place, old), (self.place, here))
            point = self._point()
            if point.value < self.best.value:
                self.best = point
        self._seen(features)
        return moved

    def advance(self, features: Features) -> None:
        """Let the maximisers at this point be the multipliers, and sharpen the Lagrangian."""
        coefficients = self.problem.n_outputs * (features.size + 1)
        if self.here.curved >= CURVED_ROWS * coefficients or self.steps <= EASY_STEPS:
            self.loss = ProximalHinge(GROWTH * self.loss.sigma)
        self.steps = 0
        then = self.place._replace(loss=self.loss)
        assembled = self.model.assembled(features)
        self.here = self.sums.advanced(advanced, self.place, then, assembled)
        self.place, self.asked = then, False
        self.model.features = None  # another function: its second derivatives are unknown
        self._seen(features)

    def soften(self, features: Features) -> None:
        """Take a smoother Lagrangian, of whose Newton steps none was a descent."""
        self.loss = ProximalHinge(self.loss.sigma / GROWTH)
        self.place = self.place._replace(loss=self.loss)
        self.here = self.sums.of(slopes, self.place, self.model.assembled(features))
        self.steps, self.asked, self.model.features = EASY_STEPS + 1, False, None
        self._seen(features)

    def certify(self) -> None:
        """Raise the bound to what the multipliers at this point prove."""
        factors = balancing_factors(self.place, self.here, self.problem.fit_intercept)
        scale, rest, value = dual_scale(self.sums, self.place, factors, self.alpha)
        self.bound = max(self.bound, scale * value - rest, 0.0)
        self.asked = True
        self._seen(np.zeros(0, dtype=np.int32))

    def _guess(self) -> tuple[float, float]:
        """Return the dual value of the multipliers as they are, and about what is provable."""
        here, terms = self.here, self.problem.penalty
        complementary = float(here.margin_sums.sum())
        factors = balancing_factors(self.place, here, self.problem.fit_intercept)
        value = float((factors * here.margin_sums).sum())
        slope = here.coef / self.alpha
        if terms.is_norm:
            norm = float(terms.dual_norm(slope))
            return complementary, value * min(1.0, 1.0 / norm if norm > 0.0 else 1.0)
        rest = self.alpha * float(terms.conjugate(-slope))
        return complementary - rest, value - rest

    def _point(self) -> _Best:
        penalty = self.alpha * self.problem.penalty.value(self.place.coef)
        floor = ROUNDING * (self.here.size + penalty)
        return _Best(self.place.coef, self.place.intercept, self.here.exact + penalty, floor)

    def _seen(self, features: Features) -> None:
        seconds = time.perf_counter() - self.began
        now = Round(self.best.value, self.bound, int(features.size), seconds)
        self.rounds.append(now)
        if self.progress is not None:
            self.progress(now)
