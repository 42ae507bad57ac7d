"""Values of parameters and attributes as JSON and arrays, and back.

Numbers, texts, None and lists are themselves. Everything else is an object of JSON with one name,
which says what it is: ``{"tuple": [...]}``, ``{"set": [...]}``, ``{"float": "nan"}``,
``{"dict": [[key, value], ...]}``, ``{"array": {...}}``, ``{"sparse": {...}}``,
``{"labels": {...}}``, ``{"object": {...}}`` of a loss, a penalty or a solver,
``{"estimator": {...}}``, ``{"result": {...}}`` and ``{"not_saved": "its repr"}``.
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
from sparsvm.budget import CONSTRAINED_SOLVERS
from sparsvm.budget.problem import ConstrainedSolution
from sparsvm.estimators import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC
from sparsvm.estimators.cv import SparseSVCCV
from sparsvm.hierarchical import SOLVERS as HIERARCHICAL_SOLVERS
from sparsvm.hierarchical import HierarchicalSolution
from sparsvm.io.checks import require_consistent
from sparsvm.io.layout import SafeFile, counts, plain_text, storable
from sparsvm.losses import LOSSES
from sparsvm.numerics.sparse_format import checked_sparse
from sparsvm.parameters import Parameterised, only_counts
from sparsvm.penalties import PENALTIES
from sparsvm.problem.solution import History, Solution
from sparsvm.solvers import SOLVERS, Chain, Stage

# What a file may name. An estimator is added by a line here.
ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (SparseSVC, SparseSVCCV, ConstrainedSparseSVC, MaxMarginSVC)
}
_OBJECTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *LOSSES.values(),
        *PENALTIES.values(),
        *SOLVERS.values(),
        *CONSTRAINED_SOLVERS.values(),
        *HIERARCHICAL_SOLVERS.values(),
        Chain,
        Stage,
    )
}
_RESULTS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Solution, ConstrainedSolution, HierarchicalSolution)
}
# What a result does not take into a file: the model's own arrays, and how they were found.
_SHARED = ("coef", "intercept")
_DROPPED: dict[str, Any] = {"dual": None, "proof": None, "history": History.empty()}
# An array of more bytes is not written as a sparse one, so that no small file claims more memory.
LARGEST_EXPANSION = 2**30
# Bytes of a character in an array of texts.
_CHARACTER = 4
_SCALARS = (str, int, float, bool)
# The types of labels, but for texts of a fixed length, and what each holds.
_LABELS: dict[str, tuple[type, ...]] = {
    "object": _SCALARS,
    "bool": (bool,),
    "float32": (float,),
    "float64": (float,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class NotSaved:
    """Stands, in a loaded model, for a parameter that files cannot hold.

    Predictions do not need it; fitting again asks for it, with a message that shows this text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<not saved: {self.text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotSaved) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Encoder:
    """Turns values into JSON; arrays of numbers are kept aside under names."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

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
        if _OBJECTS.get(name) is type(value):
            params = value.get_params() if isinstance(value, Parameterised) else value._asdict()
            made = {key: self.value(v, f"{at}.{key}") for key, v in params.items()}
            return {"object": {"class": name, "parameters": made}}
        if ESTIMATORS.get(name) is type(value):
            return {"estimator": self.estimator(value, f"{at}.")}
        if _RESULTS.get(name) is type(value):
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
        self.arrays[at] = values
        return {"array": {"name": at, "order": order}}

    def _classes(self, values: Array, at: str) -> Any:
        found = self._labels(values, at)
        if "labels" not in found:
            raise ValueError(
                f"{at} holds labels of type {values.dtype} that files cannot hold; use texts or "
                "numbers"
            )
        return found

    def _labels(self, values: Array, at: str) -> Any:
        """Return a vector of texts, numbers or truth values as JSON that a person can read."""
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        if values.dtype.kind == "U":
            kind: Any = values.dtype.itemsize // _CHARACTER
        else:
            kind = values.dtype.name
        known = values.dtype.kind == "U" or kind in _LABELS
        if not known or not all(type(value) in _SCALARS for value in plain):
            return {"not_saved": f"array of shape {values.shape} and type {values.dtype}"}
        return {"labels": {"kind": kind, "values": self.value(plain, at)}}

    def _sparse(self, matrix: Any, at: str, how: dict[str, Any]) -> Any:
        self.arrays[f"{at}.data"] = matrix.data
        self.arrays[f"{at}.indices"] = matrix.indices
        self.arrays[f"{at}.indptr"] = matrix.indptr
        kind = "array" if isinstance(matrix, sp.sparray) else "matrix"
        return {"sparse": {"name": at, "shape": list(matrix.shape), "kind": kind, **how}}

    def _result(self, result: Any, at: str) -> dict[str, Any]:
        kept = {
            field.name: self.value(getattr(result, field.name), f"{at}.{field.name}")
            for field in fields(result)
            if field.name not in _SHARED and field.name not in _DROPPED
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
        kind = _named(_OBJECTS, name)
        known = kind._parameter_names() if issubclass(kind, Parameterised) else kind._fields
        return self._made(kind, params, known)

    def _result(self, content: Any) -> Any:
        name, values = _entries(content, "class", "values")
        kind = _named(_RESULTS, name)
        found = {key: self.value(value) for key, value in _by_name(values).items()}
        names = {field.name for field in fields(kind)}
        found |= {key: value for key, value in _DROPPED.items() if key in names}
        found |= dict.fromkeys(_SHARED)
        if set(found) != names:
            raise ValueError(f"its certificate has not the values of a {name}")
        return kind(**found)

    def _labels(self, content: Any) -> Array:
        kind, entries = _entries(content, "kind", "values")
        values = self._list(entries)
        if isinstance(kind, str) and kind in _LABELS:
            fits = all(type(value) in _LABELS[kind] for value in values)
        elif type(kind) is int and 0 < kind * len(values) <= LARGEST_EXPANSION // _CHARACTER:
            fits = all(isinstance(value, str) and len(value) <= kind for value in values)
            kind = f"<U{kind}"
        else:
            fits = False
        if not fits:
            raise ValueError("its labels are not of the type that it tells")
        if kind == "object":
            out = np.empty(len(values), dtype=object)
            out[:] = values
            return out
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
