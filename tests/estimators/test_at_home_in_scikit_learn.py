"""The estimators inside scikit-learn's own tools: one test for each of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from sparsvm import SparseSVC, SparseSVCCV
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, ElasticNet, GroupL2, SparseGroup

ESTIMATORS = (
    SparseSVC(penalty="l1", alpha=0.05),
    SparseSVCCV(penalty="l1", n_alphas=5, eps=0.05, cv=3),
)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def estimator(request):
    return clone(request.param)


def test_a_pipeline_scales_and_classifies(wine, estimator):
    X, y = wine
    model = make_pipeline(StandardScaler(), estimator).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model[-1].selected_features_.size < 13


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_grid_may_hold_numpy_values(wine, loss):
    X, y = wine
    grid = {"fit_intercept": np.array([True, False]), "max_iter": np.array([1000])}
    search = GridSearchCV(SparseSVC(loss, alpha=0.1), grid, cv=2, error_score="raise").fit(X, y)
    for chosen, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        plain = SparseSVC(loss, alpha=0.1, fit_intercept=bool(chosen["fit_intercept"]))
        assert score == cross_validate(plain, X, y, cv=2)["test_score"].mean()


def test_parameters_of_parts_that_are_given_by_name_can_be_set(wine):
    X, y = wine
    model = SparseSVC("hinge", "elasticnet", solver="sdca")
    model.set_params(penalty__l1_ratio=0.2, loss__margin=2.0, alpha=0.3)
    assert model.penalty == ElasticNet(l1_ratio=0.2)
    assert model.loss == Hinge(margin=2.0)
    assert (model.alpha, model.solver) == (0.3, "sdca")
    model.set_params(penalty="sparse_group", penalty__l1_ratio=0.7)
    assert model.penalty == SparseGroup(l1_ratio=0.7)
    with pytest.raises(ValueError, match="SparseGroup has no parameter 'colour'"):
        model.set_params(penalty__colour=1)
    search = GridSearchCV(
        SparseSVC(penalty="elasticnet", alpha=0.1), {"penalty__l1_ratio": [0.3, 0.9]}, cv=3
    )
    assert search.fit(X, y).best_estimator_.penalty.l1_ratio in (0.3, 0.9)
    assert search.estimator.penalty == "elasticnet"


def test_grid_search_reaches_the_parameters_of_the_penalty(wine):
    X, y = wine
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SparseSVC(penalty=SparseGroup()))])
    grid = {"svc__penalty__l1_ratio": [0.1, 0.9], "svc__alpha": [0.3, 0.03]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["svc__penalty__l1_ratio"] in (0.1, 0.9)
    assert (
        search.best_estimator_[-1].penalty.l1_ratio
        == (search.best_params_["svc__penalty__l1_ratio"])
    )
    # The object given by the user was cloned, not changed.
    assert pipeline[-1].penalty.l1_ratio == 0.5


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", GroupL2(groups=2)], ids=str)
def test_select_from_model_keeps_what_the_model_uses(wine, penalty):
    X, y = wine
    X = StandardScaler().fit_transform(X)
    selector = SelectFromModel(SparseSVC(penalty=penalty, alpha=0.1), threshold=1e-12).fit(X, y)
    np.testing.assert_array_equal(
        selector.get_support(indices=True), selector.estimator_.selected_features_
    )


def test_select_from_model_needs_its_threshold_unless_the_penalty_is_the_name_l1(wine):
    """It reads ``penalty == "l1"`` literally; other penalties get the mean as threshold."""
    X, y = wine
    X = StandardScaler().fit_transform(X)
    by_name = SelectFromModel(SparseSVC(penalty="l1", alpha=0.1)).fit(X, y)
    by_object = SelectFromModel(SparseSVC(penalty=L1(), alpha=0.1)).fit(X, y)
    used = by_name.estimator_.selected_features_.size
    assert by_name.get_support().sum() <= used
    assert by_object.get_support().sum() < used


def test_calibration_gives_the_hinge_probabilities(wine, estimator):
    X, y = wine
    X = StandardScaler().fit_transform(X)
    model = CalibratedClassifierCV(estimator, cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == y).mean() > 0.95


def test_set_output_names_the_selected_columns(wine):
    data = load_wine(as_frame=True)
    selector = SelectFromModel(SparseSVC(alpha=0.1), threshold=1e-12)
    pipeline = make_pipeline(StandardScaler(), selector).set_output(transform="pandas")
    chosen = pipeline.fit_transform(data.data, data.target)
    assert isinstance(chosen, pd.DataFrame)
    used = pipeline[-1].estimator_.selected_features_
    assert list(chosen.columns) == list(data.data.columns[used])


def test_cross_val_predict_returns_scores_of_all_classes(wine, estimator):
    X, y = wine
    model = make_pipeline(StandardScaler(), estimator)
    labels = cross_val_predict(model, X, y, cv=3)
    assert (labels == y).mean() > 0.9
    scores = cross_val_predict(model, X, y, cv=3, method="decision_function")
    np.testing.assert_array_equal(scores.argmax(axis=1), labels)


def test_permutation_importance_is_zero_for_features_that_are_not_used(wine, estimator):
    X, y = wine
    X = StandardScaler().fit_transform(X)
    model = estimator.set_params(penalty="l1/l2").fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    unused = np.setdiff1d(np.arange(13), model.selected_features_)
    assert np.all(found[unused] == 0.0)
    assert found.max() > 0.0


def test_partial_dependence_is_flat_in_a_feature_that_is_not_used():
    X, y = load_iris(return_X_y=True)
    y = (y == 2).astype(int)
    model = SparseSVC(alpha=0.1).fit(X, y)
    used = model.selected_features_
    unused = np.setdiff1d(np.arange(4), used)
    flat = partial_dependence(model, X, [int(unused[0])])["average"]
    steep = partial_dependence(model, X, [int(used[0])])["average"]
    assert np.ptp(flat) < 1e-12 < np.ptp(steep)


def test_the_html_repr_shows_the_parameters(estimator):
    estimator.set_params(penalty="l1/linf")
    html = estimator_html_repr(make_pipeline(StandardScaler(), estimator))
    assert type(estimator).__name__ in html
    assert "l1/linf" in html
    page = f"/api/sparsvm.{type(estimator).__name__}.html"
    assert page in estimator_html_repr(estimator)


def test_clones_and_pickles_predict_alike(wine, estimator):
    X, y = wine
    model = estimator.set_params(penalty=GroupL2(groups=np.arange(13) % 5)).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), copied.decision_function(X))
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_metadata_reach_the_fit_through_everything(wine):
    """Weights of zero take samples out, wherever the weights had to travel."""
    X, y = wine
    X = StandardScaler().fit_transform(X)
    keep = np.random.default_rng(0).random(y.size) < 0.8
    weight = keep.astype(float)
    with config_context(enable_metadata_routing=True):
        svc = SparseSVC(alpha=0.05).set_fit_request(sample_weight=True, sample_margin=True)
        alone = SparseSVC(alpha=0.05).fit(X[keep], y[keep])
        piped = make_pipeline(svc).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(piped[-1].coef_, alone.coef_)
        selected = SelectFromModel(svc, threshold=1e-12).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(selected.estimator_.coef_, alone.coef_)
        margins = np.full(y.size, 2.0)
        stretched = make_pipeline(svc).fit(X, y, sample_margin=margins)
        assert not np.allclose(stretched[-1].coef_, make_pipeline(svc).fit(X, y)[-1].coef_)

        svc.set_score_request(sample_weight=True)
        search = GridSearchCV(svc, {"alpha": [0.05]}, cv=StratifiedKFold(3))
        search.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(search.best_estimator_.coef_, alone.coef_)
        scores = cross_validate(svc, X, y, cv=3, params={"sample_weight": weight})
        assert np.all(np.isfinite(scores["test_score"]))

        chosen = SparseSVCCV(n_alphas=4, eps=0.1, cv=3)
        chosen.set_fit_request(sample_weight=True, sample_margin=True)
        inside = make_pipeline(chosen).fit(X, y, sample_weight=weight)[-1]
        outside = SparseSVCCV(n_alphas=4, eps=0.1, cv=3).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(inside.scores_, outside.scores_)
        np.testing.assert_array_equal(inside.coef_, outside.coef_)
        folds = list(StratifiedKFold(3).split(X, y))
        calibrated = CalibratedClassifierCV(svc, cv=folds).fit(X, y, sample_weight=weight)
        scores = cross_val_predict(
            svc, X, y, cv=folds, method="decision_function", params={"sample_weight": weight}
        )
        for (train, test), pair in zip(folds, calibrated.calibrated_classifiers_, strict=True):
            fold = SparseSVC(alpha=0.05).fit(X[train], y[train], sample_weight=weight[train])
            np.testing.assert_array_equal(pair.estimator.coef_, fold.coef_)
            np.testing.assert_array_equal(scores[test], fold.decision_function(X[test]))
