"""What SparseSVC promises to its users."""

import pickle
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info

import sparsvm
from sparsvm import SparseSVC
from sparsvm.certificate.certify import certified
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import History
from sparsvm.solvers import Solver

PENALTIES = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]

# A fit that misses its tolerance is a failure here, except where a test asks for one.
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X)[::2], y[::2]


@pytest.fixture(scope="module")
def binary(iris):
    X, y = iris
    return X[y > 0], y[y > 0]


class Recorder(Solver):
    """Keep what the estimator hands over; answer with a fixed point, or raise `answer`."""

    name = "recorder"

    def __init__(self, answer=None):
        self.answer = answer
        self.calls = []

    def unsupported(self, problem):
        return None

    def solve(self, problem, start, control):
        blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        self.calls.append((problem, start, control, blas))
        if self.answer is not None:
            raise self.answer
        shape = (problem.n_outputs, problem.d)
        return certified(
            problem,
            np.full(shape, 0.1),
            np.arange(problem.n_outputs) + 1.0,
            None,
            tol=control.tol,
            n_iter=7,
            seconds=0.0,
            history=History.empty(),
            solver=self.name,
        )


def hinge(model, X, y, weight=None, margin=1.0, cost=None):
    """Return the weighted mean hinge of a model from the definition, one sample at a time."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    n_classes = scores.shape[1]
    cost = 1.0 - np.eye(n_classes) if cost is None else cost
    margin = np.broadcast_to(margin, len(X))
    losses = []
    for row, label, scale in zip(scores, y, margin, strict=True):
        true = list(model.classes_).index(label)
        losses.append(max(scale * cost[true, k] + row[k] - row[true] for k in range(n_classes)))
    return np.average(losses, weights=weight)


def naive_penalty(name, coef):
    l1, half = np.abs(coef).sum(), 0.5 * (coef**2).sum()
    l12, l1inf = np.linalg.norm(coef, axis=0).sum(), np.abs(coef).max(axis=0).sum()
    return {
        "l1": l1,
        "l2": half,
        "elasticnet": 0.5 * l1 + 0.5 * half,
        "l1/l2": l12,
        "l1/linf": l1inf,
        "sparse_group": 0.5 * l1 + 0.5 * l12,
    }[name]


# --------------------------------------------------------------------- what is computed


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("data", ["iris", "binary"])
def test_objective_is_the_mean_hinge_plus_the_penalty(data, penalty, fit_intercept, request):
    X, y = request.getfixturevalue(data)
    rng = np.random.default_rng(0)
    weight, margin = rng.integers(0, 3, len(X)), rng.choice([0.5, 1.0], len(X))
    model = SparseSVC(penalty=penalty, alpha=0.03, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weight, sample_margin=margin)
    value = hinge(model, X, y, weight, margin) + 0.03 * naive_penalty(penalty, model.coef_)
    assert model.objective_ == pytest.approx(value, rel=1e-12)
    assert model.dual_gap_ <= 1e-3
    assert model.result_.converged
    if not fit_intercept:
        assert not model.intercept_.any()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_small_move_improves_the_objective(penalty, iris):
    X, y = iris
    model = SparseSVC(Hinge(margin=COST), penalty, alpha=0.03, tol=1e-6).fit(X, y)
    rng = np.random.default_rng(1)
    other = clone(model).fit(X, y)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            other.coef_ = model.coef_ + size * rng.standard_normal(model.coef_.shape)
            other.intercept_ = model.intercept_ + size * rng.standard_normal(3)
            value = hinge(other, X, y, cost=COST) + 0.03 * naive_penalty(penalty, other.coef_)
            assert value >= model.objective_ * (1 - 1e-6)


def test_default_alpha_is_the_classical_c_of_one(binary):
    X, y = binary
    model = SparseSVC(penalty="l2", tol=1e-8).fit(X, y)
    reference = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    assert model.alpha_ == 1.0 / len(X)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-3)


def test_default_alpha_counts_all_weights(iris):
    X, y = iris
    weight = np.random.default_rng(0).random(len(X))
    model = SparseSVC().fit(X, y, sample_weight=weight)
    assert model.alpha_ == pytest.approx(1 / weight.sum())
    factors = np.array([2.0, 1.0, 3.0])
    model = SparseSVC(class_weight={0: 2.0, 2: 3.0}).fit(X, y, sample_weight=weight)
    assert model.alpha_ == pytest.approx(1 / (weight * factors[y]).sum())
    assert SparseSVC(alpha=0.25).fit(X, y).alpha_ == 0.25


def test_shapes_and_attributes(iris, binary):
    for (X, y), outputs in ((iris, 3), (binary, 1)):
        model = SparseSVC().fit(X, y)
        assert model.coef_.shape == (outputs, 4)
        assert model.intercept_.shape == (outputs,)
        assert model.n_features_in_ == 4
        assert model.n_iter_ >= 1
        assert model.classes_.tolist() == sorted(set(y))
        assert model.result_.objective == model.objective_
        assert model.result_.relative_gap == model.dual_gap_
        expected = (len(X), 3) if outputs == 3 else (len(X),)
        assert model.decision_function(X).shape == expected
        assert model.score(X, y) == np.mean(model.predict(X) == y) > 0.9


@pytest.mark.parametrize("penalty", PENALTIES)
def test_intercepts_of_more_than_two_classes_sum_to_zero(penalty, iris):
    X, y = iris
    model = SparseSVC(penalty=penalty).fit(X + 5.0, y)
    assert abs(model.intercept_.sum()) <= 1e-12 * np.abs(model.intercept_).max()
    assert np.abs(model.intercept_).max() > 0


def test_certificate_is_about_the_centred_intercepts(iris):
    X, y = iris
    model = SparseSVC(solver=Recorder(), alpha=0.1, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    np.testing.assert_allclose(model.intercept_, [-1.0, 0.0, 1.0])
    assert model.objective_ == pytest.approx(hinge(model, X, y) + 0.1 * 12 * 0.1)
    np.testing.assert_array_equal(model.result_.intercept, model.intercept_)


def test_few_features_are_enough_for_wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SparseSVC(penalty="l1/l2", alpha=0.1).fit(X, y)
    assert 0 < model.selected_features_.size < 13
    assert model.score(X, y) > 0.9


# --------------------------------------------------------------------- weights of classes


def test_class_weights_are_sample_weights(iris):
    X, y = iris
    X, y = X[10:], y[10:]
    options = {"alpha": 0.05, "tol": 1e-9}
    counts = np.bincount(y)
    factors = len(y) / (3 * counts)
    balanced = SparseSVC(class_weight="balanced", **options).fit(X, y)
    by_hand = SparseSVC(**options).fit(X, y, sample_weight=factors[y])
    assert balanced.objective_ == pytest.approx(by_hand.objective_, rel=1e-8)
    named = SparseSVC(class_weight=dict(enumerate(factors)), **options).fit(X, y)
    np.testing.assert_array_equal(named.coef_, balanced.coef_)
    plain = SparseSVC(**options).fit(X, y)
    assert abs(plain.objective_ - balanced.objective_) > 1e-4


def test_balanced_counts_weights_not_rows(iris):
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    left = SparseSVC(class_weight="balanced").fit(X, y, sample_weight=weight)
    right = SparseSVC(class_weight="balanced").fit(X[repeated], y[repeated])
    np.testing.assert_array_equal(left.coef_, right.coef_)


@pytest.mark.parametrize("how", ["sample_weight", "class_weight"])
def test_a_class_without_weight_is_left_out(iris, how):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    costs = Hinge(margin=COST)  # one row per label of y, weightless or not
    if how == "sample_weight":
        model = SparseSVC(costs, alpha=0.05).fit(X, names, sample_weight=(y != 1) * 2.0)
    else:
        model = SparseSVC(costs, alpha=0.05, class_weight={"b": 0}).fit(X, names)
    kept = y != 1
    expected = SparseSVC(Hinge(margin=COST[np.ix_([0, 2], [0, 2])]), alpha=0.05)
    expected.fit(X[kept], names[kept])
    assert model.classes_.tolist() == ["a", "c"]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert set(model.predict(X)) <= {"a", "c"}


def test_class_weights_for_labels_that_y_lacks_are_allowed(iris):
    X, y = iris
    model = SparseSVC(class_weight={0: 1, 1: 1, 2: 1, 9: 5}).fit(X, y)
    np.testing.assert_array_equal(model.coef_, SparseSVC().fit(X, y).coef_)


# --------------------------------------------------------------------- warnings


@pytest.mark.parametrize("penalty", [p for p in PENALTIES if p != "l2"])
@pytest.mark.parametrize("data", ["iris", "binary"])
def test_an_all_zero_fit_warns_and_bounds_alpha_max(data, penalty, request):
    X, y = request.getfixturevalue(data)
    weight = np.linspace(1.0, 2.0, len(X))
    with pytest.warns(UserWarning, match="Every weight is zero at alpha=50") as caught:
        SparseSVC(penalty=penalty, alpha=50.0).fit(X, y, sample_weight=weight)
    bound = float(str(caught[0].message).split("at most about ")[1].split(";")[0])
    assert 0 < bound < 50
    with pytest.warns(UserWarning, match="Every weight is zero"):
        above = SparseSVC(penalty=penalty, alpha=1.01 * bound, tol=1e-6)
        above.fit(X, y, sample_weight=weight)
    assert not above.coef_.any()


def test_the_bound_is_not_far_from_where_weights_appear(iris):
    X, y = iris
    with pytest.warns(UserWarning) as caught:
        SparseSVC(alpha=50.0).fit(X, y)
    bound = float(str(caught[0].message).split("at most about ")[1].split(";")[0])
    assert SparseSVC(alpha=bound / 20).fit(X, y).coef_.any()


def test_features_that_tell_nothing_give_a_zero_model_that_says_so():
    X, y = np.ones((6, 2)), [0, 0, 0, 0, 1, 1]
    for penalty in ("l1", "l2"):
        with pytest.warns(UserWarning, match="Every weight is zero"):
            model = SparseSVC(penalty=penalty).fit(np.zeros_like(X), y)
        assert set(model.predict(X)) == {0}
        with pytest.warns(UserWarning, match="No feature tells the classes apart"):
            SparseSVC(penalty=penalty).fit(np.zeros_like(X), y)


def test_no_warning_when_all_is_well(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseSVC().fit(*iris)


def test_stopping_early_warns_with_the_gap_and_what_to_change(iris):
    X, y = iris
    sentence = r"interior_point stopped after 3 iterations.*gap of .*above tol=1e-05.*Raise max_it"
    with pytest.warns(ConvergenceWarning, match=sentence):
        model = SparseSVC(max_iter=3, tol=1e-5).fit(X, y)
    assert model.dual_gap_ > 1e-5
    assert not model.result_.converged


def test_a_gap_hidden_by_rounding_warns(iris):
    class RunsOff(Solver):
        name = "runs_off"

        def unsupported(self, problem):
            return None

        def solve(self, problem, start, control):
            coef = np.full((problem.n_outputs, problem.d), 1e20)
            return certified(
                problem, coef, np.zeros(problem.n_outputs), None, tol=control.tol, n_iter=1,
                seconds=0.0, history=History.empty(), solver=self.name,
            )  # fmt: skip

    with pytest.warns(ConvergenceWarning, match="rounding alone changes the objective .*Scale the"):
        model = SparseSVC(alpha=1e-30, solver=RunsOff()).fit(*iris)
    assert model.result_.floor > model.result_.gap > 0.5


def fit_quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("penalty", [L1, GroupL2, GroupLinf])
@pytest.mark.parametrize("weight", [1e-14, 1e-26, 1e-40])
def test_features_that_are_hardly_penalised_have_the_optimum_of_free_ones(iris, penalty, weight):
    X, y = iris[0][::5], iris[1][::5]
    free = SparseSVC(penalty=penalty(weights=[1, 0, 1, 1])).fit(X, y)
    model = fit_quietly(SparseSVC(penalty=penalty(weights=[1, weight, 1, 1])), X, y)
    assert model.objective_ == pytest.approx(free.objective_, rel=1e-3)
    assert model.dual_gap_ <= 1e-3 or not model.result_.converged


@pytest.mark.parametrize("penalty", ["l1", "l2", "l1/l2", "l1/linf"])
def test_what_is_not_proven_is_not_called_optimal(penalty):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    for data, alpha in ((X * [1, 1e20, 1, 1, 1], None), (X, 1e-20)):
        model = fit_quietly(SparseSVC(penalty=penalty, alpha=alpha), data, y)
        assert model.objective_ < 1.0  # that of no model
        assert model.dual_gap_ <= 1e-3 or not model.result_.converged


# --------------------------------------------------------------------- solvers


def test_verbose_ends_with_what_was_found_however_short_the_run(iris, capsys):
    model = SparseSVC(alpha=0.01, verbose=True).fit(*iris)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{model.result_.solver}: optimal after {model.n_iter_} iterations")
    assert f"relative gap {model.dual_gap_:.2e}" in last


def test_solver_objects_get_problem_and_control(iris):
    X, y = iris
    recorder = Recorder()
    model = SparseSVC(
        penalty="l1/l2", alpha=0.1, solver=recorder, tol=1e-3, max_iter=9, random_state=4, n_jobs=2
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    ((problem, start, control, blas),) = recorder.calls
    assert (problem.alpha, problem.penalty.kind, problem.n_classes) == (0.1, "l1/l2", 3)
    assert start is None
    assert (control.tol, control.max_iter, control.n_jobs) == (1e-3, 9, 2)
    assert control.random_state == 4
    assert all(threads <= 2 for threads in blas)
    assert model.n_iter_ == 7


def test_blas_has_one_thread_during_a_fit_and_its_own_number_afterwards(iris):
    before = [pool["num_threads"] for pool in threadpool_info()]
    recorder = Recorder()
    with pytest.warns(ConvergenceWarning):
        SparseSVC(solver=recorder).fit(*iris)
    assert set(recorder.calls[0][3]) == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("solver", ["auto", "interior_point", "sdca", "newton", "fbpd"])
def test_all_processors_are_as_good_as_one(iris, solver):
    X, y = iris
    one, all_of_them = (
        SparseSVC(alpha=0.1, solver=solver, tol=1e-2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, -1)
    )
    assert all_of_them.objective_ == pytest.approx(one.objective_, rel=1e-2)
    recorder = Recorder()
    with pytest.warns(ConvergenceWarning):
        SparseSVC(solver=recorder, n_jobs=-1).fit(X, y)
    assert recorder.calls[0][2].n_jobs == joblib.cpu_count()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [np.float32, np.float16, np.longdouble])
def test_alpha_may_be_a_number_of_any_precision(iris, number):
    X, y = iris
    assert SparseSVC(alpha=number(0.125)).fit(X, y).alpha_ == 0.125


def test_float32_is_never_asked_for_more_than_it_can_hold(iris):
    X, y = iris
    recorder = Recorder()
    with pytest.warns(ConvergenceWarning):
        SparseSVC(solver=recorder, tol=1e-12).fit(X.astype(np.float32), y)
        SparseSVC(solver=recorder, tol=1e-12).fit(X, y)
    assert [call[2].tol for call in recorder.calls] == [5e-7, 1e-12]


def test_warm_start_hands_over_the_previous_solution(iris, binary):
    X, y = iris
    recorder = Recorder()
    model = SparseSVC(warm_start=True).fit(X, y)
    first = model.result_
    model.set_params(solver=recorder, alpha=0.5)

    def start(X, y, **options):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y, **options)
        return recorder.calls[-1][1]

    weighted = start(X, y, sample_weight=np.random.default_rng(0).integers(1, 4, len(X)))
    np.testing.assert_array_equal(weighted.coef, first.coef)
    np.testing.assert_array_equal(weighted.intercept, first.intercept)
    mass = recorder.calls[-1][0].mass
    np.testing.assert_allclose(weighted.dual.sum(axis=1), mass)  # that of the new weights

    model.sparsify()
    fewer = start(X[:-1], y[:-1])
    assert fewer.dual is None
    np.testing.assert_allclose(fewer.coef, 0.1)

    assert start(*binary) is None  # other classes: nothing to reuse
    model.set_params(warm_start=False)
    assert start(*binary) is None


def test_warm_start_takes_coefficients_that_were_put_there_by_hand(iris):
    X, y = iris
    fitted = SparseSVC(alpha=0.05).fit(X, y)
    model = SparseSVC(alpha=0.05, warm_start=True)
    model.coef_, model.intercept_, model.classes_ = fitted.coef_, fitted.intercept_, np.unique(y)
    assert model.fit(X, y).objective_ == pytest.approx(fitted.objective_, rel=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_warm_start_reaches_the_same_optimum(penalty, iris):
    X, y = iris
    warm = SparseSVC(penalty=penalty, alpha=0.1, warm_start=True, tol=1e-6).fit(X, y)
    warm.set_params(alpha=0.05).fit(X, y)
    cold = SparseSVC(penalty=penalty, alpha=0.05, tol=1e-6).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-6)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(iris, error):
    X, y = iris
    fresh = SparseSVC(solver=Recorder(error))
    with pytest.raises(error):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not hasattr(fresh, "n_features_in_")
    fitted = SparseSVC().fit(X, y)
    before = dict(vars(fitted))
    fitted.set_params(solver=Recorder(error))
    with pytest.raises(error):
        fitted.fit(pd.DataFrame(X[:, :2], columns=["a", "b"]), y)
    after = dict(vars(fitted))
    after.pop("solver"), before.pop("solver")
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in after)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no timers")
def test_ctrl_c_stops_native_code_soon(iris):
    X, y = iris

    def interrupt(number, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    model = SparseSVC(solver="fbpd", tol=1e-300, max_iter=10**8)
    try:
        # Again and again: one that falls into a callback of the garbage collector is lost.
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    assert not hasattr(model, "coef_")


def test_solvers_agree(iris):
    X, y = iris
    exact = SparseSVC(penalty="l1/l2", alpha=0.05, tol=1e-6).fit(X, y)
    other = SparseSVC(penalty="l1/l2", alpha=0.05, tol=1e-3, solver="fbpd", max_iter=100_000)
    other.fit(X, y)
    assert other.result_.solver == "fbpd"
    assert exact.objective_ * (1 - 1e-6) <= other.objective_ <= exact.objective_ * (1 + 1.1e-3)


# --------------------------------------------------------------------- prediction


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("n_used", [0, 3, 30])
def test_scores_come_from_the_features_in_use(kind, n_used):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 40)), rng.integers(0, 3, 40)
    model = SparseSVC(alpha=0.1).fit(X, y)
    model.coef_ = np.zeros((3, 40))
    used = np.sort(rng.choice(40, n_used, replace=False))
    model.coef_[1, used] = rng.standard_normal(n_used)
    expected = X @ model.coef_.T + model.intercept_
    np.testing.assert_array_equal(model.selected_features_, used)
    np.testing.assert_allclose(model.decision_function(kind(X)), expected, atol=1e-12)
    model.sparsify()
    assert sp.issparse(model.coef_)
    np.testing.assert_array_equal(model.selected_features_, used)
    np.testing.assert_allclose(model.decision_function(kind(X)), expected, atol=1e-12)
    labels = model.predict(kind(X))
    model.densify()
    assert isinstance(model.coef_, np.ndarray)
    np.testing.assert_array_equal(model.predict(kind(X)), labels)


def test_an_edited_model_predicts_by_its_edited_coefficients(binary):
    X, y = binary
    model = SparseSVC().fit(X, y)
    model.coef_[:] = 0.0
    model.coef_[0, 1] = 2.0
    model.intercept_ = 0.5
    np.testing.assert_allclose(model.decision_function(X), 2.0 * X[:, 1] + 0.5)
    assert model.selected_features_.tolist() == [1]


def test_unfitted_models_say_so(iris):
    model = SparseSVC()
    for method in (model.sparsify, model.densify, lambda: model.predict(iris[0])):
        with pytest.raises(NotFittedError):
            method()
    assert not hasattr(model, "selected_features_")


@pytest.mark.parametrize(
    "labels", [np.array(["x", "y"]), np.array([False, True]), np.array([-3, 7]), [1.0, 2.0]]
)
def test_labels_come_back_in_their_own_type(binary, labels):
    X, y = binary
    labels = np.asarray(labels)
    model = SparseSVC().fit(X, labels[y - 1])
    assert model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(X), labels[SparseSVC().fit(X, y).predict(X) - 1])


# --------------------------------------------------------------------- the ecosystem


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_go_in_by_name(iris, library):
    X, y = iris
    names = ["sl", "sw", "pl", "pw"]
    frame = library.DataFrame(dict(zip(names, X.T, strict=True)))
    model = SparseSVC().fit(frame, library.Series(y), sample_weight=library.Series(np.ones(len(y))))
    assert model.feature_names_in_.tolist() == names
    plain = SparseSVC().fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    np.testing.assert_allclose(
        model.decision_function(frame), frame.to_numpy() @ model.coef_.T + model.intercept_
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])
    narrow = library.DataFrame(dict(zip(names, X.T.astype(np.float32), strict=True)))
    assert SparseSVC().fit(narrow, y).coef_.dtype == np.float32
    assert model.decision_function(narrow).dtype == np.float64


@pytest.mark.parametrize("types", ["Float32", {"b": "Float32", "c": "Float32"}])
def test_nullable_frames_of_float32_give_float32(iris, types):
    X, y = iris
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"))
    found, expected = SparseSVC().fit(frame.astype(types), y), SparseSVC().fit(frame, y)
    assert found.coef_.dtype == np.float32
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.decision_function(frame.astype(types)).dtype == np.float32
    wide = frame.astype({"a": "Float64"})
    assert SparseSVC().fit(wide, y).coef_.dtype == np.float64
    frame = frame.astype(types)
    frame.loc[3, "b"] = pd.NA
    with pytest.raises(ValueError, match="contains NaN"):
        SparseSVC().fit(frame, y)


def test_grid_search_reaches_into_penalties_and_losses(iris):
    X, y = iris
    grid = {
        "penalty__l1_ratio": [0.1, 0.9],
        "loss__margin": [1.0, 2.0],
        "alpha": [0.05],
    }
    search = GridSearchCV(SparseSVC(Hinge(), SparseGroup()), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert isinstance(search.best_estimator_.penalty, SparseGroup)
    choice = GridSearchCV(SparseSVC(), {"penalty": ["l1", ElasticNet(0.2)]}, cv=3).fit(X, y)
    assert choice.best_score_ > 0.9


def test_clone_copies_the_parameters_only(iris):
    model = SparseSVC(Hinge(2.0), GroupL2(groups=[0, 0, 1, 1]), alpha=0.1).fit(*iris)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    assert repr(copy) == repr(model)


def test_models_survive_pickling(iris):
    X, y = iris
    model = SparseSVC(penalty=L1(weights="scale")).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert copy.result_.objective == model.result_.objective


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", [L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup])
def test_a_penalty_without_weights_leaves_the_least_loss(iris, penalty, n_classes, fit_intercept):
    X, y = iris[0] - 3.0, np.where(iris[1] < n_classes, iris[1], 0)
    model = SparseSVC(
        penalty=penalty(weights=np.zeros(4)), alpha=0.1, fit_intercept=fit_intercept, tol=1e-6
    ).fit(X, y)
    # At alpha = 1e-9 rounding alone moves the slope of the dual by 1e-5 of its bound.
    nearly = SparseSVC(alpha=1e-7, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(nearly.objective_, abs=1e-5)


def test_scale_weights_equal_standardised_columns(iris):
    X, y = iris
    X = X * [1.0, 10.0, 0.1, 3.0] + 2.0
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    scaled = SparseSVC(penalty=L1(weights="scale"), alpha=0.05, tol=1e-9)
    scaled.fit(X, y, sample_weight=weight)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    standard = SparseSVC(alpha=0.05, tol=1e-9).fit((X - mean) / deviation, y, sample_weight=weight)
    assert scaled.objective_ == pytest.approx(standard.objective_, rel=1e-8)


def test_weights_and_margins_are_routed_through_meta_estimators(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    weight, margin = rng.integers(1, 4, len(X)).astype(float), rng.choice([0.5, 1.0], len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseSVC(alpha=0.05).set_fit_request(sample_weight=True, sample_margin=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, model)
        pipeline.fit(X, y, sample_weight=weight, sample_margin=margin)
        direct = SparseSVC(alpha=0.05).fit(
            StandardScaler().fit(X, sample_weight=weight).transform(X),
            y,
            sample_weight=weight,
            sample_margin=margin,
        )
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
        assert not np.array_equal(direct.coef_, SparseSVC(alpha=0.05).fit(X, y).coef_)
        scores = cross_validate(
            model.set_score_request(sample_weight=False),
            X,
            y,
            cv=3,
            params={"sample_weight": weight, "sample_margin": margin},
        )
        assert scores["test_score"].mean() > 0.9
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(SparseSVC()).fit(X, y, sample_margin=margin)


def test_public_names():
    assert sparsvm.SparseSVC is SparseSVC
    for module in (sparsvm.losses, sparsvm.penalties, sparsvm.solvers):
        assert module.__doc__
    assert sparsvm.losses.as_loss("hinge") == Hinge()
    assert sparsvm.penalties.as_penalty("l1") == L1()


def test_import_leaves_heavy_libraries_alone():
    code = (
        "import sys, sparsvm; "
        "print([m for m in ('polars', 'clarabel', 'matplotlib', 'rich', 'sklearn.linear_model', "
        "'sklearn.metrics') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
