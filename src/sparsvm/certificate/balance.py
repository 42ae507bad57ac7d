r"""Make a dual guess satisfy the equalities of the intercept and of unpenalised features.

With free columns :math:`f_i` (a 1 for the intercept, the values of unpenalised features) the dual
entries :math:`T_{ik} = Y_{ik} \exp(f_i \cdot (\beta_{y_i} - \beta_k))`, k off the true class, meet
:math:`\sum_i f_i \tilde T_{ik} = 0` for all k exactly where :math:`\beta` minimises the convex
:math:`\phi(\beta) = \sum T_{ik}`. For the intercept alone this is Osborne's balancing of the
K x K matrix of sums over pairs of classes, and :math:`\phi` only depends on that matrix.

:math:`\phi''` grows along a step by at most exp(a), a being the largest increase of an exponent, so
the Newton step damped by log(1 + a)/a decreases :math:`\phi` with no line search.

One-vs-rest with more than two classes is one such problem of two classes, own and other, for each
class: with the intercept alone the samples of the class and the others are multiplied by
:math:`\sqrt{N/P}` and :math:`\sqrt{P/N}`, P and N being the sums of their entries.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.sparse.csgraph import connected_components

from sparsvm import _core
from sparsvm._typing import Bools, Floats, Indices, Ints
from sparsvm.losses import Hinge
from sparsvm.numerics.rounding import EPS
from sparsvm.numerics.rows import row_blocks
from sparsvm.problem.problem import Problem

# Settings.
# The equalities count as satisfied within this much times the mean of the absolute column, weighted
# by mass for the hinge and by the entries themselves for smooth losses: the scale of the rounding
# floor of the objective.
TOLERANCE = 64.0 * EPS
# Class entries below this share of the largest are dropped: they are worth less than the rounding
# of the others, and would leave the Newton systems singular.
NEGLIGIBLE_SHARE = 1e-13
# What is dropped round by round where a balance with unpenalised features has no minimiser: ten
# times as much each time.
DROPPED_SHARES = (NEGLIGIBLE_SHARE, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
# Relative imbalances of classes whose square is below rounding.
NEAR_BALANCE = 1e-8
# Up to so many classes powers of the matrix of arcs take less time than SciPy's search.
FEW_CLASSES = 64
# Systems whose Cholesky factor has no smaller pivot, the diagonal being 1, are far from singular.
SAFE_PIVOT = 1e-5
# Newton steps to a balance, an end only; before it they end after so many without a smaller
# residual, and at the level of rounding (in EPS) after the first of these.
NEWTON_STEPS, STALLS, ROUNDING_LEVEL = 200, 10, 16.0
# Exponents whose exponentials, and their products, are in the range of doubles.
MOST_EXPONENT = 300.0


def balance(problem: Problem, entries: Floats, overwrite: bool = False) -> Floats:
    """Return balanced entries near the given ones, or in their place; all zero where it fails."""
    y, K = problem.y, problem.n_classes
    by_mass = isinstance(problem.loss, Hinge)
    columns = free_columns(problem) if problem.penalty.free.size else None
    if not problem.one_vs_rest:
        entries = entries if overwrite else entries.copy()
        return _balance_pairs(y, entries, columns, problem.fit_intercept, by_mass)
    if columns is None:
        return _balance_signs(y, entries)
    balanced = np.zeros_like(entries)
    rows = np.arange(problem.n)
    for k in range(K):
        own = (y == k).astype(np.int32)
        pair = np.zeros((problem.n, 2))
        pair[rows, 1 - own] = entries[:, k]
        pair = _balance_pairs(own, pair, columns, problem.fit_intercept, by_mass)
        balanced[:, k] = pair.sum(axis=1)
    return balanced


def balanced_class_sums(class_sums: Floats, of_differences: bool) -> Floats:
    """Return the sums over pairs of classes that balancing for the intercept alone leads to.

    Every entry of a pair is multiplied by the same factor, so that these sums are all one needs to
    know of samples that are elsewhere.
    """
    K = class_sums.shape[0]
    classes = np.arange(K)
    if not of_differences and K > 2:
        return _balance_signs(classes, class_sums)
    return _balance_pairs(classes, class_sums.copy(), None, True, False)


def _balance_signs(y: Indices, entries: Floats) -> Floats:
    """Give the entries of each class's own samples and of the others the same sum."""
    rows, classes = np.arange(y.size), np.arange(entries.shape[1])
    own = np.where(y[:, None] == classes, entries, 0.0)
    other = entries.copy()
    other[rows, y] = 0.0
    positive, negative = own.sum(axis=0), other.sum(axis=0)
    linked = np.minimum(positive, negative) > NEGLIGIBLE_SHARE * np.maximum(positive, negative)
    ratio = np.ones_like(positive)
    np.divide(negative, positive, out=ratio, where=linked)
    root = np.sqrt(ratio)
    balanced: Floats = other / root
    balanced[rows, y] = entries[rows, y] * root[y]
    balanced[:, ~linked] = 0.0
    return balanced


def _balance_pairs(
    y: Indices,
    entries: Floats,
    columns: Floats | None,
    intercept: bool,
    by_mass: bool,
) -> Floats:
    """Balance entries in place: for the intercept alone unless ``columns`` are given."""
    class_sums = _class_sums(entries, y)
    if intercept:
        entries, class_sums = _between_connected_classes(entries, class_sums, y)
    if not class_sums.any():
        return np.zeros_like(entries)
    if columns is not None:
        return _balance_columns(y, entries, columns, by_mass)
    if not _is_balanced(class_sums):
        _multiply(entries, _class_factors(class_sums), y)
        class_sums = _class_sums(entries, y)
    residual = class_sums.sum(axis=0) - class_sums.sum(axis=1)
    allowed = TOLERANCE * (1.0 if by_mass else float(class_sums.sum()))
    return entries if np.all(np.abs(residual) <= allowed) else np.zeros_like(entries)


def _balance_columns(y: Indices, entries: Floats, columns: Floats, by_mass: bool) -> Floats:
    rows = np.arange(y.size)
    for negligible in DROPPED_SHARES:
        entries = entries * np.exp(_minimise(columns, y, entries, _column_hessian))
        totals = entries.sum(axis=1)
        signed = entries.copy()
        signed[rows, y] = -totals
        residual = columns.T @ signed
        allowed = np.ones(columns.shape[1]) if by_mass else totals @ np.abs(columns)
        if np.all(np.abs(residual) <= TOLERANCE * allowed[:, None]):
            return entries
        # Entries that no balance can contain fade out as beta goes to infinity, until rounding
        # stops it; without them the rest has a minimiser.
        entries[entries <= negligible * entries.max(initial=0.0)] = 0.0
    return np.zeros_like(entries)


def free_columns(problem: Problem) -> Floats:
    """Columns whose equalities must hold, each divided by its mean absolute value."""
    features = problem.penalty.free.astype(np.int32)
    columns = np.asarray(problem.design.gather_columns(features))
    sizes = problem.mass @ np.abs(columns)
    columns = columns / np.where(sizes > 0.0, sizes, 1.0)
    if problem.fit_intercept:
        columns = np.hstack([np.ones((problem.n, 1)), columns])
    return columns


def _class_sums(entries: Floats, y: Indices) -> Floats:
    """Sum the entries of each true class: entry (z, k) is the flow from class z to class k."""
    return np.asarray(_core.class_sums(entries, y.astype(np.int32, copy=False)))


def _multiply(entries: Floats, factors: Floats, y: Indices) -> None:
    """Multiply the entry of each sample for class k by the factor of its own class and k."""
    for rows in row_blocks(y.size, entries.shape[1]):
        entries[rows] *= factors[y[rows]]


def _between_connected_classes(
    entries: Floats, class_sums: Floats, y: Indices
) -> tuple[Floats, Floats]:
    """Drop entries between different strongly connected components: no multiple balances them."""
    arcs = class_sums > NEGLIGIBLE_SHARE * class_sums.max(initial=0.0)
    if _is_complete(arcs):
        return entries, class_sums
    kept = arcs
    if not _is_strongly_connected(arcs):
        _, component = connected_components(arcs, directed=True, connection="strong")
        kept = arcs & (component[:, None] == component)
    elif np.array_equal(arcs, class_sums > 0.0):
        return entries, class_sums
    _multiply(entries, kept.astype(np.float64), y)
    return entries, class_sums * kept


def _class_factors(class_sums: Floats) -> Floats:
    """Return the factors of the entries between classes that balance them."""
    K = class_sums.shape[0]
    if K == 2 and np.count_nonzero(class_sums) == 2:
        root = float(np.sqrt(class_sums[1, 0] / class_sums[0, 1]))
        return np.array([[1.0, root], [1.0 / root, 1.0]])
    if (factors := _factors_of_one_step(class_sums)) is not None:
        return factors
    return np.exp(_minimise(np.ones((K, 1)), np.arange(K), class_sums, _class_hessian))


def _factors_of_one_step(class_sums: Floats) -> Floats | None:
    """Return the factors of one Newton step where that suffices: the duals of exact solvers.

    It squares the relative imbalance and takes a third of the time of a search.
    """
    excess = class_sums.sum(axis=0) - class_sums.sum(axis=1)
    laplacian = _class_hessian(class_sums, np.arange(0), class_sums)
    if np.any(np.abs(excess) > NEAR_BALANCE * laplacian.diagonal()) or not _is_strongly_connected(
        class_sums > 0.0
    ):
        return None
    beta = np.zeros(excess.size)
    beta[1:] = np.linalg.solve(laplacian[1:, 1:], excess[1:])
    factors: Floats = np.exp(beta[:, None] - beta)
    return factors if _is_balanced(class_sums * factors) else None


def _is_complete(arcs: Bools) -> bool:
    """Whether all arcs are there: the usual case, in which looking for components is wasted."""
    K = arcs.shape[0]
    return bool(np.count_nonzero(arcs) == K * (K - 1))


def _is_strongly_connected(arcs: Bools) -> bool:
    """Whether every class is reached from every other; for few classes SciPy takes longer."""
    K = arcs.shape[0]
    if _is_complete(arcs):
        return True
    if K > FEW_CLASSES:
        return bool(connected_components(arcs, directed=True, connection="strong")[0] == 1)
    reached = arcs + np.eye(K)
    for _ in range(int(K - 1).bit_length()):
        reached = np.minimum(reached @ reached, 1.0)
    return bool(reached.all())


def _is_balanced(class_sums: Floats) -> bool:
    """Whether every class is balanced within the tolerance, relative to its own entries."""
    out, into = class_sums.sum(axis=1), class_sums.sum(axis=0)
    return bool(np.all(np.abs(out - into) <= 0.5 * TOLERANCE * (out + into)))


def _minimise(
    columns: Floats,
    y: Indices,
    entries: Floats,
    hessian: Callable[[Floats, Indices, Floats], Floats],
) -> Floats:
    """Return the exponents at the minimiser of phi, by damped Newton."""
    q, K = columns.shape[1], entries.shape[1]
    beta = np.zeros((q, K))
    support = entries > 0.0
    rows = np.arange(y.size)
    moving = _moving_classes(_class_sums(entries, y) > 0.0)
    variables = (np.arange(q)[:, None] * K + moving).reshape(-1)
    best, best_size, stalls = np.zeros_like(entries), np.inf, 0
    for _ in range(NEWTON_STEPS):
        exponents = _exponents(columns, y, beta, support)
        scaled = entries * np.exp(exponents)
        total = scaled.sum(axis=1)
        scaled[rows, y] = -total
        residual = (columns.T @ scaled).reshape(-1)[variables]
        scaled[rows, y] = 0.0
        amount = float(total.sum())
        if amount == 0.0:
            # No balanced dual uses these arcs: the minimiser is at infinity, the scaling at zero.
            break
        size = float(np.max(np.abs(residual), initial=0.0)) / amount
        if size < best_size:
            best, best_size, stalls = exponents, size, 0
        else:
            stalls += 1
        # At rounding level the residual stops falling; then the best so far is the answer.
        if size <= EPS or stalls > (1 if best_size <= ROUNDING_LEVEL * EPS else STALLS):
            break
        step = np.zeros((q, K))
        hess = hessian(columns, y, scaled)[np.ix_(variables, variables)]
        step.reshape(-1)[variables] = _solve(hess, residual)
        growth = float(np.max(_exponents(columns, y, step, support), initial=0.0))
        beta = beta + step * (np.log1p(growth) / growth if growth > 0.0 else 1.0)
    return best


def _moving_classes(arcs: Bools) -> Ints:
    """All classes but the first of each component.

    Adding a constant to all classes of a component changes nothing, so its first class stays put.
    """
    if _is_complete(arcs):
        return np.arange(1, arcs.shape[0])
    _, component = connected_components(arcs, directed=False)
    pinned = np.unique(component, return_index=True)[1]
    return np.setdiff1d(np.arange(arcs.shape[0]), pinned)


def _exponents(columns: Floats, y: Indices, beta: Floats, support: Bools) -> Floats:
    scores = columns @ beta
    exponents = scores[np.arange(y.size), y][:, None] - scores
    return np.where(support, np.clip(exponents, -MOST_EXPONENT, MOST_EXPONENT), 0.0)


def _class_hessian(columns: Floats, y: Indices, entries: Floats) -> Floats:
    """Laplacian of the class entries: the Hessian of phi where the intercept is the only column."""
    return np.diag(entries.sum(axis=0) + entries.sum(axis=1)) - entries - entries.T


def _column_hessian(columns: Floats, y: Indices, entries: Floats) -> Floats:
    """Hessian of phi in beta (q, K): sum of T_ik (f_i f_i') x (e_y - e_k)(e_y - e_k)'."""
    q, K = columns.shape[1], entries.shape[1]
    H = np.zeros((q, K, q, K))
    products = (columns[:, :, None] * columns[:, None, :]).reshape(y.size, q * q)
    for z in range(K):
        mine = y == z
        blocks = (products[mine].T @ entries[mine]).reshape(q, q, K)
        H[:, z, :, z] += blocks.sum(axis=2)
        for k in range(K):
            H[:, k, :, k] += blocks[:, :, k]
            H[:, z, :, k] -= blocks[:, :, k]
            H[:, k, :, z] -= blocks[:, :, k]
    return H.reshape(q * K, q * K)


def _solve(H: Floats, right: Floats) -> Floats:
    """Solve after scaling the diagonal to 1; entries of different classes differ by many powers."""
    diagonal = np.sqrt(np.diagonal(H))
    scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
    scaled = H * scale[:, None] * scale
    try:
        # A singular value decomposition takes a hundred times as long: minutes for 1000 classes.
        factor = cholesky(scaled, lower=True, check_finite=False)
        if factor.diagonal().min(initial=1.0) > SAFE_PIVOT:
            solution = cho_solve((factor, True), scale * right, check_finite=False)
            return np.asarray(scale * solution)
    except np.linalg.LinAlgError:
        pass
    solution, *_ = np.linalg.lstsq(scaled, scale * right, rcond=None)
    return np.asarray(scale * solution)
