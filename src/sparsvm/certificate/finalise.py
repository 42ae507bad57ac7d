"""From what a solver returns to what a user sees: centred, in the type of the data, certified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.certify import recertified
from sparsvm.problem.latent import with_sums
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Solution

# Settings.
# Intercepts that sum to less than this share of the largest are centred up to rounding.
CENTRING_SHARE = 1e-15
# Rounding coefficients to float32 moves the objective by about 1e-7 of itself, so a smaller
# relative gap cannot be promised for them.
FLOAT32_TOL = 1e-6


def tolerance(tol: float, dtype: np.dtype[Any]) -> float:
    """Return the relative gap that can be promised for coefficients of that type."""
    return max(float(tol), FLOAT32_TOL) if dtype == np.float32 else float(tol)


def inner_tolerance(tol: float, dtype: np.dtype[Any]) -> float:
    """Return what to ask of the solver: half is left for the rounding of the coefficients."""
    tol = tolerance(tol, dtype)
    return tol / 2 if dtype == np.float32 else tol


def centred(problem: Problem, intercept: Floats) -> Floats:
    """Let intercepts sum to zero where only differences of scores count.

    Sums that are mere rounding stay: a shift would change the last digits once more.
    """
    if problem.n_outputs == 1 or not problem.loss.of_differences:
        return intercept
    if abs(intercept.mean()) <= CENTRING_SHARE * np.abs(intercept).max():
        return intercept
    return np.asarray(intercept - intercept.mean())


def as_type(values: Floats, dtype: np.dtype[Any]) -> Floats:
    """Return the nearest values of that type, in double precision."""
    return values.astype(np.float32).astype(np.float64) if dtype == np.float32 else values


def finalised(
    problem: Problem,
    solution: Solution,
    dtype: np.dtype[Any],
    tol: float,
    overwrite_dual: bool = False,
) -> Solution:
    """Centre the intercepts, round to the type of the data, and certify if that changed anything.

    Parameters
    ----------
    problem : Problem
    solution : Solution
        What the solver returned.
    dtype : dtype
        float32 or float64; the coefficients keep double precision but hold values of this type.
    tol : float
        The tolerance promised, see :func:`tolerance`.
    overwrite_dual : bool
        Whether the array of the solution's dual may be used, the solution being of no more use.
    """
    coef = as_type(solution.coef, dtype)
    if problem.columns is not None and coef is not solution.coef:
        # What the user sees are the sums of parts: they are to be of that type.
        sums = as_type(problem.folded(solution.coef), dtype)
        coef = with_sums(solution.coef, problem.columns, sums)
    intercept = as_type(centred(problem, solution.intercept), dtype)
    unchanged = coef is solution.coef or np.array_equal(coef, solution.coef)
    if unchanged and intercept is solution.intercept:
        return solution
    # (allclose takes ten times as long, which counts where a path has a hundred points.)
    moved = np.abs(intercept - solution.intercept)
    if unchanged and np.all(moved <= CENTRING_SHARE * np.abs(solution.intercept)):
        return replace(solution, intercept=intercept)
    short = "stalled" if solution.converged else solution.status
    return recertified(problem, solution, coef, intercept, tol, short, overwrite_dual)
