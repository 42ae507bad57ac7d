"""certify() bounds the suboptimality of any model, and dual_ lets users check the bound."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import sparsvm
from sparsvm import ConstrainedSparseSVC, SparseSVC, SparseSVCCV, certify
from sparsvm.losses import Hinge

LOSSES = ["hinge", "squared_hinge", "logistic", "ovr_squared_hinge"]


def data(K=3, n=60, d=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d))
    X[np.arange(n), y] += 1.5
    return X, np.array(["ant", "bee", "cow", "doe"])[y]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 3])
def test_our_own_models_are_within_tol_and_worse_ones_are_not(loss, K):
    X, y = data(K)
    kind = {"loss": loss, "penalty": "l1/l2", "alpha": 0.03}
    model = SparseSVC(**kind, tol=1e-6).fit(X, y)
    proof = certify(X, y, model.coef_, model.intercept_, **kind)
    assert proof.within_tol
    assert proof.objective == pytest.approx(model.objective_, rel=1e-12)
    assert proof.lower_bound <= model.objective_
    worse = certify(X, y, 1.5 * model.coef_, model.intercept_, **kind)
    assert not worse.within_tol
    true = (worse.objective - model.objective_) / worse.objective
    assert true <= worse.suboptimality <= true + 1.1e-3
    assert worse.best_objective < worse.objective


@pytest.mark.parametrize("factor", [1.0 + 1e-3, 1.0 + 3e-3, 1.0 + 1e-2, 3.0])
def test_the_verdict_is_that_of_the_true_suboptimality(factor):
    X, y = data(2)
    kind = {"loss": "hinge", "penalty": "l1", "alpha": 0.02}
    model = SparseSVC(**kind, tol=1e-8).fit(X, y)
    proof = certify(X, y, factor * model.coef_, model.intercept_, **kind)
    true = (proof.objective - model.objective_) / proof.objective
    assert true - 1e-7 <= proof.suboptimality
    if not 0.85e-3 < true < 1.0001e-3:
        assert proof.within_tol == (true <= 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 4])
def test_without_intercept_the_best_one_for_the_weights_is_taken(loss, K):
    X, y = data(K)
    rng = np.random.default_rng(1)
    W = rng.standard_normal((1 if K == 2 else K, X.shape[1]))
    kind = {"loss": loss, "penalty": "l1", "alpha": 0.1}
    proof = certify(X, y, W, **kind)
    assert proof.objective == certify(X, y, W, proof.intercept, **kind).objective

    def at(b):
        return certify(X, y, W, b, **kind, tol=0.9).objective

    for _ in range(3):
        shifted = proof.intercept + 0.05 * rng.standard_normal(W.shape[0])
        assert at(shifted) >= proof.objective * (1 - 1e-9)
    if loss != "hinge":
        least = minimize(at, proof.intercept + 0.1, method="Nelder-Mead", options={"maxfev": 60})
        assert least.fun >= proof.objective * (1 - 1e-9)


def test_without_fit_intercept_models_have_none():
    X, y = data(2)
    kind = {"loss": "logistic", "penalty": "l1", "alpha": 0.02, "fit_intercept": False}
    model = SparseSVC(**kind).fit(X, y)
    assert certify(X, y, model.coef_, 0.0, **kind).within_tol
    assert certify(X, y, model.coef_, **kind).intercept == 0.0
    with pytest.raises(ValueError, match="fit_intercept=False"):
        certify(X, y, model.coef_, 0.5, **kind)


# scikit-learn 1.8 renames the argument that 1.4 needs.
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Inconsistent values")
def test_logistic_regression_of_scikit_learn_is_certified():
    X, y = data(2, n=100)
    C = 0.3
    model = LogisticRegression(penalty="l1", C=C, solver="saga", tol=1e-8, max_iter=10**5)
    model.fit(X, y)
    kind = {"loss": "logistic", "penalty": "l1", "alpha": 1 / (C * len(y))}
    assert certify(X, y, model.coef_, model.intercept_, **kind, tol=1e-5).within_tol
    assert certify(pd.DataFrame(X), y, sp.csr_matrix(model.coef_), **kind).within_tol
    assert certify(X, y, model.coef_[0], model.intercept_, **kind).within_tol


# Of iris: glmnet 4.1-6 (lambda = 0.02, standardize = FALSE, thresh = 1e-12) and lightning 0.6.2
# (alpha = 0.02, C = 1 / 150, tol = 1e-10), as they printed their weights.
OTHERS = {
    "glmnet, ungrouped": (
        {"loss": "logistic", "penalty": "l1"},
        [[0, 0, -2.8542277, 0], [0, 0, 0, 0], [0, 0, 3.1491464, 1.3197254]],
        [11.0457396, 3.264957, -14.3106966],
    ),
    "glmnet, grouped": (
        {"loss": "logistic", "penalty": "l1/l2"},
        [
            [0, 0, -3.39353036, -0.37429886],
            [0, 0, -0.099942721, -0.611637587],
            [0, 0, 3.49347308, 0.98593644],
        ],
        [12.54849848, 3.825329346, -16.37382782],
    ),
    "lightning, squared hinge": (
        {"loss": "squared_hinge", "penalty": "l1/l2", "fit_intercept": False},
        [
            [0.38790598, 0.71468096, -0.95404799, -0.63138612],
            [0.28975055, 0.15161954, -0.13309411, -0.59032528],
            [-0.67765653, -0.8663005, 1.0871421, 1.2217114],
        ],
        None,
    ),
    "lightning, logistic": (
        {"loss": "logistic", "penalty": "l1/l2", "fit_intercept": False},
        [
            [0.64608111, 1.7991683, -2.31989788, -0.7777442],
            [0.56560287, -0.11409126, 0.00984724, -0.94834297],
            [-1.21168398, -1.68507704, 2.31005064, 1.72608717],
        ],
        None,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_glmnet_and_lightning_are_certified(name):
    problem, coef, intercept = OTHERS[name]
    X, y = load_iris(return_X_y=True)
    assert certify(X, y, coef, intercept, **problem, alpha=0.02).within_tol
    assert not certify(X, y, coef, intercept, **problem, alpha=0.03).within_tol


@pytest.mark.parametrize(
    ("kind", "loss", "penalty"),
    [
        ({}, "ovr_squared_hinge", "l2"),
        ({"penalty": "l1", "dual": False}, "ovr_squared_hinge", "l1"),
        ({"multi_class": "crammer_singer"}, "hinge", "l2"),
    ],
)
@pytest.mark.parametrize("K", [2, 3])
def test_linear_svc_is_optimal_where_its_intercept_is_the_weight_of_a_column_of_ones(
    kind, loss, penalty, K
):
    X, y = data(K, n=100)
    X[:, 0] += 3.0  # so that intercepts matter
    model = LinearSVC(C=0.3, tol=1e-8, max_iter=10**5, random_state=0, **kind).fit(X, y)
    # Of two classes Crammer and Singer's penalty has two rows, whose difference is coef_.
    rows = 2 if K == 2 and loss == "hinge" else 1
    problem = {"loss": loss, "penalty": penalty, "alpha": 1 / (rows * 0.3 * len(y)), "tol": 1e-5}
    with_ones = np.hstack([X, np.ones((len(y), 1))])
    coef = np.hstack([model.coef_, model.intercept_[:, None]])
    assert certify(with_ones, y, coef, fit_intercept=False, **problem).within_tol
    assert not certify(X, y, model.coef_, model.intercept_, **problem).within_tol


def test_weights_and_a_starting_point_far_away_do_not_matter_to_the_bound():
    X, y = data(3)
    weight = np.random.default_rng(2).uniform(0, 2, len(y))
    kind = {"loss": "hinge", "penalty": "l1", "alpha": 0.03}
    model = SparseSVC(**kind).fit(X, y, weight)
    far = certify(X, y, np.full((3, 8), 1e12), [0, 0, 0], **kind, sample_weight=weight)
    assert not far.within_tol
    assert far.lower_bound == pytest.approx(model.objective_, rel=2e-3)
    assert far.suboptimality == pytest.approx(1.0)
    assert far.best_objective == pytest.approx(model.objective_, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"coef": np.zeros((2, 8))}, "one row for each class"),
        ({"coef": np.full((3, 8), np.nan)}, "NaN or infinite"),
        ({"coef": "weights"}, "must be an array of numbers"),
        ({"intercept": [1.0, 2.0]}, "intercept has shape"),
        ({"intercept": [1.0, np.inf, 0.0]}, "intercept contains NaN"),
        ({"coef": np.full((3, 8), 1e308)}, "overflows"),
        ({"loss": "ramp"}, "convex"),
        ({"penalty": "l0"}, "convex"),
        ({"tol": 0.0}, "tol"),
        ({"alpha": -1.0}, "alpha"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_what_cannot_be_certified_is_refused_in_a_sentence(change, sentence):
    X, y = data(3)
    given = {"coef": np.zeros((3, 8)), "intercept": [0.0, 0.0, 0.0]}
    given |= {"loss": "hinge", "penalty": "l1", "alpha": 0.1} | change
    with pytest.raises(ValueError, match=sentence):
        certify(X, y, **given)


def test_two_classes_need_one_row():
    X, y = data(2)
    with pytest.raises(ValueError, match="two classes have one row"):
        certify(X, y, np.zeros((2, 8)), loss="hinge", penalty="l1", alpha=0.1)


def repeated():
    """Rows in no order, some repeated and some without weight."""
    X, y = data(3)
    rng = np.random.default_rng(3)
    rows = rng.permutation(np.r_[np.arange(60), 5, 5, 7, 8])
    weight = rng.integers(0, 4, rows.size).astype(float)
    return X[rows], y[rows], weight


def lower_bound(X, y, weight, dual, alpha, loss, costs=1.0):
    """The dual value from its definition, for the l1 norm; checks that the dual is feasible."""
    p = weight / weight.sum()
    classes, codes = np.unique(y, return_inverse=True)
    own = np.eye(classes.size, dtype=bool)[codes]
    F = np.where(own, 0.0, dual)
    assert F.min() >= 0.0
    signed = np.where(own, -F.sum(axis=1, keepdims=True), F)
    if loss != "squared_hinge":
        assert np.all(dual.sum(axis=1) <= p + 1e-12)
    np.testing.assert_allclose(signed.sum(axis=0), 0.0, atol=1e-12)
    assert np.abs(signed.T @ X).max() <= alpha * (1 + 1e-9)
    a = np.divide(F, p[:, None], where=p[:, None] > 0, out=np.zeros_like(F))
    gain = np.sum(F * costs)
    if loss == "squared_hinge":
        return gain - np.sum(F * a) / 4
    if loss == "logistic":
        rest = 1 - a.sum(axis=1)
        entropy = np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0).sum(axis=1)
        entropy += np.where(rest > 0, rest * np.log(np.where(rest > 0, rest, 1)), 0)
        return -np.sum(p * entropy)
    return gain


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_bound_is_recomputed_from_dual_in_the_users_rows(loss):
    X, y, weight = repeated()
    model = SparseSVC(loss, alpha=0.03).fit(X, y, weight)
    assert model.dual_.shape == (len(y), 3)
    assert not model.dual_[weight == 0].any()
    bound = lower_bound(X, y, weight, model.dual_, 0.03, loss)
    assert bound == pytest.approx(model.result_.dual_objective, rel=1e-9)
    proof = certify(X, y, model.coef_, loss=loss, penalty="l1", alpha=0.03, sample_weight=weight)
    bound = lower_bound(X, y, weight, proof.dual, 0.03, loss)
    assert bound == pytest.approx(proof.lower_bound, rel=1e-9)


def test_the_bound_of_a_budget_is_recomputed_from_dual():
    X, y, weight = repeated()
    model = ConstrainedSparseSVC(eta=0.5).fit(X, y, weight)
    # The multiplier may be any, so that the dual ball is as large as need be.
    hinge = lower_bound(X, y, weight, model.dual_, np.inf, "hinge")
    codes = np.unique(y, return_inverse=True)[1]
    own = np.eye(3, dtype=bool)[codes]
    F = np.where(own, 0.0, model.dual_)
    G = np.where(own, -F.sum(axis=1, keepdims=True), F).T @ X
    bound = (hinge - 0.5) / np.abs(G).max()
    assert bound == pytest.approx(model.result_.dual_objective, rel=1e-6)


def test_cross_validated_models_have_a_dual_and_unfitted_ones_none():
    X, y, weight = repeated()
    model = SparseSVCCV(n_alphas=3).fit(X, y, weight)
    bound = lower_bound(X, y, weight, model.dual_, model.alpha_, "hinge")
    assert bound == pytest.approx(model.result_.dual_objective, rel=1e-9)
    assert not hasattr(SparseSVC(), "dual_")
    assert not hasattr(SparseSVCCV(n_alphas=3, refit=False).fit(X, y), "dual_")


def test_class_weights_and_costs_are_in_the_dual():
    X, y, weight = repeated()
    costs = np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0.0]])
    model = SparseSVC(Hinge(costs), alpha=0.05, class_weight={"bee": 3.0}).fit(X, y, weight)
    weight = weight * np.where(y == "bee", 3.0, 1.0)
    codes = np.unique(y, return_inverse=True)[1]
    bound = lower_bound(X, y, weight, model.dual_, 0.05, "hinge", costs[codes])
    assert bound == pytest.approx(model.result_.dual_objective, rel=1e-9)


def test_certify_is_public():
    assert "certify" in sparsvm.__all__
