"""What a command says, as lines or as JSON, and the files it writes, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sparsvm.cli.failure import Failure
from sparsvm.cli.reading import SUFFIXES

# Letters of a line that is never cut or folded.
UNLIMITED_WIDTH = 10_000


def note(text: str) -> None:
    """Tell the user something that is not a result, in one line."""
    print(f"sparsvm: {' '.join(text.split())}", file=sys.stderr)


def show_progress(quiet: bool) -> bool:
    """Whether somebody is there to watch: never in a pipe, a file or a job."""
    return not quiet and sys.stderr.isatty() and sys.stdout.isatty()


@contextmanager
def warnings_told() -> Iterator[list[bool]]:
    """Turn warnings into notes; what is yielded is empty while every fit has converged."""
    from sklearn.exceptions import ConvergenceWarning

    short: list[bool] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Numbers are passed as arrays; names have been matched already.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield short
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"warning: {text}")
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        short.append(True)


@contextmanager
def text_output(path: str) -> Iterator[IO[str]]:
    """Yield a file to write text to, or the standard output if the path is ``-``."""
    if path == "-":
        yield sys.stdout
        return
    from sparsvm.io.whole_files import replacing

    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        yield file


def write_rows(path: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV, or with tabs if the name says so."""
    mark = _delimiter(path)
    with text_output(path) as file:
        writer = csv.writer(file, delimiter=mark, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _delimiter(path: str) -> str:
    """Return what stands between the cells of a table that is to be written, or refuse its name."""
    name = path.lower()
    kind = SUFFIXES.get(Path(name.removesuffix(".gz")).suffix, "csv")
    if name.endswith(".gz") or kind not in ("csv", "tsv"):
        raise Failure(f"{path}: tables are written as CSV or TSV; let the name end so.")
    return "\t" if kind == "tsv" else ","


def require_writable(*paths: str | None, table: bool = False) -> None:
    """Refuse, before the work begins, to write where nothing can be written, or no table."""
    for path in paths:
        if path is None or path == "-":
            continue
        if table:
            _delimiter(path)
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise Failure(f"{path}: there is no folder {str(folder)!r}.")
        if Path(path).is_dir():
            raise Failure(f"{path} is a folder; name a file.")
        if not os.access(folder, os.W_OK):
            raise Failure(f"{path}: nothing can be written to the folder {str(folder)!r}.")


def tell(facts: dict[str, Any], as_json: bool, lines: Sequence[tuple[str, str]]) -> None:
    """Print a result: as one JSON object, or as aligned lines of name and value."""
    if as_json:
        print(json.dumps(_plain(facts), ensure_ascii=False))
        return
    if not sys.stdout.isatty():
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f"{name:<{width}}  {value}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in lines:
        grid.add_row(Text(name), Text(value))
    Console(highlight=False).print(grid)


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> None:
    """Print a table; the columns after the first ``n_left`` are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < n_left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    # In a pipe no line is cut or folded.
    width = None if sys.stdout.isatty() else UNLIMITED_WIDTH
    Console(highlight=False, width=width).print(table)


def _plain(value: Any) -> Any:
    """Return values as JSON has them: no arrays, no NaN."""
    import math

    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
