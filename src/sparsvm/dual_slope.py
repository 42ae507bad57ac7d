r"""The slope of a dual point, and its repair where a tilt lies on the edge of the dual ball.

A dual point is feasible for a norm if the dual norm of :math:`tilt - G/\alpha` is at most 1.
Scaling the point by a factor below 1 mends what rounding spoilt, except where the tilt itself has
dual norm 1, as beyond the cap of capped l1: there every factor leaves the slope on the wrong side,
by 1e-12 or so of it. Where the point is nearly on the edge, G is nearly 0 in those coordinates, and
a relative change of the flows of the same tiny size puts it where it may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsvm import _core
from sparsvm.losses import Floats
from sparsvm.rows import of_class

if TYPE_CHECKING:
    from sparsvm.problem import Problem

UNIT = float(np.finfo(np.float64).eps) / 2.0
# Tilts with a dual norm above 1 less this leave the scaling no room.
EDGE = 1e-6
# Norms whose dual takes no search.
PLAIN = ("l1", "l1/l2", "l1/linf")
# Norms of groups.
GROUPS = ("l1/l2", "l1/linf", "sparse_group")
# The matrix of the repair has at most this many entries.
LARGEST = 20_000_000


def slope(problem: Problem, flows: Floats) -> tuple[Floats, Floats]:
    """Return G / alpha and the error bound of each of its entries."""
    signed = problem.signed_dual(flows)
    G = problem.transposed(signed) / problem.alpha
    return G, np.outer(_error_per_norm(problem, signed), problem.column_norms)


def _error_per_norm(problem: Problem, signed: Floats) -> Floats:
    """Return, for each output, the error of G / alpha over the norm of the column.

    |computed - exact| of a sum of n products is at most (n + 2) u |x_j|.|y_k|.
    """
    outputs = signed[:, 1:] if problem.n_classes == 2 else signed
    sizes = np.sqrt(np.einsum("ik,ik->k", outputs, outputs))
    return np.asarray(sizes * ((problem.n + 2) * UNIT / problem.alpha))


def largest_slope(problem: Problem, flows: Floats) -> float:
    """Return the dual norm of G / alpha, its error added."""
    norms = feature_slopes(problem, flows)
    if norms is not None:
        return float(norms.max(initial=0.0))
    terms = problem.penalty
    if terms.kind in PLAIN and not problem.design.is_sparse:
        norm = _core.largest_dual_norm(
            **_products(problem, problem.signed_dual(flows)),
            kind=terms.kind,
            l1_ratio=terms.l1_ratio,
            groups=terms.groups,
            n_groups=terms.n_groups,
            per_class=terms.per_class,
            omega=terms.omega,
        )
        if np.isfinite(norm):
            return float(norm)
        # Squares overflow before the norm does.
    G, error = slope(problem, flows)
    return terms.dual_norm(np.abs(G) + error)


def _products(problem: Problem, signed: Floats) -> dict[str, Any]:
    """Return what a native kernel needs for |G / alpha| with its error added."""
    return {
        "design": problem.design,
        "Y": np.ascontiguousarray(signed[:, 1:]) if problem.n_classes == 2 else signed,
        "scale": 1.0 / problem.alpha,
        "error": _error_per_norm(problem, signed),
        "column_norms": problem.column_norms,
    }


def feature_slopes(problem: Problem, flows: Floats) -> Floats | None:
    """Return the dual norm of each feature of G / alpha, its error added; 0 if unpenalised.

    For l2 the Euclidean norm. None for dense data, and for penalties that are not made of single
    features: G may be larger than sparse data, and here only a block of it is held at a time. The
    flows are changed and put back meanwhile.
    """
    terms = problem.penalty
    squared = terms.kind == "l2"
    single = squared or terms.kind == "l1" or (terms.kind in GROUPS and terms.n_groups == problem.d)
    if not problem.design.is_sparse or not single:
        return None
    # One more array of all samples and classes would be the largest thing here.
    rows, own = np.arange(problem.n), of_class(flows, problem.y)
    signed = problem.signed_dual(flows, overwrite=True)
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
    return 1.0 + (problem.penalty.largest_group + 16) * UNIT


def pulled_inside(problem: Problem, flows: Floats) -> Floats | None:
    """Return flows with slopes on the edge wherever it was crossed; None if nowhere, or if not."""
    penalty, tilt = problem.penalty, problem.tilt
    if tilt is None or not penalty.is_norm or problem.one_vs_rest:
        return None
    on_edge = penalty.group_dual_norms(tilt) > 1.0 - EDGE
    if not on_edge.any() or not flows.any():
        return None
    crossed = np.zeros_like(on_edge)
    for _ in range(8):
        G, error = slope(problem, flows)
        beyond = np.maximum(np.abs(tilt - G) - error, 0.0)
        violated = on_edge & (penalty.group_dual_norms(beyond) > limit(problem))
        if not violated.any():
            return flows if crossed.any() else None
        crossed |= violated
        changed = with_slope_on_edge(problem, flows, penalty.spread(crossed), G)
        if changed is None:
            return None
        flows = changed
    return None


def _target(problem: Problem) -> Floats:
    """Return the slopes that just touch the edge: 0 where the tilt is on it; for groups always 0.

    Asking for 0 of every coordinate near the edge cost a bound 1e-4 of its value where the matrix
    of the flows was badly conditioned.
    """
    target = np.zeros((problem.n_outputs, problem.d))
    if problem.penalty.kind == "l1" and problem.tilt is not None:
        inside = np.maximum(problem.penalty.omega - np.abs(problem.tilt), 0.0)
        target = np.where(problem.penalty.omega > 0.0, -np.sign(problem.tilt) * inside, 0.0)
    return np.asarray(target)


def with_slope_on_edge(
    problem: Problem, flows: Floats, where: NDArray[Any], G: Floats
) -> Floats | None:
    """Change the flows, by least squares in relative terms, to slopes on the edge as given.

    The equalities of the intercept and of unpenalised features stay as they are.
    """
    where = np.array(where, dtype=bool)
    where[:, problem.penalty.free] = True
    output, feature = np.nonzero(where)
    sample, cls = np.nonzero(flows)
    intercepts = np.arange(problem.n_outputs if problem.fit_intercept else 0)
    outputs = np.concatenate([output, intercepts])
    if outputs.size * sample.size > LARGEST:
        return None
    used, position = np.unique(feature, return_inverse=True)
    columns = np.asarray(problem.design.gather_columns(used.astype(np.int32)))[:, position]
    columns = np.hstack([columns, np.ones((problem.n, intercepts.size))])
    # One equality per column and output: a flow to class k adds there, one from its own subtracts.
    target = outputs + (problem.n_classes - problem.n_outputs)
    signs = (cls[:, None] == target) * 1.0 - (problem.y[sample][:, None] == target)
    rows = (flows[sample, cls][:, None] * signs * columns[sample]).T
    sizes = np.abs(rows).sum(axis=1)
    kept = sizes > 0.0
    residual = np.zeros(outputs.size)
    residual[: output.size] = problem.alpha * (_target(problem) - G)[output, feature]
    change, *_ = np.linalg.lstsq(
        rows[kept] / sizes[kept, None], residual[kept] / sizes[kept], rcond=None
    )
    if not np.all(np.abs(change) < 0.5):
        return None
    mended = flows.copy()
    mended[sample, cls] *= 1.0 + change
    return mended
