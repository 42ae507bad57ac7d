"""Ways of writing down the same problem give the same model."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVC
from sparsvm.losses import Hinge
from sparsvm.penalties import ElasticNet, GroupL2, GroupLinf, SparseGroup

PENALTIES = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]
# Strictly convex in the weights: the optimal coefficients are unique.
UNIQUE = ["l2", "elasticnet"]
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
TOL = 1e-6


def settled(penalty):
    """Return the tolerance: with a strictly convex penalty W is within sqrt(2 gap / alpha)."""
    return 1e-10 if penalty in UNIQUE else TOL


# Two fits to the same optimum agree to their tolerance only if both reached it.
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


def iris(n_classes=3, step=3):
    X, y = load_iris(return_X_y=True)
    keep = np.flatnonzero(y >= 3 - n_classes)[::step]
    return StandardScaler().fit_transform(X[keep]), y[keep]


def sparse_data(seed=0, n=60, d=30, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    y = rng.integers(0, n_classes, n)
    X[:, :n_classes] += np.eye(n_classes)[y]
    return X, y


def objective(model, X, y, weight=None):
    """Return the mean hinge plus penalty of a fitted l1 model, from the definitions alone."""
    scores = model.decision_function(X)
    scores = np.column_stack([np.zeros(len(X)), scores]) if scores.ndim == 1 else scores
    codes = np.searchsorted(model.classes_, y)
    margins = 1.0 - (np.arange(scores.shape[1]) == codes[:, None])
    losses = (margins + scores - scores[np.arange(len(X)), codes][:, None]).max(axis=1)
    return np.average(losses, weights=weight) + model.alpha_ * np.abs(model.coef_).sum()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_csr_csc_and_dense_give_the_same_model(penalty, n_classes):
    X, y = sparse_data(n_classes=n_classes)
    storages = [
        X,
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        sp.csr_array(X),
        sp.csc_array(X),
        sp.csr_matrix(X),
        sp.coo_array(X),
    ]
    models = [
        SparseSVC(penalty=penalty, alpha=0.02, tol=settled(penalty)).fit(A, y) for A in storages
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.objective_, models[0].objective_, rtol=2 * TOL)
        if penalty in UNIQUE:
            np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-4)
    scores = [models[0].decision_function(A) for A in storages]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_weights_and_repetition_give_bit_identical_models(penalty, kind):
    X, y = iris()
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, len(X))
    order = rng.permutation(weight.sum())
    repeated = np.repeat(np.arange(len(X)), weight)[order]
    options = {"penalty": penalty, "class_weight": {0: 0.3, 1: 0.7}}
    weighted = SparseSVC(**options).fit(kind(X), y, sample_weight=weight)
    plain = SparseSVC(**options).fit(kind(X[repeated]), y[repeated])
    assert weighted.alpha_ == plain.alpha_
    np.testing.assert_array_equal(weighted.coef_, plain.coef_)
    np.testing.assert_array_equal(weighted.intercept_, plain.intercept_)


def test_sample_margins_travel_with_their_samples():
    X, y = iris()
    rng = np.random.default_rng(2)
    margin, weight = rng.choice([0.5, 1.0, 2.0], len(X)), rng.integers(0, 3, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = SparseSVC().fit(X, y, sample_weight=weight, sample_margin=margin)
    plain = SparseSVC().fit(X[repeated], y[repeated], sample_margin=margin[repeated])
    np.testing.assert_array_equal(weighted.coef_, plain.coef_)
    one = SparseSVC(tol=TOL).fit(X, y, sample_margin=2.0)
    two = SparseSVC(loss=Hinge(margin=2.0), tol=TOL).fit(X, y)
    np.testing.assert_allclose(one.objective_, two.objective_, rtol=2 * TOL)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_scaling_all_weights_changes_nothing_at_a_given_alpha(penalty):
    X, y = iris()
    weight = np.random.default_rng(3).random(len(X))
    models = [
        SparseSVC(penalty=penalty, alpha=0.05, tol=TOL).fit(X, y, sample_weight=factor * weight)
        for factor in (1.0, 1e-6, 37.0)
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.objective_, models[0].objective_, rtol=2 * TOL)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_order_of_samples_does_not_matter_bit_for_bit(penalty, n_classes):
    X, y = iris(n_classes)
    order = np.random.default_rng(4).permutation(len(X))
    for kind in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        model = SparseSVC(penalty=penalty).fit(kind(X), y)
        other = SparseSVC(penalty=penalty).fit(kind(X[order]), y[order])
        np.testing.assert_array_equal(model.coef_, other.coef_)
        np.testing.assert_array_equal(model.intercept_, other.intercept_)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_order_of_features_does_not_matter(penalty):
    X, y = iris()
    order = np.array([2, 0, 3, 1])
    model = SparseSVC(penalty=penalty, tol=settled(penalty)).fit(X, y)
    other = SparseSVC(penalty=penalty, tol=settled(penalty)).fit(X[:, order], y)
    np.testing.assert_allclose(other.objective_, model.objective_, rtol=2 * TOL)
    if penalty in UNIQUE:
        np.testing.assert_allclose(other.coef_, model.coef_[:, order], atol=1e-4)


@pytest.mark.parametrize(
    "penalty",
    [
        GroupL2(groups=["a", "b", "a", "b"]),
        GroupLinf(groups=["a", "b", "a", "b"], per_class=True),
        SparseGroup(groups=["a", "b", "a", "b"]),
        ElasticNet(l1_ratio=0.3, weights=[1.0, 2.0, 0.5, 1.0]),
    ],
    ids=repr,
)
def test_groups_and_weights_travel_with_their_features(penalty):
    X, y = iris()
    order = np.array([2, 0, 3, 1])
    moved = type(penalty)(**penalty.get_params())
    for name in ("groups", "weights"):
        values = getattr(moved, name, None)
        if values is not None:
            setattr(moved, name, [values[j] for j in order])
    model = SparseSVC(penalty=penalty, tol=TOL).fit(X, y)
    other = SparseSVC(penalty=moved, tol=TOL).fit(X[:, order], y)
    np.testing.assert_allclose(other.objective_, model.objective_, rtol=2 * TOL)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_names_of_three_classes_do_not_matter(penalty):
    X, y = iris()
    new = np.array([2, 0, 1])
    loss, permuted = (
        Hinge(margin=COST),
        Hinge(margin=COST[np.ix_(np.argsort(new), np.argsort(new))]),
    )
    model = SparseSVC(loss, penalty, tol=settled(penalty)).fit(X, y)
    other = SparseSVC(permuted, penalty, tol=settled(penalty)).fit(X, new[y])
    np.testing.assert_allclose(other.objective_, model.objective_, rtol=2 * TOL)
    if penalty in UNIQUE:
        np.testing.assert_allclose(other.coef_[new], model.coef_, atol=1e-4)
    named = SparseSVC(loss, penalty, tol=settled(penalty)).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(named.coef_, model.coef_)
    assert named.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_exchanging_two_classes_changes_the_sign(penalty):
    X, y = iris(2)
    model = SparseSVC(penalty=penalty, tol=settled(penalty)).fit(X, y)
    other = SparseSVC(penalty=penalty, tol=settled(penalty)).fit(X, -y)
    np.testing.assert_allclose(other.objective_, model.objective_, rtol=2 * TOL)
    if penalty in UNIQUE:
        np.testing.assert_allclose(other.coef_, -model.coef_, atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_float32_agrees_with_float64(penalty, fit_intercept):
    X, y = iris()
    X = X.astype(np.float32)
    options = {"penalty": penalty, "fit_intercept": fit_intercept}
    for kind in (np.asarray, sp.csr_array):
        single = SparseSVC(tol=1e-9, **options).fit(kind(X), y)
        double = SparseSVC(tol=TOL, **options).fit(kind(X.astype(np.float64)), y)
        assert single.coef_.dtype == single.intercept_.dtype == np.float32
        assert double.coef_.dtype == double.intercept_.dtype == np.float64
        assert single.dual_gap_ <= 1e-6
        np.testing.assert_allclose(single.objective_, double.objective_, rtol=2 * TOL)
        assert single.decision_function(X).dtype == np.float32
        # The certificate is about the rounded values, not about those the solver found.
        np.testing.assert_array_equal(single.result_.coef, single.coef_.astype(np.float64))
        np.testing.assert_array_equal(
            single.result_.intercept, single.intercept_.astype(np.float64)
        )


def test_the_objective_of_float32_data_is_that_of_the_rounded_model():
    X, y = iris()
    X = X.astype(np.float32)
    model = SparseSVC().fit(X, y)
    model.coef_ = model.coef_.astype(np.float64)
    assert model.objective_ == pytest.approx(objective(model, X.astype(np.float64), y), rel=1e-12)


def fit_and_score(seed):
    X, y = sparse_data(seed)
    model = SparseSVC("hinge", "l1/l2", alpha=0.02).fit(X, y)
    return model.coef_, model.decision_function(X)


def test_fits_in_threads_equal_fits_one_after_the_other():
    seeds = [0, 1, 2, 3] * 3
    alone = [fit_and_score(seed) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit_and_score, seeds))
    for (coef, scores), (coef_alone, scores_alone) in zip(together, alone, strict=True):
        np.testing.assert_array_equal(coef, coef_alone)
        np.testing.assert_array_equal(scores, scores_alone)


def test_one_fitted_model_predicts_in_many_threads():
    X, y = sparse_data(7)
    model = SparseSVC(alpha=0.02).fit(X, y)
    expected = model.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: model.decision_function(X), range(40)):
            np.testing.assert_array_equal(scores, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_fits_in_forked_children_equal_those_of_the_parent():
    expected = [fit_and_score(seed) for seed in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(fit_and_score, range(4)).get(timeout=60)
    for (coef, scores), (coef_parent, scores_parent) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(coef, coef_parent)
        np.testing.assert_array_equal(scores, scores_parent)
