"""One-slack cutting planes for the squared l2 penalty: the algorithm of SVM-struct."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.losses import Hinge
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.papers.simplex_qp import simplex_qp
from sparsvm.solvers.run.incumbent import MethodIncumbent
from sparsvm.solvers.run.options import check_at_least_one, iteration_limit
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

# A cut that carried no weight for so many rounds is dropped; it comes back if it is needed.
IDLE_ROUNDS = 50


class CuttingPlane(Solver):
    r"""Cutting planes on the mean hinge as a whole, one slack for all samples.

    A cut fixes a wrong class (or the right one) for every sample. With the most violated classes
    :math:`k_i` at some point it is the plane

    .. math::
        \xi \ge \sum_i p_i \bigl(m_{i k_i} + S_{i k_i} - S_{i y_i}\bigr)
        = \beta_c + \langle A_c, W\rangle + \langle a_c, b\rangle ,

    which touches the mean hinge there. Each round minimises exactly, over the cuts found so far,
    :math:`\alpha(\frac12\|\omega \circ W\|^2 - \langle tilt, W\rangle) + \xi`
    and adds the cut at the minimiser. That program is solved in its dual: weights
    :math:`\theta` of the cuts on the simplex, with :math:`\sum_c \theta_c a_c = 0`, whose
    multipliers are the unpenalised intercepts. The weights give a dual point of the whole problem,
    so the certificate is that of every other solver.

    The number of rounds does not depend on the number of samples but grows like 1 / tol. It is here
    for reference: ``sdca`` and ``newton`` are faster.

    Parameters
    ----------
    max_iter : int, default=2000
        Rounds allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sparsvm.solvers import CuttingPlane
    >>> CuttingPlane(max_iter=100)
    CuttingPlane(max_iter=100)
    """

    name: ClassVar[str] = "cutting_plane"

    def __init__(self, max_iter: int = 2000) -> None:
        self.max_iter = max_iter

    def unsupported(self, problem: Problem) -> str | None:
        """Say why not: another loss, another penalty, unpenalised features."""
        if not isinstance(problem.loss, Hinge):
            return "cutting_plane solves the hinge loss only."
        if not problem.penalty.quadratic:
            return f"cutting_plane solves the penalty l2 only, not {problem.penalty.kind}."
        if problem.penalty.free.size:
            return "cutting_plane needs every feature penalised."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Add cuts until ``control.tol`` is certified; the first one is taken at ``start``."""
        check_at_least_one(self, "max_iter")
        began = time.perf_counter()
        limit = iteration_limit(self.max_iter, control)
        rounds = 0
        with blas_threads(control.n_jobs or 1):
            cuts = _Cuts(problem, start)
            best = MethodIncumbent(problem, cuts, progress(self.name, control))
            best.record(0)
            while rounds < limit and not best.within(control.tol):
                cuts.add()
                cuts.solve()
                rounds += 1
                best.renew()
                best.record(rounds)
            return certified(
                problem,
                best.coef,
                best.intercept,
                best.dual,
                tol=control.tol,
                n_iter=rounds,
                seconds=time.perf_counter() - began,
                history=best.history(),
                solver=self.name,
            )


class _Cuts:
    """The cuts, their weights, and the minimiser of the problem in which they stand for the loss.

    The first cut takes the right class for every sample: it says that the slack is not negative.
    """

    def __init__(self, problem: Problem, start: Start | None) -> None:
        self.problem = problem
        self.margins = problem.margins()
        self.W: Floats = np.zeros((problem.n_outputs, problem.d))
        self.b: Floats = np.zeros(problem.n_outputs)
        if start is not None:
            self.W = np.array(start.coef, dtype=np.float64)
            self.b = np.array(start.intercept * problem.fit_intercept, dtype=np.float64)
        self.classes: list[NDArray[np.int32]] = [problem.y]
        # A cut over omega, so that the products below are those of the conjugate.
        self.slopes: Floats = np.zeros((1, self.W.size))
        self.shifts: Floats = np.zeros((1, problem.n_outputs))
        self.offsets: Floats = np.zeros(1)
        self.gram: Floats = np.zeros((1, 1))
        self.idle: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.theta: Floats = np.ones(1)

    def point(self) -> tuple[Floats, Floats, Floats]:
        """W (d, n_outputs), b and Y in units of 1 / alpha."""
        problem = self.problem
        Y = np.zeros((problem.n, problem.n_classes))
        rows = np.arange(problem.n)
        for weight, classes in zip(self.theta, self.classes, strict=True):
            if weight > 0.0:
                Y[rows, classes] += weight * problem.mass
        return self.W.T, self.b, Y / problem.alpha

    def add(self) -> None:
        """Add the cut at the present point, and drop those long without weight."""
        problem, rows = self.problem, np.arange(self.problem.n)
        scores = problem.scores(self.W, self.b)
        worst = np.argmax(self.margins + scores, axis=1).astype(np.int32)
        Y = np.zeros((problem.n, problem.n_classes))
        Y[rows, worst] = problem.mass
        signed = problem.signed_dual(Y)
        outputs = signed[:, -problem.n_outputs :]
        slope = (problem.transposed(signed) / problem.penalty.omega).reshape(1, -1)
        keep = self.idle < IDLE_ROUNDS
        keep[0] = True
        self.classes = [c for c, kept in zip(self.classes, keep, strict=True) if kept]
        self.classes.append(worst)
        self.slopes = np.vstack([self.slopes[keep], slope])
        self.shifts = np.vstack([self.shifts[keep], outputs.sum(axis=0)])
        offset = float(np.sum(problem.mass * self.margins[rows, worst]))
        self.offsets = np.append(self.offsets[keep], offset)
        self.idle = np.append(self.idle[keep], 0)
        products = self.slopes @ slope[0]
        gram = np.zeros((products.size, products.size))
        gram[:-1, :-1] = self.gram[np.ix_(keep, keep)]
        gram[-1], gram[:, -1] = products, products
        self.gram = gram

    def solve(self) -> None:
        """Minimise over the cuts."""
        problem = self.problem
        omega, alpha = problem.penalty.omega, problem.alpha
        tilt = np.zeros_like(self.W) if problem.tilt is None else problem.tilt / omega
        linear = self.offsets + self.slopes @ tilt.reshape(-1)
        # Shifting the intercepts of all classes alike changes nothing: one equality is implied.
        free = problem.n_outputs - (problem.n_outputs > 1) if problem.fit_intercept else 0
        theta, multipliers = simplex_qp(self.gram / alpha, linear, self.shifts[:, :free].T)
        self.theta = theta
        self.idle = np.where(theta > 0.0, 0, self.idle + 1)
        mixed = (theta @ self.slopes).reshape(self.W.shape)
        self.W = (tilt - mixed / alpha) / omega
        self.b = np.zeros(problem.n_outputs)
        self.b[:free] = multipliers
