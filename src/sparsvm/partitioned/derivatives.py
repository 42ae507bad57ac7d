"""Sums over the samples of one partition: loss, first and second derivatives, dual values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Features, Floats
from sparsvm.certificate.dual_gain import gain_of
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rows import row_sum
from sparsvm.partitioned.survey import Population
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.build import problem_on
from sparsvm.problem.problem import Problem


class Place(NamedTuple):
    """What all partitions are told: the problem's constants and a point."""

    population: Population
    loss: SmoothLoss
    cost: Floats
    penalty: PenaltyTerms
    coef: Floats
    intercept: Floats


class Slopes(NamedTuple):
    """Loss at the point, the size of what it is made of, its gradient, and sums of dual entries.

    ``class_sums[z, k]`` adds the entries of class k over the samples of class z.
    """

    loss: float
    size: float
    coef: Floats
    intercept: Floats
    class_sums: Floats

    def plus(self, other: Slopes) -> Slopes:
        """Return the sums over both."""
        return Slopes(
            self.loss + other.loss,
            self.size + other.size,
            self.coef + other.coef,
            self.intercept + other.intercept,
            self.class_sums + other.class_sums,
        )


class Repaired(NamedTuple):
    """Slope of the balanced dual entries, and the factor that brings each under its mass."""

    coef: Floats
    fitting: float

    def plus(self, other: Repaired) -> Repaired:
        """Return the sum of the slopes and the smaller factor."""
        return Repaired(self.coef + other.coef, min(self.fitting, other.fitting))


def plus(a: Any, b: Any) -> Any:
    """Return a + b; records add up by themselves."""
    return a.plus(b) if hasattr(a, "plus") else a + b


def _problem(part: Any, number: int, place: Place) -> tuple[Problem | None, Any]:
    """Return the partition's share of the problem; None for one without weight."""
    X, y, mass, margin = place.population.read(part, number)
    if y.size == 0:
        return None, X
    problem = problem_on(
        X,
        y,
        mass,
        margin,
        loss=place.loss,
        cost=place.cost,
        penalty=place.penalty,
        alpha=1.0,
        fit_intercept=True,
    )
    return problem, X


def slopes(part: Any, number: int, place: Place) -> Slopes:
    """Return loss and gradient at the place."""
    problem, _ = _problem(part, number, place)
    outputs, d, K = *place.coef.shape, place.cost.shape[0]
    if problem is None:
        zeros = np.zeros((outputs, d))
        return Slopes(0.0, 0.0, zeros, np.zeros(outputs), np.zeros((K, K)))
    scores = problem.scores(place.coef, place.intercept)
    at = (scores, problem.y, problem.margins())
    entries = problem.mass[:, None] * place.loss.dual_entries(*at)
    sizes = 2.0 * np.abs(scores).max(axis=1) + np.abs(at[2]).max(axis=1) + 1.0
    sizes = problem.mass * (place.loss.value(*at) + sizes * row_sum(entries) / problem.mass)
    class_sums = np.zeros((K, K))
    np.add.at(class_sums, problem.y, entries)
    signed = problem.signed_dual(entries)
    return Slopes(
        float(np.sum(problem.mass * place.loss.value(*at))),
        float(sizes.sum()),
        problem.transposed(signed),
        (signed[:, 1:] if K == 2 else signed).sum(axis=0),
        class_sums,
    )


def losses(part: Any, number: int, place: Place, step: Place, shares: Floats) -> Floats:
    """Return the loss at the place plus each share of the step."""
    problem, _ = _problem(part, number, place)
    if problem is None:
        return np.zeros(shares.size)
    here = problem.scores(place.coef, place.intercept)
    away = problem.scores(step.coef, step.intercept)
    margins = problem.margins()
    return np.array(
        [
            float(np.sum(problem.mass * place.loss.value(here + t * away, problem.y, margins)))
            for t in shares
        ]
    )


def curvature(part: Any, number: int, place: Place, features: Features) -> Floats:
    r"""Return the second derivative in the weights of some features and the intercepts.

    Variables are ordered by output, and within an output the features come first, then the
    intercept: block (k, l) is :math:`\sum_i p_i h_{i,kl} z_i z_i^\top` with
    :math:`z_i = (x_{i,features}, 1)`.
    """
    problem, X = _problem(part, number, place)
    outputs, m = place.coef.shape[0], features.size + 1
    H = np.zeros((outputs * m, outputs * m))
    if problem is None:
        return H
    columns = X[:, features]
    columns = columns.toarray() if sp.issparse(columns) else np.asarray(columns)
    Z = np.column_stack([columns, np.ones(columns.shape[0])]).astype(np.float64)
    scores, margins = problem.scores(place.coef, place.intercept), problem.margins()
    K = place.cost.shape[0]
    first = K - outputs  # class 0 of two has no weights
    for k in range(outputs):
        direction = np.zeros_like(scores)
        direction[:, first + k] = 1.0
        h = place.loss.hessian_product(scores, problem.y, margins, direction)
        h *= problem.mass[:, None]
        for l in range(k + 1):
            block = (Z * h[:, first + l][:, None]).T @ Z
            H[k * m : (k + 1) * m, l * m : (l + 1) * m] = block
            H[l * m : (l + 1) * m, k * m : (k + 1) * m] = block.T
    return H


def diagonal(part: Any, number: int, place: Place, features: Features) -> Floats:
    """Return the diagonal of :func:`curvature`, of shape (n_outputs, n_features + 1)."""
    problem, X = _problem(part, number, place)
    outputs = place.coef.shape[0]
    out = np.zeros((outputs, features.size + 1))
    if problem is None:
        return out
    columns = X[:, features]
    squares = columns.multiply(columns) if sp.issparse(columns) else np.square(columns)
    scores, margins = problem.scores(place.coef, place.intercept), problem.margins()
    first = place.cost.shape[0] - outputs
    for k in range(outputs):
        direction = np.zeros_like(scores)
        direction[:, first + k] = 1.0
        h = place.loss.hessian_product(scores, problem.y, margins, direction)[:, first + k]
        h = h * problem.mass
        out[k, :-1], out[k, -1] = squares.T @ h, h.sum()
    return out


def repaired(part: Any, number: int, place: Place, factors: Floats) -> Repaired:
    """Return the slope of the dual entries times the factor of their pair of classes."""
    problem, _ = _problem(part, number, place)
    if problem is None:
        return Repaired(np.zeros(place.coef.shape), 1.0)
    entries = _entries(problem, place, factors)
    fitting = 1.0
    if place.loss.within_masses:
        totals = row_sum(entries)
        fitting = float(np.min(problem.mass / np.maximum(totals, problem.mass)))
    return Repaired(problem.transposed(problem.signed_dual(entries)), fitting)


def gain(part: Any, number: int, place: Place, factors: Floats, scale: float) -> float:
    """Return the loss part of the dual value at ``scale`` times the repaired entries."""
    problem, _ = _problem(part, number, place)
    if problem is None:
        return 0.0
    return float(gain_of(problem, _entries(problem, place, factors)).value(scale))


def _entries(problem: Problem, place: Place, factors: Floats) -> Array:
    entries = problem.dual_at(problem.scores(place.coef, place.intercept))
    entries *= factors[problem.y]
    return entries
