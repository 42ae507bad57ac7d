"""Predictions of a few samples, which read little of the model, are those of many."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC, SparseSVCCV
from sparsvm.estimators import linear


def fitted(n_classes, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 400), density=0.05, random_state=rng, format="csr", dtype=dtype)
    y = np.arange(60) % n_classes
    return SparseSVC("squared_hinge", alpha=1e-3, tol=1e-3).fit(X, y), X


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparsified", [False, True])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, lambda X: X.toarray()])
def test_one_by_one_and_together_agree(n_classes, dtype, sparsified, form):
    model, X = fitted(n_classes, dtype)
    if sparsified:
        model.sparsify()
    together = model.decision_function(form(X))
    single = [model.decision_function(form(X[i : i + 1])) for i in range(X.shape[0])]
    assert {scores.dtype for scores in single} == {together.dtype}
    np.testing.assert_allclose(np.concatenate(single), together, rtol=1e-5, atol=1e-6)
    empty = form(sp.csr_array((1, 400), dtype=dtype))
    np.testing.assert_allclose(model.decision_function(empty).ravel(), model.intercept_)


def test_one_sample_reads_only_the_coefficients_of_its_features(monkeypatch):
    model, X = fitted(3)
    monkeypatch.setattr(linear, "used_columns", None)
    monkeypatch.setattr(linear, "_require_finite", None)
    assert model.predict(X[:1]).shape == (1,)
    assert model.predict(X[:1].toarray()).shape == (1,)


def test_edits_of_the_coefficients_count_at_once_and_bad_ones_are_refused():
    model, X = fitted(3)
    one = X[:1]
    before = model.decision_function(one)
    model.coef_[0, one.indices] += 1.0
    after = model.decision_function(one)
    np.testing.assert_allclose(after[0, 0], before[0, 0] + one.data.sum())
    model.coef_[0, one.indices[0]] = np.nan
    for samples in (one, one.toarray()):
        with pytest.raises(ValueError, match="coef_ contains NaN"):
            model.predict(samples)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_sparsified_model_is_pickled_in_twice_its_weights_and_indices(loss):
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 20000), density=0.002, random_state=rng, format="csr")
    model = SparseSVC(loss, alpha=2e-4, tol=0.1).fit(X, np.arange(3000) % 10)
    dense = len(pickle.dumps(model))
    before = model.decision_function(X[:5])
    model.sparsify()
    weights = model.coef_
    assert weights.nnz > 3000
    least = weights.data.nbytes + weights.indices.nbytes
    packed = pickle.dumps(model)
    assert len(packed) <= 2 * least < dense
    again = pickle.loads(packed)
    np.testing.assert_allclose(again.decision_function(X[:5]), before, rtol=1e-12)
    assert again.dual_gap_ == again.result_.relative_gap <= 0.1
    assert not hasattr(again, "dual_")


@pytest.mark.parametrize("kind", [SparseSVC, ConstrainedSparseSVC, MaxMarginSVC, SparseSVCCV])
def test_sparsify_and_densify_keep_the_model_and_one_array_of_weights(kind):
    X, y = load_iris(return_X_y=True)
    model = kind().fit(X, y)
    before = model.predict(X)
    for change in (model.sparsify, model.densify):
        assert change() is model
        assert model.result_.coef is model.coef_
        np.testing.assert_array_equal(model.predict(X), before)
    assert kind().fit(X, y).set_params().sparsify().fit(X, y).coef_.shape == (3, 4)
