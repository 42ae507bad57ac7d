"""Telling how far a cross-validation has come: a bar with rich, plain lines without it.

Models are solved in other processes as well. Each task counts its models in a file of its own
in one folder, by the length of the file, and a thread adds the lengths up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

# Seconds between two readings of the counts, and between two plain lines within a fold.
_READING_PAUSE, _LINE_PAUSE = 0.2, 2.0

Show = Callable[[int, int, str, bool], None]


@dataclass(frozen=True)
class Tick:
    """Counts one model when it is called, in whatever process."""

    file: Path

    def __call__(self) -> None:
        with self.file.open("ab") as file:
            file.write(b".")


class Report:
    """The counts of all tasks; silent without a folder to count in."""

    def __init__(self, folder: Path | None, show: Show) -> None:
        self._folder = folder
        self._show = show
        self._text = ""
        self.total = 0

    def tick(self, task: str) -> Tick | None:
        """Return what counts the models of a task."""
        return None if self._folder is None else Tick(self._folder / task)

    def done(self, text: str) -> None:
        """Say that a fold is done."""
        self._text = text
        self.look(True)

    def look(self, fold_done: bool = False) -> None:
        """Show the counts as they are now."""
        if self._folder is not None:
            solved = sum(file.stat().st_size for file in self._folder.iterdir())
            self._show(solved, self.total, self._text, fold_done)


@contextmanager
def reporting(verbose: bool) -> Iterator[Report]:
    """Yield the report of a cross-validation; it is silent unless ``verbose``."""
    if not verbose:
        yield Report(None, _plain())
        return
    with TemporaryDirectory() as folder, _shown() as show:
        report = Report(Path(folder), show)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_READING_PAUSE):
                report.look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield report
        finally:
            ended.set()
            thread.join()


@contextmanager
def _shown() -> Iterator[Show]:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed
    except ImportError:
        yield _plain()
        return
    columns = (
        TextColumn("cross-validation"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("models"),
        Elapsed(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("")

        def show(solved: int, total: int, text: str, fold_done: bool) -> None:
            bar.update(task, completed=solved, total=total, description=text)

        yield show


def _plain() -> Show:
    began = last = time.perf_counter()

    def line(solved: int, total: int, text: str, fold_done: bool) -> None:
        nonlocal last
        now = time.perf_counter()
        if not fold_done and now - last < _LINE_PAUSE:
            return
        last = now
        told = f"cross-validation: {solved}/{total} models  {now - began:.1f} s  {text}"
        print(told.rstrip(), flush=True)

    return line
