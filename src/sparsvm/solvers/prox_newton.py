"""Proximal Newton steps for label ranking, on the features that matter."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm._typing import Bools, Features, Floats
from sparsvm.certificate.certify import certify
from sparsvm.certificate.ranking_gap import balanced
from sparsvm.numerics.conjugate_gradients import conjugate_gradients
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.problem import Problem
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.restriction import Restriction, columns_of, group_strength
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.face import Face, group_numbers, scaled_prox
from sparsvm.solvers.run.incumbent import Incumbent
from sparsvm.solvers.run.options import check_at_least_one, iteration_limit
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

# Settings.
# Features that a working set begins with, and of the problem the share beyond which it is all.
FIRST_FEATURES, WHOLE_SHARE = 100, 0.5
# Of the tolerance, what a working set is solved to, and by what it falls if that was not enough.
INNER_SHARE, INNER_FACTOR = 0.3, 0.1
# An iteration that lowers the objective by more, in units of that tolerance, is not the last.
FALL_FACTOR = 10.0
# Conjugate gradients: most products, what they leave of the residual, and the damping, relative to
# the diagonal of the Hessian, at first, at least, and beyond which a face gives no step.
MOST_PRODUCTS, RESIDUAL_SHARE = 300, 0.05
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-10, 1e3
# Factors of the damping after a step of this share at least, and after one of less or none: scores
# that all labels share do not change the loss, and along them only the damping limits a step.
LESS_DAMPING, LONG_STEP, MORE_DAMPING, SHORT_STEP = 0.1, 0.25, 100.0, 0.05
# Line searches: sufficient decrease, trials, the factor of a Newton step from one to the next, and
# the share of the objective that is rounding.
ARMIJO, HALVINGS, STEP_FACTOR, ROUNDING = 1e-4, 25, 0.25, 4e-16
# No entry of the metric is below this share of what it would be if all pairs counted, none of the
# diagonal on a face below this share of the largest.
LEAST_METRIC, LEAST_DIAGONAL, CONSTANT_SHARE = 1e-6, 1e-12, 1e-30
# A cold start goes through strengths of the penalty that fall by this factor at most, each solved
# to this tolerance: of 10 small problems at 1e-4 of the largest strength 4 failed without, and the
# others took 2 to 6 times as long.
STAGE, STAGE_TOL = 3.2, 1e-2
# Iterations without any decrease after which a working set is given up.
IDLE_ITERATIONS = 5


class ProxNewton(Solver):
    r"""Proximal gradient steps that find the face of the solution, Newton steps on it.

    With the diagonal M of the Hessian of the loss f, times a factor that a line search raises,

    .. math:: W^+ = \arg\min_U \langle \nabla f(W), U\rangle + \tfrac12 \|U - W\|_M^2
              + \alpha\, penalty(U).

    On the face of :math:`W^+` (the coefficients that are not zero; for largest absolute values
    those that are tied move together) the penalty is smooth, and one Newton step by
    conjugate gradients follows, damped and with a line search on the objective. The loss is
    piecewise quadratic, so on the right face and piece one such step is exact. Scores that all
    labels share do not change the loss: in that direction the separable penalties are minimised
    exactly after each proximal step, and a step that was short raises the damping.

    All this runs on a working set of features, which grows by the features with the largest
    violation of the optimality conditions until the gap on all features is within the tolerance.

    Parameters
    ----------
    max_iter : int, default=2000
        Iterations allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sparsvm import SparseLabelRanker
    >>> from sparsvm.solvers import ProxNewton
    >>> X, Y = make_multilabel_classification(100, random_state=0)
    >>> model = SparseLabelRanker(alpha=1.0, solver=ProxNewton(max_iter=500)).fit(X, Y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "prox_newton"

    def __init__(self, max_iter: int = 2000) -> None:
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, or a penalty that is not built in."""
        if not isinstance(problem, RankingProblem):
            return "prox_newton solves label ranking only."
        if problem.penalty.only_prox or not problem.penalty.convex:
            return "prox_newton takes the built-in convex penalties only."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Grow a working set from ``start`` until ``control.tol`` is certified."""
        check_at_least_one(self, "max_iter")
        assert isinstance(problem, RankingProblem)
        limit = iteration_limit(self.max_iter, control)
        incumbent = Incumbent(problem, progress(self.name, control), anyway=False)
        with blas_threads(control.n_jobs or 1):
            run = _Run(problem, start)
            incumbent.update(0, run.W.T, run.b)
            if start is None:
                run.follow(max(STAGE_TOL, control.tol), limit)
                incumbent.update(run.iterations, run.W.T, run.b)
            inner, stuck = INNER_SHARE, False
            while run.iterations < limit and not stuck and not incumbent.within(control.tol):
                scores = problem.scores(run.W, run.b)
                grew = run.grow(group_strength(problem, scores))
                if not grew:
                    inner *= INNER_FACTOR
                moved = run.descend(inner * control.tol, limit)
                incumbent.update(run.iterations, run.W.T, run.b)
                stuck = not moved and not grew
            return incumbent.solution(control, self.name, run.iterations, stuck)


class _Run:
    """The point and the working set."""

    def __init__(self, problem: RankingProblem, start: Start | None) -> None:
        self.problem = problem
        self.W: Floats = np.zeros((problem.n_outputs, problem.d))
        self.b: Floats = np.zeros(problem.n_outputs)
        if start is not None:
            self.W = np.array(start.coef, dtype=np.float64)
            if problem.fit_intercept:
                self.b = np.array(start.intercept, dtype=np.float64)
        else:
            # The best of what is not penalised: with a large alpha that is the solution.
            _, _, change = balanced(problem, np.zeros((problem.n, problem.n_outputs)))
            if problem.fit_intercept:
                self.b = change[0]
            self.W[:, problem.penalty.free] = change[int(problem.fit_intercept) :].T
        self.iterations = 0
        self.groups: Bools | None = None

    def follow(self, tol: float, limit: int) -> None:
        """Solve at strengths that fall from where weights begin to that of the problem."""
        problem = self.problem
        for alpha in falling_to(problem.alpha, self._beginning()):
            if self.iterations >= limit or _core.stopping():
                break
            self.problem = problem.with_alpha(alpha)
            self.grow(group_strength(self.problem, problem.scores(self.W, self.b)))
            self.descend(tol, limit)
        self.problem = problem

    def _beginning(self) -> float:
        """Return the alpha at which the first weights leave zero, or have a size worth a step."""
        problem = self.problem
        scores = problem.scores(self.W, self.b)
        strength = group_strength(problem, scores)
        if np.isfinite(strength).all():
            return problem.alpha * float(strength.max(initial=0.0))
        # Without a kink at zero, where the gradient of the loss over alpha makes scores of one.
        G = problem.transposed(problem.rows.slopes(scores)[1])
        return float(np.abs(problem.scores(G, np.zeros_like(self.b))).max(initial=0.0))

    def grow(self, strength: Floats) -> bool:
        """Add the groups with the worst violations; False if there are none."""
        terms = self.problem.penalty
        if self.groups is None:
            groups = np.zeros(terms.n_groups, dtype=bool)
            groups[terms.groups[self.W.any(axis=0)]] = True
            groups[terms.groups[terms.free]] = True
            if strength.size and not groups.any():
                groups[np.argmax(strength)] = True
        else:
            groups = self.groups.copy()
        before = np.count_nonzero(groups)
        outside = np.flatnonzero(~groups & (strength > 1.0))
        most = max(FIRST_FEATURES, int(before))
        if outside.size > most:
            outside = outside[np.argsort(-strength[outside], kind="stable")[:most]]
        groups[outside] = True
        if np.count_nonzero(groups[terms.groups]) > WHOLE_SHARE * terms.d:
            groups[:] = True
        first = self.groups is None
        self.groups = groups
        return first or bool(np.count_nonzero(groups) > before)

    def descend(self, tol: float, limit: int) -> bool:
        """Solve on the working set; False if nothing moved."""
        problem, terms = self.problem, self.problem.penalty
        assert self.groups is not None
        if self.groups.all():
            inner = _Inner(problem, self.W, self.b)
        else:
            features = np.flatnonzero(self.groups[terms.groups]).astype(np.int32)
            restriction = Restriction.to(problem, features)
            part = restriction.part
            assert isinstance(part, RankingProblem)
            inner = _Inner(part, restriction.drop(self.W), self.b)
        first, idle = inner.objective, 0
        while self.iterations < limit and idle < IDLE_ITERATIONS and not _core.stopping():
            before = inner.objective
            inner.proximal_step()
            inner.newton_step()
            self.iterations += 1
            idle = 0 if inner.objective < before - ROUNDING * abs(before) else idle + 1
            # A certificate costs as much as a few products: not while the objective still falls.
            near = before - inner.objective <= FALL_FACTOR * tol * abs(before)
            if near and certify(inner.problem, inner.W, inner.b, None).within(tol):
                break
        moved = inner.objective < first - ROUNDING * abs(first)
        self.W = inner.W if self.groups.all() else restriction.lift(inner.W)
        self.b = inner.b
        return bool(moved)


class _Inner:
    """A point of the problem on the working set, with its scores, and the two kinds of steps."""

    def __init__(self, problem: RankingProblem, W: Floats, b: Floats) -> None:
        self.problem, self.terms = problem, problem.penalty
        self.W, self.b = W, b
        self.group = group_numbers(problem.penalty)
        self.squares = _squares(problem)
        # Steps are in W and the scores of the mean sample: where columns are far from zero, W and
        # b are all but the same direction.
        self.means: Floats = np.zeros(problem.d)
        if problem.fit_intercept:
            self.means = np.asarray(problem.design.column_stats(problem.mass)[0], dtype=np.float64)
        self.most = _largest_curvatures(problem, self.squares, self.means)
        self.scores = problem.scores(W, b)
        self.loss, self.R = problem.rows.slopes(self.scores)
        self.objective = self.loss + problem.alpha * self.terms.value(W)
        self.factor, self.damping = 1.0, DAMPING

    def moved(self, W: Floats, shift: Floats) -> tuple[Floats, Floats]:
        """Return the intercepts and scores at W whose mean sample has ``shift`` more than now."""
        b = self.b
        if self.problem.fit_intercept:
            b = b + shift - (W - self.W) @ self.means
        return b, self.problem.scores(W, b)

    def slopes(self) -> tuple[Floats, Floats]:
        """Return the derivative of the loss in W and in the scores of the mean sample."""
        g = np.asarray(self.R).sum(axis=0)
        return self.problem.transposed(self.R) - np.outer(g, self.means), g

    def proximal_step(self) -> None:
        """Take one proximal gradient step in the metric of the diagonal."""
        problem, terms, alpha = self.problem, self.terms, self.problem.alpha
        G, g = self.slopes()
        hessian = _core.PairHessian(problem.rows, self.scores)
        # Constant columns have no curvature at all, and need some size to divide by.
        least = CONSTANT_SHARE * max(float(most.max(initial=0.0)) for most in self.most) or 1.0
        metric, metric_b = (
            np.maximum(curvature, np.maximum(LEAST_METRIC * most, least))
            for curvature, most in zip(
                _curvatures(hessian, self.problem, self.squares, self.means), self.most, strict=True
            )
        )
        if not terms.separable:
            largest = np.zeros(terms.n_groups)
            np.maximum.at(largest, terms.groups, metric.max(axis=0))
            metric = np.broadcast_to(largest[terms.groups], metric.shape)
        self.factor *= 0.5
        for _ in range(HALVINGS):
            M = self.factor * metric
            W = scaled_prox(terms, self.W - G / M, alpha, M)
            shift = -g / (self.factor * metric_b) if problem.fit_intercept else np.zeros_like(g)
            b, scores = self.moved(W, shift)
            move = W - self.W
            loss = problem.rows.mean_loss(scores)
            model = self.loss + float(np.vdot(G, move)) + float(g @ shift)
            model += 0.5 * float(np.sum(M * move * move))
            model += 0.5 * self.factor * float(np.sum(metric_b * shift * shift))
            if loss <= model + ROUNDING * abs(self.loss):
                break
            self.factor *= 2.0
        else:
            return
        if terms.separable:
            W = least_shifted(terms, W)
            scores = problem.scores(W, b)
        self._accept(W, b, scores)

    def newton_step(self) -> None:
        """Take one damped Newton step on the face of the present point."""
        problem, alpha = self.problem, self.problem.alpha
        face = Face.at(self.terms, self.group, self.W)
        hessian = _core.PairHessian(problem.rows, self.scores)
        diagonal, diagonal_b = _curvatures(hessian, problem, self.squares, self.means)
        G, g = self.slopes()
        gradient = self._joined(face.gathered(G + alpha * face.slope()), g)
        metric = self._joined(face.squared(diagonal + alpha * face.curvature()), diagonal_b)
        metric = np.maximum(metric, LEAST_DIAGONAL * float(metric.max(initial=0.0)))
        if not gradient.any() or not metric.all():
            return
        while self.damping <= MOST_DAMPING:
            step = self._newton_direction(hessian, face, gradient, metric)
            length = self._searched(face, step, float(gradient @ step))
            if length >= LONG_STEP:
                self.damping = max(LESS_DAMPING * self.damping, LEAST_DAMPING)
            elif length < SHORT_STEP:
                self.damping *= MORE_DAMPING
            if length > 0.0:
                self.damping = min(self.damping, MOST_DAMPING)
                return
        self.damping = DAMPING

    def _joined(self, z: Floats, b: Floats) -> Floats:
        return np.concatenate([z, b]) if self.problem.fit_intercept else z

    def _parts(self, face: Face, x: Floats) -> tuple[Floats, Floats]:
        shift = x[face.size :] if self.problem.fit_intercept else np.zeros_like(self.b)
        return face.spread(x[: face.size]), shift

    def _newton_direction(
        self, hessian: Any, face: Face, gradient: Floats, metric: Floats
    ) -> Floats:
        """Solve (H + damping diag) step = -gradient by conjugate gradients."""
        problem, alpha = self.problem, self.problem.alpha

        def product(x: Floats) -> Floats:
            move, shift = self._parts(face, x)
            scores = problem.scores(move, shift - move @ self.means)
            rows = np.asarray(hessian.product(np.ascontiguousarray(scores)))
            g = rows.sum(axis=0)
            curved = problem.transposed(rows) - np.outer(g, self.means) + alpha * face.curved(move)
            return self._joined(face.gathered(curved), g) + self.damping * metric * x

        return conjugate_gradients(product, -gradient, 1.0 / metric, MOST_PRODUCTS, RESIDUAL_SHARE)

    def _searched(self, face: Face, step: Floats, slope: float) -> float:
        """Go along the step, as far as the objective falls; returns how far, 0 if it does not."""
        move, shift = self._parts(face, step)
        length = 1.0
        for _ in range(HALVINGS):
            W = face.landed(self.W + length * move)
            b, scores = self.moved(W, length * shift)
            value = self.problem.rows.mean_loss(scores) + self.problem.alpha * self.terms.value(W)
            if value < self.objective and value <= self.objective + ARMIJO * length * slope:
                self._accept(W, b, scores)
                return length
            length *= STEP_FACTOR
        return 0.0

    def _accept(self, W: Floats, b: Floats, scores: Floats) -> None:
        self.W, self.b, self.scores = W, b, scores
        self.loss, self.R = self.problem.rows.slopes(scores)
        self.objective = self.loss + self.problem.alpha * self.terms.value(W)


def least_shifted(terms: PenaltyTerms, W: Floats) -> Floats:
    r"""Return W with a number added to each feature's weights for which the penalty is least.

    Only differences of the labels' scores count, so the loss stays as it is. Of a strictly convex
    penalty the best shift -u is the median of the weights and of the points at which u stops
    between two of them (as for a median with a square); of l1 any median, of which the one nearest
    to zero is taken.
    """
    rho, L = terms.l1_ratio, W.shape[0]
    ordered = np.sort(W, axis=0)
    if rho == 1.0:
        shift = np.clip(0.0, ordered[(L - 1) // 2], ordered[L // 2])
    else:
        slopes = rho * (L - 2.0 * np.arange(L + 1.0))
        curvature = L * (1.0 - rho) * np.where(terms.omega > 0.0, terms.omega, 1.0)
        stops = W.mean(axis=0) + slopes[:, None] / curvature
        shift = np.median(np.concatenate([W, stops]), axis=0)
    return np.asarray(np.where(terms.omega > 0.0, W - shift, W))


def falling_to(alpha: float, first: float) -> list[float]:
    """Return strengths between ``first`` and alpha, each STAGE times the next at most."""
    if not first > alpha * STAGE:
        return []
    stages = math.ceil(math.log(first / alpha) / math.log(STAGE))
    return [alpha * (first / alpha) ** (1.0 - stage / stages) for stage in range(1, stages)]


def _curvatures(hessian: Any, problem: RankingProblem, squares: Any, means: Floats) -> Any:
    """Return the diagonal of the Hessian in W (n_outputs, d) and in the mean sample's scores."""
    rows = np.asarray(hessian.diagonal())
    return _in_coefficients(problem, squares, means, rows)


def _in_coefficients(
    problem: RankingProblem, squares: Any, means: Floats, rows: Floats
) -> tuple[Floats, Floats]:
    total = rows.sum(axis=0)
    diagonal = np.asarray(squares.T @ rows).T
    if means.any():
        diagonal = diagonal - 2.0 * problem.transposed(rows) * means + np.outer(total, means**2)
    return np.maximum(diagonal, 0.0), total


def _largest_curvatures(
    problem: RankingProblem, squares: Any, means: Floats
) -> tuple[Floats, Floats]:
    """Return what :func:`_curvatures` would if all pairs counted."""
    loss = problem.label_sets
    own = loss.sets.sum(axis=1, keepdims=True)
    pairs = np.where(loss.sets, loss.sets.shape[1] - own, own) * loss.factor[:, None]
    return _in_coefficients(problem, squares, means, 2.0 * problem.mass[:, None] * pairs[problem.y])


def _squares(problem: RankingProblem) -> Any:
    """Return the squares of the entries of the design."""
    features: Features = np.arange(problem.d, dtype=np.int32)
    columns = columns_of(problem.design, features)
    return columns.power(2) if problem.design.is_sparse else columns * columns
