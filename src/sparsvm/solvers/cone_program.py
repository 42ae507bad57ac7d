"""A small problem as one cone program, for what the other solvers cannot finish."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.cone_model import MOST_ENTRIES, ConeModel, cone_entries
from sparsvm.solvers.run.incumbent import on_simplices
from sparsvm.solvers.run.monitor import Point
from sparsvm.solvers.run.options import LARGEST_COUNT, check_at_least_one, iteration_limit
from sparsvm.solvers.run.progress import Report, progress
from sparsvm.solvers.run.threads import blas_threads

# The cone solver's zeros, relative to the largest weight: the coarsest rounding that keeps the
# certificate is taken, so that the model is exactly sparse.
ROUNDINGS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 0.0)


class ConeProgram(Solver):
    r"""The whole problem as one cone program, solved by Clarabel.

    .. math::
        \min_{W, b, \xi \ge 0} \sum_i \lambda_i \xi_i + penalty(W) - \langle V, W\rangle, \qquad
        \lambda_i = p_i / \alpha, \quad \xi_i \ge m_{ik} + S_{ik} - S_{iy_i},

    with every column centred and scaled to size 1, and all :math:`n (K - 1)` constraints at once.
    It takes tens to hundreds of times as long as ``interior_point`` but does not eliminate what
    that solver eliminates, so that ``"auto"`` asks it where weights or columns differ by so many
    orders of magnitude that the others do not get on. It chooses its own start. On its way a
    callback is told Clarabel's objectives. Clarabel shows its point only when it ends: whoever asks
    for the coefficients on the way has that many iterations run once more.

    Parameters
    ----------
    max_iter : int, default=200
        Iterations allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sparsvm.solvers import ConeProgram
    >>> ConeProgram(max_iter=100)
    ConeProgram(max_iter=100)
    """

    name: ClassVar[str] = "cone_program"

    def __init__(self, max_iter: int = 200) -> None:
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, a penalty that is not convex, too large."""
        reason = self._needs_hinge(problem) or self._needs_more_than_prox(problem)
        if reason is not None:
            return reason
        entries = cone_entries(problem)
        if entries > MOST_ENTRIES:
            return (
                f"cone_program would write {entries} entries of constraints (its limit is "
                f"{MOST_ENTRIES})."
            )
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve and certify; whatever ``start`` is, the cone solver begins at its own."""
        check_at_least_one(self, "max_iter")
        began = time.perf_counter()
        limit = iteration_limit(self.max_iter, control, LARGEST_COUNT)
        report = progress(self.name, control)
        margins = problem.margins()
        margins -= margins[np.arange(problem.n), problem.y][:, None]
        with blas_threads(control.n_jobs or 1):
            model = ConeModel(problem, margins, slacks=True)
            costs = model.penalty_costs()
            costs[model.at.xi] = problem.mass / problem.alpha
            if problem.linear_term is not None:
                costs[model.at.w] -= (problem.linear_term / model.column).ravel()
            bounds = [model.no_negative_slacks()]

            def point(iteration: int) -> Point:
                # It is deterministic, so that as many iterations lead to the same point.
                again = model.solve(costs, bounds, iteration)
                return _rounded(problem, again.coef, ROUNDINGS[0]), again.intercept

            look = None if report is None else partial(_told, report, problem, began, point)
            found = model.solve(costs, bounds, limit, look)
            dual = on_simplices(problem, problem.alpha * found.dual)
            for rounding in ROUNDINGS:
                solution = certified(
                    problem,
                    _rounded(problem, found.coef, rounding),
                    found.intercept,
                    dual,
                    tol=control.tol,
                    n_iter=found.n_iter,
                    seconds=time.perf_counter() - began,
                    history=History.empty(),
                    solver=self.name,
                    status_if_not="max_iter" if found.n_iter >= limit else "stalled",
                )
                if solution.converged:
                    break
        record = (
            solution.n_iter,
            solution.seconds,
            solution.objective,
            solution.gap,
            int(np.count_nonzero(solution.coef)),
        )
        if report is not None:
            report(*record, lambda: (solution.coef, solution.intercept))
        return replace(solution, history=History.of([record]))


def _told(
    report: Report,
    problem: Problem,
    began: float,
    point: Callable[[int], Point],
    iteration: int,
    primal: float,
    dual: float,
) -> bool:
    size = problem.n_outputs * problem.d
    gap = problem.alpha * max(primal - dual, 0.0)
    record = (iteration, time.perf_counter() - began, problem.alpha * primal, gap, size)
    return report(*record, partial(point, iteration))


def _rounded(problem: Problem, coef: Floats, share: float) -> Floats:
    """Put zeros where penalised weights are at most a share of the largest."""
    sizes = np.abs(coef) * problem.penalty.omega
    return np.where((sizes > 0.0) & (sizes <= share * sizes.max(initial=0.0)), 0.0, coef)
