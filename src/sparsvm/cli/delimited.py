"""Tables as text, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import IO, Any

from sparsvm.cli.columns import Columns, Wanted, as_labels, choose, column_name
from sparsvm.cli.failure import Failure
from sparsvm.cli.table import Table

# Letters of a cell that an error shows.
SHOWN_LETTERS = 30
MISSING_CELLS = ("", "na", "n/a", "nan", "null", "none", "?")


def read_delimited(stream: IO[str], source: str, delimiter: str | None, wanted: Wanted) -> Table:
    """Read a table; numbers are parsed row by row, so that a mistake has a line and a column.

    The first line holds names unless it holds numbers only.
    """
    table = next(read_by_chunks(stream, source, delimiter, wanted, None))
    return table if table.y is None else replace(table, y=as_labels(table.y, source))


def read_by_chunks(
    stream: IO[str], source: str, delimiter: str | None, wanted: Wanted, rows: int | None
) -> Iterator[Table]:
    """Yield tables of at most so many rows each, with the labels as they are written."""
    try:
        with stream:
            yield from _read(stream, source, delimiter, wanted, rows)
    except UnicodeDecodeError as error:
        raise Failure(
            f"{source} is not UTF-8 text: byte {error.object[error.start]:#04x} has no meaning "
            "there. Save it as UTF-8."
        ) from None
    except csv.Error as error:
        raise Failure(f"{source} is not a table of text: {error}.") from None


def _read(
    stream: IO[str], source: str, delimiter: str | None, wanted: Wanted, most: int | None
) -> Iterator[Table]:
    first = stream.readline()
    if not first.strip():
        raise Failure(f"{source} is empty, or its first line is.")
    mark = delimiter or max(",;\t", key=first.count)
    reader = csv.reader(_after(first, stream), delimiter=mark, strict=True)
    row = next(reader)
    header = None if _numbers(row) else row
    columns = choose(header, len(row), wanted, source)
    width, take, target = len(row), _taker(columns.features), columns.target
    rows: Iterable[list[str]] = reader if header is not None else _chain(row, reader)
    chunk, count = _Chunk(source, header, columns), 0
    for cells in rows:
        if not cells:
            continue  # an empty line
        line = reader.line_num
        if len(cells) != width:
            raise Failure(f"{source}, line {line}: {len(cells)} cells, but the table has {width}.")
        try:
            chunk.values.extend(map(float, take(cells)))
        except ValueError:
            raise _bad_cell(cells, columns.features, header, source, line) from None
        chunk.lines.append(line)
        count += 1
        if target is not None:
            if cells[target].strip().lower() in MISSING_CELLS:
                where = column_name(header, target)
                raise Failure(f"{source}, line {line}, {where}: there is no label.")
            chunk.labels.append(cells[target])
        if most is not None and len(chunk.lines) == most:
            yield chunk.table()
            chunk = _Chunk(source, header, columns)
    if not count:
        raise Failure(f"{source} has names of columns, but no rows.")
    if chunk.lines:
        yield chunk.table()


class _Chunk:
    """Some rows of a table: numbers, labels, and the lines they came from."""

    def __init__(self, source: str, header: list[str] | None, columns: Columns) -> None:
        self.source, self.header, self.columns = source, header, columns
        self.values, self.lines = array("d"), array("q")
        self.labels: list[str] = []

    def table(self) -> Table:
        """Return them; every value must be finite."""
        import numpy as np

        features = self.columns.features
        X = np.frombuffer(self.values, dtype=np.float64).reshape(len(self.lines), len(features))
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if bad.size:
            position = features[int(np.flatnonzero(~np.isfinite(X[bad[0]]))[0])]
            where = column_name(self.header, position)
            raise Failure(
                f"{self.source}, line {self.lines[int(bad[0])]}, {where}: the value is missing or "
                "infinite. Fill it in or leave the row out."
            )
        y = None if self.columns.target is None else self.labels
        return Table(self.source, X, self.columns.names, y)


def _after(first: str, stream: IO[str]) -> Iterable[str]:
    yield first
    yield from stream


def _chain(row: list[str], reader: Iterable[list[str]]) -> Iterable[list[str]]:
    yield row
    yield from reader


def _taker(positions: list[int]) -> Any:
    """Return a function from the cells of a row to those of the features."""
    return itemgetter(*positions) if len(positions) > 1 else lambda cells: (cells[positions[0]],)


def _numbers(cells: list[str]) -> bool:
    try:
        return all(math.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False


def _bad_cell(
    cells: list[str], features: list[int], header: list[str] | None, source: str, line: int
) -> Failure:
    for position in features:
        try:
            float(cells[position])
        except ValueError:
            cell = cells[position].strip()
            where = f"{source}, line {line}, {column_name(header, position)}"
            if cell.lower() in MISSING_CELLS:
                return Failure(f"{where}: the value is missing. Fill it in or leave the row out.")
            shown = cell if len(cell) <= SHOWN_LETTERS else cell[: SHOWN_LETTERS - 1] + "…"
            return Failure(
                f"{where}: {shown!r} is not a number. Leave the column out with --drop, or name "
                "it with --target if it holds the labels."
            )
    raise AssertionError("every cell is a number")
