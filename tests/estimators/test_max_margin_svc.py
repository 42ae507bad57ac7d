"""The largest smallest margin among classifiers of least hinge."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from reference.hierarchical import least_hinge_by_highs, least_norm_by_clarabel
from sparsvm import MaxMarginSVC

IRIS, IRIS_Y = load_iris(return_X_y=True)


def random_samples(seed, n, d, K, spread):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(K), rng.integers(0, K, n - K)]
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(K, d))[y], y


CASES = {
    "two_classes": random_samples(0, 30, 2, 2, 1.0),
    "two_separable": random_samples(1, 30, 3, 2, 6.0),
    "three": random_samples(2, 40, 3, 3, 1.5),
    "three_separable": random_samples(10, 40, 3, 3, 8.0),
    "four_overlapping": random_samples(4, 60, 5, 4, 0.7),
    "five": random_samples(5, 50, 4, 5, 3.0),
    "wide": random_samples(6, 15, 40, 4, 0.0),
    "one_pair_overlaps": (IRIS, IRIS_Y),
    "sepals": (IRIS[::2, :2], IRIS_Y[::2]),
    "wine": load_wine(return_X_y=True),
}


@pytest.mark.parametrize("case", CASES)
def test_both_stages_agree_with_independent_solvers(case):
    X, y = CASES[case]
    model = MaxMarginSVC().fit(X, y)
    least = least_hinge_by_highs(X, y)
    assert model.hinge_loss_ == pytest.approx(least, rel=1e-7, abs=1e-7)
    norm = least_norm_by_clarabel(X, y, least)
    # The oracle works with the hinge allowed to exceed its least value a little.
    assert 1.0 / model.smallest_margin_ == pytest.approx(norm, rel=1e-4)
    assert 1.0 / model.smallest_margin_ >= norm * (1 - 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_both_stages_are_proved_to_the_last_digits(case):
    X, y = CASES[case]
    model = MaxMarginSVC().fit(X, y)
    assert model.result_.status == "optimal"
    assert model.hinge_gap_ <= 1e-10
    assert model.margin_gap_ <= 1e-10


def pair_norms(coef):
    return np.array(
        [np.linalg.norm(a - b) for i, a in enumerate(coef) for b in coef[i + 1 :]], dtype=float
    )


@pytest.mark.parametrize("case", ["three_separable", "five", "wide", "one_pair_overlaps", "sepals"])
def test_the_answer_is_unique(case):
    # Renaming the classes, turning the feature space and moving the origin change the path of
    # every solver, and nothing else.
    X, y = CASES[case]
    K, d = y.max() + 1, X.shape[1]
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    names = rng.permutation(K)
    model = MaxMarginSVC().fit(X, y)
    other = MaxMarginSVC().fit(X @ turn + 0.3, names[y])
    expected = model.coef_
    found = other.coef_[names] @ turn.T
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("case", ["three_separable", "five", "wide", "one_pair_overlaps", "sepals"])
def test_no_change_on_the_face_evens_out_the_margins(case):
    # The oracle may exceed the least hinge and the least maximum a little, which lowers its sum
    # of squares a little.
    X, y = CASES[case]
    model = MaxMarginSVC().fit(X, y)
    squares = (pair_norms(model.coef_) ** 2).sum()
    longest = 1.0 / model.smallest_margin_
    least = least_norm_by_clarabel(X, y, model.hinge_loss_, squares_within=longest, slack=1e-4)
    assert least * (1 - 1e-6) <= squares <= least * (1 + 2e-2)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9 * np.abs(model.coef_).max())
    assert abs(model.intercept_.sum()) <= 1e-9 * np.abs(model.intercept_).max()


@pytest.mark.parametrize("case", ["three_separable", "five", "wide", "wine"])
def test_no_shorter_intercepts_keep_every_margin(case):
    # Given the weights, b_r - b_t is at least 1 + max over the samples of r of (w_t - w_r)'x.
    X, y = CASES[case]
    model = MaxMarginSVC().fit(X, y)
    assert model.separable_
    K, scores = y.max() + 1, X @ model.coef_.T
    pairs = [(r, t) for r in range(K) for t in range(K) if r != t]
    least = np.array([1.0 + np.max(scores[y == r, t] - scores[y == r, r]) for r, t in pairs])
    signs = np.array([np.eye(K)[r] - np.eye(K)[t] for r, t in pairs])
    assert np.all(signs @ model.intercept_ >= least - 1e-8 * np.abs(least).max())
    shortest = minimize(
        lambda b: b @ b,
        model.intercept_,
        jac=lambda b: 2.0 * b,
        constraints={"type": "ineq", "fun": lambda b: signs @ b - least, "jac": lambda b: signs},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert np.linalg.norm(model.intercept_) <= np.sqrt(shortest.fun) * (1.0 + 1e-6) + 1e-9


@pytest.mark.parametrize(
    ("X", "y"),
    [(IRIS[:100], IRIS_Y[:100]), CASES["two_separable"], (IRIS[IRIS_Y != 1], IRIS_Y[IRIS_Y != 1])],
)
def test_two_separable_classes_give_the_optimal_separating_hyperplane(X, y):
    model = MaxMarginSVC().fit(X, y)
    svc = SVC(kernel="linear", C=1e10, tol=1e-10).fit(X, y)
    assert model.separable_
    assert model.hinge_loss_ == 0.0
    np.testing.assert_allclose(model.coef_, svc.coef_, atol=1e-5 * np.abs(svc.coef_).max())
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-4)
    assert model.smallest_margin_ == pytest.approx(1 / np.linalg.norm(svc.coef_), rel=1e-5)


def test_attributes_are_what_the_coefficients_say():
    X, y = IRIS[:, :2], IRIS_Y
    model = MaxMarginSVC().fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    lifted = 1.0 + scores - scores[np.arange(150), y][:, None]
    lifted[np.arange(150), y] = 0.0
    hinge = lifted.max(axis=1)
    assert model.hinge_loss_ == pytest.approx(hinge.sum(), rel=1e-12)
    assert model.n_margin_errors_ == (hinge > 1e-7).sum()
    assert not model.separable_
    norms = np.linalg.norm(model.coef_[:, None] - model.coef_[None], axis=2)
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(model.pairwise_margins_[off], 1 / norms[off], rtol=1e-12)
    assert np.isinf(np.diag(model.pairwise_margins_)).all()
    assert model.smallest_margin_ == model.pairwise_margins_.min()


def test_separable_data_have_no_loss_at_all():
    for data in (load_wine(return_X_y=True), CASES["three_separable"], CASES["wide"]):
        model = MaxMarginSVC().fit(*data)
        assert model.separable_
        assert model.hinge_loss_ == 0.0
        assert model.n_margin_errors_ == 0
        assert model.score(*data) == 1.0


def test_weights_count_like_repetitions():
    X, y = CASES["three"]
    weight = np.random.default_rng(0).integers(0, 4, y.size)
    weight[:3] = 1
    weighted = MaxMarginSVC().fit(X, y, sample_weight=weight)
    repeated = MaxMarginSVC().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.intercept_, repeated.intercept_)
    assert weighted.hinge_loss_ == repeated.hinge_loss_
    assert weighted.hinge_loss_ == pytest.approx(least_hinge_by_highs(X, y, weight), rel=1e-8)


def test_margin_errors_count_rows():
    X, y = IRIS[:, :2], IRIS_Y
    once = MaxMarginSVC().fit(X, y)
    twice = MaxMarginSVC().fit(np.vstack([X, X]), np.r_[y, y])
    np.testing.assert_array_equal(once.coef_, twice.coef_)
    assert twice.n_margin_errors_ == 2 * once.n_margin_errors_


def test_class_weights_multiply_sample_weights():
    X, y = CASES["three"]
    weight = np.array([1.0, 2.0, 0.5])
    by_class = MaxMarginSVC(class_weight=dict(enumerate(weight))).fit(X, y)
    by_sample = MaxMarginSVC().fit(X, y, sample_weight=weight[y])
    np.testing.assert_allclose(by_class.coef_, by_sample.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", ["three", "wide"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, np.asfortranarray])
def test_storage_does_not_matter(case, kind):
    X, y = CASES[case]
    expected = MaxMarginSVC().fit(X, y)
    found = MaxMarginSVC().fit(kind(X), y)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)


@pytest.mark.parametrize("case", ["three", "wide", "three_separable", "wine", "sepals"])
def test_float32_is_kept_and_certified(case):
    X, y = CASES[case]
    X = X.astype(np.float32)
    model = MaxMarginSVC().fit(X, y)
    exact = MaxMarginSVC().fit(X.astype(np.float64), y)
    assert model.coef_.dtype == np.float32
    assert model.result_.status == "optimal"
    assert model.separable_ == exact.separable_
    if case != "sepals":  # where rounding the data has moved samples off the margins
        assert model.n_margin_errors_ == exact.n_margin_errors_
    if exact.separable_:
        assert model.hinge_loss_ == 0.0
    assert model.smallest_margin_ == pytest.approx(exact.smallest_margin_, rel=1e-4)


def test_features_without_information_give_a_model_without_weights():
    X = np.ones((6, 2))
    y = np.array([0, 0, 0, 1, 1, 2])
    with pytest.warns(UserWarning, match="Every weight is zero"):
        model = MaxMarginSVC().fit(X, y)
    assert not model.coef_.any()
    assert np.isinf(model.smallest_margin_)
    assert model.hinge_loss_ == pytest.approx(least_hinge_by_highs(X, y), rel=1e-9)
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("seed", range(40))
def test_random_problems_are_solved_and_proved(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    n, d = int(rng.integers(K, 60)), int(rng.integers(1, 12))
    X, y = random_samples(seed, n, d, K, rng.choice([0.0, 0.5, 2.0, 6.0]))
    X = (
        np.round(X),  # many ties and repeated samples
        X * 10.0 ** rng.integers(-3, 4, d),  # features of very different scale
        np.column_stack([X, X[:, 0]]),  # collinear features
        (X > 0).astype(float),
        X,
    )[seed % 5]
    weight = rng.uniform(0.1, 3.0, n)
    with warnings.catch_warnings():
        # Without information a model without weights is the right answer.
        warnings.filterwarnings("ignore", message="Every weight is zero")
        model = MaxMarginSVC().fit(X, y, sample_weight=weight)
    assert model.result_.status == "optimal"
    least = least_hinge_by_highs(X, y, weight)
    assert model.hinge_loss_ == pytest.approx(least, rel=1e-6, abs=1e-6)


def test_constant_features_have_no_weight():
    X, y = CASES["three"]
    model = MaxMarginSVC().fit(np.column_stack([X, np.full(y.size, 7.0)]), y)
    plain = MaxMarginSVC().fit(X, y)
    assert (model.coef_[:, -1] == 0.0).all()
    np.testing.assert_allclose(model.coef_[:, :-1], plain.coef_, rtol=1e-9, atol=1e-9)


def test_a_separation_far_narrower_than_the_data_is_found():
    # Separable, by a margin of a hundred-millionth of the spread of its features.
    X, y = load_breast_cancer(return_X_y=True)
    model = MaxMarginSVC().fit(X, y)
    assert model.separable_
    assert model.hinge_loss_ == 0.0
    assert model.margin_gap_ <= 1e-6


@pytest.mark.parametrize(
    "n_classes", [5, pytest.param(10, marks=pytest.mark.slow)], ids=["five", "all"]
)
def test_digits_are_solved_exactly(n_classes):
    X, y = load_digits(return_X_y=True)
    rows = y < n_classes
    model = MaxMarginSVC().fit(X[rows], y[rows])
    assert model.separable_
    assert model.hinge_loss_ == 0.0
    assert model.margin_gap_ <= 1e-10


def test_many_more_features_than_samples_are_solved_in_their_span():
    X, y = random_samples(7, 38, 7129, 3, 0.1)
    model = MaxMarginSVC().fit(X, y)
    assert model.separable_
    assert model.margin_gap_ <= 1e-10
    # Weights have no part outside the span of the centred samples.
    basis = np.linalg.qr((X - X.mean(axis=0)).T)[0]
    inside = model.coef_ @ basis @ basis.T
    np.testing.assert_allclose(inside, model.coef_, atol=1e-9 * np.abs(model.coef_).max())


def test_too_large_data_are_refused_with_what_to_use():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 10
    with pytest.raises(ValueError, match=r"too many for MaxMarginSVC.*Use SparseSVC"):
        MaxMarginSVC().fit(rng.normal(size=(3000, 600)), y)


# Some checks fit random labels, for which a model without weights is the right answer.
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([MaxMarginSVC()])
def test_scikit_learn_check(estimator, check):
    check(estimator)
