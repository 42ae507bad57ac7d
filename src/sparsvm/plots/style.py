"""What the pictures share: colours that stay apart for colour-blind readers, axes, labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsvm._typing import Floats

# The palette of Okabe and Ito, without its yellow, which is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Lines differ in more than colour, for print in grey.
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
GREY = "#9a9a9a"
PALE_GREY = "#d4d4d4"


def axes_for(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return the figure and axes to draw into: those given, or new ones of that size."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "sparsvm[plots]".'
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax.figure, ax


def tidy(ax: Any) -> None:
    """Leave the frame open where there is nothing to read off."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#ececec", linewidth=0.8)
    ax.set_axisbelow(True)


def spread(positions: Sequence[float], gap: float) -> Floats:
    """Move positions as little as needed for neighbours to be ``gap`` apart.

    Labels that would overlap form a block around their mean; blocks that touch are merged.
    """
    order = np.argsort(positions, kind="stable")
    blocks: list[tuple[float, list[int]]] = []
    for index in order:
        blocks.append((float(positions[index]), [int(index)]))
        while len(blocks) > 1 and _touch(blocks[-2], blocks[-1], gap):
            (low, first), (high, second) = blocks[-2:]
            members = first + second
            centre = (low * len(first) + high * len(second)) / len(members)
            blocks[-2:] = [(centre, members)]
    out = np.empty(len(positions))
    for centre, members in blocks:
        out[members] = centre + gap * (np.arange(len(members)) - 0.5 * (len(members) - 1))
    return out


def _touch(lower: tuple[float, list[int]], upper: tuple[float, list[int]], gap: float) -> bool:
    reach = 0.5 * gap * (len(lower[1]) + len(upper[1]))
    return upper[0] - lower[0] < reach


def names_of_features(estimator: Any, n_features: int, names: Any = None) -> list[str]:
    """Return the names given, those seen in ``fit``, or ``x0``, ``x1``, …"""
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"There are {len(names)} names for {n_features} features.")
    return [str(name) for name in names]
