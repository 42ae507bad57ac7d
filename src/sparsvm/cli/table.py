"""Samples with their names and labels, as read from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds: ``X`` (an array or a CSR matrix), the features' names, the labels.

    ``stored`` says that X is mapped from a file and larger than memory.
    """

    source: str
    X: Any
    names: list[str] | None = None
    y: Any = None
    stored: bool = False

    def rows(self, chosen: Any) -> Table:
        """Return some of the samples."""
        return replace(self, X=self.X[chosen], y=None if self.y is None else self.y[chosen])

    @property
    def feature_names(self) -> list[str]:
        """The names, ``x0``, ``x1``, ... where the file has none."""
        return self.names or [f"x{j}" for j in range(self.X.shape[1])]
