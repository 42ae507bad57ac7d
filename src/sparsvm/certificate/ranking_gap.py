r"""The duality gap of label ranking, from scores that stand for the dual variables of all pairs.

With :math:`q_i = p_i c_i` and dual variables :math:`a_{irt} \ge 0`, one for each pair, the dual of
:class:`~sparsvm.problem.ranking.RankingProblem` is

.. math::
    \max_a \; \sum_{irt} a_{irt} - \frac{a_{irt}^2}{4 q_i} - \alpha\, penalty^*(-R^\top X/\alpha),
    \qquad R_{ir} = -\sum_t a_{irt}, \; R_{it} = \sum_r a_{irt},

subject to :math:`\sum_i R_{ik} = 0` where there is an intercept and
:math:`\sum_i x_{ij} R_{ik} = 0` for unpenalised features. With
:math:`a_{irt} = 2 q_i \max(0, 1 - \Sigma_{ir} + \Sigma_{it})` the first sum is half of
:math:`\sum |R|`, the second is the loss at :math:`\Sigma`, and R its derivative there: all of them
come of sorted scores.

The equalities are the optimality conditions of the loss in intercepts and unpenalised
weights, so any scores are repaired by minimising it in these, a piecewise quadratic that Newton's
method ends to rounding. Then the best factor of the dual point is searched for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.dual_gain import QuadraticGain
from sparsvm.certificate.dual_slope import limit
from sparsvm.certificate.gap import conjugate_scale, searched_scale
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.conjugate_gradients import conjugate_gradients
from sparsvm.numerics.rounding import UNIT
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.solution import Certificate

# Settings.
# Newton steps of the repair; pieces are finitely many, and from any scores it took fewer than 20.
STEPS = 60
# Steps of conjugate gradients for each, and what they leave of the residual.
MOST_PRODUCTS, RESIDUAL_SHARE = 300, 1e-12
# Shares of sums that are nothing but their rounding, and the decrease of a value that is.
ROUNDING_SHARE, LAST_DIGITS = 64.0 * UNIT, 8.0 * UNIT
# Sufficient decrease, and the halvings after which a step is nothing.
ARMIJO, HALVINGS = 1e-4, 40
# Roundings of an entry of the derivative beside those of its sums over the labels.
OTHERS = 8


def ranking_gap(
    problem: RankingProblem, W: Floats | Columns, b: Floats, dual: Floats | None
) -> Certificate:
    """Return the certificate of (W, b); the bound comes from ``dual``, or the scores at (W, b)."""
    W = problem.few_columns(W if isinstance(W, Columns) else np.asarray(W, dtype=np.float64))
    b = np.asarray(b, dtype=np.float64)
    scores = problem.scores(W, b)
    objective, floor = problem.objective_at(scores, W), problem.floor(W, b, scores)
    if dual is None:
        dual = scores
    elif dual.shape != scores.shape or not np.isfinite(dual).all():
        raise ValueError(f"The dual must hold finite scores of shape {scores.shape}.")
    bound, point = lower_bound(problem, dual, b)
    return Certificate(objective, bound, floor, point)


def lower_bound(problem: RankingProblem, scores: Floats, b: Floats) -> tuple[float, Floats]:
    """Return a bound on every objective, and the scores of the dual point behind it."""
    own = problem.label_sets.sets[problem.y]
    scores, unbalanced, _ = balanced(problem, np.ascontiguousarray(scores, dtype=np.float64))
    loss, R = problem.rows.slopes(scores)
    R = np.asarray(R)
    gain = QuadraticGain(0.5 * float(np.abs(R).sum()), float(loss))
    # What is left of the equalities counts against free coefficients of twice the size of those
    # found, and one more: it is rounding.
    charge = float(np.sum(unbalanced)) * (2.0 * float(np.abs(b).max(initial=0.0)) + 1.0)
    scale, value = _best_factor(problem, R, gain)
    value -= scale * charge
    zero = 0.0
    if not (problem.penalty.built_in or problem.penalty.is_norm):
        zero = -problem.alpha * problem.penalty.conjugate(np.zeros((problem.n_outputs, problem.d)))
    if not value > zero:
        return zero, own.astype(np.float64)
    return value, scale * scores + (1.0 - scale) * own


def _best_factor(problem: RankingProblem, R: Floats, gain: QuadraticGain) -> tuple[float, float]:
    """Return the best factor of a dual point with derivative R, and the dual value there."""
    G = problem.transposed(R) / problem.alpha
    # Of a sum of n products, as for other losses; R itself is rounded after sums over labels.
    sizes = np.sqrt(np.einsum("ik,ik->k", R, R))
    terms = problem.n + 2 * problem.n_outputs + OTHERS
    error = np.outer(sizes * (terms * UNIT / problem.alpha), problem.column_norms)
    penalty = problem.penalty
    if not penalty.is_norm:
        search = conjugate_scale if penalty.built_in else searched_scale
        return search(problem, G, error, gain)
    norm, top = penalty.dual_norm_within(G, error) * limit(problem), gain.peak()
    scale = top if norm * top <= 1.0 else 1.0 / norm
    return scale, gain.value(scale)


def free_columns(problem: RankingProblem) -> Floats:
    """Return the columns of what is not penalised: ones for the intercept, and free features."""
    free = problem.penalty.free
    columns = np.asarray(problem.design.gather_columns(free.astype(np.int32)), dtype=np.float64)
    if problem.fit_intercept:
        columns = np.hstack([np.ones((problem.n, 1)), columns])
    return columns


def balanced(problem: RankingProblem, scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Minimise the loss in intercepts and unpenalised weights, from the given scores.

    Returns the scores, how far each equality is from holding, and the change of the coefficients,
    shape (columns, labels): those of :func:`free_columns`.
    """
    columns = free_columns(problem)
    change = np.zeros((columns.shape[1], problem.n_outputs))
    if columns.shape[1] == 0:
        return scores, np.zeros(1), change
    sizes = np.abs(columns)
    value, R = problem.rows.slopes(scores)
    best, least, left = (scores, change), np.inf, np.zeros(1)
    for _ in range(STEPS):
        gradient = columns.T @ R
        share = _share(gradient, sizes.T @ np.abs(R))
        if share < least:
            best, least, left = (scores, change), share, np.abs(gradient)
        if share <= ROUNDING_SHARE:
            break
        hessian = _core.PairHessian(problem.rows, scores)
        move = _newton_step(hessian, columns, gradient)
        step = columns @ move
        decrease = float(np.sum(step * R))
        if decrease <= LAST_DIGITS * value:
            # The value has no digits left to fall, but the equalities still have.
            scores, change = scores - step, change - move
            value, R = problem.rows.slopes(scores)
            if _share(columns.T @ R, sizes.T @ np.abs(R)) > 0.5 * share:
                break
            continue
        length = 1.0
        for _ in range(HALVINGS):
            trial = scores - length * step
            new_value, new_R = problem.rows.slopes(trial)
            if new_value <= value - ARMIJO * length * decrease:
                break
            length *= 0.5
        else:
            break
        scores, value, R = trial, new_value, new_R
        change = change - length * move
    return best[0], left, best[1]


def _share(sums: Floats, sizes: Floats) -> float:
    """Return the largest of sums that should vanish, relative to the sums of absolute values."""
    return float(np.max(np.abs(sums) / np.where(sizes > 0.0, sizes, 1.0), initial=0.0))


def _newton_step(hessian: Any, columns: Floats, gradient: Floats) -> Floats:
    """Solve (C' H C) step = gradient by conjugate gradients, from the diagonal.

    Shifting all labels alike changes nothing: the matrix is singular, the gradient in its range.
    """
    diagonal = (columns * columns).T @ np.asarray(hessian.diagonal())
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)

    def product(direction: Floats) -> Floats:
        scores = np.ascontiguousarray(columns @ direction)
        return np.asarray(columns.T @ np.asarray(hessian.product(scores)))

    return conjugate_gradients(product, gradient, inverse, MOST_PRODUCTS, RESIDUAL_SHARE)
