"""The plainest solver of smooth problems: accelerated proximal gradient steps on arrays."""

from __future__ import annotations

import numpy as np

from reference.oracles import dense


def solve(problem, steps=20000):
    """Return W and b after so many steps of constant size, restarted where the objective rises."""
    X = dense(problem)
    # The Hessian of a row's loss is at most 2 (K + 1) in norm, for every smooth loss.
    ones = np.ones((problem.n, 1 if problem.fit_intercept else 0))
    size = np.linalg.norm(np.sqrt(problem.mass)[:, None] * np.hstack([X, ones]), 2) ** 2
    step = 1.0 / (2.0 * (problem.n_classes + 1) * size)
    point = (np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs))
    ahead, momentum, last = point, 1.0, np.inf
    for _ in range(steps):
        new = _step(problem, X, ahead, step)
        value = problem.objective(*new)
        if value > last:
            ahead, momentum, last = point, 1.0, np.inf
            continue
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        weight = (momentum - 1.0) / faster
        ahead = tuple(a + weight * (a - b) for a, b in zip(new, point, strict=True))
        point, momentum, last = new, faster, value
    return point


def _step(problem, X, point, step):
    W, b = point
    scores = X @ W.T + b
    if problem.n_classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    slopes = problem.mass[:, None] * problem.loss.gradient(scores, problem.y, problem.margins())
    slopes = slopes[:, -problem.n_outputs :]
    gradient = slopes.T @ X
    if problem.linear_term is not None:
        gradient = gradient - problem.alpha * problem.linear_term
    W = problem.penalty.prox(W - step * gradient, step * problem.alpha)
    return W, b - step * slopes.sum(axis=0) * problem.fit_intercept
