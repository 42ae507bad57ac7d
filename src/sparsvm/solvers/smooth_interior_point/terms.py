"""Smooth losses in the interior point: their gradient, curvature and complementary pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import NO_SIZE
from sparsvm.problem.problem import Problem
from sparsvm.solvers.smooth_interior_point.cones import longest_ratio

# Settings: no pair starts with less than this share of the largest violation.
LEAST_VIOLATION = 1e-3


class LogisticTerms:
    """The logistic loss: its gradient is linearised afresh at every point."""

    degree = 0

    def __init__(self, problem: Problem, scores: Floats) -> None:
        assert isinstance(problem.loss, SmoothLoss)
        self.problem, self.loss, self.margins = problem, problem.loss, problem.margins()
        self.scores = scores

    def complementarity(self) -> float:
        return 0.0

    def dual(self) -> Floats | None:
        """Leave it to the certificate, which takes the derivatives at the point."""
        return None

    def prepare(self) -> None:
        self.slopes = self.loss.gradient(self.scores, self.problem.y, self.margins)
        self.slopes *= self.problem.mass[:, None]

    def bent(self, k: int) -> Floats:
        """Return the column k of the Hessian of every sample."""
        direction = np.zeros_like(self.scores)
        direction[:, k] = self.problem.mass
        return self.loss.hessian_product(self.scores, self.problem.y, self.margins, direction)

    def roots(self) -> Any:
        """Return L, (n K) x rows and sparse, with L L' the Hessian in the scores."""
        n, K = self.scores.shape
        shares = self.slopes / self.problem.mass[:, None]
        shares[np.arange(n), self.problem.y] += 1.0
        # Row (i, k) of L': the root of p q_k times e_k - q.
        root = np.sqrt(self.problem.mass[:, None] * np.maximum(shares, 0.0))
        entries = root[:, :, None] * (np.eye(K) - shares[:, None, :])
        pairs = np.arange(n * K)
        columns = np.repeat(pairs.reshape(n, K), K, axis=0).ravel()
        return sp.csr_array((entries.ravel(), columns, np.arange(n * K + 1) * K)).T

    def force(self, tau: float, second: bool) -> Floats:
        return self.slopes

    def recover(self, along: Floats) -> None:
        self.along = along

    def longest(self) -> tuple[float, float]:
        return np.inf, np.inf

    def after(self, step: float) -> float:
        """Return what its linearisation leaves of the gap: the error of the quadratic model."""
        along, mass = step * self.along, self.problem.mass
        bent = self.loss.hessian_product(self.scores, self.problem.y, self.margins, along)
        model = float(np.sum(along * (self.slopes + 0.5 * mass[:, None] * bent)))
        return abs(self.barrier(step) - self.barrier(0.0) - model)

    def barrier(self, step: float) -> float:
        """Return the loss after a step."""
        scores = self.scores + step * self.along
        return float(self.problem.mass @ self.loss.value(scores, self.problem.y, self.margins))

    def advance(self, step: float) -> None:
        self.scores = self.scores + step * self.along


class SquaredTerms:
    r"""The squared losses: for every term :math:`p \max(0, v)^2` the pair F, s >= 0, F s = 0.

    F is its derivative by v, and the slack :math:`s = F / 2p - v`.
    """

    def __init__(self, problem: Problem, scores: Floats, complementarity: float) -> None:
        n, K = scores.shape
        own = np.arange(K) == problem.y[:, None]
        self.separate = problem.one_vs_rest
        self.sign = np.where(own, -1.0, 1.0)
        self.own, self.y = own, problem.y
        self.margins = problem.margins()
        self.on = np.ones((n, K), dtype=bool) if self.separate else ~own
        self.slope = 0.5 / problem.mass[:, None]
        self.violation = self._violations(scores)
        least = LEAST_VIOLATION * max(
            float(np.abs(self.violation[self.on]).max(initial=0.0)), NO_SIZE
        )
        start = np.maximum(self.violation, least)
        self.F = np.where(self.on, start / self.slope, 1.0)
        self.s = np.where(self.on, complementarity / self.F, 1.0)
        self.dF, self.ds = np.zeros((n, K)), np.zeros((n, K))

    def _violations(self, scores: Floats) -> Floats:
        return np.asarray(self.margins + self._moved(scores))

    def _moved(self, scores: Floats) -> Floats:
        if self.separate:
            return np.asarray(self.sign * scores)
        return np.asarray(scores - scores[np.arange(self.y.size), self.y][:, None])

    def _balanced(self, entries: Floats) -> Floats:
        if self.separate:
            return np.asarray(self.sign * entries)
        entries = np.where(self.own, 0.0, entries)
        return np.where(self.own, -entries.sum(axis=1, keepdims=True), entries)

    @property
    def degree(self) -> int:
        return int(np.count_nonzero(self.on))

    def complementarity(self) -> float:
        return float(np.sum(np.where(self.on, self.F * self.s, 0.0)))

    def dual(self) -> Floats | None:
        """Return the multipliers as the certificate takes them."""
        return np.where(self.on, self.F, 0.0)

    def prepare(self) -> None:
        self.softness = self.s + self.F * self.slope
        self.weight = np.where(self.on, self.F / self.softness, 0.0)
        self.residual = self.F * self.slope - self.violation - self.s

    def bent(self, k: int) -> Floats:
        weight = self.weight
        if self.separate:
            out = np.zeros_like(weight)
            out[:, k] = weight[:, k]
            return out
        direction = np.zeros_like(weight)
        direction[:, k] = 1.0
        return self._balanced(weight * self._moved(direction))

    def roots(self) -> Any:
        """Return L, (n K) x rows and sparse, with L L' the Hessian in the scores."""
        n, K = self.weight.shape
        sample, other = np.nonzero(self.on)
        root, rows = np.sqrt(self.weight[self.on]), np.arange(sample.size)
        L = sp.csr_array((root, (sample * K + other, rows)), shape=(n * K, rows.size))
        if self.separate:
            return L
        own = sample * K + self.y[sample]
        return L - sp.csr_array((root, (own, rows)), shape=L.shape)

    def force(self, tau: float, second: bool) -> Floats:
        target = tau - self.F * self.s - self.F * self.residual
        if second:
            target -= self.dF * self.ds
        self.e = target / self.softness
        return self._balanced(np.where(self.on, self.F + self.e, 0.0))

    def recover(self, along: Floats) -> None:
        self.dv = self._moved(along)
        self.dF = np.where(self.on, self.weight * self.dv + self.e, 0.0)
        self.ds = np.where(self.on, self.dF * self.slope - self.dv + self.residual, 0.0)

    def longest(self) -> tuple[float, float]:
        return longest_ratio(self.s, self.ds), longest_ratio(self.F, self.dF)

    def after(self, step: float) -> float:
        product = (self.F + step * self.dF) * (self.s + step * self.ds)
        return float(np.sum(np.where(self.on, product, 0.0)))

    def barrier(self, step: float) -> float:
        return 0.0

    def advance(self, step: float) -> None:
        self.F = self.F + step * self.dF
        self.s = self.s + step * self.ds
        self.violation = self.violation + step * self.dv
