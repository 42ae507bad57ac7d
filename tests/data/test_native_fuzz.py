"""Every native entry refuses or survives random hostile calls, in processes of their own."""

import faulthandler
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from sparsvm import _core

pytestmark = pytest.mark.native

FUZZ = Path(__file__).with_name("native_fuzz.py")
needs_signals = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="Calls are interrupted by a timer of POSIX."
)


def run(*arguments, seconds):
    """Run Python; what fails or is late says where each of its threads was."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    late = ""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = f"Not ended after {seconds} s. "
        process.send_signal(signal.SIGABRT)  # which faulthandler answers with all stacks
        out, err = process.communicate()
    assert process.returncode == 0, late + out[-200:] + err[-4000:]


@needs_signals
def test_every_entry_survives_hostile_calls():
    run(FUZZ, 0, 40, seconds=300)


@needs_signals
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 5000, 500))
def test_every_entry_survives_many_hostile_calls(seed):
    run(FUZZ, seed, 500, seconds=3000)


def test_indices_that_another_thread_changes_during_fit_do_not_end_the_process():
    code = """
        import threading, warnings
        import numpy as np
        import scipy.sparse as sp
        from sparsvm import SparseSVC

        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        cases = [("hinge", "l1"), ("hinge", "l2"), ("hinge", "l1/l2"), ("logistic", "l1")]
        for loss, penalty in cases:
            for format in ("csr", "csc"):
                X = sp.random(300, 200, 0.05, format, random_state=rng)
                y, good = rng.integers(0, 4, 300), X.indices.copy()
                stop = threading.Event()

                def spoil():
                    other = np.random.default_rng(1)
                    while not stop.is_set():
                        places = other.integers(good.size, size=50)
                        X.indices[places] = other.integers(-2**31, 2**31 - 1, size=50)
                        X.indices[...] = good

                thread = threading.Thread(target=spoil)
                thread.start()
                for _ in range(3):
                    try:
                        SparseSVC(loss, penalty, alpha=1e-3, max_iter=100).fit(X, y)
                    except (ValueError, IndexError):
                        pass  # seen at the border
                stop.set()
                thread.join()
    """
    run("-c", textwrap.dedent(code), seconds=300)


def smooth_problem(d=6, intercept=True):
    return _core.SmoothProblem(
        design=_core.Design.dense(np.random.default_rng(0).standard_normal((40, d))),
        loss="squared_hinge",
        y=(np.arange(40) % 3).astype(np.int32),
        mass=np.full(40, 1 / 40),
        cost=np.ones((3, 3)) - np.eye(3),
        margin_scale=None,
        alpha=1e-4,
        intercept=intercept,
        linear_term=None,
        kind="l1",
        l1_ratio=1.0,
        groups=np.zeros(d, np.int32),
        n_groups=d,
        per_class=False,
        omega=np.ones(d),
    )


FIRST_ORDER = {"method": "fista", "line_search": True, "L": 1.0, "largest": 1e6}
BCD = {"line_search": True, "randomised": False, "sigma": 0.01, "omega": 0.5, "epsilon": 1e-12}
BCD |= {"largest_violation": False, "row_norms": False, "shrinking": False, "seed": 0}
FOBOS = {"samples": np.arange(40), "eta0": 0.1, "lazy": True, "seed": 0}
METHODS = {"FirstOrder": FIRST_ORDER, "Bcd": BCD, "Fobos": FOBOS}


@pytest.mark.parametrize(
    ("name", "option", "value", "sentence"),
    [
        ("FirstOrder", "L", 0.0, "L is 0, but must be positive and finite"),
        ("FirstOrder", "L", np.nan, "L is nan, but must be positive and finite"),
        ("FirstOrder", "eta", 1.0, "eta is 1, but must be above 1"),
        ("FirstOrder", "largest", np.nan, "largest is nan, but must be finite"),
        ("Bcd", "omega", 1.0, "omega is 1, but must be between 0 and 1"),
        ("Bcd", "epsilon", 0.0, "epsilon is 0, but must be positive"),
        ("Fobos", "eta0", np.inf, "eta0 is inf, but must be positive and finite"),
    ],
)
def test_options_with_which_a_method_would_never_end_are_refused(name, option, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(_core, name)(smooth_problem(), **{**METHODS[name], option: value})


def interrupted(call):
    """Assert that a call which would go on for ever ends with what a signal handler raises."""

    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    # An answer that never comes would take the whole run with it.
    faulthandler.dump_traceback_later(60, exit=True)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@needs_signals
@pytest.mark.parametrize("name", METHODS)
def test_many_iterations_of_a_problem_without_unknowns_are_interrupted(name):
    method = getattr(_core, name)(smooth_problem(d=0, intercept=False), **METHODS[name])
    method.start(np.zeros((0, 3)), np.zeros(3))
    interrupted(lambda: method.run(2**62, -1.0))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_smooth_losses_works_for_one_thread_at_a_time(name):
    method = getattr(_core, name)(smooth_problem(), **METHODS[name])
    method.start(np.zeros((6, 3)), np.zeros(3))
    refused, started = [], threading.Event()

    def other():
        started.wait()
        while not refused:
            try:
                method.last()
            except RuntimeError as error:
                refused.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    started.set()
    while not refused:
        try:
            method.run(2000)
        except RuntimeError as error:  # the other one was first
            assert "at work in another call" in str(error)
    thread.join()
    assert f"This {name} is at work in another call" in refused[0]


def hinge_problem(d=4, kind="l1", linear_term=None):
    return _core.HingeProblem(
        design=_core.Design.dense(np.eye(4)[:, :d]),
        y=np.array([0, 1, 2, 0], np.int32),
        mass=np.full(4, 0.25),
        cost=np.ones((3, 3)) - np.eye(3),
        margin_scale=None,
        margins=None,
        alpha=0.01,
        intercept=True,
        linear_term=linear_term,
        offset=0.0,
        kind=kind,
        l1_ratio=1.0,
        groups=np.arange(d, dtype=np.int32),
        n_groups=d,
        per_class=False,
        omega=np.ones(d),
    )


def test_the_interior_point_takes_a_linear_term_without_features():
    problem = hinge_problem(d=0, kind="l2", linear_term=np.zeros((0, 3)))
    found = _core.interior_point(
        problem,
        dual=None,
        weights=None,
        intercept=None,
        tol=1e-4,
        max_iter=30,
        across_features=False,
        inside=False,
        residual=1e-8,
        callback=None,
    )
    # Half of the samples are of class 0: no intercept has a smaller mean hinge than none.
    assert found["bound"] == pytest.approx(1.0, rel=1e-4)


@needs_signals
def test_many_sweeps_of_sdca_over_few_samples_are_interrupted():
    method = _core.Sdca(hinge_problem(), relaxation=1.0, sweeps=2**31 - 1, callback=None)
    method.start(None, np.zeros(3), None)
    interrupted(lambda: method.run(-1.0, 2**62))


def test_sdca_starts_anew_after_its_point_was_given_away():
    method = _core.Sdca(hinge_problem(), relaxation=1.0, sweeps=2, callback=None)
    points = []
    for _ in range(2):
        method.start(None, np.zeros(3), None)  # wrote where nothing was any more
        points.append([array.copy() for array in method.give_point()])
    for first, second in zip(*points, strict=True):
        np.testing.assert_array_equal(first, second)
