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
        self.futures: dict[str, Any] = {}

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Return the engine of a client, or of the current one."""
        try:
            from distributed import default_client
        except ImportError as error:
            raise ImportError(
                'sparsvm.dask needs Dask, which is not installed: pip install "sparsvm[dask]".'
            ) from error
        if client is not None:
            if getattr(client, "status", "") in ("closing", "closed"):
                raise ValueError(
                    "The Dask client is closed: open another with distributed.Client(...), and "
                    "pass it as client=..."
                )
            return cls(client)
        try:
            return cls(default_client())  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise ValueError(
                "No Dask client was found: start one with distributed.Client(), or pass client=..."
            ) from error

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def release(self, handles: Sequence[Any]) -> None:
        """Let workers forget results; the scheduler remembers how those are computed."""
        for handle in handles:
            if handle is not None and self.futures.pop(handle.key, None) is not None:
                handle.release()

    def close(self) -> None:
        """Release everything: the scheduler drops what nobody else wants, running or not.

        Cancelling would take away what the user has persisted, and the scheduler's walk over
        dependents fails where one of them is wanted by nobody.
        """
        self.release(list(self.futures.values()))

    def _kept(self, future: Any) -> Any:
        self.futures[future.key] = future
        return future


def _same(value: Any) -> Any:
    return value
