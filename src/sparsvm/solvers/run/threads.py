"""How many threads BLAS may use while a solver runs."""

from __future__ import annotations

import numbers
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from sparsvm.solvers.run.options import MOST


class _BlasLimit:
    """Limit the BLAS threads of the process while at least one caller asks for it.

    Most BLAS libraries have one setting for the whole process, so overlapping callers share it:
    the first to enter limits, the last to leave restores. (Plain overlapping
    ``threadpool_limits`` contexts restore out of order and were seen to leave BLAS on one
    thread for good.) OpenBLAS on OpenMP has a setting for each thread, so there every caller
    limits and restores its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[Any] | None = None
        self._shared: list[tuple[Any, int]] = []
        self._users = 0
        self._generation = 0

    def enter(self, n_threads: int) -> tuple[int, list[tuple[Any, int]]]:
        with self._lock:
            libraries = self._loaded()
            if self._users == 0:
                self._shared = _limited(
                    [lib for lib in libraries if not _per_thread(lib)], n_threads
                )
            self._users += 1
            return self._generation, _limited(
                [lib for lib in libraries if _per_thread(lib)], n_threads
            )

    def leave(self, token: tuple[int, list[tuple[Any, int]]]) -> None:
        generation, own = token
        with self._lock:
            _restore(own)
            # A fork in between started a new count; the old one is settled already.
            if generation != self._generation:
                return
            self._users -= 1
            if self._users == 0:
                _restore(self._shared)
                self._shared = []

    def after_fork(self) -> None:
        """Begin anew in a forked child: the threads that held the lock or a count are gone."""
        self._lock = threading.Lock()
        self._generation += 1
        self._users = 0
        _restore(self._shared)
        self._shared = []

    def _loaded(self) -> list[Any]:
        # Listing the loaded libraries takes milliseconds, hence once only, and only after the
        # BLAS that the native core borrows from scipy has been loaded.
        if self._libraries is None:
            import scipy.linalg.cython_blas  # noqa: F401

            controller = ThreadpoolController().select(user_api="blas")
            self._libraries = list(controller.lib_controllers)
        return self._libraries


def _per_thread(library: Any) -> bool:
    layer = getattr(library, "threading_layer", None)
    return bool(library.internal_api == "openblas" and layer == "openmp")


def _limited(libraries: list[Any], n_threads: int) -> list[tuple[Any, int]]:
    """Limit the libraries; return those that changed, with their former number of threads."""
    changed = []
    for library in libraries:
        before = library.get_num_threads()
        if before == n_threads:
            continue
        library.set_num_threads(n_threads)
        if library.get_num_threads() != before:
            changed.append((library, before))
    return changed


def _restore(changed: list[tuple[Any, int]]) -> None:
    for library, before in changed:
        # Recent versions of threadpoolctl let only the thread that limited OpenBLAS change
        # it again; here the thread that leaves last need not be the one that came first.
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        library.set_num_threads(before)
        if release is not None:
            release(force=True)


_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork)


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads that ``n_jobs`` means: None is one, -1 all processors."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or int(n_jobs) > MOST:
        raise ValueError(
            f"n_jobs must be None or an integer of at most {MOST}, but is {n_jobs!r}; use -1 for "
            "all processors."
        )
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None for one thread or -1 for all processors.")
    return int(joblib.effective_n_jobs(int(n_jobs)))


@contextmanager
def blas_threads(n_threads: int | None = 1) -> Iterator[None]:
    """Run a block with BLAS limited to ``n_threads`` threads; None leaves BLAS as it is.

    One thread is the default because the products inside the solvers are small: two OpenBLAS
    threads were measured 5 to 10 times slower than one. Where callers in several threads
    overlap, the limit of the first to enter holds until the last has left.
    """
    if n_threads is None:
        yield
        return
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1 or None, but is {n_threads}.")
    token = _limit.enter(n_threads)
    try:
        yield
    finally:
        _limit.leave(token)
