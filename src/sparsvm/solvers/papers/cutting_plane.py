"""One-slack cutting planes for the squared l2 penalty: the algorithm of SVM-struct."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsvm._typing import Floats
from sparsvm.losses import Hinge
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.base import Solver
from sparsvm.solvers.papers.simplex_qp import simplex_qp
from sparsvm.solvers.run.incumbent import MethodIncumbent
from sparsvm.solvers.run.options import (
    check_at_least_one,
    check_choice,
    iteration_limit,
    until_certificate,
)
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads

STOPPING = ("gap", "violation")
# A cut that carried no weight in so many rounds that raised the minimum over the cuts by this share
# is dropped; it comes back if it is needed. Rounds that raise nothing do not count: with free
# intercepts, cuts may have to come together before they carry weight.
IDLE_ROUNDS = 50
LEAST_RISE = 1e-10


class CuttingPlane(Solver):
    r"""Cutting planes on the mean hinge as a whole, one slack for all samples.

    A cut fixes a wrong class (or the right one) for every sample. With the most violated classes
    :math:`k_i` at some point it is the plane

    .. math::
        \xi \ge \sum_i p_i \bigl(m_{i k_i} + S_{i k_i} - S_{i y_i}\bigr)
        = \beta_c + \langle A_c, W\rangle + \langle a_c, b\rangle ,

    which touches the mean hinge there. Each round minimises exactly, over the cuts found so far,
    :math:`\alpha(\frac12\|\omega \circ W\|^2 - \langle V, W\rangle) + \xi`
    and adds the cut at the minimiser. That program is solved in its dual: weights
    :math:`\theta` of the cuts on the simplex, with :math:`\sum_c \theta_c a_c = 0`, whose
    multipliers are the unpenalised intercepts. The weights give a dual point of the whole problem,
    so the certificate is that of every other solver.

    The number of rounds does not depend on the number of samples but grows like 1 / tol. It is here
    for reference: ``sdca`` and ``newton`` are faster.

    Parameters
    ----------
    stopping : {"gap", "violation"}, default="gap"
        Stop when the duality gap meets the tolerance, or, as SVM-struct does, when the mean hinge
        exceeds the slack :math:`\xi` of the cuts by at most the tolerance. In exact arithmetic that
        violation is the gap of the last iterate, not relative to the objective: on data that can
        be separated, whose objective is small, it asks for much less.
    check_every : int, default=10
        Rounds between the first certificates; later the spacing grows with the count. One more is
        made when the cuts themselves say that the gap is met.
    max_iter : int, default=2000
        Rounds allowed when the estimator's ``max_iter`` is None.

    Examples
    --------
    >>> from sparsvm.solvers import CuttingPlane
    >>> CuttingPlane(stopping="violation", max_iter=100)
    CuttingPlane(stopping='violation', max_iter=100)
    """

    name: ClassVar[str] = "cutting_plane"

    def __init__(self, stopping: str = "gap", check_every: int = 10, max_iter: int = 2000) -> None:
        self.stopping = stopping
        self.check_every = check_every
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
        """Add cuts until the stopping rule holds; the first one is taken at ``start``."""
        check_choice("stopping", self.stopping, STOPPING)
        check_at_least_one(self, "check_every", "max_iter")
        limit = iteration_limit(self.max_iter, control)
        by_gap = self.stopping == "gap"
        rounds, due, settled, ended = 0, self.check_every, False, False
        with blas_threads(control.n_jobs or 1):
            cuts = _Cuts(problem, start, keep_best=by_gap)
            best = MethodIncumbent(problem, cuts, progress(self.name, control), anyway=not by_gap)
            best.record(0)
            while rounds < limit and not ended:
                cuts.add()
                cuts.solve()
                rounds += 1
                settled = not by_gap and cuts.violation <= control.tol
                met = by_gap and cuts.gap <= control.tol * abs(cuts.objective)
                if settled or met or rounds in (due, limit):
                    best.renew()
                    best.record(rounds)
                    due = rounds + until_certificate(self.check_every, rounds, limit)
                ended = settled or (by_gap and best.within(control.tol))
            return best.solution(control, self.name, rounds, settled)


class _Cuts:
    """The cuts, their weights, and the minimiser of the problem in which they stand for the loss.

    The first cut takes the right class for every sample: it says that the slack is not negative.
    A cut without weight for some time leaves its place to the next new one.

    Parameters
    ----------
    problem : Problem
    start : Start or None
        Where the first cut is taken; None is at zero.
    keep_best : bool
        Whether ``point`` is the best iterate, and not the last.

    Attributes
    ----------
    W, b : arrays
        The last iterate.
    violation : float
        By how much its mean hinge exceeds the slack of the cuts: its objective minus the minimum
        over the cuts, taken from their weights, which bound it from below however exact they are.
    objective, gap : float
        Of the best iterate, by the cuts' own account.
    """

    def __init__(self, problem: Problem, start: Start | None, keep_best: bool) -> None:
        self.problem = problem
        self.keep_best = keep_best
        self.margins = problem.margins()
        self.rows = np.arange(problem.n)
        omega, outputs = problem.penalty.omega, problem.n_outputs
        W: Floats = np.zeros((outputs, problem.d))
        b: Floats = np.zeros(outputs)
        self.linear_term = W if problem.linear_term is None else problem.linear_term / omega
        if start is not None:
            W = np.array(start.coef, dtype=np.float64)
            b = np.array(start.intercept * problem.fit_intercept, dtype=np.float64)
        # Shifting the intercepts of all classes alike changes nothing: one equality is implied.
        self.free = outputs - (outputs > 1) if problem.fit_intercept else 0
        self.classes: list[NDArray[np.int32]] = [problem.y]
        # A cut over omega, so that the products below are those of the conjugate.
        self.slopes: list[Floats] = [np.zeros(W.size)]
        self.shifts: Floats = np.zeros((1, self.free))
        # Those of the problem with a linear term, in the units of W.
        self.offsets: Floats = np.zeros(1)
        self.gram: Floats = np.zeros((1, 1))
        self.idle: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.theta: Floats = np.ones(1)
        self.objective, self.best = np.inf, (W, b)
        # The minimum with the first cut alone, and what all such minima have in common.
        self.constant = problem.offset - 0.5 * problem.alpha * float(np.sum(self.linear_term**2))
        self.minimum = 0.0
        self._move(W, b)

    @property
    def gap(self) -> float:
        """The objective of the best iterate minus the largest minimum over the cuts."""
        return self.objective - self.minimum - self.constant

    def point(self) -> tuple[Floats, Floats, Floats]:
        """W (d, n_outputs), b and Y in units of 1 / alpha."""
        problem = self.problem
        Y = np.zeros((problem.n, problem.n_classes))
        for at in np.flatnonzero(self.theta):
            Y[self.rows, self.classes[at]] += self.theta[at] * problem.mass
        W, b = self.best if self.keep_best else (self.W, self.b)
        return W.T, b, Y / problem.alpha

    def add(self) -> None:
        """Add the cut at the last iterate."""
        problem = self.problem
        Y = np.zeros((problem.n, problem.n_classes))
        Y[self.rows, self.worst] = problem.mass
        signed = problem.signed_dual(Y, overwrite=True)
        slope = (problem.transposed(signed) / problem.penalty.omega).reshape(-1)
        shift = signed[:, -problem.n_outputs :].sum(axis=0)[: self.free]
        offset = problem.mass @ self.margins[self.rows, self.worst]
        at = self._place()
        self.classes[at], self.slopes[at] = self.worst, slope
        self.shifts[at], self.idle[at] = shift, 0
        self.offsets[at] = offset + slope @ self.linear_term.reshape(-1)
        self.gram[at] = self.gram[:, at] = [other @ slope for other in self.slopes]

    def _place(self) -> int:
        """Return the place of a cut long without weight, or a new one at the end."""
        longest = int(np.argmax(self.idle))
        if self.idle[longest] >= IDLE_ROUNDS:
            return longest
        self.classes.append(self.worst)
        self.slopes.append(self.slopes[0])
        self.shifts = np.pad(self.shifts, ((0, 1), (0, 0)))
        self.gram = np.pad(self.gram, ((0, 1), (0, 1)))
        self.offsets, self.idle = np.append(self.offsets, 0.0), np.append(self.idle, 0)
        return len(self.slopes) - 1

    def solve(self) -> None:
        """Minimise over the cuts, and go to the minimiser."""
        problem, alpha = self.problem, self.problem.alpha
        live = np.flatnonzero(self.idle < IDLE_ROUNDS)
        gram, offsets, shifts = self.gram[np.ix_(live, live)], self.offsets[live], self.shifts[live]
        theta, multipliers = simplex_qp(gram / alpha, offsets, shifts.T)
        self.theta = np.zeros(self.idle.size)
        self.theta[live] = theta
        minimum = float(theta @ (offsets - gram @ theta / (2.0 * alpha)))
        rose = minimum - self.minimum > LEAST_RISE * abs(self.minimum)
        self.minimum = max(minimum, self.minimum)
        self.idle = np.where(self.theta > 0.0, 0, self.idle + rose)
        self.idle[0] = 0
        mixed = np.zeros(self.slopes[0].size)
        for at in np.flatnonzero(self.theta):
            mixed += self.theta[at] * self.slopes[at]
        W = (
            self.linear_term - mixed.reshape(self.linear_term.shape) / alpha
        ) / problem.penalty.omega
        b = np.zeros(problem.n_outputs)
        b[: self.free] = multipliers
        self._move(W, b)

    def _move(self, W: Floats, b: Floats) -> None:
        """Take (W, b) as the last iterate, and find its most violated classes."""
        problem = self.problem
        self.W, self.b = W, b
        scores = problem.scores(W, b)
        self.worst = np.argmax(self.margins + scores, axis=1).astype(np.int32)
        objective = problem.objective_at(scores, W)
        self.violation = objective - self.minimum - self.constant
        if objective < self.objective:
            self.objective, self.best = objective, (W, b)
