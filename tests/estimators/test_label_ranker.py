"""SparseLabelRanker: label sets in, rankings and label sets out."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import SparseLabelRanker, SparseSVC
from sparsvm.estimators.thresholds import best_thresholds
from sparsvm.penalties import Penalty


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(
        n_samples=80, n_features=25, n_classes=5, n_labels=2, random_state=0
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseLabelRanker()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_ranking_is_better_than_that_of_the_frequencies(data):
    X, Y = data
    model = SparseLabelRanker(alpha=0.05, tol=1e-4).fit(X[:50], Y[:50])
    assert model.dual_gap_ <= 1e-4
    scores = model.decision_function(X[50:])
    often = np.broadcast_to(Y[:50].mean(axis=0), scores.shape)
    assert label_ranking_loss(Y[50:], scores) < label_ranking_loss(Y[50:], often)
    predicted = model.predict(X[50:])
    assert_array_equal(predicted, scores > 0.0)
    assert f1_score(Y[50:], predicted, average="micro", zero_division=0.0) > 0.5


@pytest.mark.parametrize("solver", ["prox_newton", "bcd", "fista", "sparsa"])
def test_every_solver_by_name_gives_the_same_model(data, solver):
    X, Y = data
    model = SparseLabelRanker(alpha=0.2, solver=solver, tol=1e-6).fit(X, Y)
    other = SparseLabelRanker(alpha=0.2, tol=1e-6).fit(X, Y)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-6)
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=0.02)


def test_with_one_label_a_sample_it_is_the_squared_hinge():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    ranker = SparseLabelRanker("l1", alpha=0.02, tol=1e-8).fit(X, labels)
    svm = SparseSVC("squared_hinge", "l1", alpha=0.02, tol=1e-8).fit(X, labels)
    assert ranker.objective_ == pytest.approx(svm.objective_, rel=1e-7)
    assert_array_equal(ranker.predict(X), svm.predict(X))


def test_targets_and_samples_may_be_sparse(data):
    X, Y = data
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = SparseLabelRanker(alpha=0.2).fit(X, Y)
    for other in (sp.csr_matrix(X), sp.csc_array(X)):
        model = SparseLabelRanker(alpha=0.2).fit(other, sp.csr_matrix(Y))
        assert_allclose(model.coef_, dense.coef_, atol=1e-9)
        assert_array_equal(model.predict(other), dense.predict(X))


def test_float32_is_kept_and_certified(data):
    X, Y = data
    model = SparseLabelRanker(alpha=0.2).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert model.dual_gap_ <= 1e-3


def test_weights_count_like_repetitions(data):
    X, Y = data
    weight = np.arange(len(X)) % 3
    weighted = SparseLabelRanker(alpha=0.2).fit(X, Y, sample_weight=weight)
    repeated = SparseLabelRanker(alpha=0.2).fit(
        np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    )
    assert_array_equal(weighted.coef_, repeated.coef_)
    assert_array_equal(weighted.threshold_coef_, repeated.threshold_coef_)


def test_normalising_divides_every_sample_by_its_pairs(data):
    X, Y = data
    model = SparseLabelRanker(alpha=0.02, normalise=True, tol=1e-6).fit(X, Y)
    own = Y.sum(axis=1)
    scores = X @ model.coef_.T + model.intercept_
    hinges = 1.0 - (scores[:, :, None] - scores[:, None, :])
    pairs = (Y[:, :, None] > Y[:, None, :]) * np.maximum(hinges, 0.0) ** 2
    loss = np.mean(pairs.sum(axis=(1, 2)) / np.maximum(own * (5 - own), 1))
    penalty = 0.02 * np.sqrt((model.coef_**2).sum(axis=0)).sum()
    assert model.objective_ == pytest.approx(loss + penalty, rel=1e-12)


def test_thresholds_leave_the_fewest_labels_on_the_wrong_side():
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(size=(300, 5)), 1)
    own = rng.random((300, 5)) < 0.4
    best = best_thresholds(scores, own)
    wrong = np.sum((scores > best[:, None]) != own, axis=1)
    levels = np.concatenate([scores - 1e-6, scores + 1e-6], axis=1)
    least = np.min(np.sum((scores[:, None] > levels[:, :, None]) != own[:, None], axis=2), axis=1)
    assert_array_equal(wrong, least)


def test_a_fixed_threshold_is_taken_as_it_is(data):
    X, Y = data
    model = SparseLabelRanker(alpha=0.2, threshold=0.25).fit(X, Y)
    scores = X @ model.coef_.T + model.intercept_
    assert_array_equal(model.predict(X), scores > 0.25)


def test_the_path_begins_at_zero_and_every_point_is_certified(data):
    X, Y = data
    path = SparseLabelRanker(tol=1e-5).path(X, Y, n_alphas=6, eps=0.05)
    assert path.n_selected[0] == 0 and path.n_selected[-1] > 5
    assert path.converged and path.gaps.max() <= 1e-5
    model = SparseLabelRanker(alpha=path.alphas[3], tol=1e-5).fit(X, Y)
    assert model.objective_ == pytest.approx(path.objectives[3], rel=2e-5)
    below = SparseLabelRanker(alpha=0.99 * path.alphas[0], tol=1e-8).fit(X, Y)
    assert below.selected_features_.size == 1


def test_grid_search_and_a_warm_start_work(data):
    X, Y = data
    search = GridSearchCV(SparseLabelRanker(), {"alpha": [0.05, 0.5]}, scoring="f1_micro", cv=2)
    assert search.fit(X, Y).best_score_ > 0.4
    model = SparseLabelRanker(alpha=0.2, warm_start=True).fit(X, Y)
    assert model.fit(X, Y).n_iter_ == 0


def test_a_penalty_of_ones_own_is_fitted_and_certified(data):
    class Ridge(Penalty):
        def value(self, W):
            return float(np.sum(W**2))

        def prox(self, W, step):
            return W / (1.0 + 2.0 * step)

        def conjugate(self, G):
            return float(np.sum(G**2)) / 4.0

    X, Y = data
    own = SparseLabelRanker(Ridge(), alpha=0.1, tol=1e-5).fit(X, Y)
    built_in = SparseLabelRanker("l2", alpha=0.2, tol=1e-5).fit(X, Y)
    assert own.objective_ == pytest.approx(built_in.objective_, rel=2e-5)
    assert "fista" in own.result_.solver


def test_what_cannot_be_ranked_is_refused_with_a_sentence(data):
    X, Y = data
    with pytest.raises(ValueError, match="zeros and ones"):
        SparseLabelRanker().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="values -1, 1"):
        SparseLabelRanker().fit(X, 2 * Y - 1)
    with pytest.raises(ValueError, match="positive weight have the same label set"):
        SparseLabelRanker().fit(X, Y, sample_weight=(Y[0] == Y).all(axis=1))
    with pytest.raises(ValueError, match="same label set"):
        SparseLabelRanker().fit(X, np.ones_like(Y) * [1, 0, 1, 0, 0])
    with pytest.raises(ValueError, match="convex"):
        SparseLabelRanker("l0").fit(X, Y)
    with pytest.raises(ValueError, match="Give alphas"):
        SparseLabelRanker("l2").path(X, Y)
    with pytest.raises(ValueError, match="samples"):
        SparseLabelRanker().fit(X, Y[:-1])
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        SparseLabelRanker(alpha=1e-3, max_iter=1, tol=1e-9).fit(X, Y)


@pytest.mark.parametrize("sets", [[["a"], ["b", "c"]], [[1], [2, 3]], [(), (1,)]])
def test_lists_of_labels_are_refused_with_what_makes_an_indicator_of_them(sets):
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        SparseLabelRanker().fit(np.eye(10), sets * 5)
