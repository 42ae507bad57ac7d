"""The design matrix: a read-only native view of the user's data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sparsvm import _core
from sparsvm._core import Design
from sparsvm._typing import Array, Counts, Features

__all__ = ["Design", "make_design"]

_SCALARS = (np.dtype(np.float32), np.dtype(np.float64))


def make_design(X: Any, rows: ArrayLike | None = None) -> Design:
    """View a matrix, without copying it, as the design that solvers work on.

    The design is ``X[rows]``, of shape (n, d): sample i is row ``rows[i]`` of `X`. It keeps
    references to the arrays it reads, which should not change while it lives: changed values or
    indices give wrong numbers, but none is read outside the matrix.

    Parameters
    ----------
    X : ndarray, scipy.sparse CSR or CSC, shape (n_rows, d)
        float32 or float64; read-only and memory-mapped arrays are fine. Copied once, and only if
        the array is neither C- nor Fortran-contiguous or is not aligned, or if sparse entries are
        unsorted or duplicated. int64 sparse indices are narrowed to int32 once. A companion copy
        is built on first need for a CSC matrix seen through `rows` (of another CSC matrix the
        indices are copied), for a CSR matrix asked for single columns or, for ``fbpd``, with no
        more samples than features and more than 65536 weights, and for a dense matrix of at most
        4 MB in double precision.
    rows : array-like of int, shape (n,), optional
        The row of each sample: any subset, order or repetition. All rows by default.

    Returns
    -------
    Design

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.data.design import make_design
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> make_design(X, rows=[2, 0]).scores(np.array([[1.0], [10.0]]))
    array([[65.],
           [21.]])
    """
    index = None if rows is None else _row_index(rows)
    return _sparse_design(X, index) if sp.issparse(X) else _dense_design(X, index)


def _row_index(rows: ArrayLike) -> Counts:
    index = np.asarray(rows)
    if index.size == 0:
        index = index.astype(np.int64)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(
            "rows must be a 1-D array of integers, one row number per sample; found "
            f"{index.ndim} dimensions of {index.dtype}."
        )
    return np.ascontiguousarray(index, dtype=np.int64)


def _check_scalar(dtype: np.dtype[Any]) -> None:
    if dtype not in _SCALARS:
        raise ValueError(
            f"X must hold float32 or float64 values, found {dtype}; convert it with "
            "X.astype(float)."
        )


def _dense_design(X: Any, rows: Counts | None) -> Design:
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional (samples by features), found {X.ndim} dimensions."
        )
    _check_scalar(X.dtype)
    if not (X.flags.c_contiguous or X.flags.f_contiguous) or not X.flags.aligned:
        X = np.require(X, requirements=["C", "A"])
    return Design.dense(X, rows)


def _sparse_design(X: Any, rows: Counts | None) -> Design:
    if X.format not in ("csr", "csc") or X.ndim != 2:
        raise ValueError(
            f"A sparse X must be a two-dimensional CSR or CSC matrix, found {X.ndim} dimensions "
            f"in {X.format.upper()} format; convert it with X.tocsr()."
        )
    _check_scalar(X.dtype)
    n, d = X.shape
    by_columns = X.format == "csc"
    minors = n if by_columns else d
    indices, indptr = _narrow(X.indices, minors), X.indptr.astype(np.int64, copy=False)
    data = X.data
    if not _core.is_canonical(indices, indptr, minors):
        # A fresh matrix rather than X.copy(): its cached "has canonical format" flag may be stale.
        copy = type(X)((data.copy(), indices.copy(), indptr.copy()), shape=X.shape)
        copy.sum_duplicates()
        data, indices = copy.data, _narrow(copy.indices, minors)
        indptr = copy.indptr.astype(np.int64, copy=False)
    data = data[: indices.shape[0]]
    return Design.sparse(data, indices, indptr, n, d, by_columns, rows)


def _narrow(indices: Array, minors: int) -> Features:
    """Sparse indices as int32; wide ones are checked first, since narrowing would wrap them."""
    if indices.dtype == np.int32:
        return np.ascontiguousarray(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= min(minors, 2**31 - 1)):
        raise ValueError(
            f"The sparse indices run from {indices.min()} to {indices.max()}, outside the "
            f"{minors} positions of their axis (at most {2**31 - 2} are supported)."
        )
    return np.ascontiguousarray(indices, dtype=np.int32)
