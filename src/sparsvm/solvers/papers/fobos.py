"""Stochastic forward-backward splitting, as a reference."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sparsvm import _core
from sparsvm.losses import Hinge, SmoothLoss
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.papers.smooth_reference import drive
from sparsvm.solvers.run.native import smooth_problem
from sparsvm.solvers.run.options import check_at_least_one, check_positive

# Fewer steps than this tell nothing about a first step.
TRIAL_STEPS = 2000
# Samples on which first steps are tried, and the part of them that is held out.
TRIAL_SAMPLES, HELD_OUT_PART = 10_000, 5
STEPS = tuple(10.0**power for power in range(-3, 4))


class FOBOS(Solver):
    r"""Stochastic (sub)gradient descent with a proximal step (Duchi and Singer).

    At the t-th sample i, with :math:`\eta_t = \eta_0/\sqrt t` and a (sub)gradient g of its loss,

    .. math::
        W \leftarrow prox_{\eta_t \alpha\, penalty}\bigl(W - \eta_t\, n p_i\, g x_i^\top\bigr).

    It also takes the hinge. Steps that shrink this slowly reach a rough solution soon and an exact
    one never: with the default tolerance expect a warning.

    Parameters
    ----------
    eta0 : float or None, default=None
        First step. None tries :math:`10^{-3}, 10^{-2}, \dots, 10^3` on four fifths of the samples
        (of 10000 drawn from more), one pass or about 2000 steps in each of two orders, and takes
        the one with the least loss on the rest.
    check_every : int, default=5
        Passes over the samples between the first certificates; later the spacing grows.
    max_iter : int, default=200
        Passes allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import FOBOS
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(alpha=0.1, tol=0.2, solver=FOBOS(max_iter=500), random_state=0)
    >>> bool(model.fit(scale(X), y).dual_gap_ <= 0.2)  # a rough answer, and what is known of it
    True
    """

    name: ClassVar[str] = "fobos"

    def __init__(
        self, eta0: float | None = None, check_every: int = 5, max_iter: int = 200
    ) -> None:
        self.eta0 = eta0
        self.check_every = check_every
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: a loss or a penalty that is not convex."""
        if not isinstance(problem.loss, Hinge | SmoothLoss):
            return f"fobos needs a convex loss, not {problem.loss.name}."
        if not problem.penalty.convex:
            return "fobos needs a convex penalty."
        if not problem.penalty.built_in:
            return "fobos takes the built-in penalties only."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Descend from ``start`` (from zero without one) until the gap meets the tolerance."""
        if self.eta0 is not None:
            check_positive("eta0", self.eta0)
        check_at_least_one(self, "check_every", "max_iter")
        random = check_random_state(control.random_state)
        return drive(
            self.name,
            lambda problem: self._method(problem, random),
            problem,
            start,
            control,
            stopping="gap",
            check_every=self.check_every,
            max_iter=self.max_iter,
        )

    def _method(self, problem: Problem, random: np.random.RandomState) -> Any:
        eta0 = choose_step(problem, random) if self.eta0 is None else float(self.eta0)
        everyone = np.arange(problem.n, dtype=np.int64)
        return _native(problem, everyone, eta0, int(random.randint(2**31 - 1)))


def choose_step(problem: Problem, random: np.random.RandomState) -> float:
    """Return the first step that leaves the least loss on held-out samples."""
    order = random.permutation(problem.n)[:TRIAL_SAMPLES].astype(np.int64)
    cut = max(1, order.size // HELD_OUT_PART)
    held, learn = order[:cut], order[cut:]
    if learn.size == 0:
        return 1.0
    # The worse of two orders: a step on the brink of divergence may survive one of them.
    seeds = random.randint(2**31 - 1, size=2)
    losses = [
        max(_held_out_loss(problem, learn, held, eta0, int(seed)) for seed in seeds)
        for eta0 in STEPS
    ]
    return STEPS[int(np.argmin(losses))]


def _held_out_loss(
    problem: Problem, learn: NDArray[np.int64], held: NDArray[np.int64], eta0: float, seed: int
) -> float:
    method = _native(problem, learn, eta0, seed)
    method.run(-(-TRIAL_STEPS // learn.size))
    weights, intercept = method.last()[:2]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = problem.scores(weights.T, intercept)
        values = problem.loss.value(scores, problem.y, problem.margins())
        total = float(np.sum((problem.mass * values)[held]))
    return total if np.isfinite(total) else np.inf


def _native(problem: Problem, samples: NDArray[np.int64], eta0: float, seed: int) -> Any:
    penalty = problem.penalty
    # The proxes of these norms add up, so features may wait for theirs.
    rows = penalty.is_group_norm and penalty.n_groups == penalty.d
    lazy = (penalty.is_l1 or rows) and problem.linear_term is None
    return _core.Fobos(smooth_problem(problem), samples=samples, eta0=eta0, lazy=lazy, seed=seed)
