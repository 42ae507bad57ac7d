"""Difference-of-convex-functions algorithm, for ramp losses and non-convex penalties."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.losses import Logistic
from sparsvm.problem.linearise import convex_relative, finite, tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt, Control, History, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.registry import CONVEX
from sparsvm.solvers.run.monitor import Stopped
from sparsvm.solvers.run.options import check_at_least_one, check_choice, iteration_limit
from sparsvm.solvers.run.progress import Report, progress

# Settings.
# Relative gap of convex problems that are to be exact. What they leave must not pass for descent,
# and interior points need two or three steps more for it than for 1e-4.
INNER_TOL = 2e-7
# Others are solved to this share of the tolerance, but not below what a solver can reach.
INNER_SHARE, LEAST_INNER_TOL = 0.01, 1e-12
# Coefficients that move scores by less than this share of the margin may be zero.
TRACE = 1e-10
# Starts besides the one at alpha itself come from alpha times and divided by powers of this.
SPREAD = 4.0
STOPPING = ("objective", "change")
# The last of these start from 1e30 times alpha.
MOST_STARTS = 100


class DCA(Solver):
    r"""Difference-of-convex-functions algorithm for objectives that are not convex.

    With F = G - H, both convex, each iteration replaces H by its tangent at the current point and
    solves the convex rest exactly:

    .. math:: z^{k+1} \in \arg\min_z\; G(z) - \langle \gamma^k, z \rangle, \qquad
        \gamma^k \in \partial H(z^k).

    F never rises. The start is the solution of the convex relative: the hinge in place of the ramp,
    the l1 (or group) norm in place of l0 and capped l1, with the same alpha. The end is a critical
    point, proven by ``criticality``: how much the last convex problem could still be improved.
    Where G or H is polyhedral (a hinge or ramp with l1, l0 or capped l1; a ramp with any convex
    penalty) the iterations end after finitely many, at a point that no further one changes;
    elsewhere they stop when F falls by less than ``tol`` times F.

    A critical point need not be a good one. Where the convex relative is all zeros, so is a ramp
    fit: zeros lie on the kink of the ramp, where no sample is given up, and their tangent problem
    is the relative again. On the data set wpbc (standardised, ramp with l1, alpha = 1/n) the
    objective stays at 0.474 with one start; the second, at alpha / 4, leads to 0.369.

    Parameters
    ----------
    starts : int, default=1
        Number of convex solutions to start from, at alpha, alpha / 4, 4 alpha, alpha / 16 and so
        on; at most 100. The least objective wins; among equals the first.
    solver : str or Solver, default="auto"
        Solves the convex problems.
    stopping : {"objective", "change"}, default="objective"
        Stop when the objective no longer falls, as said above, or, as in the paper, when the
        coefficients and intercepts change by at most the tolerance in sum of absolute values.
        The latter proves nothing: the model counts as converged only if its criticality meets the
        tolerance.
    max_iter : int, default=100
        Convex problems allowed per start when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import DCA
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = SparseSVC(loss="ramp", penalty="l0", alpha=0.02, solver=DCA(starts=3)).fit(X, y)
    >>> model.selected_features_.size < 10
    True
    >>> model.result_.criticality < 1e-6
    True
    """

    name: ClassVar[str] = "dca"

    def __init__(
        self,
        starts: int = 1,
        solver: str | Solver = "auto",
        stopping: str = "objective",
        max_iter: int = 100,
    ) -> None:
        self.starts = starts
        self.solver = solver
        self.stopping = stopping
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: the problem is convex, or its tangents are for no solver."""
        if problem.convex:
            return "dca is for a ramp loss, l0 or capped l1; this problem is convex."
        if not problem.penalty.built_in:
            return "dca takes the built-in penalties only."
        zero = np.zeros((problem.n_outputs, problem.d))
        touching = tangent(problem, zero, np.zeros(problem.n_outputs)).problem
        try:
            CONVEX.resolve(self.solver, touching, Control())
        except ValueError as error:
            return f"dca cannot solve its convex problems: {error}"
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Descend from ``start``, or from the convex solutions, to the best critical point."""
        check_at_least_one(self, "starts", "max_iter")
        check_choice("stopping", self.stopping, STOPPING)
        if self.starts > MOST_STARTS:
            raise ValueError(f"starts must be at most {MOST_STARTS}, but is {self.starts!r}.")
        began = time.perf_counter()
        report = progress(self.name, control, pause=0.0)  # an iteration is a whole problem
        limit = iteration_limit(self.max_iter, control)
        best: _Run | None = None
        run: _Run | None = None
        try:
            for first in self._starting_points(problem, start, control):
                run = _Run(self.solver, problem, control, began, report, self.stopping == "change")
                run.descend(first, limit)
                if best is None or run.objective < best.objective:
                    best = run
        except Stopped:
            # Where the last descent got to, if it got anywhere.
            if run is not None and run.records and (best is None or run.objective < best.objective):
                best = run
            if best is None:
                raise
            return best.certify(limit)
        assert best is not None
        solution = best.certify(limit)
        if not solution.converged and self.stopping == "objective":
            if control.monitor is not None:
                control.monitor.keep(problem, solution)
            # The solver's word may have been worth less than it thought: go on by certificates.
            best.descend(_Solved(best.point, None, 0.0), max(limit - len(best.records), 0), True)
            solution = best.certify(limit)
        return solution

    def _starting_points(
        self, problem: Problem, start: Start | None, control: Control
    ) -> Iterator[_Solved]:
        """The given start, then convex solutions at alpha and ever farther from it."""
        inner = _inner_control(control, problem)
        relative, first = convex_relative(problem), start
        for number in range(self.starts):
            if number == 0 and start is not None:
                yield _Solved(start, None, 0.0)
                continue
            power = (number + 1) // 2 * (-1) ** number
            convex = replace(relative, alpha=problem.alpha * SPREAD**power)
            found = _attempt(self.solver, convex, first, inner) or _solve(
                self.solver, convex, first, inner
            )
            first = Start(found.coef, found.intercept, found.dual)
            yield _Solved(first, convex, found.bound)


class _Solved(NamedTuple):
    """A point, and the convex problem that it solves, if it does, with a bound of that."""

    point: Start
    problem: Problem | None
    bound: float

    def answers(self, problem: Problem) -> bool:
        """Whether ``problem`` is the one that was solved, up to its offset."""
        mine = self.problem
        return (
            mine is not None
            and mine.alpha == problem.alpha
            and np.array_equal(mine.y, problem.y)
            and np.array_equal(mine.penalty.omega, problem.penalty.omega)
            and np.array_equal(mine.margins(), problem.margins())
            and (
                mine.linear_term is problem.linear_term
                or _equal(mine.linear_term, problem.linear_term)
            )
        )


@dataclass
class _Run:
    """One descent: the current point, its objective, and the dual of its tangent problem."""

    solver: str | Solver
    problem: Problem
    control: Control
    began: float
    report: Report | None
    by_change: bool = False

    def __post_init__(self) -> None:
        self.records: list[tuple[int, float, float, float, int]] = []
        self.dual: Floats | None = None
        self.at_rest = False

    def descend(self, start: _Solved, limit: int, certified: bool = False) -> None:
        """Take the solutions of tangent problems until the objective no longer falls.

        At most ``limit`` steps are taken; one more problem bounds where they end. A tangent
        problem that is the one just solved needs no solving: the point is critical. Steps are
        taken on the solver's word, if it gives it, unless they are to be ``certified``: what counts
        is the certificate of the end.
        """
        inner = _inner_control(self.control, self.problem)
        enough = inner.tol if finite(self.problem) else self.control.tol
        problem, last = self.problem, start
        self.point, self.dual = start.point, start.point.dual
        self.scores = problem.scores(self.point.coef, self.point.intercept)
        self.objective = problem.objective_at(self.scores, self.point.coef)
        for step in range(limit + 1):
            refuse_endless_descent(problem, self.scores, self.point.coef)
            touching = tangent(problem, self.point.coef, self.point.intercept, self.scores)
            convex, scale = touching.problem, touching.scale
            if last.problem is not None and last.answers(convex):
                self._record(last.bound - last.problem.offset + convex.offset, scale)
                self.at_rest = True
                return
            found = None if certified else _attempt(self.solver, convex, self.point, inner)
            found = found or _solve(self.solver, convex, self.point, inner)
            self._record(found.bound, scale)
            self.dual = found.dual
            if step == limit:
                return
            coef, scores, objective = self._without_traces(found.coef, found.intercept)
            least = 0.0 if self.by_change else enough * abs(self.objective)
            if not self.objective - objective > least:
                self.at_rest = True
                return
            change = np.abs(coef - self.point.coef).sum()
            change += np.abs(found.intercept - self.point.intercept).sum()
            self.point = Start(coef, found.intercept, found.dual)
            self.scores, self.objective = scores, objective
            if self.by_change and change <= self.control.tol:
                self.at_rest = True
                return
            last = _Solved(self.point, convex, found.bound)

    def certify(self, limit: int) -> Solution:
        """Return where the descent ended, proven critical as far as it is."""
        return certified(
            self.problem,
            self.point.coef,
            self.point.intercept,
            self.dual,
            tol=self.control.tol,
            n_iter=min(len(self.records), limit),
            seconds=time.perf_counter() - self.began,
            history=History.of(self.records),
            solver=DCA.name,
            status_if_not="stalled" if self.at_rest else "max_iter",
        )

    def _without_traces(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats, float]:
        """Return the coefficients less those that move no score, their scores and objective.

        Where the tangent takes all the penalty's slope away, no slack tells a zero from a
        coefficient, and interior points leave traces of 1e-20.
        """
        problem = self.problem
        sizes = problem.column_norms / np.sqrt(problem.n)
        kept = np.where(np.abs(coef) * sizes > TRACE * problem.cost.max(), coef, 0.0)
        points = []
        for W in (kept, coef) if np.any(kept != coef) else (coef,):
            scores = problem.scores(W, intercept)
            points.append((W, scores, problem.objective_at(scores, W)))
        less = points[0][2] - points[-1][2]
        return points[0] if less <= 0.0 or less <= problem.floor(coef, intercept) else points[-1]

    def _record(self, bound: float, scale: float) -> None:
        """Keep the objective, and how far the bound of ``scale`` times its tangent is below it."""
        criticality = max(self.objective - bound / scale, 0.0)
        record = (
            len(self.records),
            time.perf_counter() - self.began,
            self.objective,
            criticality,
            int(np.count_nonzero(self.point.coef)),
        )
        self.records.append(record)
        if self.report is not None and self.report(*record, self._current):
            raise Stopped

    def _current(self) -> tuple[Floats, Floats]:
        return self.point.coef, self.point.intercept


def _equal(one: Floats | None, two: Floats | None) -> bool:
    return one is not None and two is not None and np.array_equal(one, two)


class NoMinimiser(ValueError):
    """The objective has no minimiser."""


def refuse_endless_descent(problem: Problem, scores: Floats, coef: Floats) -> None:
    """Refuse a logistic loss that can fall to 0 while the penalty has reached its ceiling.

    Multiplying a model that separates the classes by ever larger factors does that. Where its
    limit is below the objective, no finite model is a minimiser.
    """
    if not isinstance(problem.loss, Logistic):
        return
    others = scores.copy()
    others[np.arange(problem.n), problem.y] = -np.inf
    if np.any(others.max(axis=1) >= scores[np.arange(problem.n), problem.y]):
        return
    penalty = problem.penalty
    limit = problem.alpha * penalty.ceiling * np.count_nonzero(penalty.group_norms(coef))
    if limit <= problem.objective_at(scores, coef):
        raise NoMinimiser(
            f"The features in use separate the classes, so that the logistic loss falls towards 0 "
            f"as the coefficients grow, while the penalty {penalty.kind!r} stays below its "
            "ceiling: there is no minimiser. Use loss='squared_hinge' or 'hinge', a convex "
            "penalty, or a larger alpha."
        )


def _inner_control(control: Control, problem: Problem) -> Control:
    """Exact where exactness ends the iterations, a hundredth of tol elsewhere."""
    tol = max(INNER_SHARE * control.tol, LEAST_INNER_TOL)
    if finite(problem):
        tol = min(INNER_TOL, tol)
    return replace(control, tol=tol, max_iter=None, verbose=False, monitor=None)


def _attempt(
    solver: str | Solver, problem: Problem, start: Start | None, control: Control
) -> Attempt | None:
    return CONVEX.resolve(solver, problem, control).attempt(problem, start, control)


def _solve(
    solver: str | Solver, problem: Problem, start: Start | None, control: Control
) -> Attempt:
    found = CONVEX.resolve(solver, problem, control).solve(problem, start, control)
    return Attempt(found.coef, found.intercept, found.dual, found.dual_objective)
