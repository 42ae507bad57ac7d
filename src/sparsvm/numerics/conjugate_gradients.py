"""Linear equations by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsvm._typing import Floats
from sparsvm.numerics.rounding import UNIT

# A curvature below this share of the preconditioner's along the same direction is rounding.
FLAT = 64.0 * UNIT


def conjugate_gradients(
    product: Callable[[Floats], Floats], right: Floats, inverse: Floats, most: int, left: float
) -> Floats:
    """Solve H x = right for a positive semidefinite H, from zero.

    Where H is singular it ends at directions in which H is flat: what rounding leaves of the
    right-hand side outside the range of H would be divided by next to nothing there.

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
    # Beside each direction, the same times the inverse of the preconditioner.
    direction, unscaled, along = scaled, residual, float(np.vdot(residual, scaled))
    end = left**2 * along
    for _ in range(most):
        if not along > end:
            break
        bent = product(direction)
        curvature = float(np.vdot(direction, bent))
        if not curvature > FLAT * float(np.vdot(direction, unscaled)):
            break
        length = along / curvature
        x = x + length * direction
        residual = residual - length * bent
        scaled = inverse * residual
        following = float(np.vdot(residual, scaled))
        direction = scaled + (following / along) * direction
        unscaled = residual + (following / along) * unscaled
        along = following
    return x
