"""Tables from files: CSV, TSV, Parquet, npz, svmlight, and what comes through a pipe."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sparsvm.cli.columns import Wanted, as_labels, choose, column_name
from sparsvm.cli.delimited import read_delimited
from sparsvm.cli.failure import RUNTIME, Failure, listed, nearest
from sparsvm.cli.table import Table

SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
FORMATS = ("csv", "tsv", "parquet", "npz", "svmlight")


def read_table(path: str, wanted: Wanted, format: str | None = None) -> Table:
    """Read a table from a file, or from the standard input if the path is ``-``.

    The format follows from the ending (``.gz`` may come after it); what comes through a pipe is
    CSV unless ``format`` says otherwise.
    """
    kind = format or format_of(path)
    if kind not in FORMATS:
        raise Failure(f"--format {kind!r} is none of {listed(FORMATS)}{nearest(kind, FORMATS)}")
    source = "the standard input" if path == "-" else path
    try:
        with _opened(path) as file:
            return READERS[kind](file, source, wanted)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise Failure(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
    except (EOFError, gzip.BadGzipFile) as error:
        raise Failure(f"{path} is not a whole gzip file: {error}.") from None


def format_of(path: str) -> str:
    """Return what the ending of a file says of its format."""
    if path == "-":
        return "csv"
    name = Path(path.lower().removesuffix(".gz"))
    if name.suffix not in SUFFIXES:
        raise Failure(
            f"{path}: the ending does not say what is in it; give --format, one of "
            f"{listed(FORMATS)}."
        )
    return SUFFIXES[name.suffix]


def _opened(path: str) -> Any:
    if path == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")


def _csv(file: IO[bytes], source: str, wanted: Wanted) -> Table:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    return read_delimited(text, source, None, wanted)


def _tsv(file: IO[bytes], source: str, wanted: Wanted) -> Table:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    return read_delimited(text, source, "\t", wanted)


def _parquet(file: IO[bytes], source: str, wanted: Wanted) -> Table:
    import numpy as np

    header, column_of = _parquet_columns(file, source)
    columns = choose(header, len(header), wanted, source)
    arrays = []
    for position in columns.features:
        values = column_of(header[position])
        if values.dtype.kind not in "biuf":
            raise Failure(
                f"{source}, {column_name(header, position)}: it holds {values.dtype} and not "
                "numbers. Leave it out with --drop, or name it with --target if it holds labels."
            )
        arrays.append(values.astype(np.float64))
        bad = np.flatnonzero(~np.isfinite(arrays[-1]))
        if bad.size:
            raise Failure(
                f"{source}, row {bad[0] + 1}, {column_name(header, position)}: the value is "
                "missing or infinite. Fill it in or leave the row out."
            )
    y = None
    if columns.target is not None:
        cells = column_of(header[columns.target]).tolist()
        lost = next((i for i, cell in enumerate(cells) if cell is None or cell != cell), None)
        if lost is not None:
            where = column_name(header, columns.target)
            raise Failure(f"{source}, row {lost + 1}, {where}: there is no label.")
        y = as_labels(cells, source)
    return Table(source, np.column_stack(arrays), columns.names, y)


def _parquet_columns(file: IO[bytes], source: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names, and a function from a name to an array, by pyarrow or polars."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        pass
    else:
        try:
            table = parquet.read_table(file)
        except ArrowException as error:
            raise Failure(f"{source} is not a whole Parquet file: {error}.") from None
        return table.column_names, lambda name: table.column(name).to_numpy()
    try:
        import polars
    except ImportError:
        raise Failure(
            "Reading Parquet needs pyarrow or polars, and neither is installed: pip install "
            "pyarrow.",
            RUNTIME,
        ) from None
    try:
        frame = polars.read_parquet(file)
    except polars.exceptions.PolarsError as error:
        raise Failure(f"{source} is not a whole Parquet file: {error}.") from None
    return frame.columns, lambda name: frame[name].to_numpy()


def _npz(file: IO[bytes], source: str, wanted: Wanted) -> Table:
    """Read ``X``, ``y`` and ``feature_names``; X may be what ``scipy.sparse.save_npz`` writes."""
    import zipfile

    import numpy as np
    import scipy.sparse as sp

    held = io.BytesIO(file.read())
    try:
        arrays = dict(np.load(held, allow_pickle=False))
    except (ValueError, OSError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise Failure(f"{source} is not a whole npz file of plain arrays: {error}.") from None
    if {"data", "indices", "indptr"} <= set(arrays):
        held.seek(0)
        X = sp.csr_matrix(sp.load_npz(held), dtype=np.float64)
    elif "X" in arrays:
        X = np.asarray(arrays["X"], dtype=np.float64)
    else:
        raise Failure(f"{source} holds {listed(sorted(arrays))}, but X is needed.")
    if X.ndim != 2:
        raise Failure(f"{source}: X has {X.ndim} dimensions, but samples × features is wanted.")
    y = arrays.get("y")
    if wanted.labelled and y is None:
        raise Failure(f"{source} holds {listed(sorted(arrays))}, but the labels y are needed.")
    if y is not None and y.shape != (X.shape[0],):
        raise Failure(f"{source}: X has {X.shape[0]} rows, but y has the shape {y.shape}.")
    names = None if "feature_names" not in arrays else arrays["feature_names"].astype(str).tolist()
    columns = choose(
        names, X.shape[1], Wanted(**{**vars(wanted), "target": None, "labelled": False}), source
    )
    if columns.features != list(range(X.shape[1])):
        X = X[:, columns.features]
    return Table(source, X, columns.names, None if y is None else as_labels(y.tolist(), source))


def _svmlight(file: IO[bytes], source: str, wanted: Wanted) -> Table:
    from sklearn.datasets import load_svmlight_file

    held = io.BytesIO(file.read())
    try:
        X, y = load_svmlight_file(held, n_features=wanted.n_features, zero_based=False)
    except ValueError as error:
        raise _bad_line(held.getvalue(), source, str(error)) from None
    if X.shape[0] == 0:
        raise Failure(f"{source} is empty.")
    return Table(source, X, None, as_labels(y.tolist(), source))


def _bad_line(content: bytes, source: str, reason: str) -> Failure:
    """Find the line that cannot be read, which the reader of all lines does not tell."""
    from sklearn.datasets import load_svmlight_file

    for number, line in enumerate(content.splitlines(), start=1):
        try:
            load_svmlight_file(io.BytesIO(line + b"\n"), zero_based=False)
        except ValueError as error:
            return Failure(
                f"{source}, line {number}: {error}. Lines are 'label index:value ...' with "
                "numbers, indices from 1 and rising."
            )
    return Failure(f"{source}: {reason}")


READERS: dict[str, Callable[[IO[bytes], str, Wanted], Table]] = {
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
    "npz": _npz,
    "svmlight": _svmlight,
}
