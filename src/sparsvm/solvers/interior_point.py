"""The exact solver for few samples and many features."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.columns import Columns
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt, Control, History, Solution, Start
from sparsvm.solvers.base import Solver, dominated_by_rounding, settled
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.options import LARGEST_COUNT, check_at_least_one, iteration_limit
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads
from sparsvm.solvers.smooth_interior_point import solve_smooth, unsupported_smooth

# Settings.
# Beyond this many bytes of factorisations the method is the wrong one.
GIB, DOUBLE_BYTES = 2**30, 8
MEMORY_LIMIT = 4 * GIB
# A start outside the dual ball may need the dense columns of all features at once, in bytes.
GATHERED_LIMIT = GIB
# A warm start that pays needs half as many Newton steps as a cold one, which takes 10 to 40.
WARM_LIMIT = 25
# A tiny alpha is come to from one that is so many times as large, in a limited number of steps; if
# need be so often (two: stress.py --linear-terms --one 401160).
ALPHA_FACTOR, ALPHA_LIMIT, ALPHAS = 30.0, 100, 2
# What is asked of the core, relative to the tolerance: the certificate repairs rounding and may
# lose a little.
TOL_SHARE = 0.5
# The same again, where it is met and the certificate is not: with linear terms more is lost
# (stress.py --linear-terms --one 402986 needs it from inside the dual ball, 402301 from outside).
SECOND_TOL_SHARE = 1e-3
# What may be left of the dual's residual without a certificate, relative to the tolerance.
RESIDUAL = 0.1


class InteriorPoint(Solver):
    r"""Primal-dual interior point with feature pricing, for every convex penalty.

    Smooth losses have one of their own (:mod:`sparsvm.solvers.smooth_interior_point`), for working
    sets of at most some 2000 coefficients; the rest of this page is about the hinge. Newton steps
    on the optimality conditions of

    .. math::
        \min_{W, b, \xi} \sum_i \lambda_i \xi_i + penalty(W), \qquad
        \xi_i \ge m_{ik} + S_{ik} - S_{iy_i}, \quad \lambda_i = p_i / \alpha,

    factor K matrices of size n and one Schur complement, or one matrix of the size of the active
    features where that is cheaper, never one of size n K. Only a working set of features enters
    them; all features are priced in every iteration with one transposed product, or, where the
    dual has moved too little for others to matter, those that may be near their bounds, so dual
    feasibility, once there, is never lost. Where a start inside the dual ball leads nowhere another
    one is made outside, and its dual counts only when it has come in. Every iterate is tried with
    its inactive coordinates at exact zero, and it is such a sparse point that must meet the
    tolerance. With l1/l2 groups of single classes Newton steps on the face of the optimum, whose
    systems have the size of the active pairs of sample and class, are tried before the gap is
    small, and end the solve if their result proves itself; together they count as one iteration.

    Memory besides the data: 8 (K n² + n·active features + 2 K d) bytes from the side of the
    samples, 8 (2 n Q + Q² + 2 K d) from that of the features with Q active coefficients, and a
    copy of about an eighth of the features where they are dense.

    Parameters
    ----------
    max_iter : int, default=200
        Newton steps allowed from each start when the estimator's ``max_iter`` is None; 10 to 40 are
        usual, and one start.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import InteriorPoint
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("hinge", "l1/l2", alpha=0.05, solver=InteriorPoint(max_iter=50)).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "interior_point"

    def __init__(self, max_iter: int = 200) -> None:
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: a loss or penalty that is not convex, factorisations too large."""
        if not problem.convex:
            return "interior_point solves convex losses and penalties only."
        if (reason := self._needs_more_than_prox(problem)) is not None:
            return reason
        if isinstance(problem.loss, SmoothLoss):
            return unsupported_smooth(problem)
        # K matrices of size n from the side of the samples, or one of at most the size of all
        # coefficients (and group couplings) from the side of the features.
        n, K = problem.n, problem.n_classes
        columns = problem.n_outputs * (problem.d + 1) + 2 * problem.penalty.n_groups
        need = DOUBLE_BYTES * min((K + 2) * n**2, 2 * n * columns + columns**2)
        if need > MEMORY_LIMIT:
            return (
                f"interior_point would need {need / GIB:.1f} GiB for its factorisations with "
                f"{n} samples (its limit is {MEMORY_LIMIT / GIB:.0f} GiB)."
            )
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve to ``control.tol``; ``start`` opens the working set and supplies the dual."""
        if isinstance(problem.loss, SmoothLoss):
            with blas_threads(control.n_jobs or 1):
                return solve_smooth(problem, start, control, self._limit(control), self.name)
        began = time.perf_counter()
        best, joint, met = None, None, False
        with blas_threads(control.n_jobs or 1):
            for trial in _trials(start, problem):
                if trial.sharpness < TOL_SHARE and not met:
                    continue  # It was not the tolerance that ended the last trial.
                if trial.from_above:
                    above = self._start_above(problem, control)
                    if above is None:
                        continue
                    trial = trial._replace(start=above)
                raw = self._run(problem, trial, control)
                met = raw["converged"]
                solution = self._certify(problem, raw, control, began)
                joint = solution if joint is None else joint.joined(solution, control.tol)
                if not solution.converged:
                    solution = joint
                done = settled(problem, solution, control.tol)
                # A larger floor may hide a gap that is larger still; not one within the tolerance.
                total = solution.gap + solution.floor
                if best is None or done or total < best.gap + best.floor:
                    best = solution
                if done:
                    break
                if _core.stopping():
                    break
                # A limit that the caller gave was asked for; after the solver's own, another start
                # may need a tenth of the steps.
                if control.max_iter is not None and raw["iterations"] >= control.max_iter:
                    break
        assert best is not None
        return best

    def attempt(self, problem: Problem, start: Start | None, control: Control) -> Attempt | None:
        """Return what the warm or else the cold start came to, if it was the tolerance."""
        if isinstance(problem.loss, SmoothLoss):
            return None
        if np.bincount(problem.y, minlength=problem.n_classes).min() == 0:
            # The intercept of such a class is unbounded; only a certificate tells what is left.
            return None
        with blas_threads(control.n_jobs or 1):
            for trial in islice(_trials(start, problem), 2 if _is_complete(start) else 1):
                raw = self._run(problem, trial, control, residual=RESIDUAL * control.tol)
                if not raw["converged"]:
                    continue
                coef, intercept = _coefficients(problem, raw)
                floor = problem.floor(coef, intercept)
                if not dominated_by_rounding(problem, floor, control.tol * abs(raw["bound"])):
                    dual = raw["dual"] * problem.alpha
                    return Attempt(
                        coef.dense(), intercept, dual, raw["bound"], raw["iterations"], self.name
                    )
        return None

    def _limit(self, control: Control) -> int:
        check_at_least_one(self, "max_iter")
        return iteration_limit(self.max_iter, control, LARGEST_COUNT)

    def _run(
        self, problem: Problem, trial: _Trial, control: Control, residual: float = 0.0
    ) -> dict[str, Any]:
        limit = self._limit(control)
        raw: dict[str, Any] = _core.interior_point(
            hinge_problem(problem),
            **_start_arguments(problem, trial.start),
            tol=trial.sharpness * control.tol,
            max_iter=int(min(limit, trial.most_steps)),
            across_features=trial.across_features,
            inside=trial.inside,
            residual=residual,
            callback=progress(self.name, control),
        )
        return raw

    def _start_above(
        self, problem: Problem, control: Control, larger: int = ALPHAS
    ) -> Start | None:
        """Return the solution for a larger alpha, if need be come to from a larger one still."""
        above = problem.with_alpha(ALPHA_FACTOR * problem.alpha)
        raw = self._run(above, _Trial(), control)
        if not raw["converged"] and larger > 1:
            start = self._start_above(above, control, larger - 1)
            if start is not None:
                raw = self._run(above, _Trial(start, from_above=True), control)
        if not raw["converged"]:
            return None
        coef, intercept = _coefficients(above, raw)
        return Start(coef.dense(), intercept, raw["dual"] * above.alpha)

    def _certify(
        self, problem: Problem, raw: dict[str, Any], control: Control, began: float
    ) -> Solution:
        coef, intercept = _coefficients(problem, raw)
        return certified(
            problem,
            coef,
            intercept,
            raw["dual"] * problem.alpha,
            tol=control.tol,
            n_iter=raw["iterations"],
            seconds=time.perf_counter() - began,
            history=History(**raw["history"]),
            solver=self.name,
            status_if_not="max_iter" if raw["iterations"] >= self._limit(control) else "stalled",
        )


def _coefficients(problem: Problem, raw: dict[str, Any]) -> tuple[Columns, Floats]:
    used, weights = raw["used"], raw["weights"]
    intercept: Floats = raw["intercept"]
    if problem.n_outputs > 1:
        # Shifting all classes alike changes neither scores' differences nor the penalty.
        if problem.penalty.free.size > 0:
            free = problem.penalty.omega[used] == 0.0
            weights[free] -= weights[free].mean(axis=1, keepdims=True)
        intercept = intercept - intercept.sum() / intercept.size
    if not problem.fit_intercept:
        intercept = np.zeros_like(intercept)
    return Columns(used, weights.T, problem.d), intercept


class _Trial(NamedTuple):
    start: Start | None = None
    across_features: bool = True  # May begin with dual entries for which X'Y~ is near zero.
    inside: bool = True  # Begins inside the dual ball.
    sharpness: float = TOL_SHARE  # Of the core's tolerance, relative to that of the certificate.
    from_above: bool = False  # Begins at the solution for a larger alpha.

    @property
    def most_steps(self) -> float:
        if self.start is None:
            return np.inf
        return ALPHA_LIMIT if self.from_above else WARM_LIMIT


def _trials(start: Start | None, problem: Problem) -> Iterator[_Trial]:
    """What to try, one after the other, until the certificate is met.

    A linear term may take the interior away that a warm start needs, so a poor one ends early and
    gives way to a cold one: of 207 small problems 17 were warm-started in vain, while on larger
    ones it halves the steps. A cold start inside the dual ball, where with a tiny alpha all dual
    entries are tiny and steps may stay short, gives way to one outside with dual residuals, that
    to the solution for a larger alpha, and that to the plain centre inside. Where only the
    certificate is missing, a start is repeated with a sharper tolerance. What each decided is
    counted in benchmarks/results/ablation.md.
    """
    if _is_complete(start):
        yield _Trial(start)
    yield _Trial()
    yield _Trial(sharpness=SECOND_TOL_SHARE)
    if DOUBLE_BYTES * problem.n * problem.d <= GATHERED_LIMIT:
        yield _Trial(across_features=False, inside=False)
        yield _Trial(across_features=False, inside=False, sharpness=SECOND_TOL_SHARE)
    yield _Trial(from_above=True)
    yield _Trial(across_features=False)


def _is_complete(start: Start | None) -> bool:
    """Whether there is a start with its dual: without one it says nothing about the slacks."""
    return start is not None and start.dual is not None


def _start_arguments(problem: Problem, start: Start | None) -> dict[str, Any]:
    """Return a start as the native solver takes it: divided by alpha, feature-major.

    A start without its dual says nothing about the slacks, so only complete ones come here.
    """
    if start is None:
        return {"dual": None, "weights": None, "intercept": None}
    return {
        "dual": _double(start.dual) / problem.alpha,
        "weights": _double(start.coef.T),
        "intercept": _double(start.intercept),
    }


def _double(values: Floats | None) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)
