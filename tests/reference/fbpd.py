"""Algorithm 1 of Chierchia et al. as the paper states it, with explicit score differences."""

from dataclasses import dataclass

import numpy as np

from reference import prox


@dataclass
class Iterate:
    W: np.ndarray  # (features, outputs)
    b: np.ndarray
    Y: np.ndarray  # (samples, classes)


def differences(problem, X, W, b):
    """T x: the scores of all classes less the score of the true one."""
    scores = X @ W + b
    if problem.n_classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    return scores - scores[np.arange(problem.n), problem.y][:, None]


def adjoint(problem, X, Y):
    """Tᵀ y: every sample pulls on each class with its dual and on its own with minus their sum."""
    pull = Y.copy()
    pull[np.arange(problem.n), problem.y] -= Y.sum(axis=1)
    if problem.n_classes == 2:
        pull = pull[:, 1:]
    return X.T @ pull, pull.sum(axis=0)


def start(problem):
    Y = np.zeros((problem.n, problem.n_classes))
    Y[np.arange(problem.n), problem.y] = problem.mass
    return Iterate(np.zeros((problem.d, problem.n_outputs)), np.zeros(problem.n_outputs), Y)


def step(problem, X, x, tau, sigma):
    """One iteration: the primal prox, then the projection of the dual at the extrapolation."""
    terms = problem.penalty
    GW, Gb = adjoint(problem, X, x.Y)
    if problem.linear_term is not None:
        GW = GW - problem.alpha * problem.linear_term.T
    W = prox.prox_penalty(
        x.W - tau * GW,
        tau * problem.alpha,
        terms.kind,
        terms.l1_ratio,
        terms.groups,
        terms.n_groups,
        terms.per_class,
        terms.omega,
    )
    b = x.b - tau * Gb if problem.fit_intercept else x.b
    moved = x.Y + sigma * differences(problem, X, 2 * W - x.W, 2 * b - x.b)
    moved += sigma * problem.margins()
    rows = [prox.project_simplex(row, p) for row, p in zip(moved, problem.mass, strict=True)]
    return Iterate(W, b, np.array(rows))


def change(old, new):
    """The paper's relative change of two consecutive iterates; at zero, that of the dual."""
    moved = np.hypot(np.linalg.norm(new.W - old.W), np.linalg.norm(new.b - old.b))
    length = np.hypot(np.linalg.norm(new.W), np.linalg.norm(new.b))
    if length > 0:
        return moved / length
    return np.linalg.norm(new.Y - old.Y) / np.linalg.norm(new.Y)
