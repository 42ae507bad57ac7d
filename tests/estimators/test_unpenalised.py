"""Unpenalised features that separate classes or repeat each other."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from sparsvm import SparseSVC
from sparsvm.losses import Logistic
from sparsvm.penalties import L1
from sparsvm.problem.recession import recession

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5))
TWO = (X[:, 0] > 0).astype(int)
THREE = np.argmax(X[:, :3], axis=1)
NOISE = RNG.integers(0, 3, 40)
FIRST_FREE = L1(weights=[0, 1, 1, 1, 1])
ALL_FREE = L1(weights=np.zeros(5))
LOSSES = ["hinge", "squared_hinge", "logistic", "ovr_squared_hinge"]


def direction(data, y):
    """Return a direction of recession where no feature is penalised."""
    penalty = L1(weights=np.zeros(data.shape[1]))
    estimator = SparseSVC("logistic", penalty, alpha=0.1)
    samples = estimator._read(data, y, None, None)
    return recession(estimator._problem(samples, Logistic(), penalty))


def fitted(loss, penalty, y, data=X):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = SparseSVC(loss, penalty, alpha=0.1).fit(data, y)
    return model, " ".join(str(warning.message) for warning in seen)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_a_logistic_model_that_does_not_exist_is_told_at_once(y):
    # It took 100000 iterations of the last solver.
    model, told = fitted("logistic", ALL_FREE, y)
    assert "no model is optimal" in told
    assert "Give a positive penalty weight" in told
    assert model.n_iter_ == 0
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "ovr_squared_hinge"])
@pytest.mark.parametrize("y", [TWO, np.arange(40) % 4], ids=["two", "four"])
def test_losses_that_can_be_zero_are(loss, y):
    # block_newton, interior_point and sparsa were after the last digits of zero for 27 s.
    data = X if y is TWO else np.random.default_rng(1).standard_normal((40, 60))
    model, _ = fitted(loss, L1(weights=np.zeros(data.shape[1])), y, data)
    assert model.objective_ == 0.0
    assert model.dual_gap_ == 0.0
    assert model.score(data, y) == 1.0


def test_float32_near_its_limit_is_refused_at_once():
    with pytest.raises(ValueError, match=r"beyond 1e\+30 .* smaller than any float32.*float64"):
        SparseSVC("logistic", alpha=0.1).fit((X * 1e37).astype(np.float32), TWO)
    SparseSVC(alpha=0.1 * 1e29).fit((X * 1e29).astype(np.float32), TWO)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_covariate_that_separates_a_class_is_named(loss):
    y = np.where(X[:, 0] > 0.5, "high", np.where(NOISE > 0, "b", "a"))
    frame = pd.DataFrame(X, columns=["age", "b", "c", "d", "e"])
    _, told = fitted(loss, L1(weights={"age": 0}), y, frame)
    assert "The unpenalised feature 'age' separates classes" in told
    assert "separates" not in fitted(loss, "l1", y, frame)[1]
    assert "separate" not in fitted(loss, FIRST_FREE, NOISE)[1]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_of_equally_good_weights_the_smallest_are_taken(loss):
    # The gap between the classes decides: the margin is 1 at its ends.
    model, told = fitted(loss, FIRST_FREE, TWO)
    low, high = X[TWO == 0, 0].max(), X[TWO == 1, 0].min()
    assert "smallest are taken" in told
    np.testing.assert_allclose(model.coef_[0], [2 / (high - low), 0, 0, 0, 0], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [TWO ^ (X[:, 1] > 0.5), NOISE], ids=["two", "three"])
def test_collinear_covariates_do_not_depend_on_their_order(loss, y):
    data = np.column_stack([X, X[:, 0], 1.0 - X[:, 0] + X[:, 1]])
    weights = np.array([0, 0, 1, 1, 1, 0, 0])
    order = RNG.permutation(7)
    one = SparseSVC(loss, L1(weights=weights), alpha=0.05, tol=1e-6).fit(data, y)
    other = SparseSVC(loss, L1(weights=weights[order]), alpha=0.05, tol=1e-6).fit(data[:, order], y)
    np.testing.assert_allclose(one.coef_[:, order], other.coef_, atol=2e-3)
    np.testing.assert_allclose(one.coef_[:, 0], one.coef_[:, 5], atol=1e-8)
    assert one.dual_gap_ <= 1e-6


def separable_by_linear_program(data, y):
    """Whether some direction has all y x >= 0 and their sum positive, for two classes."""
    rows = np.where(y == 1, 1.0, -1.0)[:, None] * np.column_stack([data, np.ones(len(y))])
    found = linprog(-rows.sum(axis=0), -rows, np.zeros(len(y)), bounds=[(-1, 1)] * rows.shape[1])
    return -found.fun > 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_separation_is_found_if_and_only_if_there_is_one(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 600)), int(rng.integers(1, 6))
    data = rng.standard_normal((n, d)).round(1)
    y = (data @ rng.standard_normal(d) + (seed % 3) * 0.2 * rng.standard_normal(n) > 0).astype(int)
    y[:2] = [0, 1]
    assert (direction(data, y) is not None) == separable_by_linear_program(data, y)


def test_a_large_training_set_takes_small_linear_programs():
    rng = np.random.default_rng(1)
    data = rng.standard_normal((20000, 3))
    y = np.argmax(data @ rng.standard_normal((3, 4)), axis=1)
    assert direction(data, y).complete
    flipped = np.where(rng.random(20000) < 0.01, 0, y)
    assert direction(data, flipped) is None


def test_classes_that_are_never_predicted_are_named():
    data = RNG.standard_normal((60, 8))
    y = np.repeat(["a", "b", "c"], [40, 17, 3])
    data[:40, 0] += 2
    with pytest.warns(UserWarning, match="Class 'c' is predicted for no training sample"):
        SparseSVC(penalty="l1/l2", alpha=0.2).fit(data, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseSVC(penalty="l1/l2", alpha=0.02).fit(data, y)
