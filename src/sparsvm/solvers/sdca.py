"""Proximal point steps by dual coordinate ascent: for sparse data and many samples."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.packed import Packed
from sparsvm.numerics.rounding import NO_SIZE
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Certificate, Control, History, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.incumbent import MethodIncumbent, on_simplices
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.options import (
    LARGEST_COUNT,
    check_at_least_one,
    check_positive,
    iteration_limit,
)
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

# Rules of thumb, set once: the first estimated gap to ask for, over tol; what to ask for next, over
# the estimate that did not do; after how many sweeps (doubled each time) the gap must have fallen
# to which share, lest the method count as stalled the second time.
FIRST_TARGET = 2.0
NEXT_TARGET = (0.3, 0.95)
FIRST_MARK, GAP_FALL = 1000, 0.9


class SDCA(Solver):
    r"""Proximal point method whose steps are solved by dual coordinate ascent over samples.

    With :math:`g = penalty - \langle V, \cdot\rangle` and :math:`\lambda_i = p_i / \alpha`, each
    proximal step is

    .. math::
        W^{+}, b^{+} = \arg\min_{W, b} \; g(W) + \sum_i \lambda_i \ell_i(W, b)
        + \tfrac1{2\sigma} \|\omega \circ (W - W_k)\|^2 + \tfrac1{2\sigma_b} \|b - b_k\|^2,

    solved roughly by two sweeps of exact steps in the dual of one sample at a time. A sample update
    costs its non-zero entries times the classes; the coefficients are exactly sparse at any time.
    :math:`\sigma` and :math:`\sigma_b` follow from the data and are adapted until the sweeps and
    the proximal steps are equally far from done. Samples whose dual does not move are visited more
    and more rarely, and only a working set of features, priced with all of them from time to time,
    takes part. With ``l2`` and ``elasticnet`` the penalty itself is strongly convex and only the
    intercept needs the proximal term. With ``l2`` samples are visited the more rarely the less
    their part of the gap is, and the coefficients are means over the last sweeps.

    Where sweeps become slow, a damped Newton step precedes them: with the classes that share the
    mass of a sample and the features in use held fixed, the dual of a proximal step is smooth, and
    conjugate gradients solve for its maximum. Penalties of rows in the Euclidean or maximum norm
    and of entries have such steps; others have sweeps only. Where single entries take part, the
    mean of the duals of the last proximal steps is certified: what these violate cancels.

    Proximal steps that are solved roughly need not descend: the best of the evaluated points is
    kept, recorded and certified (with ``l2`` the last one, a mean).

    The method reaches moderate accuracy fast, and high accuracy slowly where features are many and
    correlated and there are no Newton steps; it needs memory for the data, the duals and the
    working set only.

    Parameters
    ----------
    relaxation : float or None, default=None
        Length of the steps in the dual, between 0 and 2. None stands for 1: the step that is exact
        as long as no feature of the sample becomes zero or stops being so.
    sweeps : int, default=2
        Sweeps over the samples in each proximal step.
    max_iter : int, default=20000
        Sweeps allowed when the estimator's ``max_iter`` is None.
    rival_work : float or None, default=None
        Multiplications that another solver would take, counted as those of a matrix product, of
        which one of a sweep takes the time of twenty. The sweeps end when they have taken as many,
        or where their present rate predicts that this solver, or ``newton``, would be quicker; so
        ``auto`` hands over. None is for no such limit.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.solvers import SDCA
    >>> SDCA(relaxation=1.5)
    SDCA(relaxation=1.5)
    """

    name = "sdca"

    def __init__(
        self,
        relaxation: float | None = None,
        sweeps: int = 2,
        max_iter: int = 20_000,
        rival_work: float | None = None,
    ) -> None:
        self.relaxation = relaxation
        self.sweeps = sweeps
        self.max_iter = max_iter
        self.rival_work = rival_work

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, a penalty that is not convex, or unpenalised features."""
        if (reason := self._needs_hinge(problem)) is not None:
            return reason
        if problem.penalty.free.size:
            return "sdca needs every feature penalised; interior_point takes weights of 0."
        if problem.margin_matrix is not None:
            return "sdca takes margins from a cost matrix and sample margins only."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Sweep from ``start`` (without one from an even spread of the dual) to ``control.tol``."""
        self._check_options()
        began = time.perf_counter()
        limit = iteration_limit(self.max_iter, control)
        with blas_threads(control.n_jobs or 1):
            method = self._method(problem, control)
            _set_start(method, problem, start)
            # Without a start the first point is the zero model: its certificate tells something
            # only where no margin asks for more.
            scale = problem.margin_scale
            margins = bool(problem.cost.any()) and (scale is None or bool(scale.any()))
            best = _BestUsed(problem, method, certified=start is not None or not margins)
            stalled = self._iterate(method, best, control.tol, limit)
            if np.isinf(best.objective):
                # Every point overflowed; the zero model never does.
                shape = (problem.d, problem.n_outputs)
                best.consider(np.zeros(shape), np.zeros(shape[1]), None, anyway=True)
            n_iter, history = method.sweeps, _history(method, problem.alpha)
            columns, mean = best.columns, best.mean
            intercept, dual = best.intercept, best.packed_dual
            # Their arrays of all samples and classes are not needed for the certificate.
            del method, best
            if mean is not None:
                columns = _made_by(problem, mean.unpacked())
            solution = certified(
                problem,
                columns if problem.design.is_sparse else columns.dense(),
                intercept,
                dual.unpacked(),
                tol=control.tol,
                n_iter=n_iter,
                seconds=time.perf_counter() - began,
                history=history,
                solver=self.name,
                status_if_not="stalled" if stalled else "max_iter",
                overwrite_dual=True,
            )
        if problem.design.is_sparse:
            # Of sparse data what was freed may be as much as the solution.
            _core.give_back_memory()
        return solution

    def _iterate(self, method: Any, best: MethodIncumbent, tol: float, limit: int) -> bool:
        """Sweep and certify until the certificate holds; True if that became hopeless."""
        target, mark, gap_at_mark, standing = FIRST_TARGET * tol, FIRST_MARK, np.inf, 0
        rival = np.inf if self.rival_work is None else float(self.rival_work)
        while method.sweeps < limit and not best.within(tol) and not _core.stopping():
            estimated = method.run(target, min(limit, mark) - method.sweeps, rival)
            # Of the certificate only a number, lest its dual stay while the method sweeps.
            certified = best.renew().relative_gap
            if estimated and not best.within(tol):
                # The estimate inside errs on either side: ask again for as much less or more.
                found = method.values()
                size = abs(found["objective"])
                gap = (found["objective"] - found["dual"]) / size if size > 0.0 else 0.0
                right = tol * gap / max(certified, NO_SIZE)
                # One that is not positive says nothing about by how much it errs.
                low, high = (share * gap for share in NEXT_TARGET)
                target = float(np.clip(right, low, high)) if gap > 0.0 else tol
            if method.outlasted:
                return True
            if method.sweeps >= mark:
                standing = standing + 1 if best.gap > GAP_FALL * gap_at_mark else 0
                if standing == 2:
                    return True
                mark, gap_at_mark = 2 * mark, best.gap
        return False

    def _check_options(self) -> None:
        if self.relaxation is not None:
            check_positive("relaxation", self.relaxation, below=2.0)
        check_at_least_one(self, "sweeps", "max_iter")
        if self.rival_work is not None:
            check_positive("rival_work", self.rival_work)

    def _method(self, problem: Problem, control: Control) -> Any:
        return _core.Sdca(
            hinge_problem(problem),
            relaxation=1.0 if self.relaxation is None else float(self.relaxation),
            sweeps=min(int(self.sweeps), LARGEST_COUNT),
            callback=_scaled(progress(self.name, control), problem.alpha),
        )


class _BestUsed(MethodIncumbent):
    """The same with the features in use only, and with the dual that the method gives away.

    Where all features are in use, the coefficients of the best point may be as large as the data;
    it is held by the mean of duals that made it.
    """

    mean: Packed | None = None

    def renew(self) -> Certificate:
        """Certify the present point of the method and keep what is better than before."""
        objective = self.objective
        mean = _packed(self.method.give_mean_dual())
        proof = super().renew()
        if mean is not None and proof.objective < objective:
            self.mean = mean
            self.columns = Columns.of(np.zeros((self.problem.n_outputs, 0)))
        return proof

    def _point(self) -> tuple[Floats | Columns, Floats, Floats]:
        used, rows, intercept, dual = self.method.give_point()
        coef = Columns(used, np.asarray(rows).T, self.problem.d)
        return (coef if self.problem.design.is_sparse else coef.dense()), intercept, dual


def _packed(matrix: Floats | None) -> Packed | None:
    return None if matrix is None else Packed(matrix)


def _made_by(problem: Problem, dual: Floats) -> Columns:
    r"""Return the coefficients :math:`(V - \tilde Y^\top X)/\omega^2` of a dual with l2.

    For penalties that only scale; the dual is divided by alpha and is overwritten.
    """
    terms = problem.penalty
    coef = problem.transposed(problem.signed_dual(dual, overwrite=True))
    np.negative(coef, out=coef)
    if problem.linear_term is not None:
        coef += problem.linear_term
    coef /= terms.omega**2
    return Columns.all_of(coef)


def _scaled(report: Any, alpha: float) -> Any:
    """Objectives inside are divided by alpha."""
    if report is None:
        return None

    def scaled(i: int, seconds: float, objective: float, gap: float, *rest: Any) -> bool:
        return bool(report(i, seconds, alpha * objective, alpha * gap, *rest))

    return scaled


def _history(method: Any, alpha: float) -> History:
    inside = History(**method.history())
    return replace(inside, objective=alpha * inside.objective, gap=alpha * inside.gap)


def _set_start(method: Any, problem: Problem, start: Start | None) -> None:
    if start is None:
        method.start(None, np.zeros(problem.n_outputs), None)
        return
    intercept = start.intercept if problem.fit_intercept else np.zeros(problem.n_outputs)
    dual = None if start.dual is None else on_simplices(problem, start.dual) / problem.alpha
    method.start(
        np.ascontiguousarray(start.coef.T, dtype=np.float64),
        np.ascontiguousarray(intercept, dtype=np.float64),
        dual,
    )
