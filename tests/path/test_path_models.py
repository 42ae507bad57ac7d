"""A path is a sequence of fitted models."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from sparsvm import SparseSVC, SVMPath, svm_path


@pytest.fixture(scope="module")
def path_and_data():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    return svm_path(X, labels, penalty="l1/l2", alphas=[0.5, 0.1, 0.02], tol=1e-8), X, labels


def test_a_model_of_the_path_is_a_fit_at_its_alpha(path_and_data):
    path, X, y = path_and_data
    model, cold = path.at(0.1), SparseSVC(penalty="l1/l2", alpha=0.1, tol=1e-8).fit(X, y)
    assert isinstance(model, SparseSVC)
    assert model.get_params() == cold.get_params()
    assert (model.alpha_, model.n_features_in_) == (0.1, 4)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-7)
    assert model.dual_gap_ <= 1e-8
    np.testing.assert_array_equal(model.predict(X), cold.predict(X))
    np.testing.assert_array_equal(model.selected_features_, cold.selected_features_)
    np.testing.assert_array_equal(model.class_prior_, cold.class_prior_)


def test_between_two_alphas_the_nearer_model_is_taken_and_beyond_them_none(path_and_data):
    path, _, _ = path_and_data
    assert path.at(0.3).alpha_ == 0.5
    assert path.at(0.2).alpha_ == 0.1
    assert path.at(0.02 * (1 - 1e-9)).alpha_ == 0.02
    for alpha in (0.6, 0.01, np.nan, -1.0):
        with pytest.raises(ValueError, match=r"from alpha=0\.5 to alpha=0\.02"):
            path.at(alpha)


def test_points_and_parts_of_a_path(path_and_data):
    path, X, _ = path_and_data
    assert len(path) == 3
    np.testing.assert_array_equal(path[-1].coef_, path.coefs[2].toarray())
    part = path[1:]
    assert isinstance(part, SVMPath)
    np.testing.assert_array_equal(part.alphas, [0.1, 0.02])
    np.testing.assert_array_equal(part.predict(X), path.predict(X)[1:])
    assert len(part.coefs) == len(part.statuses) == 2
    with pytest.raises(IndexError):
        path[3]


def test_a_path_is_shown_in_one_line(path_and_data):
    path, _, _ = path_and_data
    first, last = path.n_selected[[0, -1]]
    counts, gap = f"{first} to {last} features", f"{path.gaps.max():.1e}"
    assert repr(path) == f"SVMPath(3 alphas from 0.5 to 0.02, {counts}, largest gap {gap})"
    assert repr(path[:0]) == "SVMPath(0 alphas)"


def test_every_model_predicts_at_once(path_and_data):
    path, X, y = path_and_data
    assert path.predict(X).shape == (3, 150)
    assert path.decision_function(X).shape == (3, 150, 3)
    weight = np.arange(150.0)
    for t in range(3):
        np.testing.assert_array_equal(path.predict(X)[t], path[t].predict(X))
        assert path.score(X, y, weight)[t] == path[t].score(X, y, weight)


def test_a_path_stops_before_the_first_model_of_too_many_features():
    X, y = load_iris(return_X_y=True)
    whole = svm_path(X, y, penalty="l1/l2", n_alphas=20)
    for most in (1, 2, 3):
        path = svm_path(X, y, penalty="l1/l2", n_alphas=20, max_features=most)
        assert len(path) == int(np.argmax(whole.n_selected > most))
        assert path.n_selected.max() <= most
    assert len(svm_path(X, y, penalty="l1/l2", n_alphas=20, max_features=4)) == len(whole)
    for wrong in (0, 1.5, "two", True):
        with pytest.raises(ValueError, match="max_features must be a positive integer"):
            svm_path(X, y, max_features=wrong)
    with pytest.raises(ValueError, match=r"alpha, 0\.001, uses more features already"):
        svm_path(X, y, alphas=[1e-3], max_features=1)


def test_names_of_features_go_along_and_a_path_can_be_pickled():
    X, y = load_iris(return_X_y=True, as_frame=True)
    path = svm_path(X, y, alphas=[0.1])
    assert path.at(0.1).feature_names_in_.tolist() == X.columns.tolist()
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.predict(X), path.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        path.predict(pd.DataFrame(X.to_numpy(), columns=["p", "q", "r", "s"]))
