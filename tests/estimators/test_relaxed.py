"""refit="relaxed": the selected features, fitted again with a ridge that the folds choose."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from sparsvm import SparseSVC, SparseSVCCV
from sparsvm.penalties import L1, L2


def make(seed=0, n=60, d=60):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, :6] += np.kron(np.eye(3), [1.0, 1.0])[y]
    return X, y


def options(**more):
    return {"loss": "logistic", "penalty": "l1/l2", "n_alphas": 10, "eps": 0.1, "cv": 3, **more}


def test_the_model_is_a_ridge_on_the_selected_features():
    X, y = make()
    plain = SparseSVCCV(**options()).fit(X, y)
    model = SparseSVCCV(**options(refit="relaxed")).fit(X, y)
    assert model.alpha_ == plain.alpha_
    used = plain.selected_features_
    np.testing.assert_array_equal(model.selected_features_, used)
    ridge = SparseSVC("logistic", "l2", alpha=model.ridge_alpha_).fit(X[:, used], y)
    assert model.objective_ == pytest.approx(ridge.objective_, rel=2e-3)
    np.testing.assert_allclose(model.coef_[:, used], ridge.coef_, atol=0.02)
    assert model.dual_gap_ <= 1e-3
    assert model.coef_.shape == (3, 60)
    np.testing.assert_array_equal(model.result_.coef, model.coef_)
    assert model.predict_proba(X).shape == (60, 3)


def test_the_strength_is_chosen_by_folds_that_select_for_themselves():
    X, y = make(seed=1)
    model = SparseSVCCV(**options(refit="relaxed")).fit(X, y)
    t = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    scores = []
    for train, test in StratifiedKFold(3).split(X, y):
        fold = SparseSVC("logistic", "l1/l2", alpha=model.alpha_).fit(X[train], y[train])
        used = fold.selected_features_
        assert abs(used.size - model.n_selected_[t, len(scores)]) <= 2
        ridge = SparseSVC("logistic", "l2", alpha=model.ridge_alpha_)
        scores.append(
            ridge.fit(X[np.ix_(train, used)], y[train]).score(X[np.ix_(test, used)], y[test])
        )
    assert model.relaxed_score_ == pytest.approx(np.mean(scores), abs=0.06)


def test_scaled_and_unpenalised_features_stay_so():
    X, y = make()
    X[:, 3] *= 100.0
    penalty = L1(weights=("scale", {0: 0.0}))
    model = SparseSVCCV(**options(penalty=penalty, refit="relaxed")).fit(X, y)
    used = model.selected_features_
    factors = (used > 0) * 1.0
    ridge = SparseSVC("logistic", L2(weights=("scale", factors)), alpha=model.ridge_alpha_)
    assert model.objective_ == pytest.approx(ridge.fit(X[:, used], y).objective_, rel=2e-3)


def test_few_features_predict_better_when_they_are_not_shrunk():
    gains = []
    for seed in range(4):
        X, y = make(seed=seed, n=90)
        X_test, y_test = make(seed=100 + seed, n=600)
        few = options(max_features=6, loss="hinge", n_alphas=20)
        plain = SparseSVCCV(**few).fit(X, y).score(X_test, y_test)
        gains.append(SparseSVCCV(**few, refit="relaxed").fit(X, y).score(X_test, y_test) - plain)
    assert np.mean(gains) > 0.0


def test_sparse_data_and_a_model_of_zeros():
    X, y = make()
    dense = SparseSVCCV(**options(refit="relaxed")).fit(X, y)
    sparse = SparseSVCCV(**options(refit="relaxed")).fit(sp.csr_matrix(X), y)
    assert np.mean(dense.predict(X) == sparse.predict(X)) > 0.95
    with pytest.warns(UserWarning, match="Every weight is zero"):
        nothing = SparseSVCCV(**options(refit="relaxed", alphas=[10.0])).fit(X, y)
    assert not nothing.coef_.any()
    with pytest.raises(ValueError, match="refit"):
        SparseSVCCV(**options(refit="best")).fit(X, y)
