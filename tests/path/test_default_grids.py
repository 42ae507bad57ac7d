"""Grids of their own begin where weights matter and end where nothing changes any more."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from sparsvm import SparseSVC, alpha_max, svm_path
from sparsvm.penalties import L2, ElasticNet


def separable(n=30, d=100):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, :4] += 2.0 * rng.standard_normal((3, 4))[y]
    return X, y


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_a_grid_of_its_own_ends_at_a_model_that_is_optimal_for_the_rest(penalty):
    X, y = separable()
    tol = 1e-5
    path = svm_path(X, y, penalty=penalty, n_alphas=60, tol=tol)
    assert 5 < len(path) < 60
    largest = alpha_max(X, y, penalty=penalty)
    assert (1 - 1e-6) * largest <= path.alphas[0] <= largest / 0.95
    whole = path.alphas[0] * np.geomspace(1.0, 1e-3, 60)
    np.testing.assert_allclose(path.alphas, whole[: len(path)], rtol=1e-6)
    coef, intercept = path.coefs[-1].toarray(), path.intercepts[-1]
    scores = X @ coef.T + intercept
    true = scores[np.arange(y.size), y]
    loss = np.mean(np.max(scores + (np.arange(3) != y[:, None]), axis=1) - true)
    first = path.objectives[0]
    for alpha in whole[len(path) :: 10]:
        cold = SparseSVC(penalty=penalty, alpha=alpha, tol=1e-7).fit(X, y)
        size = (cold.objective_ - 0.0) / alpha  # the penalty where no loss is left
        norm = np.abs(coef).sum() if penalty == "l1" else np.linalg.norm(coef, axis=0).sum()
        # The last model is as good there, or fits the samples to a thousandth of the first loss.
        assert loss <= 1e-3 * first or loss + alpha * norm <= (1 + 2 * tol) * alpha * size


def test_alphas_that_are_given_are_all_solved():
    X, y = separable()
    alphas = alpha_max(X, y) * np.geomspace(1.0, 1e-3, 60)
    assert len(svm_path(X, y, alphas=alphas)) == 60


def test_a_grid_that_changes_to_its_end_is_not_cut():
    X, y = load_iris(return_X_y=True)
    assert len(svm_path(X, y, n_alphas=20)) == 20


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "ovr_squared_hinge"])
@pytest.mark.parametrize("penalty", [L2(), ElasticNet(l1_ratio=0.0)], ids=str)
def test_l2_has_a_grid_from_scores_without_effect_to_a_close_fit(loss, penalty):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    path = svm_path(X, y, loss=loss, penalty=penalty, n_alphas=6)
    assert path.converged
    spread = np.ptp(path.decision_function(X)[0])
    assert 0.1 < spread <= 2.5
    assert path.score(X, y)[-1] > 0.98
    # The grid goes with the units of the features.
    scaled = svm_path(10.0 * X, y, loss=loss, penalty=penalty, n_alphas=6)
    np.testing.assert_allclose(scaled.alphas[0], 100.0 * path.alphas[0], rtol=1e-4)


def test_above_the_start_of_the_l2_grid_the_hinge_only_scales_its_weights():
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 5)) + y[:, None]
    start = svm_path(X, y, penalty="l2", n_alphas=2).alphas[0]
    near, far = (SparseSVC(penalty="l2", alpha=c * start, tol=1e-9).fit(X, y) for c in (1.0, 8.0))
    np.testing.assert_allclose(8.0 * far.coef_, near.coef_, rtol=1e-3)
