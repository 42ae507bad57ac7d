r"""Products of matrices with errors far below those of double precision.

The sum of n products of doubles has an error of about :math:`n u |x| |y|`, which is all that is
left where the terms cancel. Here both factors are split, entry by entry and exactly, into a leading
part of so few bits that sums of n products of two of them are exact whatever their order, and a
rest that is :math:`2^{-22}` or so of the size: only products with a rest are rounded.
"""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Floats
from sparsvm.numerics.rounding import TINY, UNIT

# Bits of a double, and the operations of a product of parts beside its n terms.
BITS, OTHERS = 53, 8


def split_products(X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return X' Y for X (n, d) and Y (n, K), and a bound of the error of each entry.

    The bound is NaN or infinite where numbers are too large to be split.
    """
    n = X.shape[0]
    bits = (BITS - 1 - int(n).bit_length()) // 2
    with np.errstate(over="ignore", invalid="ignore"):
        leading_x, leading_y = _leading(X, bits), _leading(Y, bits)
        rest_x, rest_y = X - leading_x, Y - leading_y
        products = leading_x.T @ leading_y
        products += leading_x.T @ rest_y + rest_x.T @ Y
        sizes = np.outer(_norms(leading_x), _norms(rest_y)) + np.outer(_norms(rest_x), _norms(Y))
        # Products of the smallest numbers may vanish.
        return products, (n + OTHERS) * (UNIT * sizes + TINY) + 2.0 * UNIT * np.abs(products)


def _leading(values: Floats, bits: int) -> Floats:
    """Return every entry rounded to ``bits`` bits below the largest of its column."""
    _, exponents = np.frexp(np.abs(values).max(axis=0, initial=0.0))
    # 1.5 times a power of two whose last digit is the last that is kept, whatever the sign.
    shift = np.ldexp(1.5, exponents + (BITS - bits))
    return np.asarray((values + shift) - shift)


def _norms(values: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", values, values)))
