"""What every experiment shares: cells that are measured once, a CSV, a figure and a page.

An experiment is a list of cells (dictionaries of what is varied), a function that measures one cell
and returns rows of numbers, a function that draws all rows, and one that tells them in words. Rows
are written as soon as a cell is done, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# One thread, before NumPy is loaded: seconds are of the processor.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

Cell = dict[str, Any]
Row = dict[str, Any]
HERE = Path(__file__).parent
RESULTS = HERE / "results"
QUICK = HERE.parent / "build" / "experiments"
# What a cell calls the number of its repetition; the option --draws limits it.
REPETITION = ("draw", "split", "seed")
# "not decided": it was tested, and the difference is not larger than what chance or a clock makes.
VERDICTS = ("confirmed", "refuted", "not decided", "not testable here")
# Standard errors of a mean from which on its sign is taken to be known.
SURE = 2.0
MINUTES = "begin nothing new after so many minutes of the processor"


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    item : str
        Its name, such as "000 Table 1".
    cells : callable
        ``cells(quick)`` lists what is to be measured.
    measure : callable
        ``measure(cell, quick)`` returns rows, to which the cell's own values are added.
    tell : callable
        ``tell(rows)`` returns the Markdown under the title: protocol, table, what differs and why.
    draw : callable, optional
        ``draw(rows)`` returns a matplotlib figure.
    claims : tuple of (claim, judge)
        Sentences of the paper with ``judge(rows)`` that returns one of ``VERDICTS`` and the number
        that says so.
    """

    item: str
    title: str
    cells: Callable[[bool], list[Cell]]
    measure: Callable[[Cell, bool], list[Row]]
    tell: Callable[[list[Row]], str]
    draw: Callable[[list[Row]], Any] | None = None
    claims: tuple[tuple[str, Callable[[list[Row]], tuple[str, str]]], ...] = ()
    alternative: str = field(default="", kw_only=True)  # what the figure shows, for its alt text
    data: str = field(default="", kw_only=True)  # name of a CSV that several experiments share

    @property
    def table(self) -> str:
        """Name of the CSV."""
        return f"{self.data or self.stem}.csv"

    @property
    def stem(self) -> str:
        """File name without its ending: 000_table_1."""
        return self.item.lower().replace(".", "").replace("fig ", "figure ").replace(" ", "_")

    def main(self) -> None:
        """Run as a program."""
        parser = argparse.ArgumentParser(description=f"{self.item}: {self.title}")
        parser.add_argument("--quick", action="store_true", help="a few small cells, in seconds")
        parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
        parser.add_argument(
            "--output", type=Path, help="folder of the CSV, the figure and the page"
        )
        parser.add_argument("--so-far", action="store_true", help="show what was measured so far")
        parser.add_argument("--draws", type=int, help="at most so many draws, splits or seeds")
        parser.add_argument("--minutes", type=float, help=MINUTES)
        options = vars(parser.parse_args())
        output = options.pop("output") or (QUICK if options["quick"] else RESULTS)
        self.run(output, **options)

    def run(
        self,
        output: Path,
        *,
        quick: bool = False,
        fresh: bool = False,
        so_far: bool = False,
        draws: int | None = None,
        minutes: float | None = None,
    ) -> list[Row]:
        """Measure what is missing, then write CSV, figure and page.

        ``so_far`` measures nothing; ``draws`` leaves out the repetitions from that number on; no
        cell is begun after ``minutes`` of processor time.
        """
        output.mkdir(parents=True, exist_ok=True)
        table = output / self.table
        if fresh:
            table.unlink(missing_ok=True)
        cells = [] if so_far else self.cells(quick)
        if draws is not None:
            cells = [c for c in cells if all(c.get(name, 0) < draws for name in REPETITION)]
        rows = read(table)
        end = math.inf if minutes is None else time.process_time() + 60.0 * minutes
        for at, cell in enumerate(cells):
            if any(all(row.get(key) == value for key, value in cell.items()) for row in rows):
                continue
            if time.process_time() > end:
                break
            shown = ", ".join(f"{key} {value}" for key, value in cell.items())
            print(f"{self.item} [{at + 1}/{len(cells)}] {shown}", end=" ", flush=True)
            began = time.process_time()
            rows += [{**cell, **row} for row in self.measure(cell, quick)]
            print(f"({time.process_time() - began:.1f} s)", flush=True)
            _write(table, rows)
        self._present(output, rows)
        return rows

    def _present(self, output: Path, rows: list[Row]) -> None:
        parts = [f"# {self.item}: {self.title}", self.tell(rows)]
        if self.draw is not None:
            parts.append(f"![{self.alternative or self.title}]({self.stem}.png)")
            _save(self.draw(rows), output / f"{self.stem}.png")
        if self.claims:
            judged = [(claim, *judge(rows)) for claim, judge in self.claims]
            parts.append(markdown_table(("the paper says", "", "found"), judged))
        module = Path(sys.modules[self.measure.__module__].__file__ or "").name
        parts.append(
            f"Made by `python experiments/{module}`; numbers in [{self.table}]({self.table})."
        )
        page = output / f"{self.stem}.md"
        page.write_text("\n\n".join(part.strip() for part in parts) + "\n")
        print(f"wrote {page}", flush=True)


def markdown_table(header: tuple[str, ...], rows: list[Any]) -> str:
    """Return a Markdown table; floats are shown with three digits."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_shown(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def pick(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def values(rows: list[Row], key: str, **wanted: Any) -> list[Any]:
    """Return one column of the rows with these values."""
    return [row[key] for row in pick(rows, **wanted)]


def distinct(rows: list[Row], key: str) -> list[Any]:
    """Return the values of a column in the order of their first appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def verdict(outcomes: list[bool | None]) -> str:
    """Return the verdict on a sentence that should hold each time; None where a time is a tie."""
    if False in outcomes:
        return "refuted"
    return "not decided" if None in outcomes or not outcomes else "confirmed"


def standard_error(numbers: Any) -> float:
    """Return the standard error of a mean, infinite of a single number."""
    import numpy as np

    each = np.asarray(numbers, dtype=float)
    return float(each.std(ddof=1) / each.size**0.5) if each.size > 1 else math.inf


def subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure and a grid of axes in the style of all experiments."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plain_log(axis: Any) -> None:
    """Label a logarithmic axis 0.1, 0.2, 0.5, 1, 2, 5, which stays legible over a decade or two."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt
    from PIL import Image

    figure.savefig(path, dpi=110)
    plt.close(figure)
    # Lines and text need few colours; a palette makes the file a third.
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(128)
    small.save(path, optimize=True)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV, none where there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _write(path: Path, rows: list[Row]) -> None:
    names = list(dict.fromkeys(key for row in rows for key in row))
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
