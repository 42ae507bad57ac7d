"""From Dask's collections to partitions of rows on the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm.dask.engine import Cluster
from sparsvm.partitioned.parts import Rows


def partitions(
    engine: Cluster, X: Any, y: Any = None, sample_weight: Any = None, sample_margin: Any = None
) -> list[Any]:
    """Return futures of the rows of Dask arrays, frames or a list of delayed or plain parts."""
    if y is None:
        if not isinstance(X, (list, tuple)):
            raise ValueError(
                "Without y, X must be a list of partitions, each (X, y) or delayed; got "
                f"{type(X).__name__}."
            )
        return [engine.submit(_rows, part) for part in engine.computed(list(X))]
    columns = [None if c is None else _blocks(c) for c in (X, y, sample_weight, sample_margin)]
    lengths = {len(blocks) for blocks in columns if blocks is not None}
    if len(lengths) > 1:
        raise ValueError(
            f"X, y and the weights have different numbers of partitions: {sorted(lengths)}. "
            "Rechunk them alike, for example y = y.rechunk(X.chunks[0])."
        )
    count = lengths.pop()
    # All in one graph: X and y may share what they are computed from.
    known = engine.computed([block for c in columns if c is not None for block in c])
    futures = iter(known[at : at + count] for at in range(0, len(known), count))
    empty = [None] * count
    filled = [empty if c is None else next(futures) for c in columns]
    return [engine.submit(Rows, *parts) for parts in zip(*filled, strict=True)]


def _blocks(collection: Any) -> list[Any]:
    """Return the delayed blocks of rows of a Dask array or frame."""
    if not hasattr(collection, "to_delayed"):
        raise ValueError(
            f"fit takes Dask arrays, Dask frames or a list of partitions; got "
            f"{type(collection).__name__}. For data in memory use sparsvm.SparseSVC."
        )
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "numblocks"):
        if collection.numblocks[1] > 1:
            collection = collection.rechunk({1: -1})
        return [row[0] for row in collection.to_delayed(optimize_graph=False)]
    return list(np.asarray(collection.to_delayed(optimize_graph=False), dtype=object).ravel())


def _rows(part: Any) -> Any:
    return Rows(*part) if isinstance(part, (tuple, list)) else part
