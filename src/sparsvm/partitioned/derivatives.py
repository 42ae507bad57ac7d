"""Sums over the samples of one partition: loss, first and second derivatives, dual values.

Every function is given the rows of a partition, its number and its state: the multipliers of its
samples for the hinge, nothing for smooth losses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Features, Floats
from sparsvm.certificate.dual_gain import gain_of
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rows import row_sum
from sparsvm.partitioned.proximal_hinge import ProximalHinge
from sparsvm.partitioned.survey import Population
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.build import problem_on
from sparsvm.problem.problem import Problem

# Columns with at most this share of non-zeros are multiplied as sparse ones. Second derivatives of
# 4000 rows x 300: 0.30 s from dense columns; from sparse ones 0.06 s with a share of 0.02, 0.19 s
# with 0.1 and 0.50 s with 0.2.
SPARSE_SHARE = 0.1
# Of the largest curvature, in the diagonal, where a sample has none.
FLAT_SHARE = 0.05


class Place(NamedTuple):
    """What all partitions are told: the problem's constants and a point."""

    population: Population
    loss: SmoothLoss
    cost: Floats
    penalty: PenaltyTerms
    coef: Floats
    intercept: Floats


class Slopes(NamedTuple):
    """Derivatives of the loss at a point, and what the certificate needs to know of it.

    Attributes
    ----------
    loss, size : float
        The loss and the size of what it is made of.
    coef, intercept : arrays
        The gradient.
    class_sums, margin_sums : arrays of shape (n_classes, n_classes)
        Entry (z, k) adds the dual entries of class k over the samples of class z, and these times
        their margins.
    exact : float
        The hinge, where the loss is that of an augmented Lagrangian.
    curved : int
        Samples whose loss has a second derivative.
    features : array of int, optional
    curvature : array, optional
        Second derivatives in the weights of the features and the intercepts.
    """

    loss: float
    size: float
    coef: Floats
    intercept: Floats
    class_sums: Floats
    margin_sums: Floats
    exact: float
    curved: int = 0
    features: Features | None = None
    curvature: Floats | None = None

    def plus(self, other: Slopes) -> Slopes:
        """Return the sums over both."""
        both = self.curvature is not None and other.curvature is not None
        return Slopes(
            self.loss + other.loss,
            self.size + other.size,
            self.coef + other.coef,
            self.intercept + other.intercept,
            self.class_sums + other.class_sums,
            self.margin_sums + other.margin_sums,
            self.exact + other.exact,
            self.curved + other.curved,
            self.features,
            self.curvature + other.curvature if both else None,  # type: ignore[operator]
        )


class Repaired(NamedTuple):
    """Slope of balanced dual entries, the factor that brings each under its mass, their value."""

    coef: Floats
    fitting: float
    margin_value: float

    def plus(self, other: Repaired) -> Repaired:
        """Return the sums of the slopes and values, and the smaller factor."""
        return Repaired(
            self.coef + other.coef,
            min(self.fitting, other.fitting),
            self.margin_value + other.margin_value,
        )


def plus(a: Any, b: Any) -> Any:
    """Return a + b; records add up by themselves."""
    return a.plus(b) if hasattr(a, "plus") else a + b


def _problem(part: Any, number: int, state: Any, place: Place) -> tuple[Problem | None, Any]:
    """Return the partition's share of the problem; None for one without weight."""
    X, y, mass, margin = place.population.read(part, number)
    if y.size == 0:
        return None, X
    return _share(X, y, mass, margin, state, place), X


def _share(
    X: Any, y: Array, mass: Floats, margin: Floats | None, state: Any, place: Place
) -> Problem:
    loss = place.loss.around(state) if isinstance(place.loss, ProximalHinge) else place.loss
    return problem_on(
        X,
        y,
        mass,
        margin,
        loss=loss,
        cost=place.cost,
        penalty=place.penalty,
        alpha=1.0,
        fit_intercept=True,
    )


def slopes(
    part: Any, number: int, state: Any, place: Place, features: Features | None = None
) -> Slopes:
    """Return loss and gradient at the place, and second derivatives where features are given."""
    problem, X = _problem(part, number, state, place)
    return _nothing(place, features) if problem is None else _slopes(problem, X, place, features)


def advanced(
    part: Any, number: int, state: Any, place: Place, then: Place, features: Features | None
) -> tuple[Any, Slopes]:
    """Return the multipliers at the place, and the slopes of the Lagrangian around them."""
    X, y, mass, margin = place.population.read(part, number)
    if y.size == 0:
        return None, _nothing(place, features)
    problem = _share(X, y, mass, margin, state, place)
    assert isinstance(problem.loss, ProximalHinge)
    scores = problem.scores(place.coef, place.intercept)
    shares = problem.loss.shares(scores, problem.y, problem.margins())
    # The centre of the next Lagrangian may be anywhere near: half the digits, half the memory.
    following = shares.astype(np.float32)
    return following, _slopes(_share(X, y, mass, margin, following, then), X, then, features)


def _nothing(place: Place, features: Features | None) -> Slopes:
    outputs, K = place.coef.shape[0], place.cost.shape[0]
    H = None
    if features is not None:
        H = np.zeros((outputs * (features.size + 1),) * 2)
    none = np.zeros((K, K))
    return Slopes(
        0.0, 0.0, np.zeros(place.coef.shape), np.zeros(outputs), none, none, 0.0, 0, features, H
    )


def _slopes(problem: Problem, X: Any, place: Place, features: Features | None) -> Slopes:
    loss, K = problem.loss, place.cost.shape[0]
    assert isinstance(loss, SmoothLoss)
    scores = problem.scores(place.coef, place.intercept)
    at = (scores, problem.y, problem.margins())
    values = loss.value(*at)
    entries = problem.mass[:, None] * loss.dual_entries(*at)
    sizes = 2.0 * np.abs(scores).max(axis=1) + np.abs(at[2]).max(axis=1) + 1.0
    sizes = problem.mass * values + sizes * row_sum(entries)
    class_sums, margin_sums = np.zeros((K, K)), np.zeros((K, K))
    for k in range(K):
        class_sums[:, k] = np.bincount(problem.y, entries[:, k], K)
        margin_sums[:, k] = np.bincount(problem.y, entries[:, k] * at[2][:, k], K)
    signed = problem.signed_dual(entries)
    total = float(np.sum(problem.mass * values))
    exact, curved = total, problem.n
    if isinstance(loss, ProximalHinge):
        exact = float(np.sum(problem.mass * loss.hinge(*at)))
        curved = int(np.count_nonzero(loss.curved(*at)))
    return Slopes(
        total,
        float(sizes.sum()),
        problem.transposed(signed),
        (signed[:, 1:] if K == 2 else signed).sum(axis=0),
        class_sums,
        margin_sums,
        exact,
        curved,
        features,
        None if features is None else _curvature(problem, X, place, features, scores),
    )


def losses(part: Any, number: int, state: Any, place: Place, step: Place, shares: Floats) -> Floats:
    """Return the loss at the place plus each share of the step."""
    problem, _ = _problem(part, number, state, place)
    if problem is None:
        return np.zeros(shares.size)
    here = problem.scores(place.coef, place.intercept)
    away = problem.scores(step.coef, step.intercept)
    margins = problem.margins()
    return np.array(
        [
            float(np.sum(problem.mass * problem.loss.value(here + t * away, problem.y, margins)))
            for t in shares
        ]
    )


def curvature(part: Any, number: int, state: Any, place: Place, features: Features) -> Floats:
    r"""Return the second derivative in the weights of some features and the intercepts.

    Variables are ordered by output, and within an output the features come first, then the
    intercept: block (k, l) is :math:`\sum_i p_i h_{i,kl} z_i z_i^\top` with
    :math:`z_i = (x_{i,features}, 1)`.
    """
    problem, X = _problem(part, number, state, place)
    if problem is None:
        return np.zeros((place.coef.shape[0] * (features.size + 1),) * 2)
    return _curvature(problem, X, place, features, problem.scores(place.coef, place.intercept))


def _curvature(
    problem: Problem, X: Any, place: Place, features: Features, scores: Floats
) -> Floats:
    loss = problem.loss
    assert isinstance(loss, SmoothLoss)
    outputs, m = place.coef.shape[0], features.size + 1
    H = np.zeros((outputs * m, outputs * m))
    y, mass, margins = problem.y, problem.mass, problem.margins()
    if isinstance(loss, ProximalHinge):
        rows = np.flatnonzero(loss.curved(scores, y, margins))
        curved = scores[rows]
        loss = loss.only(rows, curved)
        scores, y, mass, margins, X = curved, y[rows], mass[rows], margins[rows], X[rows]
    first = place.cost.shape[0] - outputs  # class 0 of two has no weights
    columns, ones = X[:, features], np.ones((scores.shape[0], 1))
    Z: Any
    if sp.issparse(columns) and columns.nnz <= SPARSE_SHARE * columns.shape[0] * m:
        Z = sp.csr_array(sp.hstack([columns, ones]), dtype=np.float64)
    else:
        columns = columns.toarray() if sp.issparse(columns) else np.asarray(columns)
        Z = np.hstack([columns, ones]).astype(np.float64)
    for k in range(outputs):
        direction = np.zeros_like(scores)
        direction[:, first + k] = 1.0
        h = mass[:, None] * loss.hessian_product(scores, y, margins, direction)[:, first:]
        for l in range(k + 1):
            used = np.flatnonzero(h[:, l])
            part = Z[used] if used.size < Z.shape[0] else Z
            if sp.issparse(part):
                block = (part.T @ (sp.diags_array(h[used, l]) @ part)).toarray()
            else:
                block = (part * h[used, l][:, None]).T @ part
            H[k * m : (k + 1) * m, l * m : (l + 1) * m] = block
            H[l * m : (l + 1) * m, k * m : (k + 1) * m] = block.T
    return H


def diagonal(part: Any, number: int, state: Any, place: Place, features: Features) -> Floats:
    """Return the diagonal of :func:`curvature`, of shape (n_outputs, n_features + 1).

    The hinge of an augmented Lagrangian is curved at few samples, and a feature may occur in none
    of them: the others count by a share of the curvature that they might have.
    """
    problem, X = _problem(part, number, state, place)
    outputs = place.coef.shape[0]
    out = np.zeros((outputs, features.size + 1))
    if problem is None:
        return out
    loss = problem.loss
    assert isinstance(loss, SmoothLoss)
    columns = X[:, features]
    squares = columns.multiply(columns) if sp.issparse(columns) else np.square(columns)
    scores, margins = problem.scores(place.coef, place.intercept), problem.margins()
    first = place.cost.shape[0] - outputs
    for k in range(outputs):
        direction = np.zeros_like(scores)
        direction[:, first + k] = 1.0
        h = loss.hessian_product(scores, problem.y, margins, direction)[:, first + k]
        if isinstance(loss, ProximalHinge):
            h = np.maximum(h, FLAT_SHARE * loss.sigma)
        h = h * problem.mass
        out[k, :-1], out[k, -1] = squares.T @ h, h.sum()
    return out


def repaired(part: Any, number: int, state: Any, place: Place, factors: Floats) -> Repaired:
    """Return the slope of the dual entries times the factor of their pair of classes."""
    problem, _ = _problem(part, number, state, place)
    if problem is None:
        return Repaired(np.zeros(place.coef.shape), 1.0, 0.0)
    entries = _entries(problem, place, factors)
    fitting = 1.0
    if place.loss.within_masses:
        totals = row_sum(entries)
        fitting = float(np.min(problem.mass / np.maximum(totals, problem.mass)))
    value = problem.margin_value(entries)
    return Repaired(problem.transposed(problem.signed_dual(entries)), fitting, value)


def gain(part: Any, number: int, state: Any, place: Place, factors: Floats, scale: float) -> float:
    """Return the loss part of the dual value at ``scale`` times the repaired entries."""
    problem, _ = _problem(part, number, state, place)
    if problem is None:
        return 0.0
    return float(gain_of(problem, _entries(problem, place, factors)).value(scale))


def _entries(problem: Problem, place: Place, factors: Floats) -> Array:
    entries = problem.dual_at(problem.scores(place.coef, place.intercept))
    entries *= factors[problem.y]
    return entries
