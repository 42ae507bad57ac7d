"""Grids of alphas: where they begin, and where there is nothing left to follow."""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike

from sparsvm._typing import Floats
from sparsvm.parameters import number
from sparsvm.path.points import Kept
from sparsvm.path.zero_model import ZeroModel
from sparsvm.problem.problem import Problem

# A model that leaves so little of the loss of the first one fits the training samples as well as
# any: glmnet's devmax.
LEFT_OF_LOSS = 1e-3


def grid_below(largest: float, n_alphas: int, eps: float) -> Floats:
    """Return ``n_alphas`` values from ``largest`` to ``eps`` times it, evenly in the logarithm."""
    whole = isinstance(n_alphas, numbers.Integral) and n_alphas >= 1
    if not whole or not 0.0 < number(eps) < 1.0:
        raise ValueError(
            f"A grid of alphas needs n_alphas of at least 1 and eps between 0 and 1; got "
            f"n_alphas={n_alphas!r} and eps={eps!r}."
        )
    return largest * np.logspace(0.0, np.log10(float(eps)), int(n_alphas))


def checked_grid(alphas: ArrayLike) -> Floats:
    """Return the user's alphas, decreasing."""
    try:
        grid = np.array(alphas, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        grid = np.zeros(0)
    if grid.size == 0 or not np.all(np.isfinite(grid)) or np.any(grid <= 0.0):
        raise ValueError(f"alphas must be positive, finite numbers, at least one; got {alphas!r}.")
    return np.sort(grid)[::-1]


def largest_ridge_alpha(problem: Problem, zero: ZeroModel) -> float:
    r"""Return where the grid of a penalty begins that leaves no weight at zero.

    With the gradient G of the loss at the zero model, the optimal weights of a large alpha are
    nearly :math:`-G/(\alpha \omega^2)`: exactly so for the hinge as long as every sample is within
    its margin. There another alpha only scales the scores. The grid begins where those weights
    would give some sample scores that differ, from the scores of another sample, by the largest
    margin.
    """
    terms = problem.penalty
    inverse = terms.inverse_omega**2
    weights = -problem.transposed(problem.signed_dual(zero.dual)) * inverse
    scores = problem.scores(weights, np.zeros(problem.n_outputs))
    spread = float((scores.max(axis=0) - scores.min(axis=0)).max(initial=0.0))
    unit = float(np.abs(problem.margins()).max(initial=0.0))
    return spread / (unit or 1.0) / (1.0 - terms.l1_ratio)


def unchanged_below(point: Kept, alpha: float, last: float, tol: float) -> bool:
    r"""Whether the solution at ``alpha`` is within ``tol`` of the optimum down to ``last``.

    With the dual scaled by alpha'/alpha its gap at alpha' is at most
    :math:`L + \alpha' P - (\alpha'/\alpha) D`, L and P being its loss and penalty and D its dual
    value. Relative to the objective :math:`L + \alpha' P` that is monotone in alpha', so that both
    ends tell for all between.
    """
    objective = point.loss + last / alpha * (point.objective - point.loss)
    gap = objective - last / alpha * point.bound
    return bool(gap <= tol * abs(objective))
