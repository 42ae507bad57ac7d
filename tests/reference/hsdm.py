"""Theorem 1 of Nakayama et al., letter by letter, with dense matrices for every projection."""

import numpy as np


class NaiveHsdm:
    """The operators on z = (p, u, omega, t), each as a matrix or a plain formula."""

    def __init__(self, X, y, weight, K, *, gamma, relaxation, step, decay, radius):
        n, d = X.shape
        self.n, self.d, self.K, self.y, self.weight = n, d, K, y, weight
        self.gamma, self.alpha, self.step, self.decay = gamma, relaxation, step, decay
        m = d + 1
        self.pairs = [(r, s) for r in range(K) for s in range(r + 1, K)]
        A = np.zeros((n * K, K * m))
        for i in range(n):
            for j in range(K):
                A[i * K + j, j * m : (j + 1) * m] += np.r_[X[i], 1.0]
                A[i * K + j, y[i] * m : (y[i] + 1) * m] -= np.r_[X[i], 1.0]
        bar = np.hstack([A, -np.eye(n * K)])
        size = bar.shape[1]
        self.null = np.eye(size) - bar.T @ np.linalg.solve(bar @ bar.T, bar)
        self.links = []
        for r, s in self.pairs:
            omega = np.zeros((d, size))
            omega[:, r * m : r * m + d] = np.eye(d)
            omega[:, s * m : s * m + d] -= np.eye(d)
            B = omega @ self.null
            graph = np.hstack([B, -np.eye(d)])  # L is the null space of this
            self.links.append(np.eye(size + d) - graph.T @ np.linalg.solve(graph @ graph.T, graph))
        longest = np.linalg.norm(X, axis=1).max()
        self.radii = (
            radius,
            2 * radius * np.sqrt(K * n) * (longest**2 + 1),
            radius * K * (K - 1),
            2 * radius,
        )
        self.z, self.omega, self.t = np.zeros(size), np.zeros((len(self.pairs), d)), 0.0
        self.iteration = 0

    def _prox_f(self, z):
        out = z.copy()
        size = z.size - self.n * self.K
        for i in range(self.n):
            part = slice(size + i * self.K, size + (i + 1) * self.K)
            shifted = z[part] + (np.arange(self.K) != self.y[i])
            out[part] = z[part] - project_simplex(shifted, self.gamma * self.weight[i])
        return out

    def run(self, count):
        for _ in range(count):
            self.iteration += 1
            for number, link in enumerate(self.links):
                both = link @ np.r_[self.z, self.omega[number]]
                self.z, self.omega[number] = both[: self.z.size], both[self.z.size :]
            for number in range(len(self.pairs)):
                length = np.linalg.norm(self.omega[number])
                if length <= self.t:
                    continue
                if length <= -self.t:
                    self.omega[number], self.t = 0.0, 0.0
                else:
                    middle = (length + self.t) / 2
                    self.omega[number] *= middle / length
                    self.t = middle
            reflected = 2 * self.null @ self.z - self.z
            image = 2 * self._prox_f(reflected) - reflected
            self.z = (1 - self.alpha) * self.z + self.alpha * image
            size = self.z.size - self.n * self.K
            self.z[:size] = into_ball(self.z[:size], self.radii[0])
            self.z[size:] = into_ball(self.z[size:], self.radii[1])
            self.omega = into_ball(self.omega, self.radii[2])
            self.t = float(np.clip(self.t, -self.radii[3], self.radii[3]))
            self.t -= self.step / self.iteration**self.decay

    def point(self):
        return self.z[: self.K * (self.d + 1)].reshape(self.K, self.d + 1)


def into_ball(v, radius):
    length = np.linalg.norm(v)
    return v if length <= radius else v * (radius / length)


def project_simplex(v, mass):
    ordered = np.sort(v)[::-1]
    levels = (np.cumsum(ordered) - mass) / np.arange(1, v.size + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    return np.maximum(v - level, 0.0)
