"""What the reference solvers of smooth losses share: the loop around their native iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm.losses import SmoothLoss
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.run.incumbent import Incumbent
from sparsvm.solvers.run.options import iteration_limit, until_certificate
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.run.threads import blas_threads


def unsupported_smooth(name: str, problem: Problem) -> str | None:
    """Say why a gradient method cannot solve ``problem``; None when it can."""
    if not isinstance(problem.loss, SmoothLoss):
        return (
            f"{name} needs a smooth loss: squared_hinge, logistic or ovr_squared_hinge, "
            f"not {problem.loss.name}."
        )
    if not problem.penalty.convex:
        return f"{name} needs a convex penalty."
    return None


def gradient_constant(problem: Problem, native: Any) -> float:
    r"""Return the Lipschitz constant of Blondel et al., :math:`\kappa \sum_i p_i \|x_i\|^2`.

    With an intercept the features count less their means, and a feature that is 1 joins them.
    """
    mean, variance, *_ = problem.design.column_stats(problem.mass)
    squares = np.asarray(variance)
    if not problem.fit_intercept:
        squares = squares + np.asarray(mean) ** 2
    total = float(np.sum(squares)) + problem.fit_intercept
    return float(native.curvature_bound) * total if total > 0.0 else 1.0


def spectral_constant(problem: Problem, native: Any) -> float:
    r"""Return :math:`c \max_i p_i \|X\|^2`, where that is less than :func:`gradient_constant`.

    c is the largest curvature of a sample's loss in its scores. With an intercept X is centred and
    the ones are at right angles to it: the constant is the larger of theirs, c, and that of X.
    """
    design: Any = problem.design
    norm = float(_core.operator_norm(design, False, centred=problem.fit_intercept))
    squares = max(float(problem.mass.max()) * norm**2, float(problem.fit_intercept))
    spectral = float(native.largest_curvature) * squares
    constant = gradient_constant(problem, native)
    return min(spectral, constant) if spectral > 0.0 else constant


def drive(
    name: str,
    make: Callable[[Problem], Any],
    problem: Problem,
    start: Start | None,
    control: Control,
    *,
    stopping: str,
    check_every: int,
    max_iter: int,
    counted: Callable[[Any], dict[str, int]] | None = None,
) -> Solution:
    """Run a native method in chunks, certify between them, and return the best point seen.

    ``make`` builds the method, with ``start``, ``run(iterations, tolerance)``, ``settled`` and
    ``last``; ``counted`` reads totals off it, for the history. With ``stopping="gap"`` the
    certificate decides and the method is told to go on whatever its own rule says; otherwise the
    method's own rule, with the tolerance, decides, and certificates on the way are for the
    monitor.
    """
    incumbent = Incumbent(problem, progress(name, control), anyway=stopping != "gap")
    limit = iteration_limit(max_iter, control)
    own_rule = -1.0 if stopping == "gap" else control.tol
    with blas_threads(control.n_jobs or 1):
        method = make(problem)
        if start is not None:
            intercept = start.intercept if problem.fit_intercept else np.zeros(problem.n_outputs)
            method.start(np.ascontiguousarray(start.coef.T), intercept)
        done, settled = 0, False
        incumbent.update(done, *method.last())
        while (
            done < limit and not settled and not (own_rule < 0.0 and incumbent.within(control.tol))
        ):
            done += method.run(until_certificate(check_every, done, limit), own_rule)
            settled = method.settled
            if settled or done == limit or own_rule < 0.0 or control.monitor is not None:
                incumbent.update(done, *method.last())
        return incumbent.solution(
            control, name, done, settled, counted(method) if counted else None
        )
