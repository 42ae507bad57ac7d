"""From Dask's collections to partitions of rows on the cluster."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from sparsvm.dask.engine import Cluster
from sparsvm.partitioned.parts import Rows, as_part


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
        # The pieces of a tuple may be delayed themselves, or be futures.
        pieces = [part if isinstance(part, (tuple, list)) else [part] for part in X]
        ready = iter(engine.computed([piece for part in pieces for piece in part]))
        return [engine.submit(_rows, *islice(ready, len(part))) for part in pieces]
    given = {"X": X, "y": y, "sample_weight": sample_weight, "sample_margin": sample_margin}
    columns = [None if c is None else _blocks(name, c) for name, c in given.items()]
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


def _blocks(name: str, collection: Any) -> list[Any]:
    """Return the delayed blocks of rows of a Dask array or frame."""
    if not hasattr(collection, "to_delayed"):
        raise ValueError(
            f"{name} must be a Dask array or frame (or X a list of partitions with everything in "
            f"them); got {type(collection).__name__}. For data in memory use sparsvm.SparseSVC."
        )
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "numblocks"):
        if collection.numblocks[1] > 1:
            collection = collection.rechunk({1: -1})
        return [row[0] for row in collection.to_delayed(optimize_graph=False)]
    return list(np.asarray(collection.to_delayed(optimize_graph=False), dtype=object).ravel())


def _rows(*pieces: Any) -> Any:
    return as_part(pieces[0] if len(pieces) == 1 else pieces)
