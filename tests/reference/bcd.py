"""Cyclic block coordinate descent with line search, written out densely from the paper's pages."""

from __future__ import annotations

import numpy as np

from reference.oracles import dense


class CyclicDescent:
    """Rows of W as blocks; ``run`` makes one outer iteration and returns its violations (9)."""

    def __init__(self, problem, sigma=0.01, omega=0.5):
        self.problem, self.sigma, self.omega = problem, sigma, omega
        self.X = dense(problem)
        self.W = np.zeros((problem.n_outputs, problem.d))
        self.b = np.zeros(problem.n_outputs)
        self.searches = self.first_steps = 0

    def derivatives(self, column):
        """Partial gradient and generalised second derivatives along a column of the data."""
        problem = self.problem
        at = (problem.scores(self.W, self.b), problem.y, problem.margins())
        slopes = problem.mass[:, None] * problem.loss.gradient(*at)
        first, second = [], []
        for k in range(problem.n_outputs):
            label = k if problem.n_classes > 2 else 1
            unit = np.zeros_like(slopes)
            unit[:, label] = 1.0
            curved = problem.loss.hessian_product(*at, unit)[:, label]
            first.append(column @ slopes[:, label])
            second.append((problem.mass * column**2) @ curved)
        return np.array(first), np.array(second)

    def run(self):
        problem, violations = self.problem, []
        for j in range(problem.d):
            G, h = self.derivatives(self.X[:, j])
            if problem.linear_term is not None:
                G = G - problem.alpha * problem.linear_term[:, j]
            L = max(h.max(), 1e-12)
            target = np.array(self.W)
            target[:, j] -= G / L
            target = problem.penalty.prox(target, problem.alpha / L)
            delta = target[:, j] - self.W[:, j]
            limit = problem.alpha * problem.penalty.omega[j]
            excess = np.linalg.norm(G) - limit
            violations.append(abs(excess) if np.any(self.W[:, j]) else max(excess, 0.0))
            self.search(j, delta, G @ delta)
        if problem.fit_intercept:
            self.intercept_step(violations)
        return np.array(violations)

    def search(self, j, delta, along):
        if not np.any(delta):
            return
        problem, before = self.problem, self.W.copy()
        whole = before.copy()
        whole[:, j] += delta
        promised = along + problem.alpha * (
            problem.penalty.value(whole) - problem.penalty.value(before)
        )
        old, a = problem.objective(before, self.b), 1.0
        self.searches += 1
        while True:
            self.W = before.copy()
            self.W[:, j] += a * delta
            if problem.objective(self.W, self.b) - old <= self.sigma * a * promised + 1e-16:
                self.first_steps += a == 1.0
                return
            a *= self.omega

    def intercept_step(self, violations):
        problem = self.problem
        G, h = self.derivatives(np.ones(problem.n))
        violations.append(np.linalg.norm(G))
        old, before, a = problem.objective(self.W, self.b), self.b, 1.0
        L = max(h.max(), 1e-12)
        while True:
            self.b = before - a * G / L
            slope = -self.sigma * a * (G @ G) / L
            if problem.objective(self.W, self.b) - old <= slope + 1e-16:
                return
            a *= self.omega
