"""The solver for smooth losses: coordinate descent finds the support, Newton does the rest."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import SHARPEST_TOL
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.native import smooth_problem
from sparsvm.solvers.run.options import (
    LARGEST_COUNT,
    check_at_least_one,
    check_positive,
    iteration_limit,
)
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads
from sparsvm.solvers.sample_space import fits_sample_space, newton_in_sample_space, step_work

# Rules of thumb, set once: the share of tol that the gap inside is brought to, the factor for each
# further attempt, and where to give up.
FIRST_SHARE, NEXT_SHARE, LEAST_SHARE = 0.7, 0.05, 1e-6
# That share in sample space, where the last Newton steps cost little and gain many digits.
SAMPLE_SPACE_SHARE = 1e-2


class BlockNewton(Solver):
    r"""Block coordinate descent with working sets, and Newton steps on the active manifold.

    For the smooth losses and every convex penalty. Every outer iteration prices all features with
    one transposed product :math:`G = X^\top D`, D being the derivatives of the losses: that gives
    the duality gap and the features whose groups violate optimality at zero. The support and the
    worst violators form the working set. On it, epochs of block coordinate descent (diagonal model
    of the Hessian, the factor of each block following the curvature found) alternate with
    conjugate-gradient Newton steps

    .. math::
        \bigl(X_A^\top H X_A + \alpha\,\nabla^2 penalty\bigr)\, s = -(G + \alpha\,\nabla penalty)_A

    on the coefficients that are not zero, where H is the Hessian of the losses of the samples that
    have curvature; as long as there are more violators than the working set has room for, epochs
    alone are quicker. For l1/linf the coefficients at the maximum of their group move together. A
    step that would cross a kink ends on it, so zeros are exact. Where there are many samples to
    each active feature, the conjugate gradients are preconditioned with the factorised Gram matrix
    of these features, otherwise with the diagonal; where few coefficients are active and that
    is cheaper, the matrix is factorised in double precision, damped as long as kinks cut the
    steps. Where a cold start does not end within a few outer iterations, it begins again by
    continuation: larger alphas, falling from the one at which coefficients appear (with l2, at
    which they have a size), are solved roughly first, each from the last one's solution. With l2
    and fewer samples than features, up to 1500 of them times classes, all of this gives way to
    Newton steps on as many rotated features as there are samples.

    Memory besides the data: their columns (sparse data by rows, or dense data), 32 bytes per sample
    and class, 16 per feature and class (8 of them the result), the entries of the active features
    by rows in single precision, and the Gram matrix, never larger than these or 8 MB.

    Parameters
    ----------
    max_iter : int, default=1000
        Pricings allowed when the estimator's ``max_iter`` is None; 5 to 30 are usual, l1 at a
        tiny alpha takes hundreds of cheap ones.
    max_work : float or None, default=None
        Multiplications after which it ends, counted as those of a matrix product: slower ones
        count for more. None is no limit. ``auto`` lets it go as far as ``interior_point`` would.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import BlockNewton
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC("logistic", "l1/l2", alpha=0.05, solver=BlockNewton()).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "block_newton"
    in_slices: ClassVar[bool] = True

    def __init__(self, max_iter: int = 1000, max_work: float | None = None) -> None:
        self.max_iter = max_iter
        self.max_work = max_work

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: a loss that is not smooth or a penalty that is not convex."""
        if not isinstance(problem.loss, SmoothLoss):
            return "block_newton solves smooth losses only."
        if not problem.penalty.convex:
            return "block_newton solves convex penalties only."
        return self._needs_more_than_prox(problem)

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve to ``control.tol`` from the coefficients of ``start``."""
        check_at_least_one(self, "max_iter")
        left = np.inf
        if self.max_work is not None:
            check_positive("max_work", self.max_work)
            left = self.max_work
        began = time.perf_counter()
        limit = iteration_limit(self.max_iter, control, LARGEST_COUNT)
        best, histories, done, sharper = None, [], 0, FIRST_SHARE
        if fits_sample_space(problem):
            work = step_work(problem)
            steps = max(1, int(min(left / work, limit)))
            best = self._by_samples(problem, start, control, limit, steps, began)
            done, start = best.n_iter, Start(best.coef, best.intercept, best.dual)
            left -= done * work
            if best.converged or done >= limit or left <= 0.0:
                return best
        weights, intercept = _point(problem, start)
        cold = start is None and best is None
        native = smooth_problem(problem)
        with blas_threads(control.n_jobs or 1):
            while True:
                raw = _core.block_newton(
                    native,
                    weights=weights,
                    warm=not cold,
                    start_intercept=intercept,
                    tol=max(sharper * control.tol, SHARPEST_TOL),
                    max_iter=limit - done,
                    max_work=left,
                    continuation=cold,
                    callback=progress(self.name, control),
                )
                intercept = raw["intercept"]
                histories.append((done, time.perf_counter() - began, raw["history"]))
                done += raw["iterations"]
                left -= raw["work"]
                solution = self._certify(
                    problem, weights, intercept, control, done, limit, began, histories
                )
                if best is None or solution.gap < best.gap:
                    best = solution
                if best.converged or done >= limit or left <= 0.0 or sharper < LEAST_SHARE:
                    break
                # The gap inside neglects the repair of the dual that the certificate makes, so a
                # solution that just misses is asked for again, sharper.
                cold = False
                sharper *= NEXT_SHARE
        return best

    def _by_samples(
        self,
        problem: Problem,
        start: Start | None,
        control: Control,
        limit: int,
        most: int,
        began: float,
    ) -> Solution:
        with blas_threads(control.n_jobs or 1):
            coef, intercept, steps = newton_in_sample_space(
                problem, start, SAMPLE_SPACE_SHARE * control.tol, most
            )
        solution = self._certify(
            problem, np.ascontiguousarray(coef.T), intercept, control, steps, limit, began, []
        )
        record = (
            steps,
            solution.seconds,
            solution.objective,
            solution.gap,
            int(np.count_nonzero(coef)),
        )
        report = progress(self.name, control)
        if report is not None:
            report(*record, lambda: (solution.coef, solution.intercept))
        return replace(solution, history=History.of([record]))

    def _certify(
        self,
        problem: Problem,
        weights: Floats,
        intercept: Floats,
        control: Control,
        done: int,
        limit: int,
        began: float,
        histories: list[tuple[int, float, dict[str, Any]]],
    ) -> Solution:
        coef = weights.T.copy()
        if problem.n_outputs > 1 and problem.loss.of_differences:
            # Shifting all classes alike changes neither scores' differences nor the penalty.
            free = problem.penalty.omega == 0.0
            coef[:, free] -= coef[:, free].mean(axis=0)
            intercept = intercept - intercept.mean()
        return certified(
            problem,
            coef,
            intercept,
            None,
            tol=control.tol,
            n_iter=done,
            seconds=time.perf_counter() - began,
            history=_joined(histories) if histories else History.empty(),
            solver=self.name,
            status_if_not="max_iter" if done >= limit else "stalled",
        )


def _joined(histories: list[tuple[int, float, dict[str, Any]]]) -> History:
    """One history of several runs, each given with the iterations before it and when it ended."""
    parts: dict[str, list[Any]] = {}
    for before, ended, history in histories:
        length = history["seconds"][-1] if history["seconds"].size else 0.0
        parts.setdefault("iteration", []).append(history["iteration"] + before)
        parts.setdefault("seconds", []).append(history["seconds"] + (ended - length))
        for name in ("objective", "gap", "nonzeros"):
            parts.setdefault(name, []).append(history[name])
    columns: dict[str, Any] = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return History(**columns)


def _point(problem: Problem, start: Start | None) -> tuple[Floats, Floats | None]:
    """Feature-major weights for the native solver to work in, and the intercept to start from."""
    if start is None:
        return np.zeros((problem.d, problem.n_outputs)), None
    weights = np.array(start.coef.T, dtype=np.float64, order="C")
    return weights, np.ascontiguousarray(start.intercept, dtype=np.float64)
