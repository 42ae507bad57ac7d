"""Stability selection counts what the paths of resamples select, and bounds its mistakes."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.optimize import linprog
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import SparseSVC, StabilitySelection, load_model, save_model, svm_path
from sparsvm.estimators.stability_bounds import unimodal_bound, worst_case_bound
from sparsvm.penalties import GroupL2

matplotlib.use("Agg")

rng = np.random.default_rng(0)
Y = np.arange(90) % 3
X = rng.standard_normal((90, 25))
X[np.arange(90), Y] += 2.0  # features 0, 1 and 2 carry the signal
SMALL = {"n_resamples": 8, "n_alphas": 10, "random_state": 0}


@pytest.fixture(scope="module")
def stable():
    return StabilitySelection(SparseSVC(penalty="l1/l2"), **SMALL).fit(X, Y)


@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@parametrize_with_checks(
    [
        StabilitySelection(n_resamples=2, n_alphas=3, random_state=0),
        StabilitySelection(resampling="bootstrap", n_resamples=2, n_alphas=3, random_state=0),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_signal_is_stable_and_the_noise_is_not(stable):
    assert stable.selected_features_.tolist() == [0, 1, 2]
    assert np.array_equal(stable.transform(X), X[:, :3])
    assert stable.selection_probabilities_[3:].mean() < 0.5


def test_a_share_is_what_the_paths_of_the_resamples_select(stable):
    halves = stable._resamples(Y)
    selected = np.zeros((len(halves), stable.alphas_.size, 25), dtype=bool)
    for number, counts in enumerate(halves):
        rows = np.flatnonzero(counts)
        path = svm_path(X[rows], Y[rows], penalty="l1/l2", alphas=stable.alphas_)
        for t, coef in enumerate(path.coefs):
            more = path.n_selected[t] > 3  # as "auto" has it: the root of 25 / 2
            if more and selected[number].any():
                break
            selected[number, t, coef.indices] = True
            if more:
                break
    so_far = np.maximum.accumulate(selected, axis=1)
    np.testing.assert_allclose(stable.path_probabilities_, so_far.mean(axis=0))
    np.testing.assert_array_equal(stable.n_selected_, so_far[:, -1].sum(axis=1))


def test_complementary_halves_share_no_sample_and_keep_the_classes(stable):
    halves = stable._resamples(Y)
    assert len(halves) == 16
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        assert np.all(first + second == 1)
        assert np.bincount(Y, first).tolist() == [15.0, 15.0, 15.0]
    drawn = StabilitySelection(resampling="bootstrap", n_resamples=3)._resamples(Y)
    assert all(np.bincount(Y, counts).tolist() == [30.0] * 3 for counts in drawn)
    assert len(StabilitySelection(resampling="half_samples", n_resamples=3)._resamples(Y)) == 3


def test_a_feature_is_selected_where_any_of_its_classes_is():
    found = StabilitySelection(SparseSVC(), **SMALL).fit(X, Y)
    per_class = found.class_selection_probabilities_
    assert per_class.shape == (3, 25)
    assert np.all(per_class.max(axis=0) <= found.selection_probabilities_)
    assert np.all(per_class.sum(axis=0) >= found.selection_probabilities_)
    two = StabilitySelection(SparseSVC(), **SMALL).fit(X[Y < 2], Y[Y < 2])
    assert two.class_selection_probabilities_.shape == (1, 25)
    assert np.array_equal(two.class_selection_probabilities_[0], two.selection_probabilities_)


def test_classes_of_one_sample_are_left_out_of_half_of_the_resamples():
    labels = Y.copy()
    labels[0] = 7
    found = StabilitySelection(SparseSVC(), **SMALL).fit(X, labels)
    assert found.class_selection_probabilities_.shape == (4, 25)
    pair = np.array([0, 0, 0, 0, 1])
    few = StabilitySelection(SparseSVC(), **SMALL).fit(X[:5], pair)
    assert np.all(few.selection_probabilities_ <= 0.5)  # every second half has one class only


def test_the_same_seed_gives_the_same_bits_with_any_number_of_jobs(stable):
    with parallel_config("threading"):
        again = StabilitySelection(SparseSVC(penalty="l1/l2"), **SMALL, n_jobs=2).fit(X, Y)
    assert np.array_equal(again.path_probabilities_, stable.path_probabilities_)
    other = StabilitySelection(SparseSVC(penalty="l1/l2"), **{**SMALL, "random_state": 1})
    assert not np.array_equal(other.fit(X, Y).path_probabilities_, stable.path_probabilities_)


def test_max_features_limits_every_model_and_so_the_bounds(stable):
    most = StabilitySelection(SparseSVC(penalty="l1/l2"), **SMALL, max_features=None).fit(X, Y)
    assert stable.n_selected_.mean() < most.n_selected_.mean()
    assert stable.n_selected_.max() <= 5  # models along a path need not use the same features
    assert stable.error_bounds()["shah_samworth"] < most.error_bounds()["shah_samworth"]
    assert stable.error_bounds()["shah_samworth"] <= 1.5


def test_the_threshold_may_be_changed_after_fit(stable):
    loose = StabilitySelection(**SMALL).set_params(threshold=1e-6)
    loose.__dict__.update({**vars(stable), "threshold": 1e-6})
    assert loose.selected_features_.size == np.count_nonzero(stable.selection_probabilities_)


def test_bounds_hold_for_the_resamples_they_were_proved_for(stable):
    q, bounds = stable.n_selected_.mean(), stable.error_bounds(0.9)
    assert bounds["meinshausen_buhlmann"] == pytest.approx(q**2 / (0.8 * 25))
    assert bounds["shah_samworth"] == bounds["meinshausen_buhlmann"]
    assert bounds["shah_samworth_unimodal"] < bounds["shah_samworth"]
    assert all(np.isnan(bound) for bound in stable.error_bounds(0.5).values())
    halves = StabilitySelection(SparseSVC(), resampling="half_samples", **SMALL).fit(X, Y)
    assert np.isfinite(halves.error_bounds()["meinshausen_buhlmann"])
    assert np.isnan(halves.error_bounds()["shah_samworth"])
    drawn = StabilitySelection(SparseSVC(), resampling="bootstrap", **SMALL).fit(X, Y)
    assert all(np.isnan(bound) for bound in drawn.error_bounds().values())


def largest_tail(level, mean, n_pairs):
    """The largest P(Z >= level) of a unimodal Z on 0, 1/B, ..., 1 of at most that mean: an LP."""
    values = np.arange(n_pairs + 1) / n_pairs
    tail = -(values >= level - 1e-9).astype(float)
    steps = np.diff(np.eye(n_pairs + 1), axis=0)
    found = []
    for mode in range(n_pairs + 1):
        rising = np.arange(n_pairs) < mode
        shape = np.where(rising[:, None], -steps, steps)
        result = linprog(
            tail,
            A_ub=np.vstack([shape, values]),
            b_ub=np.append(np.zeros(n_pairs), mean),
            A_eq=np.ones((1, n_pairs + 1)),
            b_eq=[1.0],
        )
        if result.status == 0:
            found.append(-result.fun)
    return max(found)


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("theta", [0.05, 0.2])
def test_the_unimodal_bound_is_the_worst_of_all_unimodal_distributions(threshold, theta):
    # Of q = theta p features each selected with probability theta, stable in both halves.
    B, p = 20, 1000
    exact = p * largest_tail(2.0 * threshold - 1.0, theta**2, B)
    bound = unimodal_bound(threshold, theta * p, p, B)
    assert exact <= bound * (1.0 + 1e-9)
    assert bound <= 1.15 * exact
    assert bound < worst_case_bound(threshold, theta * p, p)


def test_pure_noise_is_selected_less_often_than_the_bound_allows():
    wrong, allowed = [], []
    for seed in range(6):
        noise = np.random.default_rng(seed).standard_normal((40, 30))
        found = StabilitySelection(
            SparseSVC("squared_hinge"), threshold=0.75, max_features=4, **SMALL
        ).fit(noise, np.arange(40) % 2)
        wrong.append(found.selected_features_.size)
        allowed.append(found.error_bounds()["shah_samworth"])
    assert np.mean(wrong) <= np.mean(allowed)


def test_names_and_files(tmp_path):
    frame = pd.DataFrame(X).rename(columns="gene {}".format)
    found = StabilitySelection(SparseSVC(penalty="l1/l2"), **SMALL).fit(frame, Y)
    assert found.selected_feature_names_.tolist() == ["gene 0", "gene 1", "gene 2"]
    save_model(found, tmp_path / "stable")
    same = load_model(tmp_path / "stable")
    assert repr(same) == repr(found)
    assert same.transform(frame).tobytes() == found.transform(frame).tobytes()
    assert same.error_bounds() == found.error_bounds()


def test_more_features_than_the_limit_that_enter_at_once_are_selected():
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.standard_normal((40, 1)), 3, axis=1)
    model = SparseSVC(penalty=GroupL2(groups=3))
    found = StabilitySelection(model, max_features=1, alphas=[1e-3], **SMALL).fit(Z, Z[:, 0] > 0)
    assert found.selected_features_.tolist() == [0, 1, 2]


def test_only_a_convex_sparse_svc_is_taken():
    with pytest.raises(ValueError, match="'estimator' parameter of StabilitySelection must be"):
        StabilitySelection(StabilitySelection()).fit(X, Y)
    with pytest.raises(ValueError, match="exist for convex problems"):
        StabilitySelection(SparseSVC("ramp")).fit(X, Y)


def test_the_picture_names_the_stable_features(stable):
    import matplotlib.pyplot as plt

    from sparsvm.plots import StabilityDisplay

    display = StabilityDisplay.from_estimator(stable, feature_names=[f"g{j}" for j in range(25)])
    assert len(display.lines_) == np.count_nonzero(stable.selection_probabilities_)
    texts = {text.get_text() for text in display.ax_.texts}
    assert texts == {"g0", "g1", "g2"}
    with pytest.raises(ValueError, match="shows a fitted StabilitySelection"):
        StabilityDisplay.from_estimator(SparseSVC())
    plt.close("all")
