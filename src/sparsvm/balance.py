r"""Make a dual guess satisfy the equalities of the intercept and of unpenalised features.

With free columns :math:`f_i` (a 1 for the intercept, the entries of unpenalised features) the
flows :math:`T_{ik} = Y_{ik} \exp(f_i \cdot (\beta_{y_i} - \beta_k))`, k off the true class, satisfy
:math:`\sum_i f_i \tilde T_{ik} = 0` for all k exactly where :math:`\beta` minimises the convex
:math:`\phi(\beta) = \sum T_{ik}`. For the intercept alone this is Osborne's balancing of the
K x K matrix of class flows, and :math:`\phi` only depends on that matrix.

:math:`|\phi'''|` is at most the largest change of an exponent times :math:`\phi''`, so the Newton
step damped by log(1 + a)/a, a being that change, decreases :math:`\phi` with no line search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from sparsvm.losses import Floats

if TYPE_CHECKING:
    from sparsvm.problem import Problem

EPS = float(np.finfo(np.float64).eps)
# Class flows below this share of the largest are dropped: they are worth less than the rounding
# of the others, and would leave the Newton systems singular.
NEGLIGIBLE = 1e-13


def balance(problem: Problem, flows: Floats) -> Floats:
    """Return balanced flows near the given ones; all zero where that fails.

    The equalities count as satisfied within 64 eps times the mass-weighted mean of the absolute
    column, the scale of the rounding floor of the objective.
    """
    y, K = problem.y, problem.n_classes
    if problem.fit_intercept:
        flows = _between_connected_classes(flows, y, K)
    features = problem.penalty.free
    if features.size == 0:
        class_flows = _class_flows(flows, y, K)
        if not _is_balanced(class_flows):
            exponents = _minimise(
                np.ones((K, 1)), np.arange(K), class_flows, _class_hessian, _osborne(class_flows)
            )
            flows = flows * np.exp(exponents)[y]
            class_flows = _class_flows(flows, y, K)
        residual = class_flows.sum(axis=0) - class_flows.sum(axis=1)
        return flows if np.all(np.abs(residual) <= 64.0 * EPS) else np.zeros_like(flows)
    columns = np.asarray(problem.design.gather_columns(features.astype(np.int32)))
    if problem.fit_intercept:
        columns = np.hstack([np.ones((problem.n, 1)), columns])
    sizes = problem.mass @ np.abs(columns)
    columns = columns / np.where(sizes > 0.0, sizes, 1.0)
    start = np.zeros((columns.shape[1], K))
    flows = flows * np.exp(_minimise(columns, y, flows, _column_hessian, start))
    residual = columns.T @ problem.signed_dual(flows)
    return flows if np.all(np.abs(residual) <= 64.0 * EPS) else np.zeros_like(flows)


def _class_flows(flows: Floats, y: NDArray[np.int32], n_classes: int) -> Floats:
    """Sum the flows of each true class: entry (z, k) is the flow from class z to class k."""
    order = np.argsort(y, kind="stable")
    present, starts = np.unique(y[order], return_index=True)
    total = np.zeros((n_classes, n_classes))
    # Contiguous rows make reduceat sum pairwise, which keeps the residual at rounding level.
    total[present] = np.add.reduceat(np.ascontiguousarray(flows[order].T), starts, axis=1).T
    return total


def _between_connected_classes(flows: Floats, y: NDArray[np.int32], K: int) -> Floats:
    """Drop flows between different strongly connected components: no multiple balances them."""
    class_flows = _class_flows(flows, y, K)
    arcs = class_flows > NEGLIGIBLE * class_flows.max(initial=0.0)
    if arcs.sum() < K * (K - 1):
        _, component = connected_components(arcs, directed=True, connection="strong")
        arcs &= component[:, None] == component
        flows = flows * arcs[y]
    return flows


def _is_balanced(class_flows: Floats) -> bool:
    out, into = class_flows.sum(axis=1), class_flows.sum(axis=0)
    return bool(np.all(np.abs(out - into) <= 2.0 * EPS * (out + into)))


def _osborne(class_flows: Floats) -> Floats:
    """Return logarithms of Osborne's scaling after a few sweeps, shape (1, K).

    Newton moves an exponent by about 1 a step, so it should not start far away.
    """
    scaled = np.array(class_flows)
    beta = np.zeros(scaled.shape[0])
    for _ in range(20):
        out, into = scaled.sum(axis=1), scaled.sum(axis=0)
        linked = (out > 0.0) & (into > 0.0)
        if not np.any(linked) or np.max(np.abs(np.log(out[linked] / into[linked]))) < 1.0:
            break
        for k in np.flatnonzero(linked):
            move = 0.5 * np.log(scaled[:, k].sum() / scaled[k].sum())
            beta[k] += move
            scaled[k] *= np.exp(move)
            scaled[:, k] *= np.exp(-move)
    return beta[None, :]


def _minimise(
    columns: Floats,
    y: NDArray[np.integer],
    flows: Floats,
    hessian: Callable[[Floats, NDArray[np.integer], Floats], Floats],
    beta: Floats,
) -> Floats:
    """Return the exponents at the minimiser of phi, by damped Newton from ``beta`` (q, K)."""
    q, K = beta.shape
    support = flows > 0.0
    arcs = _class_flows(flows, np.asarray(y, dtype=np.int32), K) > 0.0
    _, component = connected_components(arcs, directed=False)
    # Adding a constant to all classes of a component changes nothing: its first class stays put.
    _, pinned = np.unique(component, return_index=True)
    moving = np.setdiff1d(np.arange(K), pinned)
    variables = (np.arange(q)[:, None] * K + moving).reshape(-1)
    best, best_size = _exponents(columns, y, beta, support), np.inf
    for _ in range(200):
        exponents = _exponents(columns, y, beta, support)
        scaled = flows * np.exp(exponents)
        rows = np.arange(y.size)
        scaled[rows, y] = -scaled.sum(axis=1)
        residual = (columns.T @ scaled).reshape(-1)[variables]
        size = float(np.max(np.abs(residual), initial=0.0))
        if size < best_size:
            best, best_size = exponents, size
        scaled[rows, y] = 0.0
        if size <= EPS * float(scaled.sum()) / 16.0:
            break
        step = np.zeros(q * K)
        step[variables] = _solve(
            hessian(columns, y, scaled)[np.ix_(variables, variables)], residual
        )
        change = _exponents(columns, y, step.reshape(q, K), support)
        furthest = float(np.max(np.abs(change), initial=0.0))
        if not np.isfinite(furthest) or furthest <= EPS:
            break
        beta = beta + step.reshape(q, K) * (np.log1p(furthest) / furthest)
    return best


def _exponents(
    columns: Floats, y: NDArray[np.integer], beta: Floats, support: NDArray[np.bool_]
) -> Floats:
    scores = columns @ beta
    exponents = scores[np.arange(y.size), y][:, None] - scores
    return np.where(support, np.clip(exponents, -700.0, 700.0), 0.0)


def _class_hessian(columns: Floats, y: NDArray[np.integer], flows: Floats) -> Floats:
    """Laplacian of the class flows: the Hessian of phi where the intercept is the only column."""
    return np.diag(flows.sum(axis=0) + flows.sum(axis=1)) - flows - flows.T


def _column_hessian(columns: Floats, y: NDArray[np.integer], flows: Floats) -> Floats:
    """Hessian of phi in beta (q, K): sum of T_ik (f_i f_i') x (e_y - e_k)(e_y - e_k)'."""
    q, K = columns.shape[1], flows.shape[1]
    H = np.zeros((q, K, q, K))
    products = (columns[:, :, None] * columns[:, None, :]).reshape(y.size, q * q)
    for z in range(K):
        mine = y == z
        blocks = (products[mine].T @ flows[mine]).reshape(q, q, K)
        H[:, z, :, z] += blocks.sum(axis=2)
        for k in range(K):
            H[:, k, :, k] += blocks[:, :, k]
            H[:, z, :, k] -= blocks[:, :, k]
            H[:, k, :, z] -= blocks[:, :, k]
    return H.reshape(q * K, q * K)


def _solve(H: Floats, right: Floats) -> Floats:
    """Solve after scaling the diagonal to 1; flows of different classes differ by many powers."""
    diagonal = np.sqrt(np.diagonal(H))
    scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
    scaled = H * scale[:, None] * scale
    solution, *_ = np.linalg.lstsq(scaled, scale * right, rcond=1e-14)
    return np.asarray(scale * solution)
