"""The safetensors layout: the length of a header, the header in JSON, then raw arrays.

The layout (https://github.com/huggingface/safetensors) is::

    8 bytes      length of the header, unsigned, little-endian
    header       {"__metadata__": {name: text}, name: {"dtype", "shape", "data_offsets"}, ...}
    the rest     the arrays, little-endian, in C order, one after the other without gaps

The metadata also hold ``sha256``: the SHA-256 of the whole file, taken with 64 zeros in its place.
What is read is checked before anything of a size that the file claims is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from sparsvm._typing import Array

# The package `safetensors` reads no longer headers.
LONGEST_HEADER = 100_000_000
# Bytes of the length before the header, of which the header fills a multiple; and the most
# dimensions of an array.
PREFIX, MOST_DIMENSIONS = 8, 8
CHECKSUM = "sha256"
_BLANK = "0" * 64
_METADATA = "__metadata__"
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def storable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of that type can be written."""
    return dtype.newbyteorder("<") in _NAMES


def plain_text(text: str, what: str) -> str:
    """Return a text as it is; a sentence if other readers would not take it."""
    if "\0" in text:
        raise ValueError(f"{what} {text!r} contains a NUL character. Rename it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} {text!r} is no valid Unicode ({error.reason}).") from error
    return text


def packed(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> list[bytes | memoryview]:
    """Return a file as the pieces it is made of; the checksum is added to the metadata."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)  # keeps all aligned
    header: dict[str, Any] = {_METADATA: {**metadata, CHECKSUM: _BLANK}}
    pieces: list[memoryview] = []
    end = 0
    for name, values in ordered:
        dtype = values.dtype.newbyteorder("<")
        begin, end = end, end + values.nbytes
        header[plain_text(name, "The array name")] = {
            "dtype": _NAMES[dtype],
            "shape": list(values.shape),
            "data_offsets": [begin, end],
        }
        flat = np.ascontiguousarray(values, dtype=dtype).reshape(-1)
        pieces.append(flat.view(np.uint8).data)
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % PREFIX)
    if len(text) > LONGEST_HEADER:
        raise ValueError(
            f"The header of the model takes {len(text)} bytes, but at most {LONGEST_HEADER} are "
            "allowed. Fit with shorter feature names."
        )
    start = struct.pack("<Q", len(text)) + text
    digest = _digest(start, pieces).encode()
    marker = f'"{CHECKSUM}":"'.encode()
    return [start.replace(marker + _BLANK.encode(), marker + digest, 1), *pieces]


class SafeFile:
    """The header of an open file, checked; arrays are read when they are asked for.

    Parameters
    ----------
    file : binary file
        At its beginning.

    Attributes
    ----------
    metadata : dict of str to str

    Raises
    ------
    ValueError
        A part of a sentence that says what is wrong with the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        size = os.fstat(file.fileno()).st_size
        start = file.read(PREFIX)
        if len(start) < PREFIX:
            raise ValueError(f"it has {size} bytes, too few for a header")
        (length,) = struct.unpack("<Q", start)
        if not 2 <= length <= min(size - PREFIX, LONGEST_HEADER):
            raise ValueError(f"its header would be {length} bytes long, but it has {size}")
        text = file.read(length)
        self.metadata, self._places = _parsed(text, size - PREFIX - length)
        self._bytes = _checked_bytes(file, start + text, self.metadata, size)

    def names(self) -> set[str]:
        """Return the names of the arrays."""
        return set(self._places)

    def array(self, name: str) -> Array:
        """Return an array of its own, writeable."""
        if name not in self._places:
            raise ValueError(f"it has no array {name!r}")
        dtype, shape, begin, end = self._places[name]
        if dtype.kind == "b" and self._bytes[begin:end].strip(b"\0\1"):
            raise ValueError(f"the array {name!r} holds bytes that are neither true nor false")
        if begin == end:
            return np.zeros(shape, dtype.newbyteorder("="))
        values = np.frombuffer(self._bytes, dtype, math.prod(shape), begin)
        return values.reshape(shape).astype(dtype.newbyteorder("="), copy=True)


_Place = tuple[np.dtype[Any], tuple[int, ...], int, int]


def _parsed(text: bytes, n_bytes: int) -> tuple[dict[str, str], dict[str, _Place]]:
    """Return the metadata and the places of the arrays, which must fill ``n_bytes``."""
    header = strict_json(text, "its header")
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("its metadata are not strings by name")
    places = {name: _place(name, entry) for name, entry in header.items()}
    reached = 0
    for name, (_, _, begin, end) in sorted(places.items(), key=lambda item: item[1][2:]):
        if begin != reached:
            raise ValueError(f"the array {name!r} begins at byte {begin}, not at {reached}")
        reached = end
    if reached != n_bytes:
        raise ValueError(f"its arrays take {reached} bytes, but {n_bytes} follow the header")
    return metadata, places


def _place(name: str, entry: Any) -> _Place:
    if "\0" in name:
        raise ValueError(f"the array name {name!r} contains a NUL character")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of the array {name!r} has not dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"the array {name!r} is of the unknown type {kind!r}")
    if not (
        counts(shape) and len(shape) <= MOST_DIMENSIONS and counts(offsets) and len(offsets) == 2
    ):
        raise ValueError(f"shape or offsets of the array {name!r} are no lists of counts")
    dtype = np.dtype(_TYPES[kind])
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {name!r} of shape {shape} does not fit into {offsets}")
    return dtype, tuple(shape), offsets[0], offsets[1]


def counts(values: Any) -> bool:
    """Whether it is a list of integers from 0 to 2⁶³ - 1."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**63 for value in values
    )


def _checked_bytes(file: BinaryIO, start: bytes, metadata: dict[str, str], size: int) -> bytes:
    """Return the bytes after the header, if the checksum is right."""
    told = metadata.get(CHECKSUM)
    if told is None:
        raise ValueError("it is not a model file of sparsvm: its metadata have no checksum")
    entry = f'"{CHECKSUM}":"{told}"'.encode(errors="replace")
    if len(told) != len(_BLANK) or start.count(entry) != 1:
        raise ValueError("its checksum is none")
    data = file.read(size - len(start))
    blank = start.replace(entry, f'"{CHECKSUM}":"{_BLANK}"'.encode())
    if len(data) != size - len(start) or _digest(blank, [memoryview(data)]) != told:
        raise ValueError("it was changed or damaged after it was written: the checksum differs")
    return data


def _digest(start: bytes, pieces: list[memoryview]) -> str:
    total = hashlib.sha256(start)
    for piece in pieces:
        total.update(piece)
    return total.hexdigest()


def strict_json(text: str | bytes, what: str) -> Any:
    """Read JSON without its extensions: no NaN, no name twice in one object."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{what} is not valid JSON ({error})") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
