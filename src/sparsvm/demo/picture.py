"""The picture of the demonstration: which features each class uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from sparsvm._typing import Floats
from sparsvm.demo.table import Row, Task

# Blue against red-brown stays apart for every common kind of colour blindness, and a weight that
# is exactly zero is grey, which the scale of colours does not contain.
COLOURS = "RdBu_r"
UNUSED_COLOUR = "#d4d4d4"
EXPLANATIONS = {
    "SparseSVC l1": "each digit chooses its own",
    "SparseSVC l1/l2": "one choice for all digits",
    "SparseSVC l1/linf": "one choice for all digits",
    "LinearSVC l2": "every pixel with any ink",
}


def draw(results: Sequence[tuple[Task, Sequence[Row]]], path: str) -> None:
    """Draw the weights of the chosen models on digits and wine and save them as an image."""
    (digits, digit_rows), (wine, wine_rows) = results
    figure = Figure(figsize=(11.5, 10.2), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.0, 0.92), hspace=0.04)
    upper, lower = halves
    _draw_digits(upper, digits, [row for row in digit_rows if row.name in EXPLANATIONS])
    image = _draw_wine(lower, wine, [row for row in wine_rows if row.name in EXPLANATIONS])
    bar = lower.colorbar(image, ax=lower.axes, shrink=0.75, pad=0.02, ticks=[-1, 1])
    bar.ax.set_yticklabels(["speaks\nagainst\nthe class", "speaks\nfor the\nclass"])
    box = {"facecolor": UNUSED_COLOUR, "edgecolor": "none", "boxstyle": "square,pad=0.2"}
    bar.ax.text(1.7, 0.5, "not used", bbox=box, va="center", transform=bar.ax.transAxes)
    figure.savefig(path, dpi=110)


def _relative(coef: Floats) -> Any:
    """Square roots of the weights, which keep small ones visible; the exact zeros masked."""
    roots = np.sign(coef) * np.sqrt(np.abs(coef) / np.abs(coef).max())
    return np.ma.masked_where(coef == 0.0, roots)


def _show(axes: Any, values: Any, **options: Any) -> Any:
    axes.set_facecolor(UNUSED_COLOUR)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    norm = TwoSlopeNorm(0.0, -1.0, 1.0)
    return axes.imshow(values, cmap=COLOURS, norm=norm, **options)


def _draw_digits(figure: Any, task: Task, rows: Sequence[Row]) -> None:
    X, y = task.train
    figure.suptitle(
        f"Which pixels tell the digits apart, learned from {len(y)} images", weight="bold"
    )
    grid = figure.subplots(1 + len(rows), 10)
    for digit, axes in enumerate(grid[0]):
        axes.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{digit}", size=12)
    _label(grid[0, 0], "average image", "")
    for row, line in zip(rows, grid[1:], strict=True):
        for axes, weights in zip(line, _relative(row.model.coef_), strict=True):
            _show(axes, weights.reshape(8, 8))
            axes.set_xlabel(f"{weights.count()} pixels", size=8, labelpad=2)
        text = f"{EXPLANATIONS[row.name]}\n{row.features} pixels in all\n{_correct(row)}"
        _label(line[0], row.name, text)


def _correct(row: Row) -> str:
    return f"{100 * row.accuracy:.1f} % correct"


def _label(axes: Any, name: str, text: str) -> None:
    axes.text(-0.2, 0.78, name, ha="right", va="center", transform=axes.transAxes, weight="bold")
    axes.text(-0.2, 0.62, text, ha="right", va="top", transform=axes.transAxes, size=9)


def _draw_wine(figure: Any, task: Task, rows: Sequence[Row]) -> Any:
    figure.suptitle(
        f"Which measurements tell three wines apart, learned from {len(task.train[1])} bottles",
        weight="bold",
    )
    names = [name.replace("_", " ") for name in task.feature_names]
    panels = figure.subplots(1, len(rows), sharey=True)
    for axes, row in zip(panels, rows, strict=True):
        image = _show(axes, _relative(row.model.coef_).T, aspect="auto")
        axes.set_title(row.name, size=10, weight="bold", pad=30)
        text = f"{row.features} measurements\n{_correct(row)}"
        axes.text(1.0, -0.65, text, ha="center", size=9, in_layout=False)
        axes.set_xticks(range(3), ["wine 0", "wine 1", "wine 2"])
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.hlines(np.arange(0.5, 12.5), -0.5, 2.5, color="white", lw=1.5)
        axes.vlines([0.5, 1.5], -0.5, 12.5, color="white", lw=1.5)
    return image
