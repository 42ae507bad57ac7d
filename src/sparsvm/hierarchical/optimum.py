"""What the second stage finds."""

from __future__ import annotations

from dataclasses import dataclass

from sparsvm._typing import Floats
from sparsvm.hierarchical.row_generation import Rows


@dataclass(frozen=True, eq=False)
class Optimum:
    """A classifier of least max ||w_r - w_t|| on the face of least hinge.

    Attributes
    ----------
    x : array
        The unknowns of :class:`ReducedSamples`.
    rows : Rows
        The rows the last program had; all others hold as well.
    row_dual : array
        Their multipliers.
    pair_dual : array of shape (pairs,)
        Multipliers of the pairs, summing to 1: the gradient of the norm of a pair counts so much.
    iterations : int
    """

    x: Floats
    rows: Rows
    row_dual: Floats
    pair_dual: Floats
    iterations: int
