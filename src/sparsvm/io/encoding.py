"""Values of parameters and attributes as JSON and arrays.

Numbers, strings, None and lists are themselves. Everything else is an object of JSON with one name,
which says what it is: ``{"tuple": [...]}``, ``{"set": [...]}``, ``{"float": "nan"}``,
``{"dict": [[key, value], ...]}``, ``{"array": {...}}``, ``{"sparse": {...}}``,
``{"labels": {...}}``, ``{"objects": [...]}``, ``{"masked": null}``, ``{"object": {...}}`` of a
loss, a penalty or a solver, ``{"estimator": {...}}``, ``{"result": {...}}``, ``{"path": {...}}``
and ``{"not_saved": "its repr"}``.
Classes are looked up in a closed table: nothing that a file names is imported or called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.io.checks import require_consistent
from sparsvm.io.layout import plain_text, storable
from sparsvm.io.tables import (
    CHARACTER,
    DROPPED_FIELDS,
    ESTIMATORS,
    LABEL_TYPES,
    LARGEST_EXPANSION,
    OBJECTS,
    RESULTS,
    SCALARS,
    SHARED_FIELDS,
)
from sparsvm.numerics.sparse_format import checked_sparse
from sparsvm.parameters import Parameterised, only_counts


class Encoder:
    """Turns values into JSON; arrays of numbers are kept aside under names."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}  # of arrays that are kept, by identity: once is enough

    def estimator(self, est: Any, at: str = "") -> dict[str, Any]:
        """Return class, parameters and fitted attributes."""
        require_consistent(est)
        params = est.get_params(deep=False)
        known = {
            name: value
            for name, value in vars(est).items()
            if name.endswith("_") and not name.startswith("_")
        }
        return {
            "class": type(est).__name__,
            "parameters": {name: self.value(v, f"{at}{name}") for name, v in params.items()},
            "attributes": {
                name: (self._classes if name == "classes_" else self.value)(v, f"{at}{name}")
                for name, v in known.items()
            },
        }

    def value(self, value: Any, at: str) -> Any:
        """Return a value as JSON; arrays in it are named after where it is."""
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            value = value.item()
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, str):
            return plain_text(value, "The text")
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if value is np.ma.masked:
            return {"masked": None}
        if isinstance(value, np.ndarray):
            return self._array(value, at)
        if sp.issparse(value):
            matrix = checked_sparse(value, at, "Restore it or fit again.").tocsr()
            if not matrix.has_canonical_format:
                matrix = matrix.copy()
                matrix.sum_duplicates()
            return self._sparse(matrix, at, {"expand": False, "order": "C"})
        return self._container(value, at)

    def _container(self, value: Any, at: str) -> Any:
        if type(value) is list:
            return [self.value(v, f"{at}.{i}") for i, v in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": [self.value(v, f"{at}.{i}") for i, v in enumerate(value)]}
        if isinstance(value, (set, frozenset)):
            ordered = sorted(value, key=repr)  # the same file in every run
            return {"set": [self.value(v, f"{at}.{i}") for i, v in enumerate(ordered)]}
        if isinstance(value, Mapping):
            pairs = [
                (self.value(k, f"{at}.key"), self.value(v, f"{at}.{k}")) for k, v in value.items()
            ]
            return {"dict": [list(pair) for pair in pairs]}
        name = type(value).__name__
        if OBJECTS.get(name) is type(value):
            params = value.get_params() if isinstance(value, Parameterised) else value._asdict()
            made = {key: self.value(v, f"{at}.{key}") for key, v in params.items()}
            return {"object": {"class": name, "parameters": made}}
        if ESTIMATORS.get(name) is type(value):
            return {"estimator": self.estimator(value, f"{at}.")}
        if type(value) is SVMPath:
            return {"path": self._path(value, at)}
        if RESULTS.get(name) is type(value):
            return {"result": self._result(value, at)}
        if (
            hasattr(value, "to_numpy")
            and getattr(value, "ndim", 0) == 1
            and hasattr(value, "index")
        ):
            # A labelled series and a dictionary mean the same.
            plain = list(value) if only_counts(value.index) else dict(value.items())
            return self.value(plain, at)
        return {"not_saved": repr(value).replace("\0", " ")}

    def _array(self, values: Array, at: str) -> Any:
        if values.ndim == 1 and values.dtype.kind in "UO":
            return self._labels(values, at)
        if not storable(values.dtype):
            return {"not_saved": f"array of shape {values.shape} and type {values.dtype}"}
        order = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
        if values.ndim == 2 and values.dtype.kind == "f" and values.nbytes <= LARGEST_EXPANSION:
            sparse = _nonzeros(values)
            small = sum(part.nbytes for part in (sparse.data, sparse.indices, sparse.indptr))
            if small < values.nbytes:
                return self._sparse(sparse, at, {"expand": True, "order": order})
        name = self._names.setdefault(id(values), at)
        self.arrays[name] = values
        return {"array": {"name": name, "order": order}}

    def _classes(self, values: Array, at: str) -> Any:
        found = self._labels(values, at)
        if "labels" not in found:
            raise ValueError(
                f"{at} holds labels of type {values.dtype} that files cannot hold; use strings or "
                "numbers"
            )
        return found

    def _labels(self, values: Array, at: str) -> Any:
        """Return a vector of strings, numbers or truth values as JSON that a person can read."""
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        if values.dtype.kind == "U":
            kind: Any = values.dtype.itemsize // CHARACTER
        else:
            kind = values.dtype.name
        known = values.dtype.kind == "U" or kind in LABEL_TYPES
        if kind == "object" and not all(type(value) in SCALARS for value in plain):
            return {"objects": [self.value(v, f"{at}.{i}") for i, v in enumerate(plain)]}
        if not known:
            return {"not_saved": f"array of shape {values.shape} and type {values.dtype}"}
        return {"labels": {"kind": kind, "values": self.value(plain, at)}}

    def _sparse(self, matrix: Any, at: str, how: dict[str, Any]) -> Any:
        self.arrays[f"{at}.data"] = matrix.data
        self.arrays[f"{at}.indices"] = matrix.indices
        self.arrays[f"{at}.indptr"] = matrix.indptr
        kind = "array" if isinstance(matrix, sp.sparray) else "matrix"
        return {"sparse": {"name": at, "shape": list(matrix.shape), "kind": kind, **how}}

    def _path(self, path: SVMPath, at: str) -> dict[str, Any]:
        """Return the fields of a path, its coefficients one below the other in one matrix."""
        values = {field.name: getattr(path, field.name) for field in fields(path)}
        values["coefs"] = sp.vstack(path.coefs, format="csr")
        return {
            name: (self._classes if name == "classes" else self.value)(value, f"{at}.{name}")
            for name, value in values.items()
        }

    def _result(self, result: Any, at: str) -> dict[str, Any]:
        kept = {
            field.name: self.value(getattr(result, field.name), f"{at}.{field.name}")
            for field in fields(result)
            if field.name not in SHARED_FIELDS and field.name not in DROPPED_FIELDS
        }
        return {"class": type(result).__name__, "values": kept}


def _nonzeros(values: Array) -> Any:
    """Return the entries that are not +0, so that those of -0 come back too."""
    rows, columns = np.nonzero((values != 0.0) | np.signbit(values))
    ends = np.zeros(values.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=values.shape[0]), out=ends[1:])
    narrow = np.int32 if max(values.shape[1], rows.size) < 2**31 else np.int64
    parts = (values[rows, columns], columns.astype(narrow), ends.astype(narrow))
    return sp.csr_array(parts, shape=values.shape)
