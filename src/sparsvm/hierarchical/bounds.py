r"""Proofs of both stages, from any multipliers, on the data themselves.

The norm :math:`N(W) = \max_{r<t} \|w_r - w_t\|` has the dual norm

.. math:: N^\circ(G) = \min \sum_{r<t} \|v_{rt}\| \quad\text{over}\quad
   \sum_{t} v_{kt} = G_k, \; v_{tk} = -v_{kt},

which any such v bounds from above; :math:`v_{rt} = (R_r - R_t)/K` adds a remainder R exactly.

*First stage.* For Y with rows in the simplices of mass p and the equalities of the intercept, every
(W, b) with :math:`N(W) \le R` has a mean hinge of at least
:math:`\sum Y_{ik} m_{ik} - R\,N^\circ(X^\top \tilde Y)`.

*Second stage.* For balanced :math:`Z \ge 0`, with :math:`\lambda` the largest
:math:`\sum_{k \ne y_i} Z_{ik} / p_i`, every (W, b) of mean hinge at most h has

.. math:: N(W) \ge \frac{\sum Z_{ik} m_{ik} - \lambda h}{N^\circ(X^\top \tilde Z)}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.balance import balance
from sparsvm.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers from which the bounds of both stages are computed.

    Attributes
    ----------
    dual : array of shape (n, K)
        Dual point of the first stage, rows summing to the masses.
    signed : array of shape (n, K), or None
        Multipliers of the rows in the second stage, summing to zero over the classes; negative
        only where `dual` is positive. None proves nothing about the second stage.
    pair_dual : array of shape (pairs, d), or None
        Multipliers of the differences w_r - w_t.
    """

    dual: Floats
    signed: Floats | None = None
    pair_dual: Floats | None = None


def difference_norms(coef: Floats, n_classes: int) -> Floats:
    """Return the K x K matrix of ||w_r - w_t||."""
    weights = np.vstack([np.zeros_like(coef), coef]) if n_classes == 2 else coef
    norms = np.zeros((n_classes, n_classes))
    for r in range(n_classes):
        norms[r, r + 1 :] = np.linalg.norm(weights[r] - weights[r + 1 :], axis=1)
    return norms + norms.T


def sample_hinges(problem: Problem, coef: Floats, intercept: Floats) -> Floats:
    """Return the hinge of each sample."""
    return problem.loss.value(problem.scores(coef, intercept), problem.y, problem.margins())


def least_hinge_bound(problem: Problem, dual: Floats, radius: float) -> float:
    """Return a lower bound on the mean hinge of every model with N(W) at most `radius`."""
    entries, share = _balanced(problem, dual)
    if share > 1.0:
        entries = entries / share
    value = float((entries * problem.margins()).sum())
    if radius > 0.0:
        value -= radius * _dual_norm(problem, entries, None)
    return max(value, 0.0)


def least_norm_bound(problem: Problem, proof: Proof, hinge: float) -> float:
    """Return a lower bound on N(W) for every model of mean hinge at most `hinge`.

    If `hinge` is that of any model, the bound holds for all models of least hinge.
    """
    if proof.signed is None:
        return 0.0
    signed, dual = proof.signed, proof.dual
    negative = signed < 0.0
    if np.any(dual[negative] <= 0.0):
        return 0.0
    multiple = float(np.max(-signed[negative] / dual[negative], initial=0.0))
    entries, share = _balanced(problem, signed + multiple * dual)
    value = float((entries * problem.margins()).sum()) - share * hinge
    length = _dual_norm(problem, entries, proof.pair_dual)
    return max(value / length, 0.0) if length > 0.0 else 0.0


def _balanced(problem: Problem, multipliers: Floats) -> tuple[Floats, float]:
    """Return balanced multipliers off the true class, and their largest share of a mass."""
    entries = np.maximum(multipliers, 0.0)
    entries[np.arange(problem.n), problem.y] = 0.0
    total = float(entries.sum())
    if total == 0.0:
        return entries, 0.0
    entries = balance(problem, entries / total) * total
    return entries, float(np.max(entries.sum(axis=1) / problem.mass))


def _dual_norm(problem: Problem, entries: Floats, pair_dual: Floats | None) -> float:
    """Bound the dual norm of the dual variables' products with the features from above."""
    K = problem.n_classes
    correlations = problem.transposed(problem.signed_dual(entries))
    if K == 2:
        correlations = np.vstack([-correlations, correlations])
    first, second = np.triu_indices(K, 1)
    rest = -correlations
    if pair_dual is None:
        vectors = np.zeros((first.size, problem.d))
    else:
        vectors = pair_dual
        rest = rest.copy()
        np.subtract.at(rest, first, pair_dual)
        np.add.at(rest, second, pair_dual)
    vectors = vectors + (rest[first] - rest[second]) / K
    return float(np.linalg.norm(vectors, axis=1).sum())
