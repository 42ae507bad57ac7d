"""From the JSON and the arrays of a model file back to values."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.io.checks import require_consistent, require_path
from sparsvm.io.layout import SafeFile, counts
from sparsvm.io.tables import (
    CHARACTER,
    DROPPED_FIELDS,
    ESTIMATORS,
    LABEL_TYPES,
    LARGEST_EXPANSION,
    LATER,
    OBJECTS,
    RESULTS,
    SHARED_FIELDS,
    NotSaved,
)
from sparsvm.parameters import Parameterised


class Decoder:
    """Turns JSON back into values, and refuses whatever an ``Encoder`` would not have written."""

    def __init__(self, file: SafeFile) -> None:
        self.file = file
        self.used: set[str] = set()

    def estimator(self, entry: Any) -> Any:
        """Return the estimator of class, parameters and fitted attributes."""
        name, params, known = _entries(entry, "class", "parameters", "attributes")
        kind = _named(ESTIMATORS, name)
        est = self._made(kind, params, kind._get_param_names())
        for key, value in _by_name(known).items():
            # Neither a parameter nor anything the class defines, such as a method.
            if not (key.isidentifier() and key.endswith("_") and key[0] != "_") or hasattr(
                kind, key
            ):
                raise ValueError(f"{name} has no attribute {key!r} to set")
            setattr(est, key, self.value(value))
        require_consistent(est)
        if "result_" in vars(est):
            est._keep_in_result(intercept=est.intercept_)
        return est

    def value(self, entry: Any) -> Any:
        """Return the value of a piece of JSON."""
        if isinstance(entry, list):
            return [self.value(item) for item in entry]
        if not isinstance(entry, dict):
            return entry
        if len(entry) != 1:
            raise ValueError("a value of its metadata does not say of which kind it is")
        ((tag, content),) = entry.items()
        if tag not in self._KINDS:
            raise ValueError(f"a value of its metadata is of the unknown kind {tag!r}")
        return self._KINDS[tag](self, content)

    def _made(self, kind: type[Any], params: Any, known: Any) -> Any:
        values = {name: self.value(value) for name, value in _by_name(params).items()}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(
                f"{kind.__name__} has no parameter {unknown[0]!r}; a later version of sparsvm may "
                "have written it"
            )
        try:
            return kind(**values)
        except TypeError as error:
            raise ValueError(f"{kind.__name__} lacks a parameter ({error})") from error

    def _list(self, content: Any) -> list[Any]:
        if not isinstance(content, list):
            raise ValueError("a list in its metadata is none")
        return [self.value(item) for item in content]

    def _tuple(self, content: Any) -> Any:
        return tuple(self._list(content))

    def _set(self, content: Any) -> Any:
        return {_hashable(value) for value in self._list(content)}

    def _dict(self, content: Any) -> Any:
        pairs = self._list(content)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError("a dictionary in its metadata has no pairs")
        return {_hashable(key): value for key, value in pairs}

    def _float(self, content: Any) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise ValueError(f"{content!r} in its metadata is no number")
        return float(content)

    def _not_saved(self, content: Any) -> NotSaved:
        if not isinstance(content, str):
            raise ValueError("the text of a value that was not saved is none")
        return NotSaved(content)

    def _object(self, content: Any) -> Any:
        name, params = _entries(content, "class", "parameters")
        kind = _named(OBJECTS, name)
        known = kind._parameter_names() if issubclass(kind, Parameterised) else kind._fields
        return self._made(kind, params, known)

    def _result(self, content: Any) -> Any:
        name, values = _entries(content, "class", "values")
        kind = _named(RESULTS, name)
        found = {key: self.value(value) for key, value in _by_name(values).items()}
        names = {field.name for field in fields(kind)}
        found = {key: value for key, value in LATER.items() if key in names} | found
        found |= {key: value for key, value in DROPPED_FIELDS.items() if key in names}
        found |= dict.fromkeys(SHARED_FIELDS)
        if set(found) != names:
            raise ValueError(f"its certificate has not the values of a {name}")
        return kind(**found)

    def _path(self, content: Any) -> SVMPath:
        names = [field.name for field in fields(SVMPath)]
        found = dict(zip(names, map(self.value, _entries(content, *names)), strict=True))
        require_path(found)
        whole, n = found["coefs"], found["alphas"].size
        size = whole.shape[0] // n
        found["coefs"] = [whole[t * size : (t + 1) * size] for t in range(n)]
        return SVMPath(**found)

    def _objects(self, content: Any) -> Array:
        values = self._list(content)
        out = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            out[place] = value
        return out

    def _masked(self, content: Any) -> Any:
        return np.ma.masked

    def _labels(self, content: Any) -> Array:
        kind, entries = _entries(content, "kind", "values")
        values = self._list(entries)
        if isinstance(kind, str) and kind in LABEL_TYPES:
            fits = all(type(value) in LABEL_TYPES[kind] for value in values)
        elif type(kind) is int and 0 < kind * len(values) <= LARGEST_EXPANSION // CHARACTER:
            fits = all(isinstance(value, str) and len(value) <= kind for value in values)
            kind = f"<U{kind}"
        else:
            fits = False
        if not fits:
            raise ValueError("its labels are not of the type that it tells")
        if kind == "object":
            return self._objects(entries)
        try:
            return np.array(values, dtype=kind)
        except OverflowError as error:
            raise ValueError(f"a label does not fit into {kind}") from error

    def _stored(self, name: Any) -> Array:
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is no name of an array")
        self.used.add(name)
        return self.file.array(name)

    def _array(self, content: Any) -> Array:
        name, order = _entries(content, "name", "order")
        return np.asarray(self._stored(name), order=_order(order))

    def _sparse(self, content: Any) -> Any:
        name, shape, kind, expand, order = _entries(
            content, "name", "shape", "kind", "expand", "order"
        )
        if not (counts(shape) and len(shape) == 2 and max(shape) < 2**31):
            raise ValueError(f"the shape of the sparse array {name!r} is none")
        if kind not in ("array", "matrix") or type(expand) is not bool:
            raise ValueError(f"the sparse array {name!r} does not tell what it is")
        parts = [self._stored(f"{name}.{part}") for part in ("data", "indices", "indptr")]
        _require_csr(name, parts, shape)
        size = math.prod(shape) * parts[0].itemsize
        if not expand:
            made = sp.csr_array if kind == "array" else sp.csr_matrix
            return made(tuple(parts), shape=tuple(shape))
        if size > LARGEST_EXPANSION:
            raise ValueError(f"the array {name!r} would take {size} bytes")
        out = np.zeros(shape, parts[0].dtype, order=_order(order))
        out[np.repeat(np.arange(shape[0]), np.diff(parts[2])), parts[1]] = parts[0]
        return out

    _KINDS: dict[str, Any] = {  # noqa: RUF012
        "tuple": _tuple,
        "set": _set,
        "dict": _dict,
        "float": _float,
        "not_saved": _not_saved,
        "object": _object,
        "estimator": estimator,
        "result": _result,
        "path": _path,
        "objects": _objects,
        "masked": _masked,
        "labels": _labels,
        "array": _array,
        "sparse": _sparse,
    }


def _require_csr(name: str, parts: list[Array], shape: list[int]) -> None:
    """Refuse indices that are not strictly increasing in each row, or not inside the matrix."""
    data, indices, ends = parts
    if any(part.ndim != 1 for part in parts) or data.dtype.kind != "f":
        raise ValueError(f"the parts of the sparse array {name!r} are no arrays of numbers")
    if indices.dtype.kind != "i" or ends.dtype != indices.dtype or indices.size != data.size:
        raise ValueError(f"the parts of the sparse array {name!r} do not belong together")
    if (
        ends.size != shape[0] + 1
        or ends[0] != 0
        or ends[-1] != data.size
        or np.any(np.diff(ends) < 0)
    ):
        raise ValueError(f"the rows of the sparse array {name!r} do not follow each other")
    if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise ValueError(f"the sparse array {name!r} has entries outside its shape {shape}")
    same_row = np.ones(max(indices.size - 1, 0), dtype=bool)
    inner = ends[1:-1]
    same_row[inner[(inner > 0) & (inner < indices.size)] - 1] = False
    if np.any((np.diff(indices) <= 0) & same_row):
        raise ValueError(f"the sparse array {name!r} has entries twice, or not in their order")


def _entries(content: Any, *names: str) -> tuple[Any, ...]:
    if not isinstance(content, dict) or set(content) != set(names):
        raise ValueError(f"an entry of its metadata has not {', '.join(names)}")
    return tuple(content[name] for name in names)


def _by_name(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError("parameters or attributes in its metadata are not given by name")
    return content


def _named(table: dict[str, type[Any]], name: Any) -> type[Any]:
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"it names the class {name!r}, which sparsvm does not know")
    return table[name]


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError as error:
        raise ValueError("a key of a dictionary in its metadata is none") from error
    return value


def _order(order: Any) -> Any:
    if order not in ("C", "F"):
        raise ValueError(f"{order!r} in its metadata is no order of an array")
    return order
