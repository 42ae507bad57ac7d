"""Sums over all partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparsvm.partitioned.derivatives import plus
from sparsvm.partitioned.engine import Engine


class Sums:
    """Sums over all partitions, in their order."""

    def __init__(self, engine: Engine, parts: Sequence[Any]) -> None:
        self.engine, self.parts = engine, parts

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up ``function(part, number, *arguments)`` along a tree of fixed shape."""
        known = [self.engine.broadcast(each) for each in arguments]
        layer = [
            self.engine.submit(function, part, at, *known) for at, part in enumerate(self.parts)
        ]
        used = [*known, *layer]
        while len(layer) > 1:
            pairs = [layer[at : at + 2] for at in range(0, len(layer), 2)]
            layer = [self.engine.submit(plus, *p) if len(p) == 2 else p[0] for p in pairs]
            used += layer
        total = self.engine.gather(layer)[0]
        self.engine.release(used)
        return total
