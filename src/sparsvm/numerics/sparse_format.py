"""What a sparse matrix must keep to before scipy's or our native code may read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array

# What a check stumbles on where attributes were replaced by something else.
_STUMBLES = (ValueError, TypeError, AttributeError, IndexError, ArithmeticError)


def checked_sparse(matrix: Any, name: str, advice: str) -> Any:
    """Return a sparse matrix of any format as CSR, or CSC if it is, with its structure checked.

    Native code trusts indices, that of scipy too: one that was edited to point outside ends the
    process. scipy checks them only when a matrix is made, and not all.

    Parameters
    ----------
    matrix : scipy sparse matrix or array
        Of any format; CSR and CSC are returned themselves.
    name : str
        What it is called in the message.
    advice : str
        A sentence that says what to do.

    Raises
    ------
    ValueError
        Where an index points outside the matrix, or its arrays do not belong together.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> matrix = sp.csr_array([[0.0, 2.0]])
    >>> matrix.indices[0] = 7
    >>> checked_sparse(matrix, "X", "Build it again.")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: X is not a valid CSR matrix (... must be < 2). Build it again.
    """
    kind = str(matrix.format)
    try:
        if kind == "dia":
            matrix = _from_diagonals(matrix)
        elif kind == "dok":
            matrix = matrix.tocoo()  # Python code, which cannot read beyond an array
        if matrix.format == "coo":
            _require_entries(matrix)
        elif matrix.format == "lil":
            _require_lists(matrix)
        else:
            _require_compressed(matrix)
        if matrix.format not in ("csr", "csc"):
            matrix = matrix.tocsr()
            _require_compressed(matrix)
    except _STUMBLES as error:
        found = f"{name} is not a valid {kind.upper()} matrix ({error})."
        raise ValueError(f"{found} {advice}") from error
    return matrix


def checked_coefficients(coef: Any) -> Any:
    """Return the coefficients of a model, as CSR with its structure checked if they are sparse."""
    if not sp.issparse(coef):
        return np.asarray(coef)
    return checked_sparse(coef, "coef_", "Restore coef_ or fit again.").tocsr()


def dense_coefficients(coef: Any) -> Array:
    """Return the coefficients of a model as an array."""
    coef = checked_coefficients(coef)
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef)


def _require_compressed(matrix: Any) -> None:
    ends = matrix.indptr
    if ends.dtype.kind not in "iu" or matrix.indices.dtype.kind not in "iu":
        raise ValueError("indices and indptr must be integers")
    # check_format leaves this out where the last of them is not positive.
    if (ends[1:] < ends[:-1]).any():
        raise ValueError("indptr must be a non-decreasing sequence")
    matrix.check_format(full_check=True)


def _require_entries(matrix: Any) -> None:
    sizes = {len(matrix.data), len(matrix.row), len(matrix.col)}
    if len(sizes) > 1:
        raise ValueError("data, row and col must have the same length")
    _require_within(matrix.row, matrix.shape[0])
    _require_within(matrix.col, matrix.shape[1])


def _require_within(indices: Array, size: int) -> None:
    # Not the other way round: NaN is neither inside nor outside.
    if len(indices) and not 0 <= np.min(indices) <= np.max(indices) < size:
        raise ValueError(f"indices must be >= 0 and < {size}")


def _require_lists(matrix: Any) -> None:
    columns, values = ([len(row) for row in rows] for rows in (matrix.rows, matrix.data))
    if columns != values or len(columns) != matrix.shape[0]:
        raise ValueError("rows and data must have as many entries in each row")


def _from_diagonals(matrix: Any) -> Any:
    """Return a DIA matrix as COO without native code."""
    if matrix.offsets.dtype.kind not in "iu":
        raise ValueError("offsets must be integers")
    columns = np.arange(min(matrix.data.shape[1], matrix.shape[1]))
    rows = columns - matrix.offsets.astype(np.int64)[:, None]
    inside = (rows >= 0) & (rows < matrix.shape[0])
    values = matrix.data[:, : columns.size][inside]
    columns = np.broadcast_to(columns, rows.shape)[inside]
    return sp.coo_array((values, (rows[inside], columns)), shape=matrix.shape)
