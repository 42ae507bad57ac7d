"""The pieces of the semismooth Newton method, written down plainly.

Everything is dense and slow: generalised Jacobians as matrices, the subproblem of the proximal
method of multipliers as a function of one long vector.
"""

from __future__ import annotations

import numpy as np


def project_simplex(v, mass):
    """Projection on {u >= 0, sum(u) = mass} by sorting."""
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - mass
    count = np.flatnonzero(u - excess / np.arange(1, v.size + 1) > 0.0)[-1] + 1
    return np.maximum(v - excess[count - 1] / count, 0.0)


def simplex_jacobian(v, mass):
    """diag(on) - on on' / |on|, on being where the projection is positive."""
    on = (project_simplex(v, mass) > 0.0).astype(float)
    return np.diag(on) - np.outer(on, on) / on.sum()


def prox_jacobian(terms, V, step):
    """Generalised Jacobian of ``terms.prox(V, step)``, over V flattened row by row.

    On the manifold of U = prox(V) it is the inverse of I + step * Hessian of the penalty, across
    it zero.
    """
    U = terms.prox(V, step)
    size, d = V.size, V.shape[1]
    omega = np.broadcast_to(terms.omega, V.shape).reshape(-1)
    basis, hessian = np.diag((U.reshape(-1) != 0.0) * 1.0), np.zeros((size, size))
    if terms.kind in ("l2", "elasticnet"):
        hessian += np.diag((1.0 - terms.l1_ratio) * omega**2)
    if terms.kind == "l2":
        basis = np.eye(size)
    if terms.kind in ("l1/l2", "sparse_group", "l1/linf"):
        flat = np.arange(size).reshape(V.shape)
        outputs = range(V.shape[0]) if terms.per_class else [slice(None)]
        for g in range(terms.n_groups):
            for o in outputs:
                members = flat[o][..., terms.groups == g].reshape(-1)
                _add_group(terms, U.reshape(-1), omega, members, basis, hessian)
    unpenalised = np.tile(terms.omega == 0.0, V.shape[0])
    basis[unpenalised, unpenalised] = 1.0
    assert d * V.shape[0] == size
    tangent = np.linalg.svd(basis)[0][:, : np.linalg.matrix_rank(basis)]
    inner = np.eye(tangent.shape[1]) + step * tangent.T @ hessian @ tangent
    return tangent @ np.linalg.inv(inner) @ tangent.T


def _add_group(terms, U, omega, members, basis, hessian):
    w, o = U[members], omega[members]
    if not np.any(w * o):
        return
    if terms.kind == "l1/linf":
        top = np.max(o * np.abs(w))
        tied = members[(o * np.abs(w) >= top * (1 - 1e-12)) & (o > 0.0)]
        basis[np.ix_(members, members)] = np.diag((o >= 0.0) * 1.0)
        basis[np.ix_(tied, tied)] = 0.0
        direction = np.sign(U[tied]) / omega[tied]
        basis[np.ix_(tied, tied)] = np.outer(direction, direction) / np.sum(direction**2)
        return
    length = np.linalg.norm(o * w)
    weight = (1.0 - terms.l1_ratio) / length
    curve = np.diag(o**2) - np.outer(o**2 * w, o**2 * w) / length**2
    hessian[np.ix_(members, members)] += weight * curve
    if terms.kind == "l1/l2":
        basis[members, members] = 1.0


class Subproblem:
    """Penalty plus smoothed hinge plus proximal terms, around a centre (W, b, Y)."""

    def __init__(self, problem, X, center, gain, sigma, sigma_free):
        self.problem, self.X, self.center = problem, X, center
        self.gain, self.sigma, self.sigma_free = gain, sigma, sigma_free
        self.lam = problem.mass / problem.alpha
        omega = problem.penalty.omega
        rms = np.sqrt(np.mean(X**2, axis=0))
        self.unit = np.where(omega > 0.0, omega, np.where(rms > 0.0, rms, 1.0))
        self.sigmas = np.where(omega > 0.0, sigma, sigma_free)

    def moved(self, W, b):
        """The points whose projections on the simplices are the multipliers."""
        problem = self.problem
        scores = self.X @ W.T + b
        if problem.n_classes == 2:
            scores = np.hstack([np.zeros_like(scores), scores])
        u = scores - scores[np.arange(problem.n), problem.y][:, None] + problem.margins()
        return u, self.center[2] + (self.gain * self.lam)[:, None] * u

    def dual(self, W, b):
        _, moved = self.moved(W, b)
        return np.array([project_simplex(v, lam) for v, lam in zip(moved, self.lam, strict=True)])

    def smooth_value(self, W, b):
        """All but the penalty."""
        u, _ = self.moved(W, b)
        Y = self.dual(W, b)
        cost = np.sum(Y * u)
        cost -= np.sum(np.sum((Y - self.center[2]) ** 2, axis=1) / (2.0 * self.gain * self.lam))
        cost += np.sum((self.unit * (W - self.center[0])) ** 2 / (2.0 * self.sigmas))
        cost += np.sum((b - self.center[1]) ** 2) / (2.0 * self.sigma_free)
        if self.problem.linear_term is not None:
            cost -= np.sum(self.problem.linear_term * W)
        return cost

    def slope(self, W, b):
        """Gradient of ``smooth_value`` in W and b."""
        Y = self.dual(W, b)
        Y[np.arange(self.problem.n), self.problem.y] -= self.lam
        Y = Y[:, -self.problem.n_outputs :]
        G = Y.T @ self.X + self.unit**2 * (W - self.center[0]) / self.sigmas
        if self.problem.linear_term is not None:
            G = G - self.problem.linear_term
        return G, Y.sum(axis=0) + (b - self.center[1]) / self.sigma_free

    def hessian(self, W, b):
        """Generalised Hessian of ``smooth_value`` over (W row by row, b)."""
        K, d = W.shape
        _, moved = self.moved(W, b)
        H = np.zeros((K * (d + 1), K * (d + 1)))
        for x, v, lam in zip(self.X, moved, self.lam, strict=True):
            J = self.gain * lam * simplex_jacobian(v, lam)[-K:, -K:]
            H[: K * d, : K * d] += np.kron(J, np.outer(x, x))
            H[: K * d, K * d :] += np.kron(J, x[:, None])
            H[K * d :, : K * d] += np.kron(J, x[None, :])
            H[K * d :, K * d :] += J
        H[: K * d, : K * d] += np.diag(np.tile(self.unit**2 / self.sigmas, K))
        return H + np.diag(np.r_[np.zeros(K * d), np.full(K, 1.0 / self.sigma_free)])
