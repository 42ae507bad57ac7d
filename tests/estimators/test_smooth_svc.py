"""SparseSVC with smooth losses: what users see."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVC, SparseSVCCV
from sparsvm.losses import Logistic, OvrSquaredHinge, SquaredHinge

LOSSES = ("squared_hinge", "logistic", "ovr_squared_hinge")


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


IRIS, WINE, CANCER = map(standardised, (load_iris, load_wine, load_breast_cancer))


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet", "l2"])
@pytest.mark.parametrize("loss", LOSSES)
def test_fit_is_certified_and_predicts(loss, penalty):
    X, y = WINE
    model = SparseSVC(loss, penalty, alpha=0.05).fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.result_.status == "optimal"
    assert model.score(X, y) >= 0.95
    assert model.coef_.shape == (3, 13)


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_have_one_weight_vector(loss):
    X, y = CANCER
    model = SparseSVC(loss, "l1", alpha=0.02).fit(X, y)
    assert model.coef_.shape == (1, 30)
    assert model.dual_gap_ <= 1e-3
    assert model.score(X, y) >= 0.95


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_dense_data_give_the_same_model(loss):
    X, y = IRIS
    dense = SparseSVC(loss, "l1/l2", alpha=0.02, tol=1e-7).fit(X, y)
    for form in (sp.csr_matrix, sp.csc_matrix):
        model = SparseSVC(loss, "l1/l2", alpha=0.02, tol=1e-7).fit(form(X), y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-3)
        assert model.objective_ == pytest.approx(dense.objective_, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_data_give_certified_float32_coefficients(loss):
    X, y = WINE
    model = SparseSVC(loss, "l1", alpha=0.05).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_two_equals_a_repeated_sample(loss):
    X, y = IRIS
    weights = np.ones(y.size)
    weights[::7] = 2.0
    twice = np.concatenate([np.arange(y.size), np.arange(0, y.size, 7)])
    weighted = SparseSVC(loss, "l1", alpha=0.03).fit(X, y, sample_weight=weights)
    repeated = SparseSVC(loss, "l1", alpha=0.03).fit(X[twice], y[twice])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_goes_on_from_the_last_solution(loss):
    X, y = WINE
    model = SparseSVC(loss, "l1", alpha=0.05, warm_start=True).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= max(1, first // 2)
    model.set_params(alpha=0.04).fit(X, y)
    assert model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_intercepts_of_losses_of_differences_sum_to_zero(loss):
    X, y = WINE
    model = SparseSVC(loss, "l1", alpha=0.05).fit(X + 1.0, y)
    assert abs(model.intercept_.sum()) <= 1e-12 * np.abs(model.intercept_).max()


def test_intercepts_of_one_vs_rest_are_determined_class_by_class():
    # Each class is its own problem: shifting the intercepts to sum to zero would be wrong.
    X, y = WINE
    model = SparseSVC("ovr_squared_hinge", "l1", alpha=0.05, tol=1e-8).fit(X, y)
    assert model.intercept_.sum() < -0.1
    for k in range(3):
        one = SparseSVC("squared_hinge", "l1", alpha=0.05, tol=1e-8).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], one.coef_[0], atol=1e-3)
        assert model.intercept_[k] == pytest.approx(one.intercept_[0], abs=1e-3)


@pytest.mark.parametrize("data", [WINE, CANCER], ids=["three classes", "two classes"])
def test_probabilities_are_the_softmax_of_the_scores(data):
    X, y = data
    model = SparseSVC("logistic", "l1", alpha=0.02).fit(X, y)
    probabilities, scores = model.predict_proba(X), model.decision_function(X)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    np.testing.assert_allclose(probabilities, softmax(scores, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities, rtol=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), "logistic", SquaredHinge(), "hinge"])
def test_only_the_logistic_loss_has_probabilities(loss):
    expected = loss == "logistic" or isinstance(loss, Logistic)
    assert hasattr(SparseSVC(loss), "predict_proba") is expected
    assert hasattr(clone(SparseSVC(loss)), "predict_log_proba") is expected


def test_l2_logistic_is_scikit_learn_logistic_regression():
    X, y = WINE
    alpha = 0.01
    ours = SparseSVC("logistic", "l2", alpha=alpha, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=1.0 / (alpha * y.size), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "bcd", "fista", "interior_point"])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_vs_rest_is_homogeneous_in_the_sample_margins(classes, solver):
    # Margins, weights and alpha times c: the loss is c² times as large, and so is alpha · penalty.
    X, y = IRIS[0][IRIS[1] < classes], IRIS[1][IRIS[1] < classes]
    margins = np.random.default_rng(0).uniform(0.2, 2.0, y.size)
    model = SparseSVC("ovr_squared_hinge", "l1", alpha=0.02, tol=1e-7, solver=solver)
    one = clone(model).fit(X, y, sample_margin=margins)
    three = model.set_params(alpha=0.06).fit(X, y, sample_margin=3.0 * margins)
    plain = clone(model).fit(X, y)
    assert one.dual_gap_ <= 1e-7
    assert three.objective_ == pytest.approx(9.0 * one.objective_, rel=1e-6)
    assert abs(plain.objective_ - three.objective_) > 1e-2


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(margin=1.0), OvrSquaredHinge()])
def test_sample_margins_multiply_the_margin(loss):
    X, y = IRIS
    margins = np.where(np.arange(y.size) % 2 == 0, 3.0, 3.0)
    scaled = SparseSVC(loss, "l1", alpha=0.03, tol=1e-7).fit(X, y, sample_margin=margins)
    if isinstance(loss, OvrSquaredHinge):
        # max(0, 3 - t S)² = 9 max(0, 1 - t S / 3)²
        plain = SparseSVC(loss, "l1", alpha=0.01, tol=1e-7).fit(X, y)
        plain.objective_ *= 9.0
    else:
        plain = SparseSVC(type(loss)(margin=3.0), "l1", alpha=0.03, tol=1e-7).fit(X, y)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_margins_that_would_do_nothing_are_refused():
    X, y = IRIS
    margins = np.ones(y.size)
    with pytest.raises(ValueError, match=r"which is 0 for loss='logistic'.*Logistic\(margin=1.0\)"):
        SparseSVC("logistic", alpha=0.1).fit(X, y, sample_margin=margins)
    with pytest.raises(ValueError, match="Every margin is zero"):
        SparseSVC(SquaredHinge(margin=0.0), alpha=0.1).fit(X, y)


@pytest.mark.parametrize("make", [SparseSVC, SparseSVCCV])
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_models_without_probabilities_say_what_to_use(make, method):
    model = make("squared_hinge")
    assert not hasattr(model, method)
    with pytest.raises(AttributeError, match=r"loss='logistic', or wrap .*CalibratedClassifierCV"):
        getattr(model, method)
    assert hasattr(make("logistic"), method)
    assert "Return the" in getattr(make, method).__doc__
