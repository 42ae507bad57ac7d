"""weights="adaptive": a first fit decides what every feature costs."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold

from sparsvm import ConstrainedSparseSVC, SparseSVC, SparseSVCCV, alpha_max, svm_path
from sparsvm.penalties import L1, L2, GroupL2


def make(seed=0, n=60, d=20):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, :3] += 1.5 * rng.standard_normal((3, 3))[y]
    return X, y


def inverse_sizes(X, y, **options):
    first = SparseSVC(penalty=L2(**options)).fit(X, y)
    sizes = np.linalg.norm(first.coef_, axis=0)
    return sizes.max() / sizes


def test_features_are_weighed_by_the_inverse_of_their_first_weights():
    X, y = make()
    weights = inverse_sizes(X, y)
    model = SparseSVC(penalty=L1(weights="adaptive"), alpha=0.02, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.penalty_weights_, weights, rtol=1e-6)
    by_hand = SparseSVC(penalty=L1(weights=weights), alpha=0.02, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(by_hand.objective_, rel=1e-6)
    assert not hasattr(by_hand, "penalty_weights_")
    path = svm_path(X, y, penalty=L1(weights="adaptive"), alphas=[0.02], tol=1e-7)
    assert path.objectives[0] == pytest.approx(by_hand.objective_, rel=1e-6)
    largest = [alpha_max(X, y, penalty=L1(weights=w)) for w in ("adaptive", weights)]
    assert largest[0] == pytest.approx(largest[1], rel=1e-5)


def test_a_group_is_weighed_as_one_and_factors_multiply():
    X, y = make(d=6)
    first = SparseSVC(penalty="l2").fit(X, y)
    sizes = np.sqrt(np.square(first.coef_).sum(axis=0).reshape(2, 3).mean(axis=1))
    model = SparseSVC(penalty=GroupL2(groups=3, weights="adaptive")).fit(X, y)
    np.testing.assert_allclose(model.penalty_weights_, np.repeat(sizes.max() / sizes, 3), rtol=1e-6)
    free = SparseSVC(penalty=L1(weights=("adaptive", {1: 0, 2: 3.0})), alpha=1.0).fit(X, y)
    # In proportion to the inverse sizes; of the penalised ones the smallest is 1.
    expected = inverse_sizes(X, y, weights={1: 0}) * [1, 0, 1, 1, 1, 1]
    expected *= np.array([1, 0, 3, 1, 1, 1]) / expected[[0, 2, 3, 4, 5]].min()
    np.testing.assert_allclose(free.penalty_weights_, expected, rtol=1e-6)
    assert free.coef_[:, 1].any()


def test_a_constant_column_gets_a_finite_weight():
    X, y = make(d=5)
    X[:, 4] = 0.0
    model = SparseSVC(penalty=L1(weights="adaptive"), alpha=0.01).fit(X, y)
    assert model.penalty_weights_[4] == pytest.approx(1e6)
    assert 4 not in model.selected_features_


def test_in_a_fold_only_its_training_part_is_seen():
    X, y = make(seed=1)
    model = SparseSVCCV(penalty=L1(weights="adaptive"), alphas=[0.1, 0.02], cv=3, tol=1e-7)
    model.fit(X, y)
    for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        penalty = L1(weights=inverse_sizes(X[train], y[train]))
        for t, alpha in enumerate(model.alphas_):
            fold = SparseSVC(penalty=penalty, alpha=alpha, tol=1e-7).fit(X[train], y[train])
            expected = accuracy_score(y[test], fold.predict(X[test]))
            assert model.scores_[t, f] == pytest.approx(expected)
    np.testing.assert_allclose(model.penalty_weights_, inverse_sizes(X, y), rtol=1e-6)


def test_as_good_a_fit_uses_less_noise_than_with_equal_weights():
    rng = np.random.default_rng(1)
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 30))
    X[:, :3] += 1.5 * np.eye(3)[y]
    signal = SparseSVC("logistic", "l2", alpha=1e-4).fit(X[:, :3], y)
    goal = 1.1 * log_loss(y, signal.predict_proba(X[:, :3]))
    used = {}
    for weights in (None, "adaptive"):
        path = svm_path(X, y, loss="logistic", penalty=GroupL2(weights=weights))
        good = next(model for model in path if log_loss(y, model.predict_proba(X)) <= goal)
        assert {0, 1, 2} <= set(good.selected_features_)
        used[weights] = good.selected_features_.size
    assert used["adaptive"] < used[None]


def test_estimators_that_make_no_first_fit_say_so():
    X, y = make()
    overlapping = GroupL2(groups=[[0, 1], [1, 2]], weights="adaptive")
    with pytest.raises(ValueError, match="not made for groups that overlap"):
        SparseSVC(penalty=overlapping).fit(X, y)
    with pytest.raises(ValueError, match="which SparseSVC, SparseSVCCV, svm_path and alpha_max"):
        ConstrainedSparseSVC(penalty=L1(weights="adaptive"), eta=0.5).fit(X, y)
