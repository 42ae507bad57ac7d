"""Coefficients of which most columns are zero.

With 56436 words, 20 classes and 100 words used, a matrix of all coefficients takes as much memory
as half of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from sparsvm._typing import Array, Features, Floats, Ints
from sparsvm.numerics.packed import paged
from sparsvm.numerics.rows import row_blocks

# Columns are few where there are so many times as many: reading them one by one is slower.
FEW_FACTOR = 4


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

    used: Features
    values: Floats
    d: int

    @classmethod
    def of(cls, coef: Floats) -> Columns:
        """Return the columns in use of a matrix of shape (n_outputs, d)."""
        used = columns_in_use(coef).astype(np.int32)
        return cls(used, coef[:, used], coef.shape[1])

    @classmethod
    def all_of(cls, coef: Floats) -> Columns:
        """Return all columns, whether in use or not, without a copy."""
        return cls(np.arange(coef.shape[1], dtype=np.int32), coef, coef.shape[1])

    def dense(self, dtype: DTypeLike = np.float64) -> Array:
        """Return all coefficients, shape (n_outputs, d), feature by feature in memory.

        Where no feature of a page is used, the page takes no memory; where all are used, it is
        ``values`` itself.
        """
        if self.used.size == self.d and self.values.dtype == dtype:
            return self.values
        count = self.d * self.values.shape[0]
        doubles = -(-count * np.dtype(dtype).itemsize // np.dtype(np.float64).itemsize)
        rows = paged((doubles, 1)).view(dtype).reshape(-1)[:count].reshape(self.d, -1)
        rows[self.used] = self.values.T
        return rows.T

    def largest(self) -> Floats:
        """Return the largest absolute coefficient of each of the d features."""
        sizes = -self.values.min(axis=0, initial=0.0)
        np.maximum(self.values.max(axis=0, initial=0.0), sizes, out=sizes)
        if self.used.size == self.d:
            return np.asarray(sizes)
        largest = np.zeros(self.d)
        largest[self.used] = sizes
        return largest


def few(count: int, d: int) -> bool:
    """Whether so many columns of d are few enough to be read by themselves."""
    return FEW_FACTOR * count <= d


def columns_in_use(coef: Array) -> Ints:
    """Return the numbers of the columns that are not all zero.

    By blocks: a flag for every coefficient may be as much as the rest of a prediction needs.
    """
    used = np.empty(coef.shape[1], dtype=bool)
    for block in row_blocks(coef.shape[1], coef.shape[0]):
        used[block] = coef[:, block].any(axis=0)
    return np.flatnonzero(used)
