"""Ridge penalties with more features than samples: Newton's method on as many features as samples.

Nothing is selected by an l2 penalty, and the solution lies in the span of the samples. With the
triangular factor of :math:`(X \\Omega^{-1})^\\top = Q R` (:math:`\\Omega` the weights of the
penalty), the problem in n rotated features :math:`Z = R^\\top` has the same losses and penalty, and
the solution :math:`W = V Q^\\top \\Omega^{-1}`. There the Newton matrix is small enough to be
factorised in double precision, which ill-conditioned data need: few samples are separated at any
small alpha, and what is left to find are directions a million times flatter than others.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from sparsvm._typing import Floats
from sparsvm.losses import SmoothLoss
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Start

# Rows of the Newton matrix, and entries of X as a dense array, that are always affordable.
LARGEST_SYSTEM = 1500
LARGEST_DATA = 2**24
# Multiples of alpha to come from where Newton's method stalls at alpha itself, and how far to go at
# each, relative to the objective.
ALPHA_MULTIPLES = 10.0 ** np.arange(9, -1, -1)
ROUGH_TOL = 1e-2
# Sufficient decrease, a usual value, and the shortest step.
ARMIJO, SHORTEST_STEP = 1e-4, 1e-10
# Added to a matrix of unit diagonal until it has a Cholesky factor.
RIDGES = (1e-15, 1e-13, 1e-11, 1e-9)


def fits_sample_space(problem: Problem) -> bool:
    """Whether :func:`newton_in_sample_space` can solve the problem and is worth it."""
    return (
        problem.penalty.quadratic
        and problem.linear_term is None
        and problem.d > problem.n
        and (problem.n + 1) * problem.n_outputs <= LARGEST_SYSTEM
        and problem.n * problem.d <= LARGEST_DATA
        and bool(np.all(problem.penalty.omega > 0.0))
    )


def step_work(problem: Problem) -> float:
    """Return the multiplications of a Newton step."""
    size = (problem.n + 1) * problem.n_outputs
    return problem.n * size**2 / 2 + size**3 / 3


def newton_in_sample_space(
    problem: Problem, start: Start | None, tol: float, limit: int
) -> tuple[Floats, Floats, int]:
    """Return coefficients, intercept and the number of Newton steps, at most ``limit``.

    Ends when the decrease that the quadratic model promises is below ``tol`` times the objective,
    or when rounding leaves none.
    """
    columns = np.asarray(problem.design.gather_columns(np.arange(problem.d, dtype=np.int32)))
    omega = problem.penalty.omega
    Q, R = scipy.linalg.qr(columns.T / omega[:, None], mode="economic", check_finite=False)
    Z = np.hstack([R.T, np.ones((problem.n, 1))]) if problem.fit_intercept else R.T
    ridge = np.zeros(Z.shape[1])
    ridge[: problem.n] = problem.alpha
    V = np.zeros((Z.shape[1], problem.n_outputs))
    if start is not None:
        V[: problem.n] = Q.T @ (omega * start.coef).T
        V[problem.n :] = start.intercept  # where there is one
    model = _RotatedProblem(problem, Z, ridge)
    V, steps, solved = _descend(model, V, tol, limit)
    if not solved and steps < limit:
        # The minimiser at a larger alpha violates the same margins, by more: from there no step has
        # to find out, one by one, which of them hold with next to nothing to spare.
        other = np.zeros_like(V)
        for factor in ALPHA_MULTIPLES:
            larger = _RotatedProblem(problem, Z, factor * ridge)
            accuracy = tol if factor == 1.0 else ROUGH_TOL
            other, more, _ = _descend(larger, other, accuracy, limit - steps)
            steps += more
        V = min(V, other, key=model.value)
    coef = V[: problem.n].T @ Q.T / omega
    intercept = V[problem.n] if problem.fit_intercept else np.zeros(problem.n_outputs)
    return coef, intercept, steps


def _descend(model: _RotatedProblem, V: Floats, tol: float, limit: int) -> tuple[Floats, int, bool]:
    """Return where Newton steps from V lead, how many there were, and whether they got there."""
    value = model.value(V)
    for steps in range(1, limit + 1):
        step, promise = model.newton_step(V)
        length, moved = 1.0, model.value(V + step)
        while moved > value - ARMIJO * length * promise and length > SHORTEST_STEP:
            length /= 2.0
            moved = model.value(V + length * step)
        if not moved < value:
            return V, steps, promise <= tol * value
        V, value = V + length * step, moved
        if promise <= tol * value and length == 1.0:
            return V, steps, True
    return V, limit, False


class _RotatedProblem:
    """The objective in the rotated features ``Z``, the last of which may be the intercept."""

    def __init__(self, problem: Problem, Z: Floats, ridge: Floats) -> None:
        assert isinstance(problem.loss, SmoothLoss)
        self.problem, self.loss, self.Z, self.ridge = problem, problem.loss, Z, ridge
        self.margins = problem.margins()
        self.outputs = slice(1, 2) if problem.n_classes == 2 else slice(0, problem.n_classes)

    def _scores(self, V: Floats) -> Floats:
        scores = np.zeros((self.problem.n, self.problem.n_classes))
        scores[:, self.outputs] = self.Z @ V
        return scores

    def value(self, V: Floats) -> float:
        losses = self.loss.value(self._scores(V), self.problem.y, self.margins)
        return float(self.problem.mass @ losses + 0.5 * np.sum(self.ridge[:, None] * V * V))

    def newton_step(self, V: Floats) -> tuple[Floats, float]:
        """Return the step, and by how much it would lower the objective's quadratic model."""
        problem, scores = self.problem, self._scores(V)
        slopes = self.loss.gradient(scores, problem.y, self.margins)[:, self.outputs]
        gradient = self.Z.T @ (problem.mass[:, None] * slopes) + self.ridge[:, None] * V
        m, K = V.shape
        blocks = np.empty((K, m, K, m))
        for k in range(K):
            direction = np.zeros_like(scores)
            direction[:, self.outputs][:, k] = problem.mass
            bent = self.loss.hessian_product(scores, problem.y, self.margins, direction)
            for other in range(K):
                curvature = bent[:, self.outputs][:, other]
                blocks[k, :, other, :] = self.Z.T @ (curvature[:, None] * self.Z)
        matrix = blocks.reshape(K * m, K * m)
        diagonal = matrix.diagonal() + np.tile(self.ridge, K)
        np.fill_diagonal(matrix, diagonal)
        right = gradient.T.ravel()
        step = -_solved(matrix, right)
        return step.reshape(K, m).T, float(-0.5 * (right @ step))


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solve with a matrix that is positive definite but for intercepts and rounding.

    All intercepts together, and those that no sample bends, have neither curvature nor slope; a
    little of the diagonal keeps them where they are.
    """
    diagonal = matrix.diagonal()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * np.outer(scale, scale)
    for share in RIDGES:
        try:
            factor = scipy.linalg.cho_factor(scaled + share * np.eye(scale.size), lower=True)
        except scipy.linalg.LinAlgError:
            continue
        return np.asarray(scale * scipy.linalg.cho_solve(factor, scale * right))
    return np.asarray(scale * scipy.linalg.lstsq(scaled, scale * right)[0])
