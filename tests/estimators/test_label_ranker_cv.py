"""SparseLabelRankerCV: the alpha of a label ranker by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import SparseLabelRanker, SparseLabelRankerCV, load_model, save_model


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(
        n_samples=80, n_features=25, n_classes=5, n_labels=2, random_state=0
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([SparseLabelRankerCV(n_alphas=3, cv=2)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scoring", [None, "f1_micro"])
def test_the_scores_are_those_of_separate_fits(data, scoring):
    X, Y = data
    folds = KFold(3)
    model = SparseLabelRankerCV(n_alphas=5, cv=folds, scoring=scoring, tol=1e-6).fit(X, Y)
    assert_array_equal(model.alphas_, SparseLabelRanker().path(X, Y, n_alphas=5, eps=1e-2).alphas)
    for f, (train, test) in enumerate(folds.split(X)):
        for t in (1, 4):
            alone = SparseLabelRanker(alpha=model.alphas_[t], tol=1e-6).fit(X[train], Y[train])
            if scoring is None:
                score = -label_ranking_loss(Y[test], alone.decision_function(X[test]))
            else:
                score = f1_score(Y[test], alone.predict(X[test]), average="micro")
            assert model.scores_[t, f] == pytest.approx(score, abs=0.02)
            assert abs(model.n_selected_[t, f] - alone.selected_features_.size) <= 1


def test_the_model_is_that_of_the_best_mean_score_on_all_samples(data):
    X, Y = data
    model = SparseLabelRankerCV(n_alphas=6, cv=3).fit(X, Y)
    means = model.scores_.mean(axis=1)
    assert model.best_index_ == means.argmax() and model.best_score_ == means.max()
    assert model.alpha_ == model.alphas_[model.best_index_]
    alone = SparseLabelRanker(alpha=model.alpha_).fit(X, Y)
    assert_array_equal(model.coef_, alone.coef_)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert_array_equal(model.cv_results_["mean_test_score"], means)
    assert model.dual_gap_ <= 1e-3
    sparser = clone(model).set_params(rule="1se").fit(X, Y)
    assert sparser.alpha_ >= model.alpha_


def test_sparse_targets_processes_and_whole_weights_change_nothing(data):
    X, Y = data
    cv = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    plain = SparseLabelRankerCV(n_alphas=4, cv=cv).fit(X, Y)
    others = (
        clone(plain).fit(sp.coo_matrix(X), sp.csr_matrix(Y)),
        clone(plain).set_params(n_jobs=2).fit(X, Y),
        clone(plain).fit(X, Y, sample_weight=np.full(80, 2.0)),
    )
    for other in others:
        assert_allclose(other.scores_, plain.scores_, atol=1e-3)
        assert_allclose(other.alpha_, plain.alpha_)


def test_one_label_a_sample_is_scored_by_accuracy():
    X, y = load_iris(return_X_y=True)
    model = SparseLabelRankerCV("l1", n_alphas=6, eps=1e-3).fit(X, y)
    assert model.best_score_ > 0.9 and model.scores_.shape == (6, 5)
    assert set(model.predict(X)) == {0, 1, 2}


def test_models_that_fall_short_are_counted_in_one_warning(data):
    X, Y = data
    with pytest.warns(ConvergenceWarning, match="of the 6 models of the cross-validation"):
        SparseLabelRankerCV(n_alphas=3, eps=0.1, cv=2, solver="fista", max_iter=2).fit(X, Y)


def test_a_penalty_without_a_largest_alpha_asks_for_alphas(data):
    with pytest.raises(ValueError, match="Give alphas"):
        SparseLabelRankerCV("l2").fit(*data)
    assert SparseLabelRankerCV("l2", alphas=[0.1, 1.0], cv=2).fit(*data).alpha_ in (0.1, 1.0)


def test_a_fold_without_weight_is_refused_with_its_number(data):
    X, Y = data
    weight = np.ones(len(X))
    weight[: len(X) // 2] = 0.0
    with pytest.raises(ValueError, match=r"test samples of fold 0 have the weight zero"):
        SparseLabelRankerCV(n_alphas=2, cv=2).fit(X, Y, sample_weight=weight)


def test_a_saved_model_predicts_the_same_label_sets(data, tmp_path):
    X, Y = data
    model = SparseLabelRankerCV(n_alphas=4, cv=2).fit(X, Y)
    save_model(model, tmp_path / "ranker.safetensors")
    loaded = load_model(tmp_path / "ranker.safetensors")
    assert isinstance(loaded, SparseLabelRankerCV) and loaded.alpha_ == model.alpha_
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.scores_, model.scores_)
