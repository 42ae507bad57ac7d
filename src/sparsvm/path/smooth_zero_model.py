"""The optimum of a smooth loss with all penalised weights at zero."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Floats
from sparsvm.losses import SmoothLoss
from sparsvm.problem.problem import Problem

# Settings of Newton's method.
_STEPS = 100
# A decrease below this share of the value is the rounding of the value.
_VALUE_ROUNDING = 1e-12
# Armijo's rule, with the usual share of the predicted decrease.
_ARMIJO = 1e-4
# Shifting all classes alike makes the Hessian singular; this is above its rounding.
_SINGULAR = 1e-13
# Steps for the last digits of the gradient, after those of the value.
_LAST_STEPS = 10


def smooth_free_coefficients(problem: Problem) -> tuple[Floats, Floats]:
    """Return unpenalised weights (n_outputs, free) and intercepts (n_outputs,) by Newton's method.

    The unknowns are few: one intercept and the unpenalised weights of each output. Their columns
    are divided by their mean absolute values, so that one tolerance serves all.
    """
    loss = problem.loss
    assert isinstance(loss, SmoothLoss)
    features = problem.penalty.free.astype(np.int32)
    columns = np.asarray(problem.design.gather_columns(features))
    sizes = problem.mass @ np.abs(columns)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    columns = columns / sizes
    if problem.fit_intercept:
        columns = np.hstack([np.ones((problem.n, 1)), columns])
    newton = _Newton(problem, loss, columns)
    beta = newton.minimise()
    first = 1 if problem.fit_intercept else 0
    intercept = beta[0] if first else np.zeros(problem.n_outputs)
    weights = beta[first:] / sizes[:, None]
    if problem.loss.of_differences and problem.n_outputs > 1:
        # The same shift of all classes changes nothing; the smallest representative is returned.
        intercept = intercept - intercept.mean()
        weights = weights - weights.mean(axis=1, keepdims=True)
    return weights.T, intercept


class _Newton:
    """Damped Newton steps on the weighted mean loss as a function of beta (q, n_outputs)."""

    def __init__(self, problem: Problem, loss: SmoothLoss, columns: Floats) -> None:
        self.problem, self.loss, self.columns = problem, loss, columns
        self.margins = problem.margins()

    def scores(self, beta: Floats) -> Floats:
        outputs = self.columns @ beta
        if self.problem.n_classes > 2:
            return np.asarray(outputs)
        return np.hstack([np.zeros_like(outputs), outputs])

    def pulled(self, per_score: Floats) -> Floats:
        """Derivatives in beta of a quantity whose derivatives in the scores are given."""
        outputs = per_score[:, 1:] if self.problem.n_classes == 2 else per_score
        return np.asarray(self.columns.T @ (self.problem.mass[:, None] * outputs))

    def value(self, scores: Floats) -> float:
        return float(
            np.sum(self.problem.mass * self.loss.value(scores, self.problem.y, self.margins))
        )

    def hessian(self, scores: Floats, shape: tuple[int, int]) -> Floats:
        size = shape[0] * shape[1]
        matrix = np.zeros((size, size))
        for column in range(size):
            unit = np.zeros(size)
            unit[column] = 1.0
            direction = self.scores(unit.reshape(shape))
            moved = self.loss.hessian_product(scores, self.problem.y, self.margins, direction)
            matrix[:, column] = self.pulled(moved).reshape(-1)
        return matrix

    def gradient(self, scores: Floats) -> Floats:
        return self.pulled(self.loss.gradient(scores, self.problem.y, self.margins))

    def step(self, scores: Floats, gradient: Floats) -> Floats:
        # Shifting all classes alike costs nothing: the matrix is singular.
        hessian = self.hessian(scores, (gradient.shape[0], gradient.shape[1]))
        step, *_ = np.linalg.lstsq(hessian, gradient.reshape(-1), rcond=_SINGULAR)
        return np.asarray(step.reshape(gradient.shape))

    def minimise(self) -> Floats:
        beta = np.zeros((self.columns.shape[1], self.problem.n_outputs))
        scores = self.scores(beta)
        value = self.value(scores)
        for _ in range(_STEPS):
            gradient = self.gradient(scores)
            if not gradient.any():
                return beta
            step = self.step(scores, gradient)
            decrease = float(np.vdot(step, gradient))
            if decrease <= _VALUE_ROUNDING * abs(value):
                return self.sharpened(beta)
            length = 1.0
            while (
                self.value(self.scores(beta - length * step)) > value - _ARMIJO * length * decrease
            ):
                length *= 0.5
            beta = beta - length * step
            scores = self.scores(beta)
            value = self.value(scores)
        return beta

    def sharpened(self, beta: Floats) -> Floats:
        """Go on where the value has no digits left to fall, as long as the gradient does."""
        gradient = self.gradient(self.scores(beta))
        for _ in range(_LAST_STEPS):
            moved = beta - self.step(self.scores(beta), gradient)
            after = self.gradient(self.scores(moved))
            if not np.abs(after).max() < np.abs(gradient).max():
                break
            beta, gradient = moved, after
        return beta
