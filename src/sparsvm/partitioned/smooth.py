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
from sparsvm.partitioned.derivatives import (
    Place,
    Slopes,
    curvature,
    gain,
    losses,
    plus,
    repaired,
    slopes,
)
from sparsvm.partitioned.engine import Engine
from sparsvm.partitioned.fitted import Fitted, Round
from sparsvm.partitioned.quadratic import minimise
from sparsvm.partitioned.survey import Population
from sparsvm.problem.problem import Problem
from sparsvm.problem.restriction import slope_strength
from sparsvm.problem.solution import Control, Start, relative

# Settings.
ROUNDS = 100
# Variables of a Newton system: their matrix takes 128 MB and seconds to factorise.
MOST_VARIABLES = 4000
# Features join where their dual norm is beyond this share of its limit, at most so many at once.
NEAR_LIMIT, MOST_NEW = 0.99, 200
# A step must lower the objective by this share of what the model says (Tseng and Yun); the shares
# of it that are tried in one pass where it does not.
SUFFICIENT = 0.01
SHARES = 0.5 ** np.arange(1, 13)
# The certificate takes two more passes, and is asked for where the model expects so little.
WORTH_A_CERTIFICATE = 3.0


class _Sums:
    """Sums over all partitions, in their order."""

    def __init__(self, engine: Engine, parts: Sequence[Any]) -> None:
        self.engine, self.parts = engine, parts

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up ``function(part, number, *arguments)`` along a tree of fixed shape."""
        known = [self.engine.broadcast(each) for each in arguments]
        layer = [
            self.engine.submit(function, part, at, *known) for at, part in enumerate(self.parts)
        ]
        while len(layer) > 1:
            pairs = [layer[at : at + 2] for at in range(0, len(layer), 2)]
            layer = [self.engine.submit(plus, *p) if len(p) == 2 else p[0] for p in pairs]
        return self.engine.gather(layer)[0]


def fit_smooth(
    engine: Engine,
    parts: Sequence[Any],
    population: Population,
    first: Problem,
    control: Control,
    start: Start,
    progress: Callable[[Round], None] | None = None,
) -> Fitted:
    """Minimise over all partitions from ``start``, mostly the solution of the sample ``first``.

    Parameters
    ----------
    engine, parts, population, first, control, progress
        As for :func:`~sparsvm.partitioned.hinge.fit_hinge`.
    start : Start
    """
    loss, terms, alpha = first.loss, first.penalty, first.alpha
    assert isinstance(loss, SmoothLoss)
    if terms.free.size > 0:
        raise ValueError(
            "Smooth losses over partitions need every feature penalised; features of weight 0 "
            "are supported with loss='hinge', or by sparsvm.SparseSVC on data in memory."
        )
    began = time.perf_counter()
    sums = _Sums(engine, parts)
    at = partial(Place, population, loss, first.cost, terms)
    coef, intercept = start.coef, start.intercept
    here: Slopes = sums.of(slopes, at(coef, intercept))
    value = here.loss + alpha * terms.value(coef)
    bound, best_bound_at = -np.inf, np.inf
    rounds: list[Round] = []
    expected, limit, status = np.inf, control.max_iter or ROUNDS, "max_iter"
    while True:
        floor = 16.0 * np.finfo(np.float64).eps * (here.size + alpha * terms.value(coef))
        enough = max(control.tol * abs(value), floor)
        if expected <= WORTH_A_CERTIFICATE * enough or len(rounds) >= limit:
            final = as_type(coef, population.dtype)
            last = as_type(centred(first, intercept), population.dtype)
            if not (np.array_equal(final, coef) and np.array_equal(last, intercept)):
                place = at(final, last)
                here = sums.of(slopes, place)
            bound = max(bound, _bound(sums, at(final, last), here, alpha, first.fit_intercept))
            shown = here.loss + alpha * terms.value(final)
            gap = max(shown - bound, 0.0)
            done = gap <= enough
            if done or len(rounds) >= limit or best_bound_at <= expected:
                status = "optimal" if done else ("max_iter" if len(rounds) >= limit else "stalled")
                rounds.append(Round(shown, bound, 0, time.perf_counter() - began))
                break
            best_bound_at = 0.1 * expected
        features = _working_set(first, coef, here)
        H = sums.of(curvature, at(coef, intercept), features)
        step, shift, change = _model_step(first, coef, intercept, here, H, features)
        expected = -change
        coef, intercept, here, value, moved = _moved(
            sums, at, first, (coef, intercept, here, value), (step, shift, change)
        )
        if not moved:
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
        gap=gap,
        relative_gap=relative(gap, shown),
        status=status,
        rounds=tuple(rounds),
    )


def _working_set(problem: Problem, coef: Floats, here: Slopes) -> Features:
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
    features = np.flatnonzero(used[terms.groups]).astype(np.int32)
    variables = problem.n_outputs * (features.size + 1)
    if variables > MOST_VARIABLES:
        raise ValueError(
            f"The model needs {features.size} features in {problem.n_outputs} outputs, but Newton "
            f"systems of more than {MOST_VARIABLES} variables are not formed. Raise alpha, or use "
            "a sparse penalty; loss='hinge' has no such limit."
        )
    return features


def _model_step(
    problem: Problem,
    coef: Floats,
    intercept: Floats,
    here: Slopes,
    H: Floats,
    features: Features,
) -> tuple[Floats, Floats, float]:
    """Minimise the quadratic model plus the penalty: the step and the change it promises."""
    outputs, m = problem.n_outputs, features.size
    terms = problem.penalty.restricted_to(features)
    gradient = np.column_stack([here.coef[:, features], here.intercept])
    if not problem.fit_intercept:
        fixed = np.arange(outputs) * (m + 1) + m
        H[fixed], H[:, fixed] = 0.0, 0.0
        H[fixed, fixed] = 1.0
        gradient[:, m] = 0.0
    point = np.column_stack([coef[:, features], intercept])

    def value(z: Floats) -> float:
        return problem.alpha * terms.value(np.ascontiguousarray(z[:, :m]))

    def prox(z: Floats, step: float) -> Floats:
        out = z.copy()
        out[:, :m] = terms.prox(np.ascontiguousarray(z[:, :m]), problem.alpha * step)
        return out

    new = minimise(H, gradient, point, prox)
    delta = new - point
    flat = delta.ravel()
    change = float(gradient.ravel() @ flat + 0.5 * flat @ (H @ flat) + value(new) - value(point))
    step = np.zeros_like(coef)
    step[:, features] = delta[:, :m]
    return step, delta[:, m], min(change, 0.0)


def _moved(
    sums: _Sums,
    at: Callable[[Floats, Floats], Place],
    problem: Problem,
    old: tuple[Floats, Floats, Slopes, float],
    model: tuple[Floats, Floats, float],
) -> tuple[Floats, Floats, Slopes, float, bool]:
    """Take the whole step if it lowers the objective enough, else the best share of it."""
    (coef, intercept, here, value), (step, shift, change) = old, model
    penalty = problem.penalty
    place = at(coef + step, intercept + shift)
    there: Slopes = sums.of(slopes, place)
    reached = there.loss + problem.alpha * penalty.value(place.coef)
    if reached <= value + SUFFICIENT * change:
        return place.coef, place.intercept, there, reached, change < 0.0
    found = sums.of(losses, at(coef, intercept), at(step, shift), SHARES)
    found = found + [problem.alpha * penalty.value(coef + t * step) for t in SHARES]
    best = int(np.argmin(found))
    if not found[best] < value:
        return coef, intercept, here, value, False
    place = at(coef + SHARES[best] * step, intercept + SHARES[best] * shift)
    return place.coef, place.intercept, sums.of(slopes, place), float(found[best]), True


def _bound(sums: _Sums, place: Place, here: Slopes, alpha: float, fit_intercept: bool) -> float:
    """Return a lower bound on the objective of every model, from the derivatives at the place."""
    terms = place.penalty
    factors = np.ones_like(here.class_sums)
    if fit_intercept:
        balanced = balanced_class_sums(here.class_sums, place.loss.of_differences)
        np.divide(balanced, here.class_sums, out=factors, where=here.class_sums > 0.0)
    dual = sums.of(repaired, place, factors)
    # Roundings of sums over n rows, by which the dual norm is rounded up.
    error = (place.population.n + terms.largest_group + 18) * np.finfo(np.float64).eps
    slope = dual.coef / alpha
    scale = dual.fitting
    if terms.is_norm:
        norm = terms.dual_norm(slope) * (1.0 + error)
        scale = min(scale, 1.0 / norm) if norm > 0.0 else scale
        rest = 0.0
    else:
        rest = alpha * terms.conjugate(-scale * slope)
    value = float(sums.of(gain, place, factors, scale)) - rest
    return max(0.0, value)
