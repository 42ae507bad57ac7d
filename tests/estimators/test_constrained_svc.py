"""ConstrainedSparseSVC: what users are promised."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import ConstrainedSparseSVC, SparseSVC
from sparsvm.budget import FBPDEpigraph, FBPDLinear
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, GroupL2, GroupLinf

PENALTIES = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


# The checks fit random labels, for which an all-zero model may be the right answer.
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([ConstrainedSparseSVC()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


# The estimator does the same with every penalty.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([ConstrainedSparseSVC(penalty=name) for name in PENALTIES[1:]])
def test_scikit_learn_check_with_other_penalties(estimator, check):
    check(estimator)


def by_proximal_methods(pairs):
    # Few iterations: the checks are of the estimator, and what has not converged says so.
    return [
        ConstrainedSparseSVC(penalty=penalty, solver=solver(max_iter=500))
        for penalty, solver in pairs
    ]


SOME = [("l1", FBPDEpigraph), ("l1/l2", FBPDLinear)]
OTHERS = [
    (penalty, solver)
    for penalty in PENALTIES
    for solver in (FBPDEpigraph, FBPDLinear)
    if (penalty, solver) not in SOME
]


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@pytest.mark.filterwarnings("ignore:fbpd_:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(by_proximal_methods(SOME))
def test_scikit_learn_check_of_the_proximal_methods(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@pytest.mark.filterwarnings("ignore:fbpd_:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(by_proximal_methods(OTHERS))
def test_scikit_learn_check_of_the_proximal_methods_with_other_penalties(estimator, check):
    check(estimator)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_two_defaults_agree(wine, penalty):
    regularised = SparseSVC(penalty=penalty).fit(*wine)
    model = ConstrainedSparseSVC(penalty=penalty).fit(*wine)
    assert model.alpha_ == regularised.alpha_
    ours = model.eta_ + model.alpha_ * model.objective_
    assert ours == pytest.approx(regularised.objective_, rel=2e-3)
    assert model.result_.violation == 0.0 and model.dual_gap_ <= 1e-3
    assert np.array_equal(model.predict(wine[0]), regularised.predict(wine[0]))


def test_attributes_describe_the_fit(wine):
    X, y = wine
    model = ConstrainedSparseSVC(eta=0.2, penalty=GroupL2()).fit(X, y)
    scores = model.decision_function(X)
    hinge = np.mean(
        np.max(1.0 * (np.arange(3) != y[:, None]) + scores, axis=1) - scores[range(178), y]
    )
    assert model.eta_ == 0.2
    assert hinge == pytest.approx(model.result_.hinge, rel=1e-12)
    assert 0.2 - 1e-6 <= hinge <= 0.2 * (1.0 + 1e-9)
    assert model.objective_ == pytest.approx(np.linalg.norm(model.coef_, axis=0).sum())
    assert model.result_.dual_objective <= model.objective_
    assert model.dual_gap_ == model.result_.relative_gap <= 1e-3
    assert model.selected_features_.size < 13
    assert model.n_iter_ >= 1 and model.result_.status == "optimal"
    refit = SparseSVC(penalty=GroupL2(), alpha=model.alpha_, tol=1e-6).fit(X, y)
    assert refit.objective_ == pytest.approx(hinge + model.alpha_ * model.objective_, rel=1e-5)


@pytest.mark.parametrize("eta", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_equivalent_multiplier_gives_the_same_sum(wine, penalty, eta):
    X, y = wine
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    model = ConstrainedSparseSVC(eta, penalty, tol=1e-6).fit(X, y, sample_weight=weight)
    refit = SparseSVC(penalty=penalty, alpha=model.alpha_, tol=1e-6)
    refit.fit(X, y, sample_weight=weight)
    ours = model.result_.hinge + model.alpha_ * model.objective_
    assert refit.objective_ == pytest.approx(ours, rel=3e-6)


def test_a_larger_budget_never_costs_more(wine):
    penalties = [
        ConstrainedSparseSVC(eta=eta, tol=1e-6).fit(*wine).objective_
        for eta in (0.0, 0.01, 0.1, 0.3, 0.6)
    ]
    assert np.all(np.diff(penalties) < 0.0)


def test_weights_are_repetitions_and_margins_scale_the_budget(wine):
    X, y = wine
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    weighted = ConstrainedSparseSVC(eta=0.2).fit(X, y, sample_weight=weight)
    repeated = ConstrainedSparseSVC(eta=0.2).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(weighted.coef_, repeated.coef_)
    plain = ConstrainedSparseSVC(eta=0.2, tol=1e-7).fit(X, y)
    doubled = ConstrainedSparseSVC(eta=0.4, loss=Hinge(margin=2.0), tol=1e-7).fit(X, y)
    per_sample = ConstrainedSparseSVC(eta=0.4, tol=1e-7).fit(
        X, y, sample_margin=np.full(y.size, 2.0)
    )
    assert doubled.objective_ == pytest.approx(2.0 * plain.objective_, rel=1e-6)
    assert per_sample.objective_ == pytest.approx(2.0 * plain.objective_, rel=1e-6)


def test_sparse_data_and_cost_matrices(wine):
    X, y = wine
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    cost = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]])
    options = {"eta": 0.3, "penalty": GroupLinf(groups=4), "loss": Hinge(margin=cost), "tol": 1e-6}
    dense = ConstrainedSparseSVC(**options).fit(X, y)
    for storage in (sp.csr_matrix, sp.csc_array):
        sparse = ConstrainedSparseSVC(**options).fit(storage(X), y)
        assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-6)


def test_float32_models_are_certified_as_rounded(wine):
    X, y = wine
    for eta in (0.0, 0.2, None):
        model = ConstrainedSparseSVC(eta=eta).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float32
        assert np.array_equal(model.result_.coef, model.coef_.astype(np.float64))
        assert model.result_.violation <= 1e-6 and model.dual_gap_ <= 1e-3


def test_two_classes_without_a_budget_are_the_hard_margin():
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], np.where(y[y < 2] == 0, "left", "right")
    model = ConstrainedSparseSVC(eta=0, penalty="l2").fit(X, y)
    lead = model.decision_function(X) * np.where(y == "right", 1.0, -1.0)
    assert lead.min() == pytest.approx(1.0, abs=1e-12)
    assert model.result_.hinge <= 1e-15
    assert model.coef_.shape == (1, 4)


def test_budgets_beyond_the_intercepts_give_zeros_and_say_so(wine):
    model = ConstrainedSparseSVC(eta=5.0)
    with pytest.warns(UserWarning, match="Every weight is zero: intercepts alone are within"):
        model.fit(*wine)
    assert not model.coef_.any()
    top = model.alpha_
    with pytest.warns(UserWarning, match="Every weight is zero"):
        SparseSVC(alpha=1.001 * top).fit(*wine)
    assert SparseSVC(alpha=0.99 * top).fit(*wine).coef_.any()


def test_an_impossible_budget_is_refused_and_leaves_the_model_alone():
    X, y = load_iris(return_X_y=True)
    model = ConstrainedSparseSVC(eta=0.5).fit(X[:, :2], y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"eta=0\.01 is below the least mean hinge .* 0\.4314"):
        model.set_params(eta=0.01).fit(X[:, :2], y)
    assert np.array_equal(model.coef_, before)


def test_warm_starts_reach_the_same_optimum(wine):
    model = ConstrainedSparseSVC(eta=0.3, warm_start=True, tol=1e-6).fit(*wine)
    model.set_params(eta=0.25).fit(*wine)
    cold = ConstrainedSparseSVC(eta=0.25, tol=1e-6).fit(*wine)
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-6)


def test_a_penalty_of_mere_rounding_is_no_reason_to_warn():
    # Nearly all the weight is on one class, so that intercepts alone are all but the optimum.
    X, y = make_blobs(centers=2, random_state=0, cluster_std=20)
    model = ConstrainedSparseSVC(penalty="l2", class_weight={0: 1000, 1: 0.0001})
    with pytest.warns(UserWarning, match="Every weight is zero") as caught:
        model.fit(X, y)
    assert [warning.category for warning in caught] == [UserWarning]
    assert model.result_.status == "optimal"


def test_warnings_point_at_the_line_that_fits(wine):
    with pytest.warns(ConvergenceWarning) as caught:
        ConstrainedSparseSVC(eta=0.2, max_iter=2, tol=1e-9).fit(*wine)
    assert caught[0].filename == __file__


def test_stopping_early_warns(wine):
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* Raise max_iter"):
        ConstrainedSparseSVC(eta=0.2, max_iter=2, tol=1e-9).fit(*wine)


def test_works_in_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), ConstrainedSparseSVC(penalty=GroupL2()))
    grid = {
        "constrainedsparsesvc__eta": [0.2, 0.5],
        "constrainedsparsesvc__penalty": [L1(), GroupL2()],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    assert clone(search.best_estimator_).get_params()["constrainedsparsesvc__eta"] in (0.2, 0.5)


def test_the_same_fit_is_bit_identical(wine):
    first, second = (ConstrainedSparseSVC(eta=0.1).fit(*wine) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)


BAD_PARAMETERS = [
    ({"eta": -0.1}, "'eta' parameter"),
    ({"eta": np.nan}, "'eta' parameter"),
    ({"eta": np.inf}, "'eta' parameter"),
    ({"eta": "small"}, "'eta' parameter"),
    ({"tol": -1.0}, "'tol' parameter"),
    ({"max_iter": 0}, "'max_iter' parameter"),
    ({"n_jobs": 0}, "n_jobs must not be 0"),
    ({"loss": "squared_hinge"}, "bounds the hinge loss, but loss='squared_hinge' was given"),
    ({"loss": "hing"}, "is not a loss"),
    (
        {"penalty": "l0"},
        "needs a built-in convex penalty, but penalty='l0' was given; use one of 'l1'",
    ),
    ({"penalty": "l3"}, "is not a penalty"),
    ({"solver": "interior_point"}, "solver must be one of 'auto', 'budget_search'"),
    ({"loss": Hinge(margin=np.ones((2, 2)))}, "zero on its diagonal|2 x 2 but there are 3"),
    ({"loss": Hinge(margin=0.0)}, "Every margin is zero"),
    ({"class_weight": {7: 1.0}}, "class_weight has the label 7"),
    ({"penalty": L1(weights=[1.0])}, r"weights has shape \(1,\)"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_refused_in_a_sentence(wine, parameters, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedSparseSVC(**parameters).fit(*wine)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X > 3.0, np.nan, X), y), "NaN"),
        (lambda X, y: (X * 1e60, y), "beyond 1e\\+50"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, np.zeros_like(y)), "only one class"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X, y + 0.5), "continuous|Unknown label type"),
    ],
)
def test_bad_data_are_refused_in_a_sentence(wine, change, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedSparseSVC(eta=0.2).fit(*change(*wine))


def test_bad_weights_and_margins_are_refused(wine):
    X, y = wine
    for name in ("sample_weight", "sample_margin"):
        for values, message in (
            (-np.ones(y.size), "must not be negative"),
            (np.ones(3), "one number for each of the 178 rows"),
            (np.full(y.size, np.nan), "NaN"),
        ):
            with pytest.raises(ValueError, match=message):
                ConstrainedSparseSVC(eta=0.2).fit(X, y, **{name: values})


def test_a_point_outside_of_the_budget_has_no_finite_gap():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = ConstrainedSparseSVC(eta=0.1, solver="fbpd_epigraph", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="not within the budget"):
        model.fit(X, y)
    assert model.result_.violation > 0.0
    assert model.dual_gap_ == model.result_.gap == np.inf
