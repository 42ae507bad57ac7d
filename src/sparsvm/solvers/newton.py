"""Proximal method of multipliers with semismooth Newton steps: many samples, high accuracy."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm.certificate.certify import certified
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.incumbent import MethodIncumbent, on_simplices
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.options import (
    LARGEST_COUNT,
    check_at_least_one,
    check_positive,
    iteration_limit,
)
from sparsvm.solvers.run.progress import Report, progress
from sparsvm.solvers.run.threads import blas_threads
from sparsvm.solvers.sdca import SDCA

# The relative gap to which sdca prepares a start. Measured on 5000 digits with l1: from 3e-2 the
# whole took 1.7 times longer, below 5e-3 sdca took longer than it saved.
START_GAP = 1e-2


class Newton(Solver):
    r"""Proximal method of multipliers whose subproblems are solved by a semismooth Newton method.

    With :math:`\lambda_i = p_i / \alpha`, each subproblem smooths the hinge around the multipliers
    :math:`Y_k` and adds a weak proximal term,

    .. math::
        \min_{W, b} \; &penalty(W) - \langle V, W\rangle
        + \tfrac1{2\sigma} \|\omega \circ (W - W_k)\|^2 + \tfrac1{2\sigma_b} \|b - b_k\|^2 \\
        &+ \sum_i \max_{Y_i \in \lambda_i \Delta} \Bigl(\langle Y_i, S_i + r_i\rangle
        - \tfrac{1}{2 c_i} \|Y_i - Y_{k,i}\|^2\Bigr) .

    Its minimiser and the maximising Y are the next :math:`W_k, b_k, Y_k`; the objective has a
    piecewise linear gradient wherever the penalty is smooth. A Newton step takes the piece of
    the penalty that a proximal step finds (the non-zero coefficients, the curvature of non-zero
    groups, the ties of l1/linf) and the samples whose best classes are tied: no others enter
    its matrix. So the cost follows the tied samples times the squares of the active coefficients
    of single classes. Steps are damped after failures; smoothing :math:`c` and proximal terms
    :math:`\sigma` are weakened as the gap falls.

    Without a starting point, :class:`SDCA` finds one to a gap of 1e-2.

    Parameters
    ----------
    direct : int, default=3000
        Up to this many active coefficients the Newton equation is assembled and factored; beyond,
        conjugate gradients solve it.
    max_iter : int, default=3000
        Newton steps allowed when the estimator's ``max_iter`` is None.
    max_work : float or None, default=None
        Multiplications after which it ends, counted as those of a matrix product: slower ones
        count for more. None is no limit. ``auto`` lets it go as far as ``interior_point`` would.

    Examples
    --------
    >>> from sparsvm.solvers import Newton
    >>> Newton(direct=1000)
    Newton(direct=1000)
    """

    name: ClassVar[str] = "newton"

    def __init__(
        self, direct: int = 3000, max_iter: int = 3000, max_work: float | None = None
    ) -> None:
        self.direct = direct
        self.max_iter = max_iter
        self.max_work = max_work

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, or a penalty that is not convex."""
        reason = self._needs_hinge(problem) or self._needs_more_than_prox(problem)
        if reason is not None:
            return reason
        if problem.margin_matrix is not None:
            return "newton takes margins from a cost matrix and sample margins only."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve to ``control.tol`` from ``start``, or from one that sdca prepares."""
        self._check_options()
        began = time.perf_counter()
        limit = iteration_limit(self.max_iter, control)
        with blas_threads(control.n_jobs or 1):
            if start is None:
                start = _prepared(problem, control)
            work = np.inf if self.max_work is None else float(self.max_work)
            direct = min(int(self.direct), LARGEST_COUNT)
            run = _Run(problem, start, direct, work, progress(self.name, control))
            run.best.record(0)
            while run.goes_on(limit) and not run.best.within(control.tol):
                run.advance(control.tol, limit)
                run.best.record(run.steps)
            return certified(
                problem,
                run.best.coef,
                run.best.intercept,
                run.best.dual,
                tol=control.tol,
                n_iter=run.steps,
                seconds=time.perf_counter() - began,
                history=run.best.history(),
                solver=self.name,
                status_if_not="max_iter" if run.steps >= limit else "stalled",
            )

    def _check_options(self) -> None:
        check_at_least_one(self, "direct", "max_iter")
        if self.max_work is not None:
            check_positive("max_work", self.max_work)


def _prepared(problem: Problem, control: Control) -> Start:
    """Return a rough solution of sdca, or the zero model where sdca cannot help."""
    solver = SDCA()
    if solver.unsupported(problem) is not None:
        zeros = np.zeros((problem.n_outputs, problem.d))
        return Start(zeros, np.zeros(problem.n_outputs))
    rough = replace(control, tol=max(START_GAP, control.tol), max_iter=None, verbose=False)
    rough = replace(rough, monitor=None)
    found = solver.solve(problem, None, rough)
    return Start(found.coef, found.intercept, found.dual)


class _Run:
    """The method, subproblem after subproblem, with the best certified points."""

    def __init__(
        self, problem: Problem, start: Start, direct: int, work: float, report: Report | None
    ) -> None:
        self.direct, self.work = direct, work
        self.method = _method(problem)
        self.steps, self.stalled = 0, False
        dual = start.dual
        if dual is None:
            dual = np.zeros((problem.n, problem.n_classes))
        intercept = start.intercept if problem.fit_intercept else np.zeros(problem.n_outputs)
        self.method.start(
            np.ascontiguousarray(start.coef.T, dtype=np.float64),
            np.ascontiguousarray(intercept, dtype=np.float64),
            on_simplices(problem, dual) / problem.alpha,
        )
        self.best = MethodIncumbent(problem, self.method, report)
        self.method.begin(min(self.best.relative_gap, LARGEST_COUNT))

    def goes_on(self, limit: int) -> bool:
        """Whether steps and work are left, and subproblems bring something."""
        return self.steps < limit and self.work > 0.0 and not self.stalled

    def advance(self, tol: float, limit: int) -> None:
        """Solve one subproblem, and take or leave its result."""
        steps, work = self.method.advance(
            min(self.best.relative_gap, LARGEST_COUNT),
            tol=tol,
            left=limit - self.steps,
            direct=self.direct,
            max_work=self.work,
        )
        self.work -= work
        self.steps += max(steps, 1)
        before = self.best.gap
        self.best.renew()
        self.stalled = self.method.settle(before, self.best.gap)


def _method(problem: Problem) -> Any:
    return _core.MultiplierNewton(
        hinge_problem(problem),
        rms=problem.column_norms / np.sqrt(problem.n),
    )
