r"""The slope of a dual point, and its repair where a linear term lies on the edge of the dual ball.

A dual point is feasible for a norm if the dual norm of :math:`V - G/\alpha` is at most 1.
Scaling the point by a factor below 1 repairs what rounding spoilt, except where the linear term V
itself has dual norm 1, as beyond the cap of capped l1: there every factor leaves the slope on the
wrong side, by 1e-12 or so of it. Where the point is nearly on the edge, G is nearly 0 in those
coordinates, and a relative change of the entries of the same tiny size puts it where it may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Array, Floats, Indices
from sparsvm.numerics.rounding import OTHER_ROUNDINGS, UNIT
from sparsvm.numerics.rows import of_class, row_sum
from sparsvm.numerics.split_products import split_products
from sparsvm.problem.problem import Problem

# Linear terms with a dual norm above 1 less this leave the scaling no room.
EDGE = 1e-6
# The matrix of the repair, and of columns whose products are split, has at most this many entries.
LARGEST_MATRIX = 20_000_000
# Rounding errors of slopes, relative to the dual ball, that a tolerance of 1e-8 may feel.
NOTABLE_ROUNDING = 1e-9
# Groups that are brought back onto the edge may bring others across it: so often; one or two are
# usual.
REPAIRS = 8


def slope(problem: Problem, entries: Floats) -> tuple[Floats, Floats]:
    """Return G / alpha and the error bound of each of its entries.

    With a linear term it is not sharper than the entries themselves: on the edge of the dual ball
    what is within the error of rounded slopes is let pass.
    """
    signed = problem.signed_dual(entries)
    G, error = _rounded_slope(problem, signed)
    if problem.linear_term is None and _rounding_share(problem, entries) > NOTABLE_ROUNDING:
        _sharpen(problem, entries, signed, G, error, np.arange(problem.d))
    return G, error


def _rounded_slope(problem: Problem, signed: Floats) -> tuple[Floats, Floats]:
    G = problem.transposed(signed) / problem.alpha
    return G, np.outer(_error_per_norm(problem, signed), problem.column_norms)


def _rounding_share(problem: Problem, entries: Floats) -> float:
    """Return how far rounding may move a slope, relative to where its coefficient comes in."""
    size = float(np.linalg.norm(row_sum(entries))) * (problem.n + 2) * UNIT / problem.alpha
    return size * float(np.max(problem.column_norms * problem.penalty.inverse_omega, initial=0.0))


def _sharpen(
    problem: Problem,
    entries: Floats,
    signed: Floats,
    G: Floats,
    error: Floats,
    features: Array,
) -> None:
    """Compute the slopes of some features anew, by split products, in place."""
    if problem.n * features.size > LARGEST_MATRIX:
        return
    columns = np.asarray(problem.design.gather_columns(features.astype(np.int32)))
    products, errors = split_products(columns, _outputs(problem, signed))
    if not problem.one_vs_rest:
        lost = np.zeros_like(signed)
        rows = np.arange(problem.n)
        lost[rows, problem.y] = -_lost_in_sums(entries, problem.y, -signed[rows, problem.y])
        more, blur = split_products(columns, _outputs(problem, lost))
        products, errors = products + more, errors + blur + UNIT * np.abs(products)
    if np.all(np.isfinite(errors)):
        G[:, features] = products.T / problem.alpha
        error[:, features] = errors.T / problem.alpha


def _lost_in_sums(entries: Floats, y: Indices, totals: Floats) -> Floats:
    """Return by how much ``totals`` fall short of the sums of rows off the true class."""
    total, lost = np.zeros_like(totals), np.zeros_like(totals)
    for k in range(entries.shape[1]):
        term = np.where(y == k, 0.0, entries[:, k])
        # What the rounding of one addition leaves out is a double itself.
        rounded = total + term
        part = rounded - total
        lost += (total - (rounded - part)) + (term - part)
        total = rounded
    return np.asarray((total - totals) + lost)


def _outputs(problem: Problem, signed: Floats) -> Floats:
    return np.ascontiguousarray(signed[:, 1:]) if problem.n_classes == 2 else signed


def _error_per_norm(problem: Problem, signed: Floats) -> Floats:
    """Return, for each output, the error of G / alpha over the norm of the column.

    |computed - exact| of a sum of n products is at most (n + 2) u |x_j|.|y_k|.
    """
    outputs = _outputs(problem, signed)
    sizes = np.sqrt(np.einsum("ik,ik->k", outputs, outputs))
    return np.asarray(sizes * ((problem.n + 2) * UNIT / problem.alpha))


def largest_slope(problem: Problem, entries: Floats) -> float:
    """Return the dual norm of G / alpha, its error added."""
    terms = problem.penalty
    if not terms.built_in:
        return terms.dual_norm_within(*slope(problem, entries))
    norm = _quick_largest_slope(problem, entries)
    # Where rounding is a notable part of the dual ball, as with a tiny alpha.
    blurred = (norm is None or norm > 1.0) and _rounding_share(problem, entries) > NOTABLE_ROUNDING
    if norm is not None and not (blurred and problem.n_outputs * problem.d <= LARGEST_MATRIX):
        return norm
    signed = problem.signed_dual(entries)
    G, error = _rounded_slope(problem, signed)
    if blurred and np.all(np.isfinite(G)):
        # Only groups that may be the largest need to be known better.
        least = terms.dual_norm(np.maximum(np.abs(G) - error, 0.0))
        likely = terms.spread(terms.group_dual_norms(np.abs(G) + error) >= least)
        _sharpen(problem, entries, signed, G, error, np.flatnonzero(likely.any(axis=0)))
    return terms.dual_norm_within(G, error)


def _quick_largest_slope(problem: Problem, entries: Floats) -> float | None:
    """Return the same in one pass over the data; None where there is no such way."""
    norms = feature_slopes(problem, entries)
    if norms is not None:
        return float(norms.max(initial=0.0))
    terms = problem.penalty
    # The dual norm of a mixture takes a search.
    if terms.is_norm and terms.l1_ratio in (0.0, 1.0) and not problem.design.is_sparse:
        norm = _core.largest_dual_norm(
            **_products(problem, problem.signed_dual(entries)),
            **terms.native_arguments(),
        )
        if np.isfinite(norm):
            return float(norm)
        # Squares overflow before the norm does.
    return None


def _products(problem: Problem, signed: Floats) -> dict[str, Any]:
    """Return what a native kernel needs for |G / alpha| with its error added."""
    return {
        "design": problem.design,
        "Y": _outputs(problem, signed),
        "scale": 1.0 / problem.alpha,
        "error": _error_per_norm(problem, signed),
        "column_norms": problem.column_norms,
    }


def feature_slopes(problem: Problem, entries: Floats) -> Floats | None:
    """Return the dual norm of each feature of G / alpha, its error added; 0 if unpenalised.

    For l2 the Euclidean norm. None for dense data, and for penalties that are not made of single
    features: G may be larger than sparse data, and here only a block of it is held at a time. The
    entries are changed and put back meanwhile.
    """
    terms = problem.penalty
    squared = terms.quadratic
    single = squared or (terms.is_norm and terms.by_features)
    if not problem.design.is_sparse or not single:
        return None
    # One more array of all samples and classes would be the largest thing here.
    rows, own = np.arange(problem.n), of_class(entries, problem.y)
    signed = problem.signed_dual(entries, overwrite=True)
    norms = np.asarray(
        _core.feature_norms(
            **_products(problem, signed),
            kind="l1/l2" if squared else terms.kind,
            l1_ratio=terms.l1_ratio,
            per_class=terms.per_class and not squared,
            omega=terms.omega,
        )
    )
    signed[rows, problem.y] = own
    return norms


def limit(problem: Problem) -> float:
    """One plus the rounding error of a computed dual norm."""
    return 1.0 + (problem.penalty.largest_group + OTHER_ROUNDINGS) * UNIT


def pulled_inside(problem: Problem, entries: Floats) -> Floats | None:
    """Return entries with slopes on the edge where it was crossed; None if nowhere, or if not."""
    penalty, linear_term = problem.penalty, problem.linear_term
    if linear_term is None or not penalty.is_norm or problem.one_vs_rest:
        return None
    on_edge = penalty.group_dual_norms(linear_term) > 1.0 - EDGE
    if not on_edge.any() or not entries.any():
        return None
    crossed = np.zeros_like(on_edge)
    for _ in range(REPAIRS):
        G, error = slope(problem, entries)
        beyond = np.maximum(np.abs(linear_term - G) - error, 0.0)
        violated = on_edge & (penalty.group_dual_norms(beyond) > limit(problem))
        if not violated.any():
            return entries if crossed.any() else None
        crossed |= violated
        changed = with_slope_on_edge(problem, entries, penalty.spread(crossed), G)
        if changed is None:
            return None
        entries = changed
    return None


def _target(problem: Problem) -> Floats:
    """Return the slopes that just touch the edge: 0 where V is on it; for groups always 0.

    Asking for 0 of every coordinate near the edge cost a bound 1e-4 of its value where the matrix
    of the entries was badly conditioned.
    """
    target = np.zeros((problem.n_outputs, problem.d))
    if problem.penalty.is_l1 and problem.linear_term is not None:
        inside = np.maximum(problem.penalty.omega - np.abs(problem.linear_term), 0.0)
        target = np.where(problem.penalty.omega > 0.0, -np.sign(problem.linear_term) * inside, 0.0)
    return np.asarray(target)


def with_slope_on_edge(problem: Problem, entries: Floats, where: Array, G: Floats) -> Floats | None:
    """Change the entries, by least squares in relative terms, to slopes on the edge as given.

    The equalities of the intercept and of unpenalised features stay as they are.
    """
    where = np.array(where, dtype=bool)
    where[:, problem.penalty.free] = True
    output, feature = np.nonzero(where)
    sample, cls = np.nonzero(entries)
    intercepts = np.arange(problem.n_outputs if problem.fit_intercept else 0)
    outputs = np.concatenate([output, intercepts])
    if outputs.size * sample.size > LARGEST_MATRIX:
        return None
    used, position = np.unique(feature, return_inverse=True)
    columns = np.asarray(problem.design.gather_columns(used.astype(np.int32)))[:, position]
    columns = np.hstack([columns, np.ones((problem.n, intercepts.size))])
    # One equality per column and output: an entry for class k adds there, one of its samples'
    # own class subtracts.
    target = outputs + (problem.n_classes - problem.n_outputs)
    signs = (cls[:, None] == target) * 1.0 - (problem.y[sample][:, None] == target)
    rows = (entries[sample, cls][:, None] * signs * columns[sample]).T
    sizes = np.abs(rows).sum(axis=1)
    kept = sizes > 0.0
    residual = np.zeros(outputs.size)
    residual[: output.size] = problem.alpha * (_target(problem) - G)[output, feature]
    change, *_ = np.linalg.lstsq(
        rows[kept] / sizes[kept, None], residual[kept] / sizes[kept], rcond=None
    )
    if not np.all(np.abs(change) < 0.5):
        return None
    changed = entries.copy()
    changed[sample, cls] *= 1.0 + change
    return changed
