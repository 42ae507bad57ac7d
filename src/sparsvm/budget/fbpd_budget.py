"""The proximal algorithms of Chierchia et al. for a hinge budget, as references."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.budget.frontier import FrontierPoint, on_budget
from sparsvm.budget.frontier_ends import alpha_of_zeros, refuse_if_infeasible, zero_point
from sparsvm.budget.problem import Bound, ConstrainedProblem, ConstrainedSolution
from sparsvm.parameters import Parameterised
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.auto import resolve
from sparsvm.solvers.papers.fbpd import WINDOW, check_options
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.options import iteration_limit, until_certificate
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

# Settings, measured on leukemia and digits: the multiplier, as a share of the one that the model of
# zeros suggests, and the ratio of the steps, as a multiple of the squared ratio of the sizes (1 to
# 10 took the fewest iterations).
FIRST_SHARE, STEP_RATIO = 0.4, 3.0


class _FBPDBudget(Parameterised):
    """What the two methods share: everything but the projection."""

    name: ClassVar[str]
    form: ClassVar[str]

    def __init__(
        self,
        stopping: str = "gap",
        ratio: float | None = None,
        check_every: int = 100,
        max_iter: int = 200_000,
    ) -> None:
        self.stopping = stopping
        self.ratio = ratio
        self.check_every = check_every
        self.max_iter = max_iter

    def unsupported(self, problem: ConstrainedProblem) -> str | None:
        """Every constrained problem is supported."""
        return None

    def solve(
        self, problem: ConstrainedProblem, start: Start | None, control: Control
    ) -> ConstrainedSolution:
        """Iterate from ``start`` (from zero without one) until the stopping rule holds.

        Raises
        ------
        ValueError
            Where it did not get within the budget because no model is.
        """
        check_options(self)
        limit = iteration_limit(self.max_iter, control)

        def exact(other: Problem, begin: Start | None, tol: float) -> Solution:
            options = Control(tol=tol, n_jobs=control.n_jobs)
            return resolve("auto", other, options).solve(other, begin, options)

        judge = problem.even
        with blas_threads(control.n_jobs or 1):
            zero = zero_point(judge)
            incumbent = _Incumbent(self, judge, control, zero)
            if judge.is_met_by(zero.hinge):
                solution = incumbent.solution(problem, 1, "optimal")
                return solution.with_alpha(alpha_of_zeros(problem))
            run = self.native(judge, incumbent.alpha)
            start = None if start is None else start.with_masses(judge.regularised.mass)
            if start is not None and start.dual is not None:
                dual = np.ascontiguousarray(start.dual / incumbent.alpha)
                run.start(np.ascontiguousarray(start.coef.T), start.intercept, dual)
            done, status = self._iterate(run, incumbent, control, limit)
            solution = incumbent.solution(problem, done, status)
            if status != "stopped" and not judge.is_met_by(
                judge.hinge(solution.coef, solution.intercept)
            ):
                refuse_if_infeasible(problem, exact)
            return solution

    def _iterate(
        self, run: Any, incumbent: _Incumbent, control: Control, limit: int
    ) -> tuple[int, str]:
        """Run in growing chunks; return the iterations done and the status if none is proved."""
        by_gap = self.stopping == "gap"
        done, window, settled = 0, 0, False
        while done < limit and not settled and not (by_gap and incumbent.proved()):
            if incumbent.stopped:
                return done, "stopped"
            if done > WINDOW * window:
                window = done
                run.forget()
            wait = until_certificate(self.check_every, done, limit)
            done += run.run(wait, -1.0 if by_gap else control.tol)
            settled = run.settled
            if by_gap or settled or done >= limit or control.monitor is not None:
                incumbent.update(done, run, means=by_gap)
        return done, "stalled" if settled else "max_iter"

    def native(self, problem: ConstrainedProblem, alpha: float) -> Any:
        """Return the native method, with steps for multipliers of the size ``p / alpha``."""
        data = hinge_problem(problem.at(1.0))
        square = self.squared_norm(float(_core.difference_norm(data)) ** 2)
        ratio = default_ratio(problem, alpha) if self.ratio is None else float(self.ratio)
        tau = float(np.sqrt(ratio / square))
        return _core.Fbpd(data, tau=tau, sigma=tau / ratio, form=self.form, eta=problem.eta)

    @staticmethod
    def squared_norm(square: float) -> float:
        """Return the largest 1/(tau sigma) there may be, from the squared norm of T."""
        raise NotImplementedError


class FBPDEpigraph(_FBPDBudget):
    r"""Forward-backward primal-dual splitting with epigraphical projections (Algorithm 2).

    With one slack :math:`\zeta_i` per sample, :math:`T` the map from coefficients to score
    differences, E the product of the epigraphs of the hinge losses and V the half-space
    :math:`\sum_i p_i \zeta_i \le \eta`,

    .. math::
        x^+ = prox_{\tau g}(x - \tau T^\top y), \quad
        \zeta^+ = P_V(\zeta - \tau \xi), \\
        (y^+, \xi^+) = (I - \sigma P_E(\cdot / \sigma))
        (y + \sigma T(2x^+ - x),\; \xi + \sigma(2\zeta^+ - \zeta)),

    where :math:`\tau\sigma \max(\|T\|^2, 1) \le 1`. An iterate is not within the budget; what is
    certified and returned is the iterate made longer (or shorter) until it just is.

    Parameters
    ----------
    stopping : {"gap", "change"}, default="gap"
        Stop when the certified gap meets the tolerance, or, as in the paper, when the relative
        change of the iterates does, which proves nothing.
    ratio : float, optional
        :math:`\tau / \sigma`; by default from the sizes expected of coefficients and multipliers.
    check_every : int, default=100
        Iterations between the first certificates; later the spacing grows with the count.
    max_iter : int, default=200000
        Iterations allowed when the estimator's ``max_iter`` is None.
    """

    name = "fbpd_epigraph"
    form = "epigraph"

    @staticmethod
    def squared_norm(square: float) -> float:
        """Slacks and differences are separate blocks."""
        return max(square, 1.0)


class FBPDLinear(_FBPDBudget):
    r"""Forward-backward primal-dual splitting with linear constraints instead of epigraphs.

    The competitor of :class:`FBPDEpigraph` in its paper: the slacks are copied for every class,
    with the constraints that the copies :math:`\zeta_{ik}` agree and that
    :math:`T_i x + r_i \le \zeta_i`; the projections are a mean, a half-space and an orthant, and
    :math:`\tau\sigma (\|T\|^2 + 1) \le 1`.

    Parameters
    ----------
    stopping : {"gap", "change"}, default="gap"
        As in :class:`FBPDEpigraph`.
    ratio : float, optional
        :math:`\tau / \sigma`; by default from the sizes expected of coefficients and multipliers.
    check_every : int, default=100
        Iterations between the first certificates; later the spacing grows with the count.
    max_iter : int, default=200000
        Iterations allowed when the estimator's ``max_iter`` is None.
    """

    name = "fbpd_linear"
    form = "linear"

    @staticmethod
    def squared_norm(square: float) -> float:
        """Every constraint has a slack beside the differences."""
        return square + 1.0


def default_ratio(problem: ConstrainedProblem, alpha: float) -> float:
    r"""Return :math:`\tau / \sigma`: the squared ratio of the sizes expected of the solutions.

    Coefficients whose scores are of the size of the margins, against multipliers p / alpha.
    """
    data = problem.regularised
    design: Any = data.design
    norm = float(_core.operator_norm(design, data.fit_intercept))
    if norm == 0.0:
        return 1.0
    primal = problem.unit * np.sqrt(data.n) / norm
    dual = np.sqrt(float(np.sum(data.mass**2))) / alpha
    return STEP_RATIO * float(primal / dual) ** 2


class _Incumbent:
    """The best model within the budget and the best bound so far, and the history of both."""

    def __init__(
        self,
        solver: _FBPDBudget,
        problem: ConstrainedProblem,
        control: Control,
        zero: FrontierPoint,
    ) -> None:
        self.solver = solver
        self.problem = problem
        self.control = control
        self.began = time.perf_counter()
        self.bound: Bound = problem.bound(zero.dual)
        self.alpha = FIRST_SHARE * self.bound.alpha if np.isfinite(self.bound.alpha) else 1.0
        self.penalty, self.floor = np.inf, 0.0
        self.model = zero.coef, zero.intercept
        if problem.is_met_by(zero.hinge):
            self.penalty = 0.0
        self.report = progress(solver.name, control)
        self.stopped = False
        self.records = [(0, self._seconds(), self.penalty, np.inf, 0)]

    def _seconds(self) -> float:
        return time.perf_counter() - self.began

    def proved(self) -> bool:
        gap = self.penalty - self.bound.value
        return np.isfinite(gap) and gap <= max(self.control.tol * self.penalty, self.floor)

    def update(self, iteration: int, run: Any, means: bool) -> None:
        """Certify the last iterate and keep it; with ``means``, the best of it and of the mean.

        A paper's stopping rule is about its last iterate and no other.
        """
        weights, intercept, dual = run.last()
        self._consider(weights, intercept, dual, anyway=not means)
        if means:
            mean, mean_intercept, mean_dual = run.mean()
            # A mean of sparse vectors is not sparse; it is given the zeros of the last one.
            self._consider(np.where(weights != 0.0, mean, 0.0), mean_intercept, mean_dual)
        gap = max(self.penalty - self.bound.value, 0.0)
        nonzeros = int(np.count_nonzero(self.model[0]))
        record = (iteration, self._seconds(), self.penalty, gap, nonzeros)
        self.records.append(record)
        if self.report is not None:
            self.stopped = self.report(*record, lambda: self.model)

    def _consider(
        self, weights: Floats, intercept: Floats, multipliers: Floats, anyway: bool = False
    ) -> None:
        total = float(multipliers.sum())
        if total > 0.0:
            bound = self.problem.bound(multipliers / total)
            if bound.value > self.bound.value:
                self.bound = bound
        alpha = self.bound.alpha if np.isfinite(self.bound.alpha) else 1.0
        if self.problem.regularised.n_outputs > 1:
            # Shifting all classes alike changes no difference of scores.
            intercept = intercept - intercept.mean()
        point = FrontierPoint.of(self.problem, alpha, np.ascontiguousarray(weights.T), intercept)
        model = on_budget(self.problem, point)
        if model is None:
            if not np.isfinite(self.penalty):
                self.model = point.coef, point.intercept
            return
        penalty = self.problem.penalty(model[0])
        if anyway or penalty < self.penalty:
            self.model, self.penalty = model, penalty
            self.floor = self.problem.floor(*model, alpha)

    def solution(
        self, asked: ConstrainedProblem, done: int, status_if_not: str
    ) -> ConstrainedSolution:
        return ConstrainedSolution.certify(
            asked,
            *self.model,
            self.bound.dual,
            tol=self.control.tol,
            n_iter=done,
            seconds=self._seconds(),
            history=History.of(self.records),
            solver=self.solver.name,
            status_if_not=status_if_not,
        )
