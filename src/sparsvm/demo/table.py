"""What the demo compares: the models of a task, a line each."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsvm._typing import Counts, Floats
from sparsvm.estimators import SparseSVC


@dataclass(frozen=True)
class Task:
    """A data set, split into what the models learn from and what they are tested on."""

    name: str
    feature: str
    feature_names: list[str]
    alphas: tuple[float, ...]
    train: tuple[Floats, Counts]
    test: tuple[Floats, Counts]


@dataclass(frozen=True)
class Row:
    """One line of the table, and the fitted model behind it."""

    name: str
    strength: str
    accuracy: float
    seconds: float
    model: Any

    @property
    def features(self) -> int:
        """Number of features that any class uses."""
        return int(np.any(self.model.coef_ != 0, axis=0).sum())

    @property
    def gap(self) -> str:
        """The certified relative duality gap; scikit-learn's classifiers do not have one."""
        return f"{self.model.dual_gap_:.0e}" if isinstance(self.model, SparseSVC) else "-"

    def cells(self) -> list[str]:
        """Return the row as text."""
        nonzeros = np.count_nonzero(self.model.coef_)
        return [
            self.name,
            self.strength,
            f"{100 * self.accuracy:.1f} %",
            f"{self.features} of {self.model.coef_.shape[1]}",
            f"{nonzeros}",
            self.gap,
            f"{self.seconds:.3f}",
        ]


HEADINGS = ["model", "strength", "accuracy", "features", "weights", "gap", "seconds"]


def print_table(task: Task, rows: Sequence[Row]) -> None:
    """Print the table, with rich where it is installed."""
    n, d = task.train[0].shape
    title = (
        f"{task.name}: {len(set(task.train[1]))} classes, {d} {task.feature}, "
        f"{n} samples to learn from, {len(task.test[1])} to test on"
    )
    cells = [row.cells() for row in rows]
    if importlib.util.find_spec("rich") is not None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            box=SIMPLE_HEAD,
            show_edge=False,  # with this and the next two the table fits in 80 columns
            pad_edge=False,
            collapse_padding=True,
        )
        for number, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
        for line in cells:
            table.add_row(*line)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(HEADINGS, *cells, strict=True)]
    print(title)
    for line in [HEADINGS, ["-" * width for width in widths], *cells]:
        left = (f"{cell:<{width}}" for cell, width in zip(line[:2], widths[:2], strict=True))
        right = (f"{cell:>{width}}" for cell, width in zip(line[2:], widths[2:], strict=True))
        print("  ".join([*left, *right]))
