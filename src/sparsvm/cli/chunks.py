"""Tables larger than memory: text is read once, by chunks of rows, into a file that is mapped."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparsvm.cli.columns import Wanted, as_labels
from sparsvm.cli.delimited import read_by_chunks
from sparsvm.cli.failure import Failure
from sparsvm.cli.reading import format_of
from sparsvm.cli.table import Table


@contextmanager
def stored_table(path: str, wanted: Wanted, format: str | None, rows: int) -> Iterator[Table]:
    """Give a table whose X is mapped from a temporary file, which is gone afterwards.

    No more than ``rows`` rows, and the numbers of the labels, are in memory at a time.
    """
    import numpy as np

    kind = format or format_of(path)
    if kind not in ("csv", "tsv"):
        raise Failure(
            f"--chunks reads CSV and TSV, and {path} is {kind}. In Python, sparsvm.partitioned "
            "reads .npy, npz parts, svmlight and Parquet files by chunks."
        )
    source = "the standard input" if path == "-" else path
    known: dict[str, int] = {}
    codes, names, width, count = [], None, 0, 0
    with tempfile.TemporaryDirectory(prefix="sparsvm-") as folder:
        target = Path(folder, "X")
        with target.open("wb") as out:
            for table in read_by_chunks(
                _text(path), source, "\t" if kind == "tsv" else None, wanted, rows
            ):
                table.X.tofile(out)
                names, width, count = table.names, table.X.shape[1], count + table.X.shape[0]
                numbers = [known.setdefault(str(label).strip(), len(known)) for label in table.y]
                codes.append(np.array(numbers, dtype=np.int32))
        X = np.memmap(target, np.float64, "r", shape=(count, width))
        labels = as_labels(list(known), source)
        try:
            yield Table(source, X, names, labels[np.concatenate(codes)], stored=True)
        finally:
            del X


def _text(path: str) -> Any:
    if path == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    if not os.path.exists(path):
        raise Failure(f"{path}: no such file or directory.")
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    try:
        return open(path, encoding="utf-8-sig", newline="")
    except OSError as error:
        raise Failure(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
