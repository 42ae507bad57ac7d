"""Samples whose share of the weight vanishes in rounding count as samples without weight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.model_selection import PredefinedSplit

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC, SparseSVCCV
from sparsvm.data.training_set import read_training_set

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]
N = len(Y)

MODELS = {
    "SparseSVC": lambda **options: SparseSVC(alpha=0.05, **options),
    "ConstrainedSparseSVC": lambda **options: ConstrainedSparseSVC(0.4, **options),
    "MaxMarginSVC": MaxMarginSVC,
    "SparseSVCCV": lambda **options: SparseSVCCV(alphas=[0.1, 0.05], cv=3, **options),
}
for_all = pytest.mark.parametrize("model", MODELS)
ONE_TINY = np.r_[5e-324, np.full(N - 1, 1e10)]


def training_set(weight=None, class_weight=None, rows=slice(None)):
    model = SparseSVC()
    return read_training_set(
        model, X[rows], Y[rows], sample_weight=weight, class_weight=class_weight
    )


def assert_same(found, expected):
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)


@for_all
def test_a_class_whose_share_vanishes_is_left_out(model):
    found = MODELS[model](class_weight={0: 1e-50, 1: 1, 2: 1})
    found.fit(X, Y, sample_weight=np.where(Y == 0, 1e-300, 1.0))
    assert_same(found, MODELS[model]().fit(X, Y, sample_weight=(Y != 0) * 1.0))
    np.testing.assert_array_equal(found.classes_, [1, 2])


@for_all
def test_a_sample_whose_share_vanishes_is_left_out(model):
    found = MODELS[model]().fit(X, Y, sample_weight=ONE_TINY)
    assert_same(found, MODELS[model]().fit(X, Y, sample_weight=np.where(ONE_TINY > 1, 1e10, 0.0)))


@for_all
@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-200])
def test_balanced_classes_of_tiny_weight_count_like_any(model, tiny):
    weight = np.where(Y == 0, tiny, 1.0)
    masses = training_set(weight, "balanced").mass
    np.testing.assert_allclose(masses, training_set(None, "balanced").mass, rtol=1e-14)
    found, expected = (MODELS[model](class_weight="balanced", tol=1e-8) for _ in range(2))
    scores = found.fit(X, Y, sample_weight=weight).decision_function(X)
    np.testing.assert_allclose(scores, expected.fit(X, Y).decision_function(X), atol=1e-5)


def test_only_the_sum_counts_where_all_products_would_vanish():
    data = training_set(np.full(N, 2.0**-1000), dict.fromkeys(range(3), 2.0**-200))
    np.testing.assert_array_equal(data.mass, training_set().mass)
    assert data.total == 0.0
    data = training_set(np.where(Y == 0, 2.0**160, 2.0**-900), {0: 2.0**-1060, 1: 1, 2: 1})
    np.testing.assert_array_equal(data.mass, training_set().mass)


def test_weights_without_a_usable_sum_are_named():
    weight, factors = np.full(N, 1e-300), dict.fromkeys(range(3), 1e-50)
    with pytest.raises(ValueError, match="weights sum to 0, so that alpha=None would mean"):
        SparseSVC(class_weight=factors).fit(X, Y, sample_weight=weight)


@for_all
def test_weights_that_leave_one_class_with_a_share_are_refused(model):
    with pytest.raises(ValueError, match="at least two classes, but y has only one class, 2"):
        MODELS[model]().fit(X, Y, sample_weight=np.where(Y == 2, 1e50, 1e-320))


@given(st.lists(st.integers(1, 5), min_size=N, max_size=N), st.integers(-1074, 160))
def test_repeated_samples_are_weighted_ones_at_every_scale(counts, power):
    scale = np.ldexp(1.0, power)
    rows = np.repeat(np.arange(N), counts)
    for class_weight in (None, "balanced", {0: 0.3, 1: 1e-20, 2: 7.0}):
        weighted = training_set(scale * np.array(counts), class_weight)
        repeated = training_set(np.full(rows.size, scale), class_weight, rows)
        np.testing.assert_array_equal(weighted.mass, repeated.mass)
        assert weighted.total == repeated.total


def test_masses_are_the_weights_over_their_sum():
    weight = np.random.default_rng(0).uniform(size=N)
    for class_weight in (None, {0: 0.3, 1: 2.0, 2: 7.0}):
        data = training_set(weight, class_weight)
        products = weight * [1.0 if class_weight is None else class_weight[k] for k in Y]
        expected = np.sort(products / products.sum())
        np.testing.assert_allclose(np.sort(data.mass), expected, rtol=1e-14)
        assert data.total == pytest.approx(products.sum(), rel=1e-14)


@pytest.mark.parametrize("solver", ["interior_point", "sdca", "newton", "fbpd"])
@pytest.mark.filterwarnings("ignore:Every weight is zero")
@pytest.mark.parametrize("alpha", [0.05, 1e40])
@pytest.mark.parametrize("tiny", [1e-322, 1e-300])
def test_solvers_take_shares_that_vanish_when_divided_by_alpha(solver, alpha, tiny):
    model = SparseSVC(alpha=alpha, solver=solver, warm_start=True)
    for _ in range(2):
        model.fit(X, Y, sample_weight=np.where(Y == 0, tiny, 1.0))
        assert np.isfinite(model.coef_).all()
        assert model.dual_gap_ <= 1e-3
        assert model.classes_.size == 3


def test_a_fold_may_lack_all_but_one_class_of_positive_weight():
    first = np.flatnonzero(Y == 0)[0]
    folds = PredefinedSplit(np.where(Y == 2, 0, -1))
    model = SparseSVCCV(alphas=[0.1], cv=folds, class_weight={0: 0.0})
    assert model.fit(X, Y).best_score_ == 0.0
    # In the fold without the others the share of the first sample is all there is of its class.
    weight = np.where(Y == 0, 0.0, 1e40)
    weight[first] = 1e-300
    weight[np.flatnonzero(Y == 1)[0]] = weight[np.flatnonzero(Y == 2)[0]] = 1.0
    light = np.where(weight < 1e40, -1, 0)
    model = SparseSVCCV(alphas=[0.1], cv=PredefinedSplit(light)).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(model.classes_, [1, 2])
