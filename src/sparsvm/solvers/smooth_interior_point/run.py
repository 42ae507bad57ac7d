"""The iterates of the interior point for smooth losses on one set of features."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Floats
from sparsvm.losses import Logistic
from sparsvm.problem.problem import Problem
from sparsvm.solvers.smooth_interior_point.cones import BoxCones, Cones, RoundCones
from sparsvm.solvers.smooth_interior_point.systems import (
    Equations,
    PenaltyCurvature,
    by_features,
    by_samples,
    features_work,
    samples_work,
)
from sparsvm.solvers.smooth_interior_point.terms import LogisticTerms, SquaredTerms

# Settings.
# Part of the way to the boundary of the cones that a step goes; a usual value.
STEP_FRACTION = 0.99
# A step this short is replaced by a centring one.
SHORT_STEP = 0.1
# Least step after which the iterates have lost their digits.
SHORTEST_STEP = 1e-10
# Coefficients that a matrix is formed for where the side of the samples lost its digits.
LARGEST_MATRIX = 4000
# The relative residual of a step's equations that needs no better solver.
ACCURATE = 1e-7
# Halvings of a step along which the barrier function rises, by more than this share of itself.
HALVINGS, BARRIER_ROUNDING = 30, 1e-12


class InteriorPointRun:
    """The iterates for one problem, all of whose features take part.

    Columns are centred where there are intercepts, which then take up the means; those of
    penalised features are divided by their omega, those of others by their size. Coefficients V
    are ordered output by output, the intercept last.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        K, d = problem.n_outputs, problem.d
        self.outputs = slice(1, 2) if problem.n_classes == 2 else slice(0, K)
        self._read_columns()
        self.V = np.zeros(K * self.width)
        self.linear = np.zeros((K, self.width))
        if problem.linear_term is not None:
            self.linear[:, :d] = -problem.alpha * problem.linear_term / self.scale
        terms, alpha = problem.penalty, problem.alpha
        penalised = np.flatnonzero(terms.omega > 0.0)
        coordinates = (np.arange(K)[:, None] * self.width + penalised).ravel()
        labels = np.tile(terms.groups[penalised].astype(np.intp), K)
        if terms.per_class:
            labels += terms.n_groups * np.repeat(np.arange(K), penalised.size)
        rest = alpha * (1.0 - terms.l1_ratio)
        self.square = np.zeros(self.V.size)
        if not terms.is_norm:
            self.square[coordinates] = rest
        scores = self._scores(self.V)
        squared = not isinstance(problem.loss, Logistic)
        groups: list[tuple[Cones, type[BoxCones] | type[RoundCones]]] = []
        if terms.l1_ratio > 0.0:
            groups.append((Cones.of(coordinates, coordinates, alpha * terms.l1_ratio), BoxCones))
        if terms.group_order is not None:
            kind = BoxCones if terms.group_order == np.inf else RoundCones
            groups.append((Cones.of(coordinates, labels, rest), kind))
        degree = scores.size * squared
        degree += sum(2 * c.members.size if k is BoxCones else c.size for c, k in groups)
        value = float(problem.mass @ problem.loss.value(scores, problem.y, problem.margins()))
        mu = value / max(degree, 1)
        self.cones = [kind(cones, mu) for cones, kind in groups if cones.size]
        self.loss = SquaredTerms(problem, scores, mu) if squared else LogisticTerms(problem, scores)
        self.parts = [self.loss, *self.cones]
        self.samples_are_accurate = True

    def _read_columns(self) -> None:
        problem, d = self.problem, self.problem.d
        columns = np.array(problem.design.gather_columns(np.arange(d, dtype=np.int32)))
        self.mean = columns.mean(axis=0) if problem.fit_intercept else np.zeros(d)
        columns -= self.mean
        size = np.abs(columns).max(axis=0, initial=0.0)
        omega = problem.penalty.omega
        self.scale = np.where(omega > 0.0, omega, np.where(size > 0.0, size, 1.0))
        columns /= self.scale
        if problem.fit_intercept:
            columns = np.hstack([columns, np.ones((problem.n, 1))])
        self.X, self.width = columns, columns.shape[1]
        self.spread = size

    def _scores(self, V: Floats) -> Floats:
        scores = np.zeros((self.problem.n, self.problem.n_classes))
        scores[:, self.outputs] = self.X @ V.reshape(-1, self.width).T
        return scores

    def point(self) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts."""
        d = self.problem.d
        V = self.V.reshape(-1, self.width)
        coef = V[:, :d] / self.scale
        if not self.problem.fit_intercept:
            return coef, np.zeros(coef.shape[0])
        return coef, V[:, d] - coef @ self.mean

    @property
    def complementarity(self) -> float:
        """The sum of all products of slacks and multipliers: the gap of a feasible point."""
        return sum(part.complementarity() for part in self.parts)

    def step(self) -> bool:
        """Take one step; False where rounding leaves none."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._step()

    def _step(self) -> bool:
        for part in self.parts:
            part.prepare()
        degree = max(sum(part.degree for part in self.parts), 1)
        mu = self.complementarity / degree
        solve = self._equations()
        if solve is not None:
            self._direct(solve, 0.0, False)
        if self.samples_are_accurate and solve is not None and solve.residual > ACCURATE:
            # Near the solution the elimination of features loses digits; their own matrix does not.
            self.samples_are_accurate = False
            solve = self._equations()
            if solve is not None:
                self._direct(solve, 0.0, False)
        if solve is None:
            return False
        affine = min(1.0, self._longest())
        after = sum(part.after(affine) for part in self.parts) / degree
        tau = mu * min(max(after / mu, 0.0), 1.0) ** 3 if mu > 0.0 else 0.0
        dV = self._direct(solve, tau, True)
        length = self._search(dV, tau)
        if length < SHORT_STEP:
            # Far off the central path the second-order terms mislead. Without them the direction
            # is one of descent for the barrier function.
            tau = max(tau, 0.5 * mu)
            dV = self._direct(solve, tau, False)
            length = self._search(dV, tau)
        if not length > SHORTEST_STEP or not np.isfinite(dV).all():
            return False
        self.V = self.V + length * dV
        for part in self.parts:
            part.advance(length)
        return True

    def _equations(self) -> Equations | None:
        """Return a solver of the step's equations."""
        self.penalty = PenaltyCurvature(self.square, [cones.curvature() for cones in self.cones])
        n, K, groups = self.problem.n, self.problem.n_classes, self.penalty.rays.shape[1]
        blocks = self.problem.n_blocks
        features = features_work(n, self.V.size, blocks)
        if self.V.size > blocks * LARGEST_MATRIX:
            features = np.inf
        if self.samples_are_accurate and samples_work(n, K, self.V.size, groups, 0) < features:
            roots = self.loss.roots()
            solve = by_samples(self.X, self.outputs, K, roots, self.penalty, features)
            if solve is not None:
                return solve
        if features == np.inf:
            return None
        return by_features(self._hessian(), self.penalty)

    def _hessian(self) -> Floats:
        """Return the diagonal blocks of the Hessian of the loss, one below the other."""
        K, m, first = self.problem.n_outputs, self.width, self.outputs.start
        count = self.problem.n_blocks
        size = K // count  # outputs of a block
        blocks = np.zeros((count, size, m, size, m))
        for k in range(K):
            bent, (b, own) = self.loss.bent(first + k), divmod(k, size)
            for other in range(own, size):
                weights = bent[:, first + b * size + other]
                rows = np.flatnonzero(weights)
                X = self.X if rows.size == weights.size else self.X[rows]
                gram = (X * weights[rows, None]).T @ X
                blocks[b, other, :, own, :] = gram
                blocks[b, own, :, other, :] = gram.T
        return blocks.reshape(count, size * m, size * m)

    def _direct(self, solve: Equations, tau: float, second: bool) -> Floats:
        slopes = self.loss.force(tau, second)[:, self.outputs]
        right = -(slopes.T @ self.X + self.linear).ravel() - self.square * self.V
        for cones in self.cones:
            right[cones.cones.members] -= cones.force(tau, second)
        dV = self.penalty.lower(solve(self.penalty.lift(right)))
        self.loss.recover(self._scores(dV))
        for cones in self.cones:
            cones.recover(dV[cones.cones.members])
        return dV

    def _longest(self) -> float:
        return min(min(part.longest()) for part in self.parts)

    def _search(self, dV: Floats, tau: float) -> float:
        """Return how far to go: inside the cones, and with a loss that is not quadratic not so
        far that the barrier function rises.
        """
        length = min(1.0, STEP_FRACTION * self._longest())
        if not isinstance(self.loss, LogisticTerms):
            return length

        def barrier(step: float) -> float:
            V = self.V + step * dV
            smooth = 0.5 * float(self.square @ V**2) + float(self.linear.ravel() @ V)
            return smooth + self.loss.barrier(step) + sum(c.barrier(step, tau) for c in self.cones)

        now = barrier(0.0)
        slack = BARRIER_ROUNDING * abs(now)
        for _ in range(HALVINGS):
            if barrier(length) <= now + slack:
                return length
            length *= 0.5
        return length
