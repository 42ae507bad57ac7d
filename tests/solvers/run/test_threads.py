"""The limit of BLAS threads is given back, whatever happens."""

import gc
import sys
import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sparsvm.solvers.run import threads
from sparsvm.solvers.run.threads import blas_threads


def numbers():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.get_num_threads() for library in libraries]


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def interrupted_at(count):
    """Run a limited block with an interrupt before the statement of that number; None if none."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename != threads.__file__:
            return None
        if event == "line":
            seen += 1
            if seen == count:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with blas_threads(1):
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


# An interrupt inside a finalizer is printed by Python and goes no further.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_statement_leaves_blas_as_it_was():
    with blas_threads(1):
        pass  # the libraries are listed now
    before = numbers()
    assert max(before) == 2
    count = 1
    gc.freeze()  # the heap of a whole test session takes a second to go through, forty times
    try:
        while interrupted_at(count):
            gc.collect()
            assert numbers() == before, f"after an interrupt at statement {count}"
            count += 1
    finally:
        gc.unfreeze()
    assert count > 30


def test_overlapping_callers_share_the_limit():
    before = numbers()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with blas_threads(1):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with blas_threads(1):
        thread.start()
        inside.wait()
    assert max(numbers()) == 1
    leave.set()
    thread.join()
    assert numbers() == before


def test_nested_callers_share_the_limit():
    before = numbers()
    with blas_threads(1):
        with blas_threads(1):
            pass
        assert max(numbers()) == 1
    assert numbers() == before
