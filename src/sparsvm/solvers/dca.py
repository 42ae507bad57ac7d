"""Difference-of-convex-functions algorithm, for ramp losses and non-convex penalties."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsvm.dc import convex_relative, finite, tangent
from sparsvm.losses import Floats
from sparsvm.problem import Control, History, Problem, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.progress import Callback, progress

# Relative gap of the convex problems. What they leave must not pass for descent, and interior
# points need two or three steps more for it than for 1e-4.
INNER_TOL = 1e-8
# Coefficients that move scores by less than this share of the margin may be zero.
TRACE = 1e-10
# Starts besides the one at alpha itself come from alpha times and divided by powers of this.
SPREAD = 4.0


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
    penalty) the iterations come to rest after finitely many, and rest is what they stop at;
    elsewhere they stop when F falls by less than ``tol`` times F.

    Parameters
    ----------
    starts : int, default=1
        Number of convex solutions to start from, at alpha, alpha / 4, 4 alpha, alpha / 16 and so
        on. The least objective wins; among equals the first.
    solver : str or Solver, default="auto"
        Solves the convex problems.
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

    def __init__(self, starts: int = 1, solver: str | Solver = "auto", max_iter: int = 100) -> None:
        self.starts = starts
        self.solver = solver
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: the problem is convex, or its tangents are for no solver."""
        if problem.convex:
            return "dca is for a ramp loss, l0 or capped l1; this problem is convex."
        zero = np.zeros((problem.n_outputs, problem.d))
        touching = tangent(problem, zero, np.zeros(problem.n_outputs)).problem
        try:
            _inner_solver(self.solver, touching, Control())
        except ValueError as error:
            return f"dca cannot solve its convex problems: {error}"
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Descend from ``start``, or from the convex solutions, to the best critical point."""
        self._check_options()
        began = time.perf_counter()
        report = progress(self.name, control)
        limit = self.max_iter if control.max_iter is None else control.max_iter
        best: _Run | None = None
        for first in self._starting_points(problem, start, control):
            run = _Run(self.solver, problem, control, began, report)
            run.descend(first, limit)
            if best is None or run.objective < best.objective:
                best = run
        assert best is not None
        return Solution.certify(
            problem,
            best.point.coef,
            best.point.intercept,
            best.dual,
            tol=control.tol,
            n_iter=len(best.records),
            seconds=time.perf_counter() - began,
            history=best.history(),
            solver=self.name,
            status_if_not="stalled" if best.at_rest else "max_iter",
        )

    def _check_options(self) -> None:
        for name in ("starts", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)!r}.")

    def _starting_points(
        self, problem: Problem, start: Start | None, control: Control
    ) -> Iterator[Start]:
        """The given start, then convex solutions at alpha and ever farther from it."""
        inner = _inner_control(control)
        relative, first = convex_relative(problem), start
        for number in range(self.starts):
            if number == 0 and start is not None:
                yield start
                continue
            power = (number + 1) // 2 * (-1) ** number
            convex = replace(relative, alpha=problem.alpha * SPREAD**power)
            solver = _inner_solver(self.solver, convex, inner)
            solution = solver.solve(convex, first, inner)
            first = Start(solution.coef, solution.intercept, solution.dual)
            yield first


@dataclass
class _Run:
    """One descent: the current point, its objective, and the dual of its tangent problem."""

    solver: str | Solver
    problem: Problem
    control: Control
    began: float
    report: Callback | None

    def __post_init__(self) -> None:
        self.records: list[tuple[int, float, float, float, int]] = []
        self.dual: Floats | None = None
        self.at_rest = False

    def descend(self, start: Start, limit: int) -> None:
        """Solve tangent problems until the objective no longer falls, ``limit`` of them at most."""
        inner = _inner_control(self.control)
        enough = inner.tol if finite(self.problem) else self.control.tol
        self.point, self.dual = start, start.dual
        self.objective = self.problem.objective(start.coef, start.intercept)
        for _ in range(limit):
            touching = tangent(self.problem, self.point.coef, self.point.intercept)
            solver = _inner_solver(self.solver, touching.problem, inner)
            solution = solver.solve(touching.problem, self.point, inner)
            here = touching.problem.objective(self.point.coef, self.point.intercept)
            self._record(max(here - solution.dual_objective, 0.0) / touching.scale)
            self.dual = solution.dual
            coef, objective = self._without_traces(solution)
            if not self.objective - objective > enough * abs(self.objective):
                self.at_rest = True
                return
            self.point = Start(coef, solution.intercept, solution.dual)
            self.objective = objective

    def _without_traces(self, solution: Solution) -> tuple[Floats, float]:
        """Return the coefficients and their objective, less those that move no score.

        Where the tangent takes all the penalty's slope away, no slack tells a zero from a
        coefficient, and interior points leave traces of 1e-20.
        """
        problem, coef = self.problem, solution.coef
        sizes = problem.column_norms / np.sqrt(problem.n)
        kept = np.where(np.abs(coef) * sizes > TRACE * problem.margins().max(), coef, 0.0)
        objective = problem.objective(coef, solution.intercept)
        without = problem.objective(kept, solution.intercept)
        if without <= objective + solution.floor:
            return kept, without
        return coef, objective

    def _record(self, criticality: float) -> None:
        record = (
            len(self.records),
            time.perf_counter() - self.began,
            self.objective,
            criticality,
            int(np.count_nonzero(self.point.coef)),
        )
        self.records.append(record)
        if self.report is not None:
            self.report(*record)

    def history(self) -> History:
        columns = list(zip(*self.records, strict=True))
        return History(
            iteration=np.array(columns[0], dtype=np.int64),
            seconds=np.array(columns[1]),
            objective=np.array(columns[2]),
            gap=np.array(columns[3]),
            nonzeros=np.array(columns[4], dtype=np.int64),
        )


def _inner_control(control: Control) -> Control:
    tol = min(INNER_TOL, max(0.1 * control.tol, 1e-12))
    return replace(control, tol=tol, max_iter=None, verbose=False)


def _inner_solver(solver: str | Solver, problem: Problem, control: Control) -> Solver:
    # The registry knows this module.
    from sparsvm.solvers.registry import resolve

    return resolve(solver, problem, control)
