"""Sums over all partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from sparsvm.partitioned.derivatives import plus
from sparsvm.partitioned.engine import Engine


class Sums:
    """Sums over all partitions, in their order, with a state of each that stays with its rows."""

    def __init__(self, engine: Engine, parts: Sequence[Any]) -> None:
        self.engine, self.parts = engine, parts
        self.states: list[Any] = [None] * len(parts)

    def of(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up ``function(part, number, state, *arguments)`` along a tree of fixed shape."""
        known = [self.engine.broadcast(each) for each in arguments]
        total = _Tree(self.engine)
        for at, (part, state) in enumerate(zip(self.parts, self.states, strict=True)):
            total.add(self.engine.submit(function, part, at, state, *known))
        return total.gathered(known)

    def advanced(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do the same where the function returns the next state and what to add."""
        known = [self.engine.broadcast(each) for each in arguments]
        total, before, states = _Tree(self.engine), self.states, []
        for at, (part, state) in enumerate(zip(self.parts, before, strict=True)):
            both = self.engine.submit(function, part, at, state, *known)
            states.append(self.engine.submit(itemgetter(0), both))
            total.add(self.engine.submit(itemgetter(1), both))
            self.engine.release([both])
        self.states = states
        found = total.gathered(known)
        # What is released can be computed again as long as something depends on it.
        self.engine.release(before)
        return found


class _Tree:
    """A sum by pairs: terms are added in their order, and few partial sums exist at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.partial: list[tuple[int, Any]] = []  # with the number of their terms

    def add(self, term: Any) -> None:
        """Add a term; sums of equally many terms are joined."""
        self.partial.append((1, term))
        while len(self.partial) > 1 and self.partial[-1][0] == self.partial[-2][0]:
            self._join()

    def gathered(self, known: Sequence[Any]) -> Any:
        """Return the sum and forget it, and what the terms were computed from."""
        while len(self.partial) > 1:
            self._join()
        total = self.engine.gather([self.partial[0][1]])[0]
        self.engine.release([self.partial[0][1], *known])
        return total

    def _join(self) -> None:
        (m, a), (n, b) = self.partial[-2:]
        self.partial[-2:] = [(m + n, self.engine.submit(plus, a, b))]
        self.engine.release([a, b])
