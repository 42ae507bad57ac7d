"""Options of solvers that mean nothing are refused in a sentence, and no count is too large."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC, SparseSVCCV, svm_path
from sparsvm.budget import CONSTRAINED_SOLVERS
from sparsvm.hierarchical import HSDM
from sparsvm.solvers import SOLVERS, thread_count
from sparsvm.solvers.registry import CONVEX

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]

KINDS = [*SOLVERS.values(), *CONSTRAINED_SOLVERS.values(), HSDM]
# Other solvers by name or as objects are checked where they are looked up.
OPTIONS = [
    (kind, name)
    for kind in KINDS
    for name in inspect.signature(kind).parameters
    if name not in ("solver", "inner")
]
COUNTS = ("max_iter", "check_every", "sweeps", "direct", "M")
NUMBERS = {
    "ratio": 2.0,
    "relaxation": 0.5,
    "eta": 2.0,
    "gamma": 0.5,
    "sigma": 0.5,
    "omega": 0.5,
    "epsilon": 0.5,
    "eta0": 2.0**-10,
    "alpha_min": 0.5,
    "alpha_max": 2.0,
    "step": 2.0,
    "decay": 0.5,
    "radius": 100.0,
    "change": 0.5,
}


def fit(kind, **options):
    limit = {} if "max_iter" in options else {"max_iter": 10}
    solver = kind(**limit, **options)
    if kind is HSDM:
        return MaxMarginSVC(solver=solver).fit(X, Y)
    if kind in CONSTRAINED_SOLVERS.values():
        return ConstrainedSparseSVC(0.3, solver=solver).fit(X, Y)
    smooth = ("block_newton", "fista", "forward_backward", "sparsa", "bcd", "fobos")
    loss = "ramp" if kind.name == "dca" else "squared_hinge" if kind.name in smooth else "hinge"
    penalty = "l2" if kind.name == "cutting_plane" else "l1"
    model = SparseSVC(loss, penalty, alpha=0.05, tol=0.5, solver=solver, random_state=0)
    return model.fit(X, Y)


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
@pytest.mark.parametrize("value", ["x", np.array([1, 2]), -1])
def test_bad_options_are_refused(kind, name, value):
    with pytest.raises(ValueError, match=rf"{name} must .*, but "):
        fit(kind, **{name: value})


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), OPTIONS)
@pytest.mark.parametrize("value", [[1], {}, 1j, np.nan, -(10**30)])
def test_other_bad_options_are_refused(kind, name, value):
    with pytest.raises(ValueError, match=rf"{name} must .*, but "):
        fit(kind, **{name: value})


# But for that of fobos, which goes on to the last iteration whatever the tolerance.
LIMITS = [
    (kind, name)
    for kind, name in OPTIONS
    if name in COUNTS and (kind.name, name) != ("fobos", "max_iter")
]


@pytest.mark.parametrize(("kind", "name"), LIMITS)
@pytest.mark.parametrize("value", [2**31, 10**30])
def test_counts_beyond_native_integers_are_limits_never_reached(kind, name, value):
    fit(kind, **{name: value})


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, name) for k, name in OPTIONS if name in NUMBERS and (k is HSDM or name != "step")],
)
def test_every_type_of_number_is_taken(kind, name):
    value = NUMBERS[name]
    models = [fit(kind, **{name: kind_of(value)}) for kind_of in (float, np.float32, Fraction)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "fobos"])
def test_no_max_iter_is_too_large(solver):
    model = fit(SOLVERS[solver]).set_params(max_iter=10**30)
    assert model.fit(X, Y).n_iter_ < 10**5


def test_estimators_and_paths_take_any_max_iter():
    assert SparseSVC(max_iter=10**400).fit(X, Y).n_iter_ < 1000
    assert ConstrainedSparseSVC(0.3, max_iter=10**400).fit(X, Y).n_iter_ < 1000
    assert SparseSVCCV(alphas=[0.1], cv=2, max_iter=10**400).fit(X, Y).n_iter_ < 1000
    assert svm_path(X, Y, alphas=[0.1], max_iter=10**400).gaps.max() <= 1e-3


@pytest.mark.parametrize(
    "fit_with",
    [
        lambda n_jobs: SparseSVC(n_jobs=n_jobs).fit(X, Y),
        lambda n_jobs: ConstrainedSparseSVC(n_jobs=n_jobs).fit(X, Y),
        lambda n_jobs: SparseSVCCV(alphas=[0.1], cv=2, n_jobs=n_jobs).fit(X, Y),
        lambda n_jobs: svm_path(X, Y, alphas=[0.1], n_jobs=n_jobs),
    ],
)
def test_numbers_of_threads_that_no_machine_has_are_refused(fit_with):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer of at most 2147483647"):
        fit_with(10**20)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        fit_with(0)
    assert thread_count(-(10**20)) == 1


def test_starts_of_dca_are_limited():
    with pytest.raises(ValueError, match="starts must be at most 100, but is 101"):
        fit(SOLVERS["dca"], starts=101)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tol": "small"}, "'tol' parameter"),
        ({"tol": 10**400}, "'tol' parameter"),
        ({"max_iter": 1.5}, "'max_iter' parameter"),
        ({"n_jobs": "two"}, "n_jobs must be None or an integer"),
        ({"n_alphas": 2.5}, "n_alphas of at least 1 .*n_alphas=2.5"),
        ({"n_alphas": "many"}, "n_alphas of at least 1 .*n_alphas='many'"),
        ({"eps": "small"}, "eps between 0 and 1; .*eps='small'"),
        ({"alphas": "x"}, "alphas must be positive, finite numbers, .*'x'"),
        ({"alphas": [10**400]}, "alphas must be positive, finite numbers"),
        ({"alphas": {}}, "alphas must be positive, finite numbers"),
    ],
)
def test_bad_options_of_paths_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        svm_path(X, Y, **options)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", sorted(CONVEX.solvers))
def test_histories_are_in_units_of_the_objective(name, loss):
    try:
        model = SparseSVC(loss, alpha=0.01, solver=name, tol=1e-2).fit(X, Y)
    except ValueError as error:
        assert "cannot solve this problem" in str(error)
        return
    history = model.result_.history
    assert history.objective[-1] == pytest.approx(model.objective_, rel=0.1)
    np.testing.assert_allclose(history.relative_gap[-1], history.gap[-1] / history.objective[-1])
