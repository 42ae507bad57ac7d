"""Hybrid steepest descent: the iterates of the theorem, and where they lead."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from reference.hsdm import NaiveHsdm
from sparsvm import MaxMarginSVC, _core
from sparsvm.hierarchical import HSDM

IRIS, IRIS_Y = load_iris(return_X_y=True)
OPTIONS = {"gamma": 0.7, "relaxation": 0.4, "step": 0.3, "decay": 0.8, "radius": 1e3}


def samples(seed, n, d, K, spread=1.0):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % K).astype(np.int32)
    X = rng.normal(size=(n, d)) + spread * rng.normal(size=(K, d))[y]
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.native
@pytest.mark.parametrize("shape", [(12, 3, 4), (10, 1, 2), (9, 12, 3), (20, 2, 5)])
def test_the_iterates_are_those_of_the_theorem(shape):
    n, d, K = shape
    X, y, weight = samples(0, n, d, K)
    fast = _core.Hsdm(X, y, weight, K, **OPTIONS)
    naive = NaiveHsdm(X, y, weight, K, **OPTIONS)
    for count in (1, 1, 3, 60):
        fast.run(count)
        naive.run(count)
        np.testing.assert_allclose(fast.point(), naive.point(), atol=1e-11)
        assert fast.t == pytest.approx(naive.t, abs=1e-11)
    assert fast.iteration == 65
    assert not fast.ball_active


@pytest.mark.native
def test_the_balls_are_those_of_the_theorem():
    X, y, weight = samples(1, 12, 2, 3, spread=4.0)
    options = {**OPTIONS, "radius": 0.05, "step": 2.0}
    fast, naive = _core.Hsdm(X, y, weight, 3, **options), NaiveHsdm(X, y, weight, 3, **options)
    fast.run(40)
    naive.run(40)
    assert fast.ball_active
    np.testing.assert_allclose(fast.point(), naive.point(), atol=1e-11)
    assert np.linalg.norm(fast.point()) <= 0.05 * (1 + 1e-12)


@pytest.mark.native
def test_sizes_are_checked_at_the_border():
    X, y, weight = samples(0, 6, 2, 3)
    with pytest.raises(ValueError, match=r"y has length 5 along its first axis.*is 6"):
        _core.Hsdm(X, y[:5], weight, 3, **OPTIONS)
    with pytest.raises(ValueError, match=r"weight has length 5 along its first axis.*is 6"):
        _core.Hsdm(X, y, weight[:5], 3, **OPTIONS)
    with pytest.raises(ValueError, match=r"y\[2\] is 2, outside 0 \.\. 1"):
        _core.Hsdm(X, y, weight, 2, **OPTIONS)
    with pytest.raises(ValueError, match="two classes at least"):
        _core.Hsdm(X, y, weight, 1, **OPTIONS)


CASES = {
    "two_separable": (IRIS[:100, :2], IRIS_Y[:100], 2e-3),
    "two_overlapping": (IRIS[50:, :2], IRIS_Y[50:], 1e-3),
    "three_overlapping": (IRIS[::2, :2], IRIS_Y[::2], 1e-3),
    "three_separable": (*samples(3, 30, 2, 3, spread=8.0)[:2], 1e-3),
    "wide": (*samples(4, 12, 30, 3)[:2], 1e-2),
}


@pytest.mark.parametrize("case", CASES)
def test_hsdm_approaches_hinge_and_margin_of_the_exact_solver(case):
    X, y, accuracy = CASES[case]
    exact = MaxMarginSVC().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="hsdm stopped after .* is not proved"):
        model = MaxMarginSVC(solver=HSDM(max_iter=60_000, change=0.0)).fit(X, y)
    assert model.hinge_loss_ == pytest.approx(exact.hinge_loss_, rel=1e-5, abs=1e-3)
    assert model.smallest_margin_ == pytest.approx(exact.smallest_margin_, rel=accuracy)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_what_has_settled_is_near_the_exact_solution_and_claims_no_proof(case):
    X, y, _ = CASES[case]
    exact = MaxMarginSVC().fit(X, y)
    model = MaxMarginSVC(solver="hsdm").fit(X, y)
    assert model.result_.status == "settled" and not model.result_.converged
    assert model.n_iter_ < 200_000
    assert model.margin_gap_ == 1.0
    assert model.hinge_loss_ / len(y) == pytest.approx(exact.hinge_loss_ / len(y), abs=2e-4)
    assert model.smallest_margin_ == pytest.approx(exact.smallest_margin_, rel=1e-3)
    history, half = model.result_.history, model.n_iter_ // 2
    for values in (history.objective, history.gap / history.gap[-1]):
        assert np.ptp(values[history.iteration >= half]) < 1.01e-4


def test_what_is_still_on_its_way_has_not_settled():
    # On all four features of iris the method needs far more iterations than it has.
    with pytest.warns(
        ConvergenceWarning, match=r"hsdm stopped after 30000 iterations \(max_iter\)"
    ):
        model = MaxMarginSVC(solver=HSDM(max_iter=30_000)).fit(IRIS, IRIS_Y)
    assert model.smallest_margin_ > 1.2 * MaxMarginSVC().fit(IRIS, IRIS_Y).smallest_margin_


@pytest.mark.filterwarnings("ignore:hsdm stopped")
def test_rotating_many_features_changes_no_iterate():
    X, y, _ = samples(4, 12, 30, 3)
    wide = MaxMarginSVC(solver=HSDM(max_iter=200)).fit(X, y)
    method = _core.Hsdm(
        X, y, np.ones(12), 3, gamma=1.0, relaxation=0.5, step=10.0, decay=0.75, radius=1e6
    )
    method.run(200)
    coef = np.asarray(method.point())[:, :-1]
    np.testing.assert_allclose(wide.coef_, coef - coef.mean(axis=0), atol=1e-10)


@pytest.mark.filterwarnings("ignore:hsdm stopped")
def test_the_history_tells_hinge_and_largest_norm():
    model = MaxMarginSVC(solver=HSDM(max_iter=2000)).fit(IRIS[:, :2], IRIS_Y)
    history = model.result_.history
    assert history.iteration[-1] == 2000 == model.n_iter_
    assert (np.diff(history.iteration) > 0).all()
    assert (np.diff(history.seconds) >= 0).all()
    assert history.objective[-1] * 150 == pytest.approx(model.hinge_loss_)
    assert history.gap[-1] == pytest.approx(1 / model.smallest_margin_)


@pytest.mark.filterwarnings("ignore:hsdm stopped")
def test_an_active_ball_is_told():
    with pytest.warns(UserWarning, match="The ball of radius 1 cuts the solution"):
        MaxMarginSVC(solver=HSDM(radius=1.0, max_iter=500)).fit(IRIS[:, :2], IRIS_Y)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gamma": 0.0}, "gamma must be positive and finite, but is 0.0"),
        ({"step": np.inf}, "step must be positive and finite"),
        ({"radius": -1.0}, "radius must be positive and finite"),
        ({"relaxation": 1.0}, "relaxation must be between 0 and 1"),
        ({"decay": 1.5}, "decay must be above 0 and at most 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"change": -0.1}, "change must be at least 0 and below 1, but is -0.1"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        MaxMarginSVC(solver=HSDM(**options)).fit(IRIS, IRIS_Y)


# What has not settled after so few iterations says so.
@pytest.mark.filterwarnings("ignore:hsdm stopped:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([MaxMarginSVC(solver=HSDM(max_iter=2000))])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:hsdm stopped:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([MaxMarginSVC(solver="hsdm")])
def test_scikit_learn_check_with_all_iterations(estimator, check):
    check(estimator)


def test_too_large_data_are_refused_with_what_to_use():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"too many for hsdm.*Use SparseSVC"):
        MaxMarginSVC(solver="hsdm").fit(rng.normal(size=(1200, 1200)), np.arange(1200) % 12)


@pytest.mark.parametrize("columns", [(1, 3), (0, 1)])
def test_samples_on_a_margin_are_no_margin_errors(columns):
    # The iterates stop 1e-4 short of the margins that the solution meets.
    X, y = IRIS, IRIS_Y
    half = np.random.default_rng(0).permutation(y.size)[:75]
    X = StandardScaler().fit_transform(X[half][:, columns])
    exact = MaxMarginSVC().fit(X, y[half])
    settled = MaxMarginSVC(solver="hsdm").fit(X, y[half])
    assert 1e-6 < settled.result_.resolution < 1e-3
    assert settled.n_margin_errors_ == exact.n_margin_errors_
