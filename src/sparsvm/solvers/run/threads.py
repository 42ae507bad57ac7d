"""How many threads BLAS may use while a solver runs."""

from __future__ import annotations

import numbers
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from sparsvm.solvers.run.options import LARGEST_COUNT


class _User:
    """Someone who wants BLAS limited, for as long as the object lives or until it leaves."""

    __slots__ = ("__weakref__", "own")

    def __init__(self) -> None:
        # Libraries with a setting for each thread that this caller has changed.
        self.own: list[tuple[Any, int]] = []


class _BlasLimit:
    """Limit the BLAS threads of the process while at least one caller asks for it.

    Most BLAS libraries have one setting for the whole process, so overlapping callers share it:
    the first to enter limits, the last to leave restores. (Plain overlapping
    ``threadpool_limits`` contexts restore out of order and were seen to leave BLAS on one
    thread for good.) OpenBLAS on OpenMP has a setting for each thread, so there every caller
    limits and restores its own.

    An interrupt may come at any statement. So what is to be restored is noted before it changes
    and forgotten after it has been restored, leaving may be done twice, and a user who never came
    to leave does so when the object dies. There is no lock, which an interrupt could leave closed:
    threads that enter and leave at the same moment note the same numbers twice, or one of them
    works with more threads than it asked for.
    """

    def __init__(self) -> None:
        self._libraries: list[Any] | None = None
        self._shared: list[tuple[Any, int]] = []
        self._users: weakref.WeakSet[_User] = weakref.WeakSet()

    def enter(self, user: _User, n_threads: int) -> None:
        libraries = self._loaded()
        first = len(self._users) == 0
        weakref.finalize(user, self._settle, user.own).atexit = False
        self._users.add(user)
        _limit([lib for lib in libraries if _per_thread(lib)], n_threads, user.own)
        if first:
            _limit([lib for lib in libraries if not _per_thread(lib)], n_threads, self._shared)

    def leave(self, user: _User) -> None:
        self._users.discard(user)
        self._settle(user.own)

    def _settle(self, own: list[tuple[Any, int]]) -> None:
        _restore(own)
        if len(self._users) == 0:
            _restore(self._shared)

    def after_fork(self) -> None:
        """Begin anew in a forked child: the threads that had entered are gone."""
        self._users = weakref.WeakSet()
        _restore(self._shared)

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


def _limit(libraries: list[Any], n_threads: int, changed: list[tuple[Any, int]]) -> None:
    """Limit the libraries, noting those that change with their former number of threads."""
    for library in libraries:
        before = library.get_num_threads()
        if before != n_threads:
            changed.append((library, before))
            library.set_num_threads(n_threads)


def _restore(changed: list[tuple[Any, int]]) -> None:
    # The oldest note last: it has the number of threads before anyone changed it.
    for note in changed[::-1]:
        library, before = note
        # Recent versions of threadpoolctl let only the thread that limited OpenBLAS change
        # it again; here the thread that leaves last need not be the one that came first.
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        library.set_num_threads(before)
        if release is not None:
            release(force=True)
        with suppress(ValueError):  # another thread was here, too
            changed.remove(note)


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.after_fork)


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads that ``n_jobs`` means: None is one, -1 all processors."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or int(n_jobs) > LARGEST_COUNT:
        raise ValueError(
            f"n_jobs must be None or an integer of at most {LARGEST_COUNT}, but is {n_jobs!r}; use "
            "-1 for all processors."
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
    user = _User()
    try:
        _blas_limit.enter(user, n_threads)
        yield
    finally:
        try:
            _blas_limit.leave(user)
        finally:
            # Once more: an interrupt may have come before it was done.
            _blas_limit.leave(user)
