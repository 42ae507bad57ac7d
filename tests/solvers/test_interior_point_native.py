"""The native interior point checks what it is given, and can be interrupted."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.numerics.columns import Columns
from sparsvm.solvers.run.native import hinge_problem, undivided_arguments
from sparsvm.solvers.run.threads import blas_threads

pytestmark = pytest.mark.native

N, D, K = 20, 7, 4


@pytest.fixture(autouse=True)
def one_thread():
    """As the solver itself does it; at these sizes more threads only wait for each other."""
    with blas_threads(1):
        yield


OPTIONS = {
    "dual": None,
    "weights": None,
    "intercept": None,
    "tol": 1e-6,
    "max_iter": 100,
    "across_features": True,
    "inside": True,
    "residual": 0.0,
    "callback": None,
}


def fields():
    """What the native problem is made of."""
    X, y = cases.gaussian(0, N, D, K)
    problem = cases.build(X, y, cases.PENALTIES["l1/l2-blocks-joint"](D))
    return {**undivided_arguments(problem), "margins": None, "offset": 0.0}


def solve(problem=None, **options):
    """Solve a problem with these of its fields changed, and with these options."""
    native = _core.HingeProblem(**{**fields(), **(problem or {})})
    return _core.interior_point(native, **{**OPTIONS, **options})


def with_entry(name, value, at=0):
    """The field of that name with one entry replaced."""
    array = np.array(fields()[name])
    array.reshape(-1)[at] = value
    return {name: array}


def start(**changes):
    return {
        "dual": np.full((N, K), 0.1),
        "weights": np.zeros((D, K)),
        "intercept": np.zeros(K),
        **changes,
    }


def test_good_arguments_are_solved():
    result = solve()
    assert result["weights"].shape == (result["used"].size, K)
    assert np.all(np.diff(result["used"]) > 0) and result["used"].max() < D
    assert result["intercept"].shape == (K,)
    assert result["dual"].shape == (N, K)
    assert 0 < result["iterations"] < 50 and not result["stalled"]
    solve(**start())


WRONG_SIZES = {
    "y": ({"y": np.zeros(N - 1, dtype=np.int32)}, r"y has length 19.*samples is 20"),
    "mass": ({"mass": np.ones(N + 1)}, r"mass has length 21.*samples is 20"),
    "margin_scale": ({"margin_scale": np.ones(N + 1)}, r"margin_scale has length 21.*is 20"),
    "omega": ({"omega": np.ones(D - 1)}, r"omega has length 6.*features is 7"),
    "groups": ({"groups": np.zeros(D + 2, dtype=np.int32)}, r"groups has length 9.*is 7"),
    "margins": ({"margins": np.ones((N - 1, K))}, r"shape \(19, 4\) but must .*\(20, 4\)"),
    "cost": ({"cost": np.ones((K, K + 1))}, r"cost has shape \(4, 5\) but must .*\(4, 4\)"),
    "no class": ({"cost": np.ones((0, 0))}, r"two classes; found 20 samples and 0 classes"),
    "one class": ({"cost": np.ones((1, 1))}, r"two classes; found 20 samples and 1 classes"),
    "linear_term": (
        {"linear_term": np.zeros((K, D))},
        r"linear_term has shape \(4, 7\) but must .*\(7, 4\)",
    ),
    "no samples": ({"design": make_design(np.zeros((0, D)))}, "found 0 samples and 4 classes"),
    "n_groups": ({"n_groups": D + 1}, "n_groups is 8 for 7 features"),
    "no n_groups": ({"n_groups": -1}, "n_groups is -1 for 7 features"),
    "huge n_groups": ({"n_groups": 2**62}, "n_groups is 4611686018427387904 for 7 features"),
}


@pytest.mark.parametrize(("changes", "sentence"), WRONG_SIZES.values(), ids=WRONG_SIZES)
def test_wrong_sizes_are_named(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve(changes)


WRONG_ARRAYS = {
    "dual": (start(dual=np.zeros((N, K + 1))), r"dual has shape \(20, 5\) but must .*\(20, 4\)"),
    "weights": (start(weights=np.zeros((K, D))), r"weights has shape \(4, 7\) but .*\(7, 4\)"),
    "intercept": (start(intercept=np.zeros(K - 1)), r"intercept has length 3.*outputs is 4"),
    "only a dual": ({"dual": np.ones((N, K))}, "start needs dual, weights and intercept"),
    "no dual": (start(dual=None), "start needs dual, weights and intercept"),
    "negative dual": (start(dual=-np.ones((N, K))), r"dual\[0\] is -1,.*not negative"),
    "tol": ({"tol": -1e-6}, "tol is -1e-06, but must be positive"),
    "no tol": ({"tol": np.nan}, "tol is nan, but must be positive"),
    "residual": ({"residual": -1.0}, "residual is -1, but must be finite and not negative"),
    "max_iter": ({"max_iter": -1}, "max_iter is -1.* must be at least 0"),
}


@pytest.mark.parametrize(("options", "sentence"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_wrong_starts_and_options_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve(**options)


OUT_OF_RANGE = {
    "label below": (with_entry("y", -1, 3), r"y\[3\] is -1, outside 0 .. 3"),
    "label above": (with_entry("y", K, 19), r"y\[19\] is 4, outside 0 .. 3"),
    "label far": (with_entry("y", 2**31 - 1), r"y\[0\] is 2147483647, outside 0 .. 3"),
    "fewer classes": ({"cost": np.ones((K - 1, K - 1))}, r"y\[3\] is 3, outside 0 .. 2"),
    "group below": (with_entry("groups", -7), r"groups\[0\] is -7, outside 0 .. 2"),
    "group above": (with_entry("groups", 3, 6), r"groups\[6\] is 3, outside 0 .. 2"),
    "no mass": (with_entry("mass", 0.0), r"mass\[0\] is 0, .*must be positive"),
    "negative mass": (with_entry("mass", -1.0), r"mass\[0\] is -1, .*must be positive"),
    "negative omega": (with_entry("omega", -1.0, 2), r"omega\[2\] is -1, .*not negative"),
    "no alpha": ({"alpha": 0.0}, "alpha.* must be positive"),
    "l1_ratio": ({"l1_ratio": 1.5}, r"l1_ratio is 1.5.* between 0 and 1"),
    "no l1_ratio": ({"l1_ratio": np.nan}, r"l1_ratio is nan.* between 0 and 1"),
    "kind": ({"kind": "l7"}, "must be one of l1, l2, elasticnet.* but is 'l7'"),
    "not convex": ({"kind": "capped_l1"}, "but is 'capped_l1'"),
}


@pytest.mark.parametrize(("changes", "sentence"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_values_out_of_range_are_named(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        solve(changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("name", ["mass", "cost", "omega"])
def test_numbers_that_are_not_finite_are_named(name, value):
    with pytest.raises(ValueError, match=rf"{name}\[4\] is {value}, but must be .*finite"):
        solve(with_entry(name, value, 4))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_optional_numbers_that_are_not_finite_are_named(value):
    for name, shape in {"linear_term": (D, K), "margins": (N, K)}.items():
        with pytest.raises(ValueError, match=rf"{name}\[0\] is {value}, but must be finite"):
            solve({name: np.full(shape, value)})
    for name, whole in start().items():
        with pytest.raises(ValueError, match=rf"{name}\[0\] is {value}, but must be finite"):
            solve(**start(**{name: np.full_like(whole, value)}))


@pytest.mark.parametrize("design", [None, np.zeros((N, D)), "X"], ids=["none", "array", "text"])
def test_what_is_no_design_is_refused(design):
    with pytest.raises(TypeError):
        solve({"design": design})


@pytest.mark.parametrize("problem", [None, "problem"], ids=["none", "text"])
def test_what_is_no_problem_is_refused(problem):
    with pytest.raises(TypeError):
        _core.interior_point(problem, **OPTIONS)


def test_an_error_in_the_callback_comes_out():
    def fail(*_):
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        solve(callback=fail)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_all_paths_of_the_core_run(kind):
    """Small, but through every penalty, warm and cold, with linear terms and free features."""
    for seed, options in enumerate(cases.GRID[:: len(cases.GRID) // 8 + 1]):
        problem = cases.grid_problem(seed, kind, options)
        native = hinge_problem(problem)
        known = {**OPTIONS}
        cold = _core.interior_point(native, **known)
        known |= {
            "dual": cold["dual"],
            "weights": Columns(cold["used"], cold["weights"].T, problem.d).dense().T,
            "intercept": cold["intercept"],
        }
        warm = _core.interior_point(native, **known)
        for result in (cold, warm):
            assert np.isfinite(result["weights"]).all()
            assert (result["dual"] >= 0.0).all()


PURE = {
    ("elasticnet", 0.0): "l2",
    ("elasticnet", 1.0): "l1",
    ("sparse_group", 0.0): "l1/l2",
    ("sparse_group", 1.0): "l1",
}


@pytest.mark.parametrize(("mixture", "kind"), PURE.items(), ids=str)
def test_mixtures_at_their_ends_are_the_pure_penalties(mixture, kind):
    name, ratio = mixture
    mixed, pure = solve({"kind": name, "l1_ratio": ratio}), solve({"kind": kind})
    for part in ("used", "weights", "intercept", "dual"):
        np.testing.assert_array_equal(mixed[part], pure[part])


INTERRUPTED = """
import sys
import numpy as np
from threadpoolctl import threadpool_info
import hinge_cases as cases
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

def threads():
    return sorted((i["filepath"], i["num_threads"]) for i in threadpool_info())

small = cases.build(*cases.gaussian(1, 20, 30, 3), cases.PENALTIES["l1"](30))
before, limits = InteriorPoint().solve(small, None, Control()), threads()
n, d, n_classes, share = SIZES
X, y = cases.gaussian(0, n, d, n_classes, apart=0.1)
long = cases.build(X, y, cases.PENALTIES["l1"](d), share=share)
kept = X.copy(), long.mass.copy()
print("ready", flush=True)
try:
    while True:
        InteriorPoint(max_iter=10**6).solve(long, None, Control(tol=1e-12))
except KeyboardInterrupt:
    print("interrupted", flush=True)
after = InteriorPoint().solve(small, None, Control())
same = np.array_equal(before.coef, after.coef) and np.array_equal(before.dual, after.dual)
untouched = np.array_equal(X, kept[0]) and np.array_equal(long.mass, kept[1])
print("as before" if same and untouched and threads() == limits else "changed", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((800, 800, 8, 0.01), id="long factorisations"),
        # A start across the features, whose equalities were factored for 40 s.
        pytest.param((450, 600, 40, 0.03), id="many classes"),
    ],
)
def test_ctrl_c_ends_a_long_solve_and_leaves_everything_as_it_was(sizes):
    # What a shell starts in the background ignores Ctrl-C, and so would its children.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{heed}; import sys; sys.path[:0] = {sys.path!r}; SIZES = {sizes!r}\n{INTERRUPTED}"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)  # well inside the first factorisations
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        answer = process.stdout.readline()
        waited = time.perf_counter() - sent
        assert process.stdout.readline() == "as before\n"
        process.wait(10)
    assert answer == "interrupted\n"
    assert waited < 5.0  # 0.2 s as a rule; a loaded machine must not fail the test
