"""The fitted model of a point of a path, certified again from what was kept of its dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.certificate.finalise import tolerance
from sparsvm.data.training_set import TrainingSet
from sparsvm.estimators.fit_warnings import advise
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.losses import SmoothLoss
from sparsvm.path.points import Kept
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import History, Solution, Start
from sparsvm.solvers import BlockNewton


@dataclass(frozen=True, eq=False)
class Proof:
    """What it takes to certify a point again.

    Attributes
    ----------
    dual : sparse matrix of shape (n, K), or None
        Of a hinge, its dual variables off the true classes, which only support vectors have. A
        smooth loss has them by its derivative.
    n_iter, seconds, solver
        As in :class:`~sparsvm.problem.solution.Solution`.
    """

    dual: Any
    n_iter: int
    seconds: float
    solver: str

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> Proof:
        """Keep the proof of a solution."""
        dual = None
        if not isinstance(problem.loss, SmoothLoss):
            others = solution.dual.copy()
            others[np.arange(problem.n), problem.y] = 0.0
            dual = sp.csr_matrix(others)
        return cls(dual, solution.n_iter, solution.seconds, solution.solver)

    @classmethod
    def of_native(cls, point: Kept) -> Proof:
        """Keep the proof of a point of a native path, whose loss is smooth."""
        return cls(None, 1, point.seconds, BlockNewton.name)

    def solution(self, problem: Problem, coef: Floats, intercept: Floats, tol: float) -> Solution:
        """Return the point as a certified solution."""
        if self.dual is None:
            dual = problem.dual_at(problem.scores(coef, intercept))
        else:
            dual = self.dual.toarray()
            dual[np.arange(problem.n), problem.y] = problem.mass - dual.sum(axis=1)
        return certified(
            problem,
            coef,
            intercept,
            dual,
            tol=tol,
            n_iter=max(1, self.n_iter),
            seconds=self.seconds,
            history=History.empty(),
            solver=self.solver,
            status_if_not="stalled",
        )


def fit_as(model: SparseSVC, near: SparseSVC, proof: Proof, data: TrainingSet) -> None:
    """Fit ``model`` to the training set: it becomes ``near``, the model of a path, if it can.

    Where what was kept does not prove the tolerance, the solver goes on from there, and its dual
    point is asked to prove it.
    """
    tol = tolerance(model.tol, data.dtype)
    problem = model._resolved_problem(data)
    coef = problem.unfolded(near.coef_.astype(np.float64))
    intercept = near.intercept_.astype(np.float64)
    if not problem.convex:
        # A descent from a critical point stays there.
        solution = model._solve(problem, data, Start(coef, intercept))
    else:
        solution = proof.solution(problem, coef, intercept, tol)
    if problem.convex and not solution.converged:
        solved = model._solve(problem, data, Start(coef, intercept))
        again = Proof.of(problem, solved).solution(problem, coef, intercept, tol)
        solution = again if again.converged else solved
    model._store(problem, data, solution)
    advise(problem, solution, tol=tol)
