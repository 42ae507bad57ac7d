"""Telling how far a cross-validation has come: a bar with rich, plain lines without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Called once for every fold that is done."""

    def __call__(self, text: str) -> None: ...


@contextmanager
def reporting(total: int, verbose: bool) -> Iterator[Report]:
    """Yield a function that counts ``total`` folds; it is silent unless ``verbose``."""
    if not verbose:
        yield lambda text: None
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed
    except ImportError:
        yield _plain(total)
        return
    columns = (
        TextColumn("cross-validation"),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=total)

        def advance(text: str) -> None:
            bar.update(task, advance=1, description=text)

        yield advance


def _plain(total: int) -> Report:
    began = time.perf_counter()
    done = 0

    def line(text: str) -> None:
        nonlocal done
        done += 1
        elapsed = time.perf_counter() - began
        print(f"cross-validation: fold {done}/{total}  {elapsed:.1f} s  {text}", flush=True)

    return line
