"""The protocol of :mod:`sparsvm.partitioned.engine` on a Dask client: tasks and futures only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Cluster:
    """Submits pure functions; what a lost worker held, Dask computes again from its inputs.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.futures: list[Any] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a future of the result."""
        return self._kept(self.client.submit(function, *arguments, pure=False))

    def broadcast(self, value: Any) -> Any:
        """Return a future of the value, which every worker fetches once.

        The value goes with a task instead of being scattered: scattered data are gone with the
        worker that holds them, while a task runs again.
        """
        return self.submit(_same, value)

    def computed(self, parts: Sequence[Any]) -> list[Any]:
        """Return futures of what is delayed; plain values and futures pass through."""
        delayed = [at for at, part in enumerate(parts) if hasattr(part, "__dask_graph__")]
        out = list(parts)
        futures = self.client.compute([parts[at] for at in delayed], optimize_graph=False)
        for at, future in zip(delayed, futures, strict=True):
            out[at] = self._kept(future)
        return out

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, in order."""
        return list(self.client.gather(list(handles)))

    def close(self) -> None:
        """Release every future: the scheduler drops what waits, and what workers hold.

        Cancelling would do the same, but the scheduler's walk over dependents fails where one
        of them is wanted by nobody, as of labels computed from X, and ends the connection.
        """
        for future in self.futures:
            future.release()
        self.futures.clear()

    def _kept(self, future: Any) -> Any:
        self.futures.append(future)
        return future


def _same(value: Any) -> Any:
    return value
