"""Block coordinate descent of Blondel, Seki and Uehara, as a reference."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils import check_random_state

from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.papers.smooth_reference import (
    drive,
    unsupported_smooth,
)
from sparsvm.solvers.run.native import bcd, smooth_problem
from sparsvm.solvers.run.options import (
    check_at_least_one,
    check_choice,
    check_flag,
    check_positive,
)

STEPS = ("LS", "CST")
SELECTIONS = (None, "cyclic", "random")
STOPPING = ("gap", "violation")
NORMS = (None, "l1", "linf")


class BCD(Solver):
    r"""Block coordinate descent (Algorithms 1 to 3 of the direct multiclass formulation).

    A block is what the penalty does not separate: a feature in all classes, or a group of
    features; the free intercept is one more. With the partial gradient :math:`G_j` of the loss,

    .. math::
        W^*_j = prox_{(\alpha/L_j)\, penalty}\bigl(W_j - G_j / L_j\bigr), \qquad
        W_j \leftarrow W_j + a\,(W^*_j - W_j).

    The scores of all samples are kept and updated in place, so that a block costs its non-zero
    entries times the number of classes. ``result_.history.counts`` tells how many steps were
    searched for ("line_searches") and how many were taken at once, with a = 1 ("first_steps").

    Parameters
    ----------
    step : {"LS", "CST"}, default="LS"
        "LS" (Tseng and Yun): :math:`L_j` is the largest second derivative in one coefficient of
        the block, at least `epsilon`, and :math:`a = 1, \omega, \omega^2, \dots` until the
        objective falls by `sigma` a times what the model promises. "CST" (Richtárik and Takáč):
        a = 1 and :math:`L_j = K_j = \kappa \sum_i p_i x_{ij}^2` with the :math:`\kappa` of
        :class:`~sparsvm.solvers.FISTA`.
    selection : {None, "cyclic", "random"}, default=None
        Visit the blocks in turn or draw them with equal probabilities; None is the paper's choice,
        in turn for "LS" and at random for "CST".
    sigma : float in (0, 1), default=0.01
        Share of the promised decrease that the line search asks for.
    omega : float in (0, 1), default=0.5
        Factor of the line search.
    epsilon : float, default=1e-12
        Least :math:`L_j` of the line search.
    stopping : {"gap", "violation"}, default="gap"
        Stop when the duality gap meets the tolerance, or when the violations of the optimality
        conditions met during an outer iteration are the tolerance times those of the first (the
        paper's rule). The latter proves nothing: the solution still carries its gap, and counts
        as converged only if that meets the tolerance. The violation of a row under l1/l2 is
        :math:`\max(\|G_j\| - \alpha, 0)` where it is zero and :math:`|\|G_j\| - \alpha|` elsewhere;
        with other penalties it is :math:`L_j \|W^*_j - W_j\|`.
    norm : {None, "l1", "linf"}, default=None
        Whether that rule adds the violations or takes the largest; None is the paper's choice, the
        sum when visiting in turn and the largest when drawing.
    shrinking : bool, default=False
        Whether to leave out zero blocks that are likely to stay zero. They are all looked at again
        once the violations of the others are a tenth, and before the stopping rule of the paper
        ends the run; certificates see all blocks: the answer does not change.
    check_every : int, default=5
        Outer iterations between the first certificates; later the spacing grows with the count.
    max_iter : int, default=20000
        Outer iterations allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import BCD
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("squared_hinge", "l1/l2", alpha=0.05, solver=BCD(step="LS")).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "bcd"

    def __init__(
        self,
        step: str = "LS",
        selection: str | None = None,
        sigma: float = 0.01,
        omega: float = 0.5,
        epsilon: float = 1e-12,
        stopping: str = "gap",
        norm: str | None = None,
        shrinking: bool = False,
        check_every: int = 5,
        max_iter: int = 20_000,
    ) -> None:
        self.step = step
        self.selection = selection
        self.sigma = sigma
        self.omega = omega
        self.epsilon = epsilon
        self.stopping = stopping
        self.norm = norm
        self.shrinking = shrinking
        self.check_every = check_every
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: a loss without a derivative, or a penalty that is not built in."""
        if not problem.penalty.built_in:
            return "bcd takes the built-in penalties only."
        return unsupported_smooth(self.name, problem)

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Descend from ``start`` (from zero without one) until the stopping rule holds."""
        self._check_options()
        seed = int(check_random_state(control.random_state).randint(2**31 - 1))
        return drive(
            self.name,
            lambda problem: self._method(problem, seed),
            problem,
            start,
            control,
            stopping=self.stopping,
            check_every=self.check_every,
            max_iter=self.max_iter,
            counted=_searches,
        )

    def _check_options(self) -> None:
        check_choice("step", self.step, STEPS)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("stopping", self.stopping, STOPPING)
        check_choice("norm", self.norm, NORMS)
        check_flag("shrinking", self.shrinking)
        check_positive("sigma", self.sigma, below=1.0)
        check_positive("omega", self.omega, below=1.0)
        check_positive("epsilon", self.epsilon)
        check_at_least_one(self, "check_every", "max_iter")

    def _method(self, problem: Problem, seed: int) -> Any:
        penalty = problem.penalty
        search = self.step == "LS"
        randomised = self.selection == "random" or (self.selection is None and not search)
        largest = self.norm == "linf" or (self.norm is None and randomised)
        rows = penalty.is_group_norm and penalty.group_order == 2.0
        rows = rows and penalty.n_groups == penalty.d and not penalty.per_class
        return bcd(
            smooth_problem(problem),
            line_search=search,
            randomised=randomised,
            sigma=float(self.sigma),
            omega=float(self.omega),
            epsilon=float(self.epsilon),
            largest_violation=largest,
            row_norms=rows,
            shrinking=bool(self.shrinking),
            seed=seed,
        )


def _searches(method: Any) -> dict[str, int]:
    searches, first = method.searches
    return {"line_searches": searches, "first_steps": first}
