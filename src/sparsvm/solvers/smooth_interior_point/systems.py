r"""The equations of a step of the interior point for smooth losses, solved from either side.

.. math:: \bigl(X^\top H X + D - \textstyle\sum_g r_g r_g^\top\bigr)\, dV = right,

H being the Hessian of the loss in the scores, D a diagonal and r the rays of the groups of the
penalty. Where coordinates are tied or a group has a direction, D is large, and :math:`D - r r^\top`
small along :math:`D^{-1} r` only: written out it would lose its digits. With one more coordinate s
for every group, :math:`dV = w + D^{-1} r\, s`, the curvature of the penalty is a diagonal C: D for
w, :math:`1 - r^\top D^{-1} r` for s. Nothing cancels in

.. math:: \bigl(B^\top H B + C\bigr)\,(w, s) = (right, r^\top D^{-1} right),
          \qquad B = X\,(I, D^{-1} r).

From the side of the features this matrix is formed and factored, but for the coordinates beside
whose C their curvature by the loss is nothing. Where the loss is a sum over the classes, the matrix
is block-diagonal but for the coordinates s of groups with several classes: the blocks are factored
one by one, then the Schur complement of those. From the side of the samples, with
:math:`H = L L^\top`,

.. math:: S = L\, (I + L^\top B C^{-1} B^\top L)^{-1} L^\top

needs a matrix of the size of the samples times the classes, B and C being those of the coordinates
that are eliminated. Those without penalty, whose C is zero, and those whose C is so small that
their elimination would cost all digits (the active ones, near the solution) stay as unknowns f of
:math:`(B_f^\top S B_f + C_f)\, f = r_f - B_f^\top S B C^{-1} r`, and the others follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from sparsvm._typing import Floats, Ints
from sparsvm.solvers.smooth_interior_point.cones import Curvature

# Settings.
# Shares of the diagonal added until the factorisation succeeds: equal shifts of all classes have no
# curvature, and near the solution the diagonal spans twenty orders.
RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
# Steps of iterative refinement, and the relative residual after which there is no other.
REFINEMENTS = 3
REFINED_RESIDUAL = 1e-11
# Coordinates are eliminated where that multiplies rounding errors by no more than this: a step of
# refinement takes six digits off what is left.
LARGEST_GAIN = 1e9
# The curvature of a coordinate by the loss, relative to its C, that refinement makes good: three
# steps of it multiply what neglecting it leaves by the root's cube.
NEGLIGIBLE_CURVATURE = 1e-8

Solve = Callable[[Floats], Floats]


class PenaltyCurvature:
    """The squares and the cones of a penalty, as a diagonal in the coordinates w and s.

    At most one of its kinds of cones has groups of several coordinates; of the others the matrix
    is diagonal.

    Attributes
    ----------
    curvature : array of shape (p + groups,)
        C.
    rays : sparse matrix of shape (p, groups)
        The columns :math:`D^{-1} r`. They are sparse: a coordinate belongs to one group.
    """

    def __init__(self, square: Floats, parts: list[Curvature]) -> None:
        diagonal = square.copy()
        for part in parts:
            diagonal[part.cones.members] += part.diagonal
        self.size = diagonal.size
        grouped = [part for part in parts if part.cones.size < part.cones.members.size]
        if not grouped:
            self.curvature = diagonal
            self.rays = sp.csr_matrix((self.size, 0))
            return
        (part,) = grouped
        cones, members = part.cones, part.cones.members
        own = diagonal[members]
        other = 1.0 / part.diagonal - 1.0 / own
        self.curvature = np.append(diagonal, part.rest + cones.sums(part.ray**2 * other))
        self.rays = sp.csr_matrix(
            (part.ray / own, (members, cones.groups)), shape=(self.size, cones.size)
        )

    def lift(self, V: Floats) -> Floats:
        """Return a gradient by dV as one by w and s."""
        return np.append(V, self.rays.T @ V)

    def lower(self, lifted: Floats) -> Floats:
        """Return dV of w and s."""
        return np.asarray(lifted[: self.size] + self.rays @ lifted[self.size :])


def factorised(matrix: Floats) -> Solve | None:
    """Return a solver for a positive semidefinite matrix; None where it is not one."""
    diagonal = matrix.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * scale
    scaled *= scale[:, None]
    for ridge in RIDGES:
        scaled[np.diag_indices_from(scaled)] = 1.0 + ridge
        try:
            factor = scipy.linalg.cho_factor(scaled.T, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return partial(_scaled_solve, factor, scale)
    return None


def _scaled_solve(factor: Any, scale: Floats, right: Floats) -> Floats:
    if right.size == 0:
        return right  # scipy 1.12 refuses empty systems
    scaled = (scale * right.T).T
    return np.asarray((scale * scipy.linalg.cho_solve(factor, scaled, check_finite=False).T).T)


class Equations:
    """A linear solver with iterative refinement, as long as that brings the residual down.

    Parameters
    ----------
    solve : function
        Solves approximately.
    product : function
        The matrix itself.
    """

    def __init__(self, solve: Solve, product: Solve) -> None:
        self._solve, self._product = solve, product
        self.residual = 0.0

    def __call__(self, right: Floats) -> Floats:
        """Return the solution; ``residual`` is what it leaves, relative to ``right``."""
        x = self._solve(right)
        residual = right - self._product(x)
        for _ in range(REFINEMENTS):
            if np.linalg.norm(residual) <= REFINED_RESIDUAL * np.linalg.norm(right):
                break
            better = x + self._solve(residual)
            left = right - self._product(better)
            if not np.linalg.norm(left) < np.linalg.norm(residual):
                break
            x, residual = better, left
        size = float(np.linalg.norm(right))
        self.residual = float(np.linalg.norm(residual)) / size if size > 0.0 else 0.0
        return x


class _Block:
    """A diagonal block of the loss' Hessian, and its products with the rays of its groups.

    Parameters
    ----------
    hessian : array of shape (p, p)
    rays : sparse matrix of shape (p, groups)
        The rows of the rays in this block.
    """

    def __init__(self, hessian: Floats, rays: Any) -> None:
        self.hessian = hessian
        rays = rays.tocsc()
        self.groups = np.flatnonzero(np.diff(rays.indptr))
        rays = rays[:, self.groups]
        self.across = np.asarray((rays.T @ hessian).T)
        self.inner = np.asarray(rays.T @ self.across)

    def matrix(self, w: Ints, s: Ints) -> Floats:
        """Return the curvature by the loss of the coordinates w and of the listed groups."""
        where = np.searchsorted(self.groups, s)
        out = np.empty((w.size + s.size, w.size + s.size))
        out[: w.size, : w.size] = self.hessian[np.ix_(w, w)]
        out[: w.size, w.size :] = self.across[np.ix_(w, where)]
        out[w.size :, : w.size] = out[: w.size, w.size :].T
        out[w.size :, w.size :] = self.inner[np.ix_(where, where)]
        return out


def by_features(hessian: Floats, penalty: PenaltyCurvature) -> Equations | None:
    """Return a solver of the equations in w and s from the side of the features.

    Parameters
    ----------
    hessian : array of shape (blocks, p, p)
        Of the loss: its diagonal blocks. Groups with coordinates in several of them are the border
        of the matrix, which is solved for last.
    penalty : PenaltyCurvature
    """
    C, (count, p) = penalty.curvature, hessian.shape[:2]
    blocks = [_Block(hessian[b], penalty.rays[b * p : (b + 1) * p]) for b in range(count)]
    bent, shared = np.zeros_like(C), np.zeros(C.size - penalty.size, dtype=int)
    for b, block in enumerate(blocks):
        bent[b * p : (b + 1) * p] = block.hessian.diagonal()
        bent[penalty.size + block.groups] += block.inner.diagonal()
        shared[block.groups] += 1
    soft = bent >= NEGLIGIBLE_CURVATURE * C
    border = penalty.size + np.flatnonzero(soft[penalty.size :] & (shared > 1))
    rest, parts = np.diag(C[border]), []
    for b, block in enumerate(blocks):
        w = np.flatnonzero(soft[b * p : (b + 1) * p])
        s = block.groups[soft[penalty.size + block.groups] & (shared[block.groups] == 1)]
        own = np.append(b * p + w, penalty.size + s)
        met = np.flatnonzero(np.isin(border, penalty.size + block.groups))
        matrix = block.matrix(w, np.append(s, border[met] - penalty.size))
        inside, coupling = matrix[: own.size, : own.size], matrix[: own.size, own.size :]
        inside[np.diag_indices_from(inside)] += C[own]
        inner = factorised(inside)
        if inner is None:
            return None
        response = inner(coupling)
        rest[np.ix_(met, met)] += matrix[own.size :, own.size :] - coupling.T @ response
        parts.append((own, inner, met, response))
    last = factorised(rest)
    if last is None:
        return None
    stiff = np.zeros_like(C)
    np.divide(1.0, C + bent, out=stiff, where=~soft)

    def solve(right: Floats) -> Floats:
        out, step = stiff * right, right[border]
        for own, _, met, response in parts:
            step[met] -= response.T @ right[own]
        step = out[border] = last(step)
        for own, inner, met, response in parts:
            out[own] = inner(right[own]) - response @ step[met]
        return out

    def product(lifted: Floats) -> Floats:
        V = penalty.lower(lifted).reshape(count, p, 1)
        return penalty.lift((hessian @ V).ravel()) + C * lifted

    return Equations(solve, product)


def features_work(n: int, p: int, blocks: int = 1) -> float:
    """Return the multiplications of a step from the side of the features, with equal blocks."""
    return n * p**2 / (2 * blocks) + p**3 / (3 * blocks**2)


def samples_work(n: int, n_classes: int, p: int, groups: int, kept: int) -> float:
    """Return those from the side of the samples, with as many coordinates not eliminated."""
    rows = n * n_classes
    formed = n * n * p + rows * rows * groups + rows**3 / 3
    return formed + rows * kept * (rows + kept) + kept**3 / 3


def by_samples(
    X: Floats,
    outputs: slice,
    n_classes: int,
    roots: Any,
    penalty: PenaltyCurvature,
    most: float = np.inf,
) -> Equations | None:
    """Return a solver of the equations in w and s from the side of the samples.

    Parameters
    ----------
    X : array of shape (n, width)
        Columns of all features, and of ones for the intercepts.
    outputs : slice
        Of the classes, those that have coefficients.
    n_classes : int
    roots : sparse matrix of shape (n K, rows)
        L.
    penalty : PenaltyCurvature
    most : float
        Multiplications above which None is returned.
    """
    (n, width), first = X.shape, outputs.start

    def scores(V: Floats) -> Floats:
        """Return the flat scores of coefficients."""
        found = np.zeros((n, n_classes))
        found[:, outputs] = X @ V.reshape(-1, width).T
        return found.ravel()

    def scores_of_columns(V: Any) -> Floats:
        """Return the flat scores of several columns of coefficients, a sparse matrix by rows."""
        found = np.zeros((n, n_classes, V.shape[1]))
        for k in range(V.shape[0] // width):
            found[:, first + k] = (V[k * width : (k + 1) * width].T @ X.T).T
        return found.reshape(n * n_classes, V.shape[1])

    def back(flat: Floats) -> Floats:
        return np.asarray((flat.reshape(n, n_classes)[:, outputs].T @ X).ravel())

    rays = scores_of_columns(penalty.rays)
    # How much a unit of each coordinate bends the loss, beside what its C makes of it.
    weight = float(roots.multiply(roots).sum()) / n
    size = np.tile(np.sum(X * X, axis=0), penalty.size // width)
    bent = weight * np.append(size, np.sum(rays * rays, axis=0))
    C = penalty.curvature
    eliminated = bent <= LARGEST_GAIN * C
    eliminated[C == 0.0] = False
    kept = np.flatnonzero(~eliminated)
    if samples_work(n, n_classes, penalty.curvature.size, C.size - penalty.size, kept.size) > most:
        return None
    inverse = np.zeros_like(C)
    np.divide(1.0, C, out=inverse, where=eliminated)
    response = np.zeros((n, n_classes, n, n_classes))
    for k, share in enumerate(inverse[: penalty.size].reshape(-1, width)):
        used = np.flatnonzero(share)
        Z = X[:, used]
        response[:, first + k, :, first + k] = (Z * share[used]) @ Z.T
    along = rays * np.sqrt(inverse[penalty.size :])
    flat = response.reshape(n * n_classes, n * n_classes) + along @ along.T
    inner = np.asarray(roots.T @ (roots.T @ flat).T)
    inner[np.diag_indices_from(inner)] += 1.0
    try:
        factor = scipy.linalg.cho_factor(inner.T, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None

    def through(flat: Floats) -> Floats:
        """Return S times scores."""
        return np.asarray(
            roots @ scipy.linalg.cho_solve(factor, roots.T @ flat, check_finite=False)
        )

    w = kept[kept < penalty.size]
    ones = sp.csr_matrix((np.ones(w.size), (w, np.arange(w.size))), shape=(penalty.size, w.size))
    images = np.hstack([scores_of_columns(ones), rays[:, kept[w.size :] - penalty.size]])
    matrix = images.T @ through(images)
    matrix[np.diag_indices_from(matrix)] += C[kept]
    solve_kept = factorised(matrix)
    if solve_kept is None:
        return None

    def solve(right: Floats) -> Floats:
        out = inverse * right
        flat = scores(penalty.lower(out))
        step = solve_kept(right[kept] - images.T @ through(flat))
        flat = flat + images @ step
        out = out - inverse * penalty.lift(back(through(flat)))
        out[kept] = step
        return np.asarray(out)

    def product(lifted: Floats) -> Floats:
        bent = back(roots @ (roots.T @ scores(penalty.lower(lifted))))
        return penalty.lift(bent) + C * lifted

    return Equations(solve, product)
