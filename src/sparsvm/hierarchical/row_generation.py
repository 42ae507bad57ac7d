"""Cone programs over many rows of which few matter: solve with some, add those violated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from sparsvm._typing import Bools, Floats, Ints
from sparsvm.hierarchical.reduction import ReducedSamples

# Up to so many rows all of them are there from the start; of more, so many, or so many for each
# unknown.
FIRST_ROWS, ROWS_PER_UNKNOWN = 1500, 3
# The accuracy of the solves that only look for rows.
LOOSE_TOLERANCE = 1e-4
# They find what is violated by so many times as much, and end where the rows that come in are less
# than this part of those that are there.
VIOLATION_FACTOR, NEW_ROWS_DIVISOR = 10, 50


@dataclass(frozen=True, eq=False)
class Rows:
    """Demands that class `high` scores no more, but for the margins, than class `low`."""

    sample: Ints
    high: Ints
    low: Ints


Found = TypeVar("Found")


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


class RowGenerator(Generic[Found]):
    """Solve a program over the rows (i, k), k allowed for sample i, each against class low_i.

    Parameters
    ----------
    samples : ReducedSamples
    allowed : bool array of shape (n, K)
        The rows there are.
    low : int array of shape (n,)
        The class that row (i, k) is compared with.
    """

    def __init__(self, samples: ReducedSamples, allowed: Bools, low: Ints) -> None:
        self._samples = samples
        self._allowed = allowed
        self._low = low

    def solve(
        self,
        program: Callable[[Rows, float], Found],
        violation: Callable[[Found], Floats | None],
        tol: float,
        allowance: float,
    ) -> tuple[Found, Rows]:
        """Return the solution of the program over all rows, and the rows it was solved with.

        Parameters
        ----------
        program : callable
            Takes rows and an accuracy.
        violation : callable
            By how much a solution violates each row, shape (n, K); None ends the search.
        tol : float
            The accuracy of the last solve.
        allowance : float
            By how much the rows that were left out may be violated in the end.
        """
        chosen = self._first()
        accuracy = tol if np.array_equal(chosen, self._allowed) else LOOSE_TOLERANCE
        while True:
            rows = self._rows(chosen)
            found = program(rows, accuracy)
            excess = violation(found)
            if excess is None:
                return found, rows
            missing = np.where(self._allowed & ~chosen, excess, -np.inf)
            worst = self._worst(
                missing, allowance if accuracy == tol else VIOLATION_FACTOR * accuracy
            )
            if worst.size:
                chosen.ravel()[worst] = True
            elif accuracy == tol:
                return found, rows
            if worst.size <= chosen.sum() // NEW_ROWS_DIVISOR:
                accuracy = tol

    def _rows(self, chosen: Bools) -> Rows:
        sample, high = np.nonzero(chosen)
        return Rows(sample, high, self._low[sample])

    def _first(self) -> Bools:
        """Choose, per ordered pair of classes, the samples that lean most to the other class."""
        if self._allowed.sum() <= FIRST_ROWS:
            return self._allowed.copy()
        K, y = self._samples.n_classes, self._samples.problem.y
        means = np.vstack([self._samples.values[y == k].mean(axis=0) for k in range(K)])
        lean = self._samples.values @ means.T
        lean = lean - lean[np.arange(y.size), self._low][:, None]
        lean[~self._allowed] = -np.inf
        chosen = np.zeros_like(self._allowed)
        chosen.ravel()[self._worst(lean, -np.inf)] = True
        return chosen

    def _worst(self, excess: Floats, floor: float) -> Ints:
        """Return the flat positions of the largest entries, shared among the pairs of classes."""
        K, y = self._samples.n_classes, self._samples.problem.y
        most = max(FIRST_ROWS, ROWS_PER_UNKNOWN * self._samples.n_unknowns) // (2 * K * (K - 1)) + 1
        picked = []
        for c in range(K):
            members = np.flatnonzero(y == c)
            part = excess[members]
            order = np.argsort(-part, axis=0, kind="stable")[:most]
            taken = np.take_along_axis(part, order, axis=0) > floor
            row, column = np.nonzero(taken)
            picked.append(members[order[row, column]] * K + column)
        return np.concatenate(picked)
