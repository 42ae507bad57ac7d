"""Linear equations by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsvm._typing import Floats


def conjugate_gradients(
    product: Callable[[Floats], Floats], right: Floats, inverse: Floats, most: int, left: float
) -> Floats:
    """Solve H x = right for a positive semidefinite H, from zero.

    Parameters
    ----------
    product : callable
        Returns H v.
    right : array of any shape
    inverse : array of the same shape
        The preconditioner: roughly one over the diagonal of H.
    most : int
        Products allowed.
    left : float
        What may be left of the residual, in the norm of the preconditioner.
    """
    x, residual = np.zeros_like(right), right
    scaled = inverse * residual
    direction, along = scaled, float(np.vdot(residual, scaled))
    end = left**2 * along
    for _ in range(most):
        if not along > end:
            break
        bent = product(direction)
        curvature = float(np.vdot(direction, bent))
        if not curvature > 0.0:
            break
        length = along / curvature
        x = x + length * direction
        residual = residual - length * bent
        scaled = inverse * residual
        following = float(np.vdot(residual, scaled))
        direction = scaled + (following / along) * direction
        along = following
    return x
