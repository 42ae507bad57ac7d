"""A problem seen on some of its features only, the weights of the others being zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Features, Floats
from sparsvm.data.design import make_design
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.problem import Problem

# Columns of a sparse design are gathered densely in blocks of at most this many values.
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Restriction:
    """The problem on the listed features; what it solves, the whole problem can be told.

    Attributes
    ----------
    whole : Problem
        The problem on all features.
    part : Problem
        The same samples, loss and penalty on ``features`` alone.
    features : int32 array
        Increasing; whole groups of the penalty, so that group norms agree on both sides.
    """

    whole: Problem
    part: Problem
    features: Features

    @classmethod
    def to(cls, whole: Problem, features: Features) -> Restriction:
        """Restrict ``whole`` to ``features``, gathering those columns of its design."""
        part = replace(
            whole,
            design=make_design(columns_of(whole.design, features)),
            penalty=whole.penalty.restricted_to(features),
            columns=None,
            linear_term=None if whole.linear_term is None else whole.linear_term[:, features],
        )
        return cls(whole, part, features)

    def at(self, alpha: float) -> Restriction:
        """Return the same restriction at another strength of the penalty."""
        return replace(self, whole=self.whole.with_alpha(alpha), part=self.part.with_alpha(alpha))

    def lift(self, coef: Floats) -> Floats:
        """Return the coefficients of all features, zero off the restriction."""
        full = np.zeros((coef.shape[0], self.whole.d))
        full[:, self.features] = coef
        return full

    def drop(self, coef: Floats) -> Floats:
        """Return the coefficients of the restriction's features."""
        return np.ascontiguousarray(coef[:, self.features])


def columns_of(design: Any, features: Features) -> Any:
    """The columns as an array, or as a CSC matrix where the design is sparse."""
    if not design.is_sparse:
        return design.gather_columns(features)
    step = max(1, _BLOCK // max(1, design.n))
    blocks = [
        sp.csc_array(design.gather_columns(features[first : first + step]))
        for first in range(0, features.size, step)
    ]
    return sp.hstack(blocks, format="csc") if blocks else sp.csc_array((design.n, 0))


def group_strength(problem: Problem, dual: Floats) -> Floats:
    """Return the dual norm of each group of features relative to its limit at ``problem.alpha``.

    At an optimum it is at most 1, and 1 where the group's weights are not zero; infinite for a
    penalty that leaves no weight at zero.
    """
    V = problem.transposed(problem.signed_dual(dual)) / problem.alpha
    if problem.linear_term is not None:
        V = V - problem.linear_term
    return slope_strength(problem.penalty, V)


def slope_strength(terms: PenaltyTerms, V: Floats) -> Floats:
    """Return :func:`group_strength` of a slope V that is already divided by alpha."""
    if not terms.is_norm:
        if terms.l1_ratio == 0.0:
            return np.full(terms.n_groups, np.inf)
        return np.asarray(np.abs(V).max(axis=0) * terms.inverse_omega / terms.l1_ratio)
    norms = terms.group_dual_norms(V)
    return norms.reshape(terms.n_outputs, -1).max(axis=0) if terms.per_class else norms
