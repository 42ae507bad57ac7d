"""Where the work on partitions runs: threads of this process, or what offers the same three calls.

A driver needs no more than this of an engine: run a function on arguments that may be handles of
earlier results, bring results to the driver, and forget them. Functions are pure, so that any
result can be computed again where it was lost. Sums over partitions are formed in the order of the
partitions, which makes a fit the same to the last bit from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol


class Engine(Protocol):
    """What a driver asks of the machinery beneath it."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a handle of the result; arguments may be handles."""

    def broadcast(self, value: Any) -> Any:
        """Return a handle of a value that all partitions will be given."""

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, in order."""

    def release(self, handles: Sequence[Any]) -> None:
        """Forget results that only later results, which are known, depend on; None is ignored."""

    def close(self) -> None:
        """Forget every result and cancel what is running."""


class Threads:
    """Runs on threads of this process, as many partitions at a time as there are threads.

    With one thread each call runs at once, so that no more than one partition is in memory.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Return a future of the result."""
        if self.pool is not None:
            return self.pool.submit(_called, function, arguments)
        done: Future[Any] = Future()
        done.set_result(_called(function, arguments))
        return done

    def broadcast(self, value: Any) -> Any:
        """Return the value: threads share it."""
        return value

    def gather(self, handles: Sequence[Future[Any]]) -> list[Any]:
        """Return the results, in order."""
        return [handle.result() for handle in handles]

    def release(self, handles: Sequence[Any]) -> None:
        """Do nothing: what nobody refers to is gone."""

    def close(self) -> None:
        """Wait for what is running and start nothing more."""
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*(a.result() if isinstance(a, Future) else a for a in arguments))
