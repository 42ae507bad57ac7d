"""Partitions of a training set: rows in memory, or where to read them from when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array

Path = str | os.PathLike[str]
# Rows read at a time where nothing is said: 64 MB of dense doubles.
PART_BYTES = 1 << 26
# An entry of sparse data is a number and an index half its size.
SPARSE_ENTRY = 1.5
DOUBLE_BYTES = 8
# X, y, weights and margins; and the names that an error lists.
MOST_ARRAYS, LIST_LENGTH = 4, 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Some samples with their labels and, if there are any, weights, margins and names of columns.

    Frames need no names: they have their own.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    sample_margin: Any = None
    names: tuple[str, ...] | None = None

    def load(self) -> Rows:
        """Return the samples, which are in memory."""
        return self


@dataclass(frozen=True, eq=False)
class Stored:
    """Samples that a function reads anew for every pass over the data."""

    read: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def load(self) -> Rows:
        """Read the samples."""
        return as_part(self.read(*self.arguments)).load()


def as_part(given: Any) -> Rows | Stored:
    """Return what the user calls a partition: rows, a function that reads them, or (X, y, ...)."""
    if isinstance(given, (Rows, Stored)):
        return given
    if callable(given):
        return Stored(given)
    if isinstance(given, (tuple, list)) and 2 <= len(given) <= MOST_ARRAYS:
        return Rows(*given)
    raise ValueError(
        "A partition is a tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, "
        f"sample_margin), or a function without arguments that returns one; got {type(given)}."
    )


def as_parts(X: Any, y: Any, sample_weight: Any, sample_margin: Any) -> list[Any]:
    """Return the partitions of an array with labels, or of a list of partitions without."""
    if y is not None:
        return list(split_rows(X, y, sample_weight, sample_margin))
    if sample_weight is not None or sample_margin is not None:
        raise ValueError(
            "Without y, weights and margins belong to the partitions: (X, y, sample_weight, "
            "sample_margin)."
        )
    if not isinstance(X, (list, tuple)):
        raise ValueError(
            f"Without y, X must be a list of partitions such as (X, y); got {type(X)}."
        )
    return [as_part(part) for part in X]


def split_rows(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    sample_margin: Any = None,
    *,
    rows: int | None = None,
) -> list[Rows]:
    """Divide arrays, memory-mapped ones too, into partitions of consecutive rows.

    Parameters
    ----------
    X : ndarray, numpy.memmap or CSR matrix of shape (n_samples, n_features)
    y, sample_weight, sample_margin : array-like of shape (n_samples,)
    rows : int, optional
        Rows of a partition; by default as many as take 64 MB.

    Returns
    -------
    list of partitions
        Views of X, not copies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import split_rows
    >>> len(split_rows(*load_iris(return_X_y=True), rows=40))
    4
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    n = X.shape[0]
    if len(y) != n:
        raise ValueError(f"X has {n} rows but y has {len(y)} labels.")
    rows = _rows_of_a_part(X) if rows is None else rows
    weight, margin = (None if e is None else np.asarray(e) for e in (sample_weight, sample_margin))
    cuts = [slice(at, at + rows) for at in range(0, n, rows)]
    return [
        Rows(
            X[cut],
            y[cut],
            None if weight is None else weight[cut],
            None if margin is None else margin[cut],
        )
        for cut in cuts
    ]


def _rows_of_a_part(X: Any) -> int:
    entries = X.nnz / max(1, X.shape[0]) * SPARSE_ENTRY if sp.issparse(X) else X.shape[1]
    return max(1, int(PART_BYTES / (DOUBLE_BYTES * max(1.0, entries))))


def from_npy(X: Path, y: Path, *, rows: int | None = None) -> list[Stored]:
    """Return partitions of two ``.npy`` files, which are mapped into memory and never read whole.

    What is sent to a Dask worker is where the rows are; it must see the same files.

    Parameters
    ----------
    X, y : path
        Files written by ``numpy.save``.
    rows : int, optional
        Rows of a partition; by default as many as take 64 MB.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import SparseSVC, from_npy
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [os.path.join(folder, name) for name in ("X.npy", "y.npy")]
    ...     np.save(files[0], X), np.save(files[1], y)
    ...     model = SparseSVC(alpha=0.1).fit(from_npy(*files, rows=50))
    (None, None)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """
    known = np.load(X, mmap_mode="r")
    n, labels = known.shape[0], np.load(y, mmap_mode="r").shape[0]
    if labels != n:
        raise ValueError(f"X has {n} rows but y has {labels} labels.")
    rows = _rows_of_a_part(known) if rows is None else rows
    return [Stored(_read_npy, (X, y, at, at + rows)) for at in range(0, n, rows)]


def _read_npy(X: Path, y: Path, first: int, last: int) -> tuple[Any, Array]:
    return np.load(X, mmap_mode="r")[first:last], np.load(y, mmap_mode="r")[first:last]


def from_npz(files: Sequence[tuple[Path, Path]]) -> list[Stored]:
    """Return one partition for each pair of a sparse matrix (``scipy.sparse.save_npz``) and labels.

    Parameters
    ----------
    files : list of (path of the CSR matrix, path of the labels as ``.npy``)

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import scipy.sparse as sp
    >>> from sparsvm.partitioned import SparseSVC, from_npz
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = []
    ...     for part in range(3):
    ...         names = [os.path.join(folder, f"{part}.{kind}") for kind in ("npz", "npy")]
    ...         sp.save_npz(names[0], sp.csr_matrix(X[part::3]))
    ...         np.save(names[1], y[part::3])
    ...         files.append(names)
    ...     model = SparseSVC(alpha=0.1).fit(from_npz(files))
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """
    return [Stored(_read_npz, (X, y)) for X, y in files]


def _read_npz(X: Path, y: Path) -> tuple[Any, Array]:
    return sp.load_npz(X).tocsr(), np.load(y)


def from_svmlight(
    path: Path, n_features: int, *, part_bytes: int = PART_BYTES, **options: Any
) -> list[Stored]:
    """Return partitions of a file in svmlight's format, cut at line ends.

    Parameters
    ----------
    path : path
    n_features : int
        Columns of every partition.
    part_bytes : int, default=67108864
        Bytes of text a partition.
    **options
        Of :func:`sklearn.datasets.load_svmlight_file`.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import dump_svmlight_file, load_iris
    >>> from sparsvm.partitioned import SparseSVC, from_svmlight
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.svm")
    ...     dump_svmlight_file(X, y, path)
    ...     model = SparseSVC(alpha=0.1).fit(from_svmlight(path, 4, part_bytes=2000))
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """
    size = os.path.getsize(path)
    ends = [0]
    with open(path, "rb") as file:
        while ends[-1] < size:
            file.seek(min(ends[-1] + part_bytes, size))
            file.readline()
            ends.append(min(file.tell(), size))
    return [
        Stored(_read_svmlight, (path, n_features, first, last - first, options))
        for first, last in pairwise(ends)
    ]


def _read_svmlight(
    path: Path, n_features: int, offset: int, length: int, options: dict[str, Any]
) -> tuple[Any, Array]:
    import io

    from sklearn.datasets import load_svmlight_file

    with open(path, "rb") as file:
        file.seek(offset)
        text = io.BytesIO(file.read(length))
    X, y = load_svmlight_file(text, n_features=n_features, **options)
    return X, y


def from_parquet(path: Path, target: str, *, columns: Sequence[str] | None = None) -> list[Stored]:
    """Return one partition for each row group of a Parquet file; needs pyarrow.

    The model keeps the names of the columns.

    Parameters
    ----------
    path : path
    target : str
        The column of the labels.
    columns : list of str, optional
        The features; by default all columns but the target.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import SparseSVC, from_parquet
    >>> iris = load_iris(as_frame=True).frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.parquet")
    ...     iris.to_parquet(path, row_group_size=50)
    ...     model = SparseSVC(alpha=0.1).fit(from_parquet(path, "target"))
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            "Reading Parquet files needs pyarrow, which is not installed: pip install pyarrow."
        ) from error
    file = parquet.ParquetFile(path)
    names = [name for name in file.schema_arrow.names if name != target]
    if target not in file.schema_arrow.names:
        raise ValueError(
            f"{path!s} has no column {target!r}; its columns are {names[:LIST_LENGTH]} ..."
        )
    chosen = list(names if columns is None else columns)
    return [
        Stored(_read_row_group, (path, group, chosen, target))
        for group in range(file.num_row_groups)
    ]


def _read_row_group(path: Path, group: int, columns: list[str], target: str) -> Rows:
    import pyarrow.parquet as parquet

    table = parquet.ParquetFile(path).read_row_group(group, [*columns, target])
    X = np.column_stack([table[name].to_numpy(zero_copy_only=False) for name in columns])
    return Rows(X, table[target].to_numpy(zero_copy_only=False), names=tuple(columns))
