r"""The equations of a step of the interior point for smooth losses, solved from either side.

.. math:: \bigl(X^\top H X + D\bigr)\, dV = right,

H being the Hessian of the loss in the scores and D the curvature of the penalty: a diagonal, less
one :math:`r r^\top` for every group. From the side of the features the matrix is formed and
factored. From that of the samples, with :math:`H = L L^\top`,

.. math:: S = L\, (I + L^\top X D^{-1} X^\top L)^{-1} L^\top

needs a matrix of the size of the samples times the classes, X and D being those of the coordinates
that are eliminated. Those without penalty, whose D is zero, and those whose D is so small that
their elimination would cost all digits (the active ones, near the solution) stay as unknowns f of
:math:`(X_f^\top S X_f + D_f)\, f = r_f - X_f^\top S X D^{-1} r`, and the others follow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from sparsvm._typing import Bools, Floats
from sparsvm.solvers.smooth_interior_point.cones import Curvature

# Settings.
# Shares of the diagonal added until the factorisation succeeds: equal shifts of all classes have no
# curvature, and near the solution the diagonal spans twenty orders.
RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
# Steps of iterative refinement.
REFINEMENTS = 3
# Coordinates are eliminated where that multiplies rounding errors by no more than this.
LARGEST_GAIN = 1e5

Solve = Callable[[Floats], Floats]


class PenaltyCurvature:
    """D: the squares and the cones of a penalty together.

    At most one of its kinds of cones has groups of several coordinates; of the others the matrix
    is diagonal.
    """

    def __init__(self, square: Floats, parts: list[Curvature]) -> None:
        self.diagonal = square.copy()
        for part in parts:
            self.diagonal[part.cones.members] += part.diagonal
        grouped = [part for part in parts if part.cones.size < part.cones.members.size]
        self.grouped = grouped[0] if grouped else None
        self.inverse = np.zeros_like(self.diagonal)
        np.divide(1.0, self.diagonal, out=self.inverse, where=self.diagonal > 0.0)
        self.kept = np.zeros(0, dtype=np.intp)
        if self.grouped is not None:
            cones, ray = self.grouped.cones, self.grouped.ray
            other = 1.0 / self.grouped.diagonal - self.inverse[cones.members]
            self.factor = 1.0 / (self.grouped.rest + cones.sums(ray**2 * other))

    def add_to(self, matrix: Floats) -> None:
        """Add D to a matrix."""
        matrix[np.diag_indices_from(matrix)] += self.diagonal
        if self.grouped is None:
            return
        cones, ray = self.grouped.cones, self.grouped.ray
        ends = np.append(cones.starts[1:], cones.members.size)
        for first, last in zip(cones.starts, ends, strict=True):
            at = cones.members[first:last]
            matrix[np.ix_(at, at)] -= np.outer(ray[first:last], ray[first:last])

    def keep(self, kept: Bools) -> None:
        """Leave coordinates, and whole groups with any of them, out of the inverse."""
        if self.grouped is not None:
            cones = self.grouped.cones
            some = np.zeros(cones.size, dtype=bool)
            some[cones.groups[kept[cones.members]]] = True
            kept[cones.members] |= some[cones.groups]
        self.inverse[kept] = 0.0
        self.kept = np.flatnonzero(kept)

    def of_kept(self) -> Floats:
        """Return D of the coordinates left out of the inverse."""
        D = np.diag(self.diagonal[self.kept])
        if self.grouped is None:
            return D
        place = np.full(self.diagonal.size, -1)
        place[self.kept] = np.arange(self.kept.size)
        cones, ray = self.grouped.cones, self.grouped.ray
        ends = np.append(cones.starts[1:], cones.members.size)
        for first, last in zip(cones.starts, ends, strict=True):
            at = place[cones.members[first:last]]
            if at[0] >= 0:
                D[np.ix_(at, at)] -= np.outer(ray[first:last], ray[first:last])
        return D

    def product(self, V: Floats) -> Floats:
        """Return D V."""
        out = self.diagonal * V
        if self.grouped is not None:
            cones, ray = self.grouped.cones, self.grouped.ray
            out[cones.members] -= ray * cones.sums(ray * V[cones.members])[cones.groups]
        return out

    def solve(self, right: Floats) -> Floats:
        """Return the inverse of D times ``right``, zero where D is."""
        out = self.inverse * right
        if self.grouped is not None:
            cones, ray = self.grouped.cones, self.grouped.ray
            along = self.factor * cones.sums(ray * out[cones.members])
            out[cones.members] += self.inverse[cones.members] * ray * along[cones.groups]
        return out

    def rays(self) -> Any:
        """Return the columns :math:`D^{-1} r` whose products the inverse adds to a diagonal.

        They are sparse: a coordinate belongs to one group.
        """
        if self.grouped is None:
            return sp.csr_matrix((self.diagonal.size, 0))
        cones = self.grouped.cones
        at, groups = cones.members, cones.groups
        used = np.ones(cones.size, dtype=bool)
        used[groups[self.inverse[at] == 0.0]] = False
        entries = self.inverse[at] * self.grouped.ray * np.sqrt(self.factor[groups])
        columns = sp.csc_matrix((entries, (at, groups)), shape=(self.diagonal.size, cones.size))
        return columns[:, np.flatnonzero(used)].tocsr()


def factorised(matrix: Floats) -> Equations | None:
    """Return a solver for a positive semidefinite matrix; None where it is not one."""
    diagonal = matrix.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * scale[:, None] * scale
    for ridge in RIDGES:
        scaled[np.diag_indices_from(scaled)] = 1.0 + ridge
        try:
            factor = scipy.linalg.cho_factor(scaled, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return Equations(partial(_scaled_solve, factor, scale), matrix.__matmul__)
    return None


def _scaled_solve(factor: Any, scale: Floats, right: Floats) -> Floats:
    return np.asarray(scale * scipy.linalg.cho_solve(factor, scale * right, check_finite=False))


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
            better = x + self._solve(residual)
            left = right - self._product(better)
            if not np.linalg.norm(left) < np.linalg.norm(residual):
                break
            x, residual = better, left
        size = float(np.linalg.norm(right))
        self.residual = float(np.linalg.norm(residual)) / size if size > 0.0 else 0.0
        return x


def by_samples(
    X: Floats, outputs: slice, n_classes: int, roots: Any, penalty: PenaltyCurvature
) -> Equations | None:
    """Return a solver of the equations from the side of the samples.

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

    # How much a unit of each coordinate bends the loss, beside what its D makes of it.
    weight = float(roots.multiply(roots).sum()) / n
    gain = weight * np.tile(np.sum(X * X, axis=0), penalty.diagonal.size // width) * penalty.inverse
    penalty.keep((penalty.inverse == 0.0) | (gain > LARGEST_GAIN))
    if penalty.kept.size > n * n_classes:
        return None  # the features' own matrix is smaller
    response = np.zeros((n, n_classes, n, n_classes))
    for k, inverse in enumerate(penalty.inverse.reshape(-1, width)):
        used = np.flatnonzero(inverse)
        Z = X[:, used]
        response[:, first + k, :, first + k] = (Z * inverse[used]) @ Z.T
    rays = scores_of_columns(penalty.rays())
    flat = response.reshape(n * n_classes, n * n_classes) + rays @ rays.T
    inner = np.asarray(roots.T @ (roots.T @ flat).T)
    inner[np.diag_indices_from(inner)] += 1.0
    try:
        factor = scipy.linalg.cho_factor(inner, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None

    def through(flat: Floats) -> Floats:
        """Return S times scores."""
        return np.asarray(
            roots @ scipy.linalg.cho_solve(factor, roots.T @ flat, check_finite=False)
        )

    kept = penalty.kept
    ones = (np.ones(kept.size), (kept, np.arange(kept.size)))
    images = scores_of_columns(sp.csr_matrix(ones, shape=(penalty.diagonal.size, kept.size)))
    solve_kept = factorised(images.T @ through(images) + penalty.of_kept()) if kept.size else None
    if kept.size and solve_kept is None:
        return None

    def solve(right: Floats) -> Floats:
        out = penalty.solve(right)
        flat = scores(out)
        step = np.zeros(0)
        if solve_kept is not None:
            step = solve_kept(right[kept] - images.T @ through(flat))
            flat = flat + images @ step
        out = out - penalty.solve(back(through(flat)))
        out[kept] = step
        return np.asarray(out)

    def product(V: Floats) -> Floats:
        return back(roots @ (roots.T @ scores(V))) + penalty.product(V)

    return Equations(solve, product)
