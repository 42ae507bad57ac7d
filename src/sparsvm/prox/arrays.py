"""What the operators accept: vectors or rows of real numbers, and a number for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats


def real_array(name: str, value: Any) -> Floats:
    """Return the value as float64, or say that it does not hold real numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be an array of real numbers; got {type(value).__name__} of dtype "
            f"{array.dtype}. Convert it with numpy.asarray({name}, dtype=float), or "
            "toarray() if it is sparse."
        )
    return array.astype(np.float64, copy=False)


def as_rows(name: str, value: Any) -> Floats:
    """Return a vector as a matrix of one row, and a matrix as it is."""
    array = real_array(name, value)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be a vector, or a matrix whose rows are treated one by one; got an "
            f"array of shape {array.shape}. Reshape it to one or two dimensions."
        )
    return np.atleast_2d(array)


def per_row(name: str, value: Any, rows: int) -> Floats:
    """Return a number for each row, from one for all or an array of them."""
    array = real_array(name, value)
    if array.ndim > 1 or array.size not in (1, rows):
        raise ValueError(
            f"{name} must be a number, or an array with one entry a row ({rows}); got an array "
            f"of shape {array.shape}."
        )
    return np.ascontiguousarray(np.broadcast_to(array, (rows,)))


def like_rows(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    """Return an array of the given shape, from one entry for each column or for each place."""
    array = real_array(name, value)
    if array.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"{name} must be a number, or have the shape {shape[1:]} or {shape} of what it "
            f"belongs to; got an array of shape {array.shape}."
        )
    return np.ascontiguousarray(np.broadcast_to(array, shape))


def as_given(result: Floats, given: Any) -> Floats:
    """Return the only row as a vector, if a vector was given."""
    return result[0] if np.ndim(given) == 1 else result
