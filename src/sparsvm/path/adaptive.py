"""Weights of a penalty from a first fit."""

from __future__ import annotations

import copy

import numpy as np

from sparsvm._typing import Features, Floats
from sparsvm.data.training_set import TrainingSet
from sparsvm.losses import Loss
from sparsvm.penalties import L2, Penalty
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import resolve

# The smallest size of a first fit's weights, relative to the largest: what has none at all, such
# as a constant column, gets a weight that is large, not infinite.
_LEAST = 1e-6
# Relative gap of the first fit, the default of the estimators.
_TOL = 1e-3


def adapted(data: TrainingSet, loss: Loss, penalty: Penalty, fit_intercept: bool) -> Penalty:
    r"""Return the penalty with numbers in place of ``weights="adaptive"``.

    The first fit has the same loss, the penalty l2 and the default alpha. With its weights V, of
    which every feature has some, group g of the penalty is weighted by

    .. math:: \omega_g = \max_h s_h / s_g, \qquad s_g^2 = \frac{1}{|g|} \sum_{j \in g} \|V_{\cdot
        j}\|_2^2.
    """
    if not isinstance(penalty, BuiltInPenalty) or not penalty.adaptive:
        return penalty
    d = data.design.d
    if penalty.latent(d, data.feature_names) is not None:
        raise ValueError(
            "weights='adaptive' are not made for groups that overlap: give weights as an array, or "
            "groups that do not overlap."
        )
    given = penalty.aligned(d, data.feature_names)
    factors = given.adaptive_factors(d)
    plain = copy.copy(given)
    plain.weights = None
    first = regularised_problem(
        data, loss, L2(weights=(factors > 0.0) * 1.0), default_alpha(data.total), fit_intercept
    )
    control = Control(tol=_TOL)
    found = resolve("auto", first, control).solve(first, None, control)
    terms = plain.resolve(d, first.n_outputs)
    # Unpenalised features have weights of any size, which say nothing about the others.
    coef = found.coef * (factors > 0.0)
    plain.weights = np.multiply(factors, _inverse_sizes(coef, terms.groups, terms.n_groups))
    return plain


def _inverse_sizes(coef: Floats, groups: Features, n_groups: int) -> Floats:
    squares = np.sum(np.square(coef), axis=0)
    sizes = np.sqrt(np.bincount(groups, squares, n_groups) / np.bincount(groups, None, n_groups))
    largest = float(sizes.max(initial=0.0))
    if largest == 0.0:
        return np.ones(coef.shape[1])
    return np.asarray((largest / np.maximum(sizes, _LEAST * largest))[groups])
