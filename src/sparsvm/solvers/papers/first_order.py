"""Full-gradient methods for smooth losses, as references: FISTA, forward-backward, SpaRSA."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np

from sparsvm.parameters import number
from sparsvm.problem.problem import Problem
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.papers.smooth_reference import (
    drive,
    gradient_constant,
    spectral_constant,
    unsupported_smooth,
)
from sparsvm.solvers.run.native import first_order, own_penalty, smooth_problem
from sparsvm.solvers.run.options import (
    LARGEST_COUNT,
    check_at_least_one,
    check_choice,
    check_positive,
)

STEPS = ("LS", "CST")
STOPPING = ("gap", "change")


class FirstOrderSolver(Solver):
    """What the three methods share: the loop around the native iterations."""

    stopping: str
    check_every: int
    max_iter: int

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: a loss without a derivative, or a penalty without a convex prox."""
        return unsupported_smooth(self.name, problem)

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Iterate from ``start`` (from zero without one) until the stopping rule holds."""
        self._check_options()
        return drive(
            self.name,
            self._method,
            problem,
            start,
            control,
            stopping=self.stopping,
            check_every=self.check_every,
            max_iter=self.max_iter,
        )

    def _check_options(self) -> None:
        check_choice("stopping", self.stopping, STOPPING)
        check_at_least_one(self, "check_every", "max_iter")

    def _method(self, problem: Problem) -> Any:
        raise NotImplementedError


class FISTA(FirstOrderSolver):
    r"""Accelerated proximal gradient descent (Beck and Teboulle), as the papers compare with.

    .. math::
        x^{+} &= prox_{\alpha\, penalty / L}\bigl(y - \nabla f(y) / L\bigr), \\
        t^{+} &= \tfrac12 \bigl(1 + \sqrt{1 + 4 t^2}\bigr), \qquad
        y^{+} = x^{+} + \frac{t - 1}{t^{+}} (x^{+} - x),

    with f the mean loss (less the linear term) and x the coefficients with the intercept of centred
    features, :math:`b + W \bar x`: the same problem, but better conditioned than with b.

    Parameters
    ----------
    step : {"LS", "CST"}, default="LS"
        "LS" raises L by the factor `eta` until :math:`f(x^{+}) \le f(y) +
        \langle \nabla f(y), x^{+} - y\rangle + \frac L2 \|x^{+} - y\|^2`, starting from the
        largest curvature in one coefficient. "CST" keeps
        :math:`L = \kappa \sum_i p_i \|x_i\|^2`, with an intercept
        :math:`\kappa (1 + \sum_i p_i \|x_i - \bar x\|^2)`; :math:`\kappa` is 4 (K - 1) for the
        squared hinge, 1/2 for the logistic loss, 2 for one-vs-rest (half of the first two for two
        classes).
    eta : float, default=2.0
        Factor of the line search.
    stopping : {"gap", "change"}, default="gap"
        Stop when the duality gap meets the tolerance, or when the relative change
        :math:`\|x^{+} - x\| / \|x^{+}\|` does, which proves nothing: the solution still carries
        its gap, and counts as converged only if that meets the tolerance.
    check_every : int, default=10
        Iterations between the first certificates; later the spacing grows with the count.
    max_iter : int, default=100000
        Iterations allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import FISTA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("squared_hinge", "l1/l2", alpha=0.05, solver=FISTA(eta=1.5)).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "fista"

    def __init__(
        self,
        step: str = "LS",
        eta: float = 2.0,
        stopping: str = "gap",
        check_every: int = 10,
        max_iter: int = 100_000,
    ) -> None:
        self.step = step
        self.eta = eta
        self.stopping = stopping
        self.check_every = check_every
        self.max_iter = max_iter

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("step", self.step, STEPS)
        check_positive("eta", self.eta, above=1.0)

    def _method(self, problem: Problem) -> Any:
        native = smooth_problem(problem)
        return proximal_gradient(self, problem, native, gradient_constant(problem, native))


class ForwardBackward(FirstOrderSolver):
    r"""Proximal gradient descent, :math:`x^{+} = prox(x - \gamma \nabla f(x))`.

    Parameters
    ----------
    step : {"CST", "LS"}, default="CST"
        "CST" takes steps of `gamma` divided by a Lipschitz constant of the gradient, from the
        spectral norm of the data; "LS" searches as in :class:`FISTA`, without acceleration.
    gamma : float in (0, 2), default=1.9
        Length of the constant step.
    eta : float, default=2.0
        Factor of the line search.
    stopping, check_every, max_iter
        As for :class:`FISTA`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import ForwardBackward
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = ForwardBackward(step="LS")
    >>> model = SparseSVC("squared_hinge", "l1/l2", alpha=0.05, solver=solver).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "forward_backward"

    def __init__(
        self,
        step: str = "CST",
        gamma: float = 1.9,
        eta: float = 2.0,
        stopping: str = "gap",
        check_every: int = 10,
        max_iter: int = 100_000,
    ) -> None:
        self.step = step
        self.gamma = gamma
        self.eta = eta
        self.stopping = stopping
        self.check_every = check_every
        self.max_iter = max_iter

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("step", self.step, STEPS)
        check_positive("eta", self.eta, above=1.0)
        check_positive("gamma", self.gamma, below=2.0)

    def _method(self, problem: Problem) -> Any:
        native = smooth_problem(problem)
        constant = spectral_constant(problem, native)
        return proximal_gradient(self, problem, native, constant, float(self.gamma))


class SpaRSA(FirstOrderSolver):
    r"""Proximal gradient descent with Barzilai-Borwein steps (Wright, Nowak and Figueiredo).

    :math:`x^{+} = prox_{\alpha\, penalty/L}(x - \nabla f(x)/L)` with
    :math:`L = \langle \Delta x, \Delta \nabla f \rangle / \|\Delta x\|^2`, raised by `eta` until

    .. math:: F(x^{+}) \le \max_{\text{last } M + 1} F - \tfrac\sigma2 L \|x^{+} - x\|^2,

    so that the objective may rise for a while.

    Parameters
    ----------
    M : int, default=5
        How many earlier objectives a new one is compared with.
    sigma : float in (0, 1), default=0.01
        Share of the decrease asked for.
    eta : float, default=2.0
        Factor of the line search.
    alpha_min, alpha_max : float, default=1e-30, 1e30
        Bounds of L.
    stopping, check_every, max_iter
        As for :class:`FISTA`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import SpaRSA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("squared_hinge", "l1/l2", alpha=0.05, solver=SpaRSA(M=1)).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "sparsa"

    def __init__(
        self,
        M: int = 5,
        sigma: float = 0.01,
        eta: float = 2.0,
        alpha_min: float = 1e-30,
        alpha_max: float = 1e30,
        stopping: str = "gap",
        check_every: int = 10,
        max_iter: int = 100_000,
    ) -> None:
        self.M = M
        self.sigma = sigma
        self.eta = eta
        self.alpha_min = alpha_min
        self.alpha_max = alpha_max
        self.stopping = stopping
        self.check_every = check_every
        self.max_iter = max_iter

    def _check_options(self) -> None:
        super()._check_options()
        check_positive("eta", self.eta, above=1.0)
        check_positive("sigma", self.sigma, below=1.0)
        check_positive("alpha_min", self.alpha_min)
        check_positive("alpha_max", self.alpha_max, above=number(self.alpha_min))
        if not isinstance(self.M, numbers.Integral):
            raise ValueError(f"M must be an integer, not negative, but is {self.M!r}.")
        if int(self.M) < 0:
            raise ValueError(f"M must not be negative, but is {self.M!r}.")

    def _method(self, problem: Problem) -> Any:
        smallest, largest = float(self.alpha_min), float(self.alpha_max)
        return first_order(
            smooth_problem(problem),
            method="sparsa",
            line_search=True,
            L=float(np.clip(first_curvature(problem), smallest, largest)),
            eta=float(self.eta),
            memory=min(int(self.M), LARGEST_COUNT),
            sigma=float(self.sigma),
            smallest=smallest,
            largest=largest,
            penalty=own_penalty(problem),
        )


def proximal_gradient(
    solver: FISTA | ForwardBackward,
    problem: Problem,
    native: Any,
    constant: float,
    gamma: float = 1.0,
) -> Any:
    """Return the method with steps of gamma / constant, or that searches for them."""
    search = solver.step == "LS"
    return first_order(
        native,
        method=solver.name,
        line_search=search,
        L=first_curvature(problem) if search else constant / gamma,
        eta=float(solver.eta),
        largest=constant,
        penalty=own_penalty(problem),
    )


def first_curvature(problem: Problem) -> float:
    """Return the largest second derivative in one coefficient at zero, at least that of 1.

    It does not exceed the Lipschitz constant, so the line search may start from it.
    """
    mean, variance, *_ = problem.design.column_stats(problem.mass)
    squares = np.asarray(variance)
    if not problem.fit_intercept:  # the features are centred otherwise
        squares = squares + np.asarray(mean) ** 2
    largest = max(float(squares.max(initial=0.0)), 1.0 if problem.fit_intercept else 0.0)
    K = problem.n_classes
    per_unit = (K - 1) / K**2 if problem.loss.name == "logistic" else 2.0
    if isinstance(problem, RankingProblem):
        per_unit *= float(problem.label_sets.factor.min())
    return per_unit * largest if largest > 0.0 else 1.0
