"""Matrices of all samples and classes, kept in little memory."""

from __future__ import annotations

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats


def paged(shape: tuple[int, ...]) -> Floats:
    """Return a matrix of zeros whose memory goes back to the system when it is given up.

    The C library may keep such arrays, once a larger one has been freed.
    """
    return np.asarray(_core.zeros(*shape))


class Packed:
    """A copy of a matrix by its entries that are not zero, unless these are nearly all.

    Of many classes a sample has a dual for few.

    Parameters
    ----------
    matrix : array of shape (n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.numerics.packed import Packed
    >>> packed = Packed(np.eye(20))
    >>> packed.nbytes, float(packed.unpacked().trace())
    (200, 20.0)
    """

    def __init__(self, matrix: Floats) -> None:
        self.shape = matrix.shape
        self._entries = _core.PackedEntries(matrix)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return int(self._entries.bytes)

    def unpacked(self, out: Floats | None = None) -> Floats:
        """Return the matrix, in the place of ``out`` if that is given."""
        matrix = paged(self.shape) if out is None else out
        self._entries.unpack(matrix)
        return matrix
