"""The proximal algorithm of Chierchia et al., as a reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm.parameters import number
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.incumbent import Incumbent
from sparsvm.solvers.run.native import hinge_problem, own_penalty
from sparsvm.solvers.run.options import (
    check_at_least_one,
    check_choice,
    iteration_limit,
    until_certificate,
)
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

STOPPING = ("gap", "change")
STEP_NORMS = ("centred", "paper")
# Norms are estimated from below and raised by one per cent: what this allows may be exact.
NORM_FACTOR = 1.01
# Of the ratio of the steps. Measured on standardised iris, wine and random data with each penalty:
# 10 to 100 took the fewest iterations.
PRIMAL_FACTOR = 30.0
# The mean of iterates is taken over the last half to two thirds: it forgets a bad beginning.
WINDOW = 2


class FBPD(Solver):
    r"""Forward-backward primal-dual splitting (Algorithm 1 of the proximal approach).

    With :math:`T` the map from coefficients to score differences and :math:`r` the margins,

    .. math::
        x^{+} = prox_{\tau \alpha\, penalty}(x - \tau T^\top y), \qquad
        y^{+} = P\bigl(y + \sigma T (2 x^{+} - x) + \sigma r\bigr),

    where P projects each sample's dual on the simplex of its mass, and
    :math:`\tau \sigma \|T\|^2 \le 1`. Each iteration costs one product with the design and one
    with its transpose. The method is simple, takes every convex penalty, a user's own too, and is
    slow to reach high accuracy; standardise the columns first. Since the iterates circle around the
    solution, the certificate also tries their mean.

    Parameters
    ----------
    stopping : {"gap", "change"}, default="gap"
        Stop when the duality gap meets the tolerance, or, as in the paper, when the relative
        change :math:`\|x^{+} - x\| / \|x^{+}\|` does. The latter proves nothing: the solution
        still carries its gap, and counts as converged only if that meets the tolerance.
    ratio : float, optional
        :math:`\tau / \sigma`, the size of primal steps against dual ones. By default the squared
        ratio of the sizes expected of the solutions: coefficients with scores of the size of the
        margins against the masses, times 30.
    step_norm : {"centred", "paper"}, default="centred"
        The norm in :math:`\tau \sigma \|T\|^2 = 1`. "paper" takes T as the paper has it, from
        coefficients to the scores of all classes less that of the true one. "centred" takes the
        scores less their mean, which allows longer steps: a simplex does not see that shift.
    tau, sigma : float, optional
        The steps themselves, in place of `ratio`; of one alone, the other follows from the norm.
        Steps beyond :math:`\tau\sigma\|T\|^2 \le 1` in the centred norm are refused.
    check_every : int, default=50
        Iterations between the first certificates; later the spacing grows with the count, since
        each costs as much as several iterations.
    max_iter : int, default=100000
        Iterations allowed when the estimator's ``max_iter`` is None.

    Notes
    -----
    The paper minimises :math:`g(x) + \lambda \sum_i h_i(T_i x)`. Its iterates are those of
    ``alpha`` :math:`= 1/(n\lambda)` with its :math:`\tau` divided and its :math:`\sigma` multiplied
    by alpha, and duals that are alpha times its own. For two classes, which have one vector here
    and two opposite ones there, :math:`\tau` doubles as well.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import FBPD
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("hinge", "l1/l2", alpha=0.05, solver=FBPD(check_every=20)).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name = "fbpd"

    def __init__(
        self,
        stopping: str = "gap",
        ratio: float | None = None,
        step_norm: str = "centred",
        tau: float | None = None,
        sigma: float | None = None,
        check_every: int = 50,
        max_iter: int = 100_000,
    ) -> None:
        self.stopping = stopping
        self.ratio = ratio
        self.step_norm = step_norm
        self.tau = tau
        self.sigma = sigma
        self.check_every = check_every
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, or a penalty without a convex prox."""
        return self._needs_hinge(problem, built_in=False)

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Iterate from ``start`` (from zero without one) until the stopping rule holds."""
        check_options(self)
        self._check_steps()
        means = self.stopping == "gap"
        incumbent = Incumbent(problem, progress(self.name, control), anyway=not means)
        limit = iteration_limit(self.max_iter, control)
        change = control.tol if self.stopping == "change" else -1.0
        with blas_threads(control.n_jobs or 1):
            method = self._method(problem)
            if start is not None:
                _set_start(method, problem, start)
            done, window, settled = 0, 0, False
            _certify(incumbent, done, method, means)
            while done < limit and not settled and not self._proved(incumbent, control):
                if done > WINDOW * window:
                    window = done
                    method.forget()
                done += method.run(until_certificate(self.check_every, done, limit), change)
                settled = method.settled
                if settled or done == limit or means or control.monitor is not None:
                    _certify(incumbent, done, method, means)
            return incumbent.solution(control, self.name, done, settled)

    def _proved(self, incumbent: Incumbent, control: Control) -> bool:
        return self.stopping == "gap" and incumbent.within(control.tol)

    def _method(self, problem: Problem) -> Any:
        native = hinge_problem(problem)
        tau, sigma = self._steps(problem, native)
        return _core.Fbpd(native, tau=tau, sigma=sigma, penalty=own_penalty(problem))

    def _check_steps(self) -> None:
        check_choice("step_norm", self.step_norm, STEP_NORMS)
        for name in ("tau", "sigma"):
            value = getattr(self, name)
            if value is None:
                continue
            if self.ratio is not None:
                raise ValueError(f"ratio and {name} were both given; leave one of them out.")
            if not 0.0 < number(value) < np.inf:
                raise ValueError(f"{name} must be positive and finite or None, but is {value!r}.")

    def _steps(self, problem: Problem, native: Any) -> tuple[float, float]:
        """Return tau and sigma."""
        design: Any = problem.design
        product_norm = float(_core.operator_norm(design, problem.fit_intercept))
        # Rows of the signed dual sum to zero, so of the scores only their deviations from the mean
        # over the classes count. Their norm is that of [X 1], over the root of 2 for two classes,
        # one of which is pinned to the score 0.
        centred = product_norm / (np.sqrt(2.0) if problem.n_classes == 2 else 1.0)
        norm = centred
        if self.step_norm == "paper":
            norm = float(_core.difference_norm(native))
        if norm == 0.0:
            norm = 1.0
        if self.tau is None and self.sigma is None:
            given = self.ratio
            ratio = default_ratio(problem, product_norm) if given is None else float(given)
            return float(np.sqrt(ratio) / norm), float(1.0 / (np.sqrt(ratio) * norm))
        if self.tau is None:
            sigma = number(self.sigma)
            tau = 1.0 / (norm**2 * sigma)
        else:
            tau = number(self.tau)
            sigma = 1.0 / (norm**2 * tau) if self.sigma is None else number(self.sigma)
        if not tau * sigma * centred**2 <= NORM_FACTOR**2:
            raise ValueError(
                f"The steps tau={tau:.6g} and sigma={sigma:.6g} are too long: their product is "
                f"{tau * sigma:.6g}, but may be at most 1/||T||^2 = {1.0 / centred**2:.6g}."
            )
        return tau, sigma


def check_options(solver: Any) -> None:
    """Refuse options of this solver, or of those of a hinge budget, that mean nothing."""
    check_choice("stopping", solver.stopping, STOPPING)
    if solver.ratio is not None and not 0.0 < number(solver.ratio) < np.inf:
        raise ValueError(f"ratio must be positive and finite or None, but is {solver.ratio!r}.")
    check_at_least_one(solver, "check_every", "max_iter")


def default_ratio(problem: Problem, norm: float) -> float:
    r"""Return :math:`\tau / \sigma`: the squared ratio of the sizes expected of the solutions.

    Coefficients whose scores are of the size of the margins against the masses, times a constant:
    most samples end with little dual off their true class. ``norm`` is that of [X 1].
    """
    if norm == 0.0:
        return 1.0
    margin = float(np.sum(problem.mass * problem.margins().max(axis=1)))
    primal = (margin if margin > 0.0 else 1.0) * np.sqrt(problem.n) / norm
    return PRIMAL_FACTOR * float(primal**2 / np.sum(problem.mass**2))


def _set_start(method: Any, problem: Problem, start: Start) -> None:
    dual = start.dual
    if dual is None:
        dual = np.zeros((problem.n, problem.n_classes))
        dual[np.arange(problem.n), problem.y] = problem.mass
    intercept = start.intercept if problem.fit_intercept else np.zeros(problem.n_outputs)
    method.start(np.ascontiguousarray(start.coef.T), intercept, np.ascontiguousarray(dual))


def _certify(incumbent: Incumbent, iteration: int, method: Any, means: bool) -> None:
    """Certify the iterate of the method and, with ``means``, the mean of the iterates.

    The mean gets the zeros of the last iterate: a mean of sparse vectors is not sparse.
    """
    weights, intercept, dual = method.last()
    incumbent.consider(weights, intercept, dual, anyway=incumbent.anyway or not incumbent.records)
    if means:
        mean, mean_intercept, mean_dual = method.mean()
        incumbent.consider(np.where(weights != 0.0, mean, 0.0), mean_intercept, mean_dual)
    incumbent.record(iteration)
