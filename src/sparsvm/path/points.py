"""What a path keeps of its solutions."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Counts, Floats
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Solution, relative

Self = TypeVar("Self", bound="PathPoints")


@dataclass(frozen=True, eq=False, repr=False)
class PathPoints:
    """Solutions for a decreasing sequence of alphas.

    :class:`~sparsvm.SVMPath`, which users see, says what each of them is.
    """

    alphas: Floats
    coefs: list[Any]
    intercepts: Floats
    objectives: Floats
    gaps: Floats
    nonzeros: Counts
    n_selected: Counts
    seconds: Floats
    statuses: list[str]
    classes: Array

    @property
    def converged(self) -> bool:
        """Whether every point met the tolerance."""
        return all(status == "optimal" for status in self.statuses)

    def __repr__(self) -> str:
        """Return the ends of the path in one line; its arrays would fill pages."""
        if len(self) == 0:
            return f"{type(self).__name__}(0 alphas)"
        return (
            f"{type(self).__name__}({len(self)} alphas from {self.alphas[0]:.3g} to "
            f"{self.alphas[-1]:.3g}, {self.n_selected[0]} to {self.n_selected[-1]} features, "
            f"largest gap {self.gaps.max():.1e})"
        )

    def __len__(self) -> int:
        return int(self.alphas.size)

    def part(self: Self, points: slice) -> Self:
        """Return some of the points."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for field in fields(PathPoints):
            if field.name != "classes":
                values[field.name] = values[field.name][points]
        return type(self)(**values)


@dataclass(frozen=True, eq=False)
class Kept:
    """What a path keeps of one solution; ``dense`` tells whether the next one is the same."""

    dense: Floats | None
    coef: Any
    n_selected: int
    intercept: Floats
    objective: float
    gap: float
    status: str
    seconds: float
    loss: float
    bound: float

    @classmethod
    def of(
        cls,
        solution: Solution,
        problem: Problem,
        dtype: np.dtype[Any],
        before: Kept | None,
        seconds: float,
    ) -> Kept:
        """Reduce a solution to what is kept, sharing the weights of the one before if equal."""
        if before is not None and before.dense is solution.coef:
            coef, n_selected = before.coef, before.n_selected
        else:
            coef = sparse_rows(problem.folded(solution.coef), dtype)
            n_selected = np.unique(coef.indices).size
        return cls(
            solution.coef,
            coef,
            n_selected,
            solution.intercept.astype(dtype),
            solution.objective,
            solution.relative_gap if problem.convex else _criticality(solution),
            solution.status,
            seconds,
            solution.objective - problem.alpha * problem.penalty.value(solution.coef),
            solution.dual_objective,
        )


def _criticality(solution: Solution) -> float:
    return relative(solution.criticality, solution.objective)


def gathered(grid: Floats, points: list[Kept], classes: Array) -> PathPoints:
    """Return the points of the first alphas of a grid as arrays."""
    return PathPoints(
        alphas=grid[: len(points)],
        coefs=[point.coef for point in points],
        intercepts=np.array([point.intercept for point in points]),
        objectives=np.array([point.objective for point in points]),
        gaps=np.array([point.gap for point in points]),
        nonzeros=np.array([point.coef.nnz for point in points], dtype=np.int64),
        n_selected=np.array([point.n_selected for point in points], dtype=np.int64),
        seconds=np.array([point.seconds for point in points]),
        statuses=[point.status for point in points],
        classes=classes,
    )


def by_classes(features: Any, weights: Floats, problem: Problem, dtype: np.dtype[Any]) -> Any:
    """Return the CSR matrix (n_outputs, d) of the weights of some features, feature by feature."""
    values = weights.reshape(-1, problem.n_outputs).T
    rows, columns = np.nonzero(values)
    indptr = np.searchsorted(rows, np.arange(problem.n_outputs + 1)).astype(np.int32)
    entries = (values[rows, columns].astype(dtype), features[columns], indptr)
    return sp.csr_matrix(entries, shape=(problem.n_outputs, problem.d))


def sparse_rows(coef: Floats, dtype: np.dtype[Any]) -> Any:
    """Return the CSR form; scipy's own conversion takes four times as long on 3 x 7129."""
    used = np.flatnonzero(coef.any(axis=0)).astype(np.int32)
    values = coef[:, used]
    rows, columns = np.nonzero(values)
    indptr = np.searchsorted(rows, np.arange(coef.shape[0] + 1)).astype(np.int32)
    entries = values[rows, columns].astype(dtype)
    return sp.csr_matrix((entries, used[columns], indptr), shape=coef.shape)
