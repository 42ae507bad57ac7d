"""Paths of smooth losses: every point is found and certified in native code.

The native path keeps scores, curvature and working set from one alpha to the next. A point that it
certifies needs nothing more. Where its intercepts are not optimal to rounding, the certificate of
Python repairs the dual; where it does not reach the tolerance, the solvers that ``auto`` tries take
over for that point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm.certificate.certify import certified
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import SHARPEST_TOL
from sparsvm.path.continuation import Continuation
from sparsvm.path.points import Kept, by_classes
from sparsvm.problem.solution import History, Solution, relative
from sparsvm.solvers import BlockNewton, blas_threads
from sparsvm.solvers.run.native import smooth_problem
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.sample_space import fits_sample_space

# Settings.
# Iterations for one point; a few are usual.
ITERATIONS = 50
# Points that may be left to other solvers before the native path is given up.
FAILURES = 3


class SmoothPath:
    """The native path of a continuation's problem.

    Parameters
    ----------
    steps : Continuation
        Its solver must be one that :meth:`follows` accepts.
    """

    def __init__(self, steps: Continuation) -> None:
        problem, control = steps.problem, steps.control
        self.problem, self.threads = problem, control.n_jobs or 1
        self.tol = control.tol
        self.failures = 0
        self._native = _core.SmoothPath(
            smooth_problem(problem),
            column_norms=np.ascontiguousarray(problem.column_norms),
            tol=max(control.tol, SHARPEST_TOL),
            max_iter=ITERATIONS,
            callback=progress(BlockNewton.name, control),
        )

    @staticmethod
    def follows(steps: Continuation, dtype: np.dtype[Any]) -> bool:
        """Whether the points can be found and certified in native code.

        Coefficients rounded to single precision are certified in Python, where the dual is
        repaired; so are problems that are solved in the space of the samples.
        """
        problem = steps.problem
        return (
            isinstance(problem.loss, SmoothLoss)
            and (isinstance(steps.solver, BlockNewton) or steps.solver in ("auto", "block_newton"))
            and steps.control.max_iter is None
            and problem.linear_term is None
            and problem.offset == 0.0
            and problem.columns is None
            and problem.penalty.built_in
            and problem.penalty.convex
            and dtype != np.float32
            and not fits_sample_space(problem)
        )

    def point(self, alpha: float) -> Kept | None:
        """Return the certified point at ``alpha``; None where the tolerance was not reached."""
        if self.failures > FAILURES:
            return None
        with blas_threads(self.threads):
            found = self._native.solve(alpha)
        if not (found["converged"] and found["balanced"]):
            point = self._repaired(alpha, found) if found["converged"] else None
            self.failures += point is None
            return point
        gap = max(found["objective"] - found["bound"], 0.0)
        coef = by_classes(found["features"], found["weights"], self.problem, np.dtype(float))
        return Kept(
            None,
            coef,
            found["features"].size,
            found["intercept"],
            found["objective"],
            relative(gap, found["objective"]),
            "optimal",
            found["seconds"],
            found["loss"],
            found["bound"],
        )

    def _repaired(self, alpha: float, found: dict[str, Any]) -> Kept | None:
        """Return the point with a dual whose balance is repaired, if that proves the tolerance.

        Where scores are much larger than the slopes of the losses, the rounding of the scores
        leaves the slopes further from balance than their own rounding.
        """
        problem = self.problem.with_alpha(alpha)
        coef = by_classes(found["features"], found["weights"], problem, np.dtype(float))
        solution = certified(
            problem,
            coef.toarray(),
            found["intercept"],
            None,
            tol=self.tol,
            n_iter=found["iterations"],
            seconds=found["seconds"],
            history=History.empty(),
            solver=BlockNewton.name,
            status_if_not="stalled",
        )
        if not solution.converged:
            return None
        return Kept.of(solution, problem, np.dtype(float), None, found["seconds"])

    def go_on_from(self, solution: Solution) -> None:
        """Take a point that another solver found."""
        weights = np.array(solution.coef.T, dtype=np.float64, order="C")
        self._native.start(weights, np.ascontiguousarray(solution.intercept, dtype=np.float64))
