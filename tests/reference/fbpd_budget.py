"""Algorithm 2 of Chierchia et al. and its competitor with linear constraints, as the paper states.

Here the linear method keeps all K copies of the slacks and projects them in two steps.
"""

from dataclasses import dataclass

import numpy as np

from reference import prox
from reference.fbpd import adjoint, differences


@dataclass
class Iterate:
    W: np.ndarray  # (features, outputs)
    b: np.ndarray
    zeta: np.ndarray  # (samples,), or (samples, classes) for the linear method
    Y: np.ndarray  # (samples, classes)
    xi: np.ndarray  # as zeta


def start(problem, linear=False):
    shape = (problem.n, problem.n_classes) if linear else problem.n
    return Iterate(
        np.zeros((problem.d, problem.n_outputs)),
        np.zeros(problem.n_outputs),
        np.zeros(shape),
        np.zeros((problem.n, problem.n_classes)),
        np.zeros(shape),
    )


def step(problem, eta, X, x, tau, sigma):
    """One iteration of Algorithm 2."""
    W, b = primal(problem, X, x, tau)
    zeta = halfspace(x.zeta - tau * x.xi, problem.mass, eta)
    Y = x.Y + sigma * differences(problem, X, 2 * W - x.W, 2 * b - x.b)
    xi = x.xi + sigma * (2 * zeta - x.zeta)
    margins = problem.margins()
    for i in range(problem.n):
        p, theta = prox.project_epigraph(Y[i] / sigma, margins[i], xi[i] / sigma)
        Y[i] -= sigma * p
        xi[i] -= sigma * theta
    return Iterate(W, b, zeta, Y, xi)


def linear_step(problem, eta, X, x, tau, sigma):
    """One iteration with the linear constraints T x + r - zeta <= 0 on K copies of the slacks."""
    W, b = primal(problem, X, x, tau)
    K = problem.n_classes
    moved = x.zeta + tau * x.Y
    equal = np.repeat(moved.mean(axis=1, keepdims=True), K, axis=1)
    normal = np.repeat(problem.mass[:, None], K, axis=1)
    zeta = halfspace(equal.ravel(), normal.ravel(), K * eta).reshape(problem.n, K)
    Y = x.Y + sigma * (differences(problem, X, 2 * W - x.W, 2 * b - x.b) - (2 * zeta - x.zeta))
    Y -= sigma * np.minimum(Y / sigma, -problem.margins())
    return Iterate(W, b, zeta, Y, x.xi)


def primal(problem, X, x, tau):
    terms = problem.penalty
    GW, Gb = adjoint(problem, X, x.Y)
    W = prox.prox_penalty(
        x.W - tau * GW,
        tau,
        terms.kind,
        terms.l1_ratio,
        terms.groups,
        terms.n_groups,
        terms.per_class,
        terms.omega,
    )
    return W, x.b - tau * Gb if problem.fit_intercept else x.b


def halfspace(z, normal, limit):
    """The projection on {z: normal.z <= limit}."""
    excess = max(float(normal @ z) - limit, 0.0)
    return z - normal * excess / float(normal @ normal)
