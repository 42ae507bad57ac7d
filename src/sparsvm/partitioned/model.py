"""Quadratic models of a smooth loss over partitions, and their proximal steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsvm._typing import Bools, Features, Floats
from sparsvm.partitioned.derivatives import Place, Slopes, curvature, diagonal
from sparsvm.partitioned.quadratic import Assembled, Quadratic, QuasiNewton, minimise
from sparsvm.partitioned.sums import Sums
from sparsvm.problem.problem import Problem

# Settings.
# Variables of a Newton system: their matrix takes 128 MB and seconds to factorise.
MOST_VARIABLES = 4000
# The quasi-Newton model keeps so many pairs, and those of so much curvature.
PAIRS, LEAST_CURVATURE = 30, 1e-10
# Columns of less curvature than this share of the largest count as if they had it.
FLAT_SHARE = 1e-12


class Model:
    """Quadratic models of the loss: second derivatives where they are few, else quasi-Newton.

    A product with the second derivatives would be a pass over the data, and a step needs some tens
    of them; the change of the gradient, which every pass brings, tells nearly as much.
    """

    def __init__(self, problem: Problem, sums: Sums) -> None:
        self.problem, self.sums = problem, sums
        self.features: Features | None = None  # of the quasi-Newton model
        self.diagonal = np.zeros(0)
        self.pairs: list[tuple[Floats, Floats]] = []

    def assembled(self, features: Features) -> Features | None:
        """Return the features if their second derivatives are few enough to be assembled."""
        few = self.problem.n_outputs * (features.size + 1) <= MOST_VARIABLES
        return features if few else None

    def step(self, place: Place, here: Slopes, features: Features) -> tuple[Floats, Floats, float]:
        """Minimise the model plus the penalty: the step and the change it promises.

        Second derivatives that came with the slopes save a pass.
        """
        problem, coef = self.problem, place.coef
        outputs, m = problem.n_outputs, features.size
        gradient = np.column_stack([here.coef[:, features], here.intercept])
        free = np.ones((outputs, m + 1), dtype=bool)
        free[:, m] = problem.fit_intercept
        gradient[~free] = 0.0
        # Columns in units in which the loss is about equally curved, where the penalty allows it:
        # it is a function of omega * W.
        H: Quadratic
        if self.assembled(features) is not None:
            self.features = None
            known = here.features
            if here.curvature is not None and known is not None and np.array_equal(known, features):
                matrix = here.curvature.copy()
            else:
                matrix = self.sums.of(curvature, place, features)
            fixed = np.flatnonzero(~free)
            matrix[fixed], matrix[:, fixed] = 0.0, 0.0
            matrix[fixed, fixed] = 1.0
            units = self._units(np.diag(matrix).reshape(outputs, m + 1))
            flat = np.tile(units, outputs)
            H = Assembled(matrix / flat[:, None] / flat)
        else:
            self._prepare(place, features, free)
            units = self._units(self.diagonal)
            H = self._quasi_newton(free, units)
        terms = problem.penalty.restricted_to(features)
        scaled = replace(terms, omega=terms.omega / units[:m]) if terms.built_in else terms
        gradient /= units
        point = np.column_stack([coef[:, features], place.intercept])

        def value(z: Floats) -> float:
            return problem.alpha * scaled.value(np.ascontiguousarray(z[:, :m])) if m else 0.0

        def prox(z: Floats, step: float) -> Floats:
            out = z.copy()
            if m:  # else the intercepts alone
                out[:, :m] = scaled.prox(np.ascontiguousarray(z[:, :m]), problem.alpha * step)
            return out

        inner = point * units
        new = minimise(H, gradient, inner, prox)
        delta = new - inner
        flat = delta.ravel()
        curved = 0.5 * float(flat @ H.product(flat))
        change = float(gradient.ravel() @ flat) + curved + value(new) - value(inner)
        # Exact zeros stay exact.
        moved = np.where(new == 0.0, -point, delta / units)
        step = np.zeros_like(coef)
        step[:, features] = moved[:, :m]
        return step, moved[:, m], min(change, 0.0)

    def _units(self, diagonal: Floats) -> Floats:
        """Return the square roots of the mean curvatures of each column."""
        if not self.problem.penalty.built_in:
            return np.ones(diagonal.shape[1])
        mean = diagonal.mean(axis=0)
        top = float(mean.max(initial=0.0))
        return (
            np.asarray(np.sqrt(np.maximum(mean, FLAT_SHARE * top)))
            if top > 0.0
            else np.ones(mean.size)
        )

    def _prepare(self, place: Place, features: Features, free: Bools) -> None:
        """Let the pairs and the diagonal be those of the features; new ones begin without pairs."""
        self.diagonal = np.where(free, self.sums.of(diagonal, place, features), 1.0)
        old, self.features = self.features, features
        if old is None:
            self.pairs = []
        elif not np.array_equal(features, old):
            self.pairs = [(_at(s, old, features), _at(y, old, features)) for s, y in self.pairs]

    def _quasi_newton(self, free: Bools, units: Floats) -> QuasiNewton:
        """Return the model from the pairs so far."""
        kept = [(s * units * free, y / units * free) for s, y in self.pairs]
        sizes = [float(np.linalg.norm(s) * np.linalg.norm(y)) for s, y in kept]
        curved = [t for t, (s, y) in enumerate(kept) if np.vdot(s, y) > LEAST_CURVATURE * sizes[t]]
        shape = (len(curved), free.size)
        return QuasiNewton(
            (self.diagonal / units**2).ravel(),
            np.array([kept[t][0].ravel() for t in curved]).reshape(shape),
            np.array([kept[t][1].ravel() for t in curved]).reshape(shape),
        )

    def learn(self, old: tuple[Place, Slopes], new: tuple[Place, Slopes]) -> None:
        """Note a step and the change of the gradient over it."""
        if self.features is None:
            return
        (a, before), (b, after) = old, new
        s = np.column_stack([(b.coef - a.coef)[:, self.features], b.intercept - a.intercept])
        change = (after.coef - before.coef)[:, self.features]
        y = np.column_stack([change, after.intercept - before.intercept])
        self.pairs = [*self.pairs, (s, y)][-PAIRS:]


def _at(pair: Floats, old: Features, new: Features) -> Floats:
    """Return columns of other features, zero where they are new; the intercept stays the last."""
    out = np.zeros((pair.shape[0], new.size + 1))
    _, here, there = np.intersect1d(new, old, assume_unique=True, return_indices=True)
    out[:, here] = pair[:, there]
    out[:, -1] = pair[:, -1]
    return out
