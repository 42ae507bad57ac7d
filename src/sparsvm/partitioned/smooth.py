"""Smooth losses over partitions: proximal Newton steps whose sums are formed where the rows are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparsvm._typing import Features, Floats
from sparsvm.certificate.balance import balanced_class_sums
from sparsvm.certificate.finalise import as_type, centred
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import EPS, OTHER_ROUNDINGS, TINY
from sparsvm.partitioned.derivatives import Place, Slopes, gain, losses, repaired, slopes
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Fitted, Limits, Round
from sparsvm.partitioned.model import Model
from sparsvm.partitioned.sums import Sums
from sparsvm.partitioned.survey import Population
from sparsvm.partitioned.zero import class_intercepts
from sparsvm.problem.problem import ROUNDING, Problem
from sparsvm.problem.restriction import slope_strength
from sparsvm.problem.solution import Control, Start

# Settings.
# Features join where their dual norm is beyond this share of its limit, at most so many at once.
NEAR_LIMIT, MOST_NEW = 0.99, 200
# A step must lower the objective by this share of what the model says (Tseng and Yun); the shares
# of it that are tried in one pass where it does not.
SUFFICIENT = 0.01
SHARES = 0.5 ** np.arange(1, 13)
# The certificate takes two more passes, and is asked for where the model expects so little, and
# again where it expects this share of that.
CERTIFICATE_LEVEL, REPEAT_SHARE = 3.0, 0.3


class SmoothFits:
    """Fits for one alpha after another.

    Parameters
    ----------
    engine, parts, population, first
        As for :class:`~sparsvm.partitioned.hinge.HingeFits`.
    """

    def __init__(
        self, engine: Engine, parts: Sequence[Any], population: Population, first: Problem
    ) -> None:
        if first.penalty.free.size > 0:
            raise ValueError(
                "Smooth losses over partitions need every feature penalised; features of weight 0 "
                "are supported with loss='hinge', or by sparsvm.SparseSVC on data in memory."
            )
        self.population, self.first = population, first
        self.sums = Sums(engine, parts)
        self.largest = np.inf  # alpha from which on zero weights are optimal, where known

    def fit(
        self,
        alpha: float,
        control: Control,
        start: Start,
        limits: Limits,
        progress: Callable[[Round], None] | None = None,
    ) -> Fitted:
        """Minimise over all partitions from ``start``.

        Parameters
        ----------
        alpha, control, limits, progress
            As for :meth:`HingeFits.fit <sparsvm.partitioned.hinge.HingeFits.fit>`.
        start : Start
        """
        first, sums = self.first.with_alpha(alpha), self.sums
        loss, terms = first.loss, first.penalty
        assert isinstance(loss, SmoothLoss)
        began = time.perf_counter()
        at = partial(Place, self.population, loss, first.cost, terms)
        coef, intercept = start.coef, start.intercept
        here: Slopes = sums.of(slopes, at(coef, intercept))
        value = here.loss + alpha * terms.value(coef)
        model = Model(first, sums)
        bound, ask_below = -np.inf, np.inf
        rounds: list[Round] = []
        expected, status = np.inf, "max_iter"
        if alpha >= self.largest and not np.any(coef):
            expected = TINY  # nothing, if the certificate agrees
        while True:
            floor = ROUNDING * (here.size + alpha * terms.value(coef))
            enough = max(control.tol * abs(value), floor)
            late = bool(rounds) and rounds[-1].seconds > limits.seconds
            last_pass = late or len(rounds) >= limits.passes
            if expected <= min(CERTIFICATE_LEVEL * enough, ask_below) or last_pass:
                final = as_type(coef, self.population.dtype)
                last = as_type(centred(first, intercept), self.population.dtype)
                there = here
                if not (np.array_equal(final, coef) and np.array_equal(last, intercept)):
                    there = sums.of(slopes, at(final, last))
                bound = max(bound, _bound(sums, at(final, last), there, alpha, first.fit_intercept))
                shown = there.loss + alpha * terms.value(final)
                gap = max(shown - bound, 0.0)
                if gap <= enough or last_pass or expected == 0.0:
                    status = "stopped" if late else ("max_iter" if last_pass else "stalled")
                    status = "optimal" if gap <= enough else status
                    rounds.append(Round(shown, bound, 0, time.perf_counter() - began))
                    break
                ask_below = REPEAT_SHARE * expected
            features = working_set(first, coef, here)
            place, old = at(coef, intercept), here
            step, shift, change = model.step(place, here, features)
            expected = -change
            coef, intercept, here, value, moved = line_search(
                sums,
                at,
                first,
                (coef, intercept, here, value),
                (step, shift, change),
                model.assembled(features),
            )
            if moved:
                model.learn((place, old), (at(coef, intercept), here))
            else:
                expected = 0.0
            now = Round(value, bound, features.size, time.perf_counter() - began)
            rounds.append(now)
            if progress is not None:
                progress(now)
        return Fitted(
            coef=final,
            intercept=last,
            objective=shown,
            dual_objective=bound,
            status=status,
            rounds=tuple(rounds),
        )

    def largest_alpha(self, control: Control) -> tuple[float, Start]:
        """Return alpha_max, the dual norm of the slopes at the best intercepts alone, and those.

        It is infinite where no alpha gives a model of zeros.
        """
        first, sums = self.first, self.sums
        terms = first.penalty
        coef = np.zeros((first.n_outputs, first.d))
        if not terms.is_norm and terms.l1_ratio == 0.0:
            return float(np.inf), Start(coef, np.zeros(first.n_outputs))
        loss = first.loss
        assert isinstance(loss, SmoothLoss)
        intercept = class_intercepts(self.population, first)
        none = np.zeros(0, dtype=np.int32)
        model = Model(first, sums)
        at = partial(Place, self.population, loss, first.cost, terms)
        here: Slopes = sums.of(slopes, at(coef, intercept))
        while self.population.margins and first.fit_intercept:
            before = float(np.abs(here.intercept).max())
            _, shift, _ = model.step(at(coef, intercept), here, none)
            there: Slopes = sums.of(slopes, at(coef, intercept + shift))
            if not np.abs(there.intercept).max() < 0.5 * before:
                break
            here, intercept = there, intercept + shift
        self.largest = float(slope_strength(terms, -here.coef).max(initial=0.0))
        return self.largest, Start(coef, intercept)


def working_set(problem: Problem, coef: Floats, here: Slopes) -> Features:
    """Return the features in use and those whose slopes come close to the limit."""
    terms = problem.penalty
    used = np.zeros(terms.n_groups, dtype=bool)
    used[np.unique(terms.groups[np.any(coef != 0.0, axis=0)])] = True
    strength = slope_strength(terms, -here.coef / problem.alpha)
    if strength.size != terms.n_groups:
        raise AssertionError("a strength for each group")
    strength = np.where(used, -np.inf, strength)
    near = np.flatnonzero(strength > NEAR_LIMIT)
    if np.isfinite(strength[near]).all():
        near = near[np.argsort(-strength[near], kind="stable")[: max(MOST_NEW, used.sum())]]
    used[near] = True
    return np.flatnonzero(used[terms.groups]).astype(np.int32)


def line_search(
    sums: Sums,
    at: Callable[[Floats, Floats], Place],
    problem: Problem,
    old: tuple[Floats, Floats, Slopes, float],
    model: tuple[Floats, Floats, float],
    features: Features | None,
) -> tuple[Floats, Floats, Slopes, float, bool]:
    """Take the whole step if it lowers the objective enough, else the best share of it.

    The slopes there come with the second derivatives of the features, for the next step.
    """
    (coef, intercept, here, value), (step, shift, change) = old, model
    penalty = problem.penalty
    place = at(coef + step, intercept + shift)
    there: Slopes = sums.of(slopes, place, features)
    reached = there.loss + problem.alpha * penalty.value(place.coef)
    if reached <= value + SUFFICIENT * change:
        return place.coef, place.intercept, there, reached, change < 0.0
    found = sums.of(losses, at(coef, intercept), at(step, shift), SHARES)
    found = found + [problem.alpha * penalty.value(coef + t * step) for t in SHARES]
    best = int(np.argmin(found))
    if not found[best] < value:
        return coef, intercept, here, value, False
    place = at(coef + SHARES[best] * step, intercept + SHARES[best] * shift)
    return place.coef, place.intercept, sums.of(slopes, place, features), float(found[best]), True


def _bound(sums: Sums, place: Place, here: Slopes, alpha: float, fit_intercept: bool) -> float:
    """Return a lower bound on the objective of every model, from the derivatives at the place."""
    factors = balancing_factors(place, here, fit_intercept)
    scale, rest, _ = dual_scale(sums, place, factors, alpha)
    value = float(sums.of(gain, place, factors, scale)) - rest
    return max(0.0, value)


def balancing_factors(place: Place, here: Slopes, fit_intercept: bool) -> Floats:
    """Return the factors of pairs of classes that make dual entries meet the intercepts."""
    factors = np.ones_like(here.class_sums)
    if fit_intercept:
        balanced = balanced_class_sums(here.class_sums, place.loss.of_differences)
        np.divide(balanced, here.class_sums, out=factors, where=here.class_sums > 0.0)
    return factors


def dual_scale(
    sums: Sums, place: Place, factors: Floats, alpha: float
) -> tuple[float, float, float]:
    """Return what makes balanced dual entries feasible, the penalty's part, and their value."""
    terms = place.penalty
    dual = sums.of(repaired, place, factors)
    # Roundings of sums over n rows, by which the dual norm is rounded up.
    error = (place.population.n + terms.largest_group + 2 + OTHER_ROUNDINGS) * EPS
    slope = dual.coef / alpha
    scale, rest = dual.fitting, 0.0
    if terms.is_norm:
        norm = terms.dual_norm(slope) * (1.0 + error)
        scale = min(scale, 1.0 / norm) if norm > 0.0 else scale
    else:
        rest = alpha * terms.conjugate(-scale * slope)
    return scale, rest, dual.margin_value
