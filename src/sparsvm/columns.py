"""Coefficients of which most columns are zero.

With 56436 words, 20 classes and 100 words used, a matrix of all coefficients takes as much memory
as half of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsvm.losses import Floats
from sparsvm.packed import paged


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of the coefficients that are not zero.

    Attributes
    ----------
    used : int32 array of shape (m,)
        The features, increasing.
    values : array of shape (n_outputs, m)
        Their coefficients.
    d : int
        Number of all features.
    """

    used: NDArray[np.int32]
    values: Floats
    d: int

    @classmethod
    def of(cls, coef: Floats) -> Columns:
        """Return the columns in use of a matrix of shape (n_outputs, d)."""
        used = np.flatnonzero(coef.any(axis=0)).astype(np.int32)
        return cls(used, coef[:, used], coef.shape[1])

    @classmethod
    def all_of(cls, coef: Floats) -> Columns:
        """Return all columns, whether in use or not, without a copy."""
        return cls(np.arange(coef.shape[1], dtype=np.int32), coef, coef.shape[1])

    def dense(self) -> Floats:
        """Return all coefficients, shape (n_outputs, d), feature by feature in memory.

        Where no feature of a page is used, the page takes no memory.
        """
        rows = paged((self.d, self.values.shape[0]))
        rows[self.used] = self.values.T
        return rows.T

    def largest(self) -> Floats:
        """Return the largest absolute coefficient of each of the d features."""
        largest = np.zeros(self.d)
        values = self.values
        largest[self.used] = np.maximum(
            values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0)
        )
        return largest
