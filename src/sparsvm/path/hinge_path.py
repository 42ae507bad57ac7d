"""Paths of the hinge with a norm: found and proven in native code.

The native path holds the last point with the strengths of all groups of features at it, solves on
those that matter, proves points between two solutions by both, and hands over all points of a grid
at once, or some at a time where there is a callback. A point that it does not prove is found by the
solvers of the continuation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.lift import homogeneous
from sparsvm.path.continuation import Continuation
from sparsvm.path.points import Kept, by_classes
from sparsvm.problem.solution import History, Solution, relative
from sparsvm.solvers import InteriorPoint, blas_threads
from sparsvm.solvers.registry import PathPlan, path_plan
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.progress import progress

# Settings.
# Points that may be left to other solvers before the native path is given up.
FAILURES = 3
# Entries of a dual point, of which the native path holds some.
LARGEST_DUAL = 2**22


class Found(NamedTuple):
    """A point, and its solution where one is asked for."""

    point: Kept
    solution: Solution | None


class HingePath:
    """The native path of a continuation's problem along a grid.

    Parameters
    ----------
    steps : Continuation
        One that :meth:`follows` accepts.
    grid : array
        Decreasing.
    dtype : dtype
        What coefficients are rounded to.
    ahead : bool
        Whether all points will be asked for, so that they may be found in one call.
    solutions : bool
        Whether every point comes with its solution.
    """

    def __init__(
        self,
        steps: Continuation,
        grid: Floats,
        dtype: np.dtype[Any],
        *,
        ahead: bool,
        solutions: bool,
    ) -> None:
        problem, control = steps.problem, steps.control
        solver = steps.solver if isinstance(steps.solver, InteriorPoint) else InteriorPoint()
        plan = _plan(steps)
        assert plan is not None
        self.steps, self.problem, self.grid, self.dtype = steps, problem, grid, dtype
        self._solutions, self._failures = solutions, 0
        self._enough = grid.size if ahead else 1
        self._ready: list[dict[str, Any]] = []
        self._name = "auto" if steps.solver == "auto" else InteriorPoint.name
        self._model: tuple[Any, Any, Floats] | None = None
        self._native = _core.HingePath(
            hinge_problem(problem),
            column_norms=np.ascontiguousarray(problem.column_norms),
            column_dual_norm=problem.column_dual_norm,
            tol=control.tol,
            reach=steps.reach,
            max_iter=solver.max_iter,
            plan=np.array(plan, dtype=np.float64),
            single_precision=dtype == np.float32,
            keep_duals=solutions,
            callback=progress(InteriorPoint.name, control),
        )
        start = steps.last
        assert start is not None
        self._start(start.alpha, start.solution, zero=True)

    @staticmethod
    def follows(steps: Continuation) -> bool:
        """Whether the points can be found and proven in native code.

        By the interior point, or by what ``auto`` makes of many samples.
        """
        problem = steps.problem
        return (
            problem.convex
            and homogeneous(problem)
            and problem.penalty.built_in
            and not problem.penalty.only_prox
            and problem.columns is None
            and problem.n * problem.n_classes <= LARGEST_DUAL
            and steps.control.max_iter is None
            and steps.last is not None
            and _plan(steps) is not None
        )

    @property
    def failed(self) -> bool:
        """Whether too many points were left to others."""
        return self._failures > FAILURES

    def point(self, t: int) -> Found | None:
        """Return the point at ``grid[t]``, None if it is not proven; t increases by one."""
        if not self._ready:
            with blas_threads(self.steps.control.n_jobs or 1):
                self._ready = self._native.follow(self.grid[t:], self._enough)[::-1]
        if not self._ready:
            self._failures += 1
            last = self._native.last()
            self.steps.go_on_from(last["alpha"], self._solution(last))
            return None
        found = self._ready.pop()
        point = self._kept(found)
        return Found(point, self._solution(found) if self._solutions else None)

    def go_on_from(self, alpha: float, solution: Solution) -> None:
        """Take a point that another solver found."""
        self._start(alpha, solution, zero=False)

    def _start(self, alpha: float, solution: Solution, zero: bool) -> None:
        penalty = self.problem.penalty.value(solution.coef)
        self._native.start(
            alpha,
            weights=np.ascontiguousarray(solution.coef.T),
            intercept=np.ascontiguousarray(solution.intercept),
            dual=np.ascontiguousarray(solution.dual),
            loss=solution.objective - alpha * penalty,
            penalty=penalty,
            bound=solution.dual_objective,
            zero=zero,
        )

    def _kept(self, found: dict[str, Any]) -> Kept:
        gap = relative(max(found["objective"] - found["bound"], 0.0), found["objective"])
        features, weights, intercept = found["model"]
        if self._model is None or self._model[0] is not found["model"]:
            coef = by_classes(features, weights, self.problem, self.dtype)
            self._model = (found["model"], coef, intercept.astype(self.dtype))
        _, coef, intercept = self._model
        return Kept(
            None,
            coef,
            features.size,
            intercept,
            found["objective"],
            gap,
            "optimal",
            found["seconds"],
            found["loss"],
            found["bound"],
        )

    def _solution(self, found: dict[str, Any]) -> Solution:
        features, weights, intercept = found["model"]
        coef = np.zeros((self.problem.n_outputs, self.problem.d))
        coef[:, features] = weights.reshape(-1, self.problem.n_outputs).T
        dual, rows = found["dual"], np.arange(self.problem.n)
        dual[rows, self.problem.y] = np.maximum(self.problem.mass - dual.sum(axis=1), 0.0)
        gap = max(found["objective"] - found["bound"], 0.0)
        return Solution(
            coef=coef,
            intercept=intercept,
            dual=dual,
            objective=found["objective"],
            dual_objective=found["bound"],
            gap=gap,
            relative_gap=relative(gap, found["objective"]),
            floor=self.problem.floor(coef, intercept),
            status="optimal",
            n_iter=found["iterations"],
            seconds=found["seconds"],
            history=History.empty(),
            solver=self._name,
        )


def _plan(steps: Continuation) -> PathPlan | None:
    if isinstance(steps.solver, InteriorPoint) or steps.solver == InteriorPoint.name:
        return PathPlan()
    return path_plan(steps.problem, steps.control) if steps.solver == "auto" else None
