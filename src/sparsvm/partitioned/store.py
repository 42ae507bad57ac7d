"""The clusters that the driver holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Floats
from sparsvm.partitioned.aggregation import Report

# Above all numbers of clusters of a partition.
NUMBERS = 1 << 40


@dataclass(eq=False)
class Store:
    """All clusters, in the order of the partitions, with their dual variables."""

    part: Array
    number: Array
    X: Any
    y: Array
    mass: Floats
    margin: Floats | None
    dual: Floats

    @classmethod
    def of(cls, reports: Sequence[Report], K: int) -> Store:
        """Return the clusters of the first division."""
        added = [(at, r.added) for at, r in enumerate(reports) if r.added is not None]
        y = np.concatenate([c.y for _, c in added])
        mass = np.concatenate([c.mass for _, c in added])
        return cls(
            part=np.concatenate([np.full(c.y.size, at) for at, c in added]),
            number=np.concatenate([c.number for _, c in added]),
            X=_stacked([c.X for _, c in added]),
            y=y,
            mass=mass,
            margin=_joined([c.margin for _, c in added]),
            dual=np.zeros((y.size, K)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the means."""
        if sp.issparse(self.X):
            arrays = (self.X.data, self.X.indices, self.X.indptr)
            return int(sum(each.nbytes for each in arrays))
        return int(self.X.nbytes)

    def updated(self, reports: Sequence[Report]) -> Store:
        """Return the clusters after a split; parts inherit the dual of the whole by their mass."""
        kept = np.ones(self.y.size, dtype=bool)
        for at, report in enumerate(reports):
            kept[(self.part == at) & np.isin(self.number, report.gone)] = False
        new = Store.of(reports, self.dual.shape[1])
        # Positions of the parents among the old clusters.
        order = np.lexsort((self.number, self.part))
        keys = self.part * NUMBERS + self.number
        parents = np.concatenate([r.added.parent for r in reports if r.added is not None])
        at = order[np.searchsorted(keys[order], new.part * NUMBERS + parents)]
        new.dual = self.dual[at] * (new.mass / self.mass[at])[:, None]
        rows = np.flatnonzero(kept)
        return Store(
            part=np.concatenate([self.part[rows], new.part]),
            number=np.concatenate([self.number[rows], new.number]),
            X=_stacked([self.X[rows], new.X]),
            y=np.concatenate([self.y[rows], new.y]),
            mass=np.concatenate([self.mass[rows], new.mass]),
            margin=_joined([None if self.margin is None else self.margin[rows], new.margin]),
            dual=np.concatenate([self.dual[rows], new.dual]),
        )


def _stacked(parts: list[Any]) -> Any:
    if sp.issparse(parts[0]):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)


def _joined(parts: list[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None
