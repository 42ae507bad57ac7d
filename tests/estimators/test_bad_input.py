"""Everything a user can get wrong is answered in a sentence, before native code sees it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import L0, L1, L2, CappedL1, ElasticNet, GroupL2, SparseGroup

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]
N, D = X.shape

ESTIMATORS = [SparseSVC, ConstrainedSparseSVC, MaxMarginSVC]
for_all = pytest.mark.parametrize("estimator", ESTIMATORS)
# MaxMarginSVC has no margins of its own.
for_penalised = pytest.mark.parametrize("estimator", ESTIMATORS[:2])


def spoiled(value):
    """Return X with one entry replaced."""
    bad = X.astype(type(value) if isinstance(value, str) else np.result_type(X, type(value)))
    bad = bad.astype(object) if isinstance(value, str) else bad
    bad[3, 1] = value
    return bad


def sparse_with_index(index, format):
    """Return a sparse matrix one of whose indices points outside."""
    matrix = sp.csr_matrix(X) if format == "csr" else sp.csc_matrix(X)
    matrix.indices[5] = index
    return matrix


def sparse_with_broken_indptr():
    matrix = sp.csr_matrix(X)
    matrix.indptr[2] = matrix.indptr[4] + 1
    return matrix


DATA = {
    "nan": (spoiled(np.nan), Y, "contains NaN"),
    "inf": (spoiled(np.inf), Y, "contains infinity"),
    "nan_sparse": (sp.csr_array(spoiled(np.nan)), Y, "contains NaN"),
    "inf_csc": (sp.csc_array(spoiled(-np.inf)), Y, "contains infinity"),
    "beyond_float32": (X.astype(np.float32) * np.float32(np.inf), Y, "contains infinity"),
    "too_large": (X * 1e50, Y, r"value of size 7.*e\+50, but beyond 1e\+50 its products"),
    "too_large_sparse": (sp.csc_array(-X * 1e200), Y, "Scale the features"),
    "complex": (spoiled(1j), Y, "Complex data not supported"),
    "text": (spoiled("long"), Y, r"must hold numbers, but it holds text.*'long'.*OneHotEncoder"),
    "text_array": (np.full((N, D), "a"), Y, "must hold numbers, but it holds text"),
    "one_dimension": (X[:, 0], Y, "Expected 2D array, got 1D array"),
    "three_dimensions": (X[:, :, None], Y, "dim 3"),
    "scalar": (3.0, Y, "Expected 2D array, got scalar array"),
    "no_samples": (np.empty((0, D)), [], r"0 sample\(s\)"),
    "no_features": (np.empty((N, 0)), Y, r"0 feature\(s\)"),
    "no_features_sparse": (sp.csr_array((N, 0)), Y, r"0 feature\(s\)"),
    "lengths": (X, Y[:-1], "inconsistent numbers of samples"),
    "one_class": (X, np.zeros(N), r"at least two classes, but y has only one class, 0\.0,"),
    "continuous": (X, X[:, 0], "Unknown label type: continuous"),
    "two_columns_of_labels": (X, np.column_stack([Y, Y]), "y should be a 1d array"),
    "nan_labels": (X, np.where(Y == 0, np.nan, Y), "contains NaN"),
    "labels_that_do_not_sort": (
        X,
        np.array(["a", None, "b"], dtype=object)[Y],
        "labels in y cannot be sorted .*labels of one type",
    ),
    "no_labels": (X, None, "requires y to be passed"),
    "dates": (
        pd.DataFrame({"day": pd.date_range("2020", periods=N), "size": X[:, 0]}),
        Y,
        "must hold numbers, but its columns have types, such as dates",
    ),
    # Refused before anything of that length is made.
    "too_many_features": (
        sp.csr_array((np.ones(N), (np.arange(N), np.arange(N))), shape=(N, 2**33)),
        Y,
        "8589934592 features, but at most 2147483647",
    ),
    "index_too_large_csr": (sparse_with_index(D, "csr"), Y, "not a valid CSR matrix"),
    "index_negative_csr": (sparse_with_index(-1, "csr"), Y, "not a valid CSR matrix"),
    "index_too_large_csc": (sparse_with_index(N, "csc"), Y, "not a valid CSC matrix"),
    "indptr": (sparse_with_broken_indptr(), Y, "not a valid CSR matrix"),
}


@for_all
@pytest.mark.parametrize("case", DATA)
def test_bad_data_is_refused(estimator, case):
    samples, labels, sentence = DATA[case]
    with pytest.raises(ValueError, match=sentence):
        estimator().fit(samples, labels)


WEIGHTS = {
    "negative": (-1.0, "must not be negative, but its smallest value is -1"),
    "nan": (np.nan, "contains NaN"),
    "infinite": (np.inf, "contains infinity"),
    "too_large": (1e300, r"must not exceed 1e\+50, but its largest value is 1e\+300"),
}


@for_penalised
@pytest.mark.parametrize("argument", ["sample_weight", "sample_margin"])
@pytest.mark.parametrize("values", ["balanced", ["heavy"] * N, {0: 1.0}])
def test_values_per_sample_that_are_no_numbers_are_refused(estimator, argument, values):
    with pytest.raises(ValueError, match=f"{argument} must hold one number for each row of X"):
        estimator().fit(X, Y, **{argument: values})


@for_penalised
@pytest.mark.parametrize("argument", ["sample_weight", "sample_margin"])
@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_values_per_sample_are_refused(estimator, argument, case):
    value, sentence = WEIGHTS[case]
    values = np.ones(N)
    values[4] = value
    with pytest.raises(ValueError, match=f"{argument}.*{sentence}"):
        estimator().fit(X, Y, **{argument: values})


@for_penalised
@pytest.mark.parametrize("argument", ["sample_weight", "sample_margin"])
@pytest.mark.parametrize("shape", [(N - 1,), (N, 2), (N, 1), (0,)])
def test_wrong_lengths_per_sample_are_refused(estimator, argument, shape):
    sentence = rf"{argument} must hold one number for each of the {N} rows of X, but it has shape"
    with pytest.raises(ValueError, match=sentence):
        estimator().fit(X, Y, **{argument: np.ones(shape)})


def test_weights_without_a_usable_sum_are_refused():
    with pytest.raises(ValueError, match=f"at least one non-zero number, but all {N} are zero"):
        SparseSVC().fit(X, Y, sample_weight=np.zeros(N))
    for weight in (1e-60, 1e50):
        with pytest.raises(ValueError, match=r"weights sum to .*so that alpha=None would mean"):
            SparseSVC().fit(X, Y, sample_weight=np.full(N, weight))
        SparseSVC(alpha=0.05).fit(X, Y, sample_weight=np.full(N, weight))


def test_only_a_default_needs_a_usable_sum_of_weights():
    weight = np.full(N, 1e-60)
    with pytest.raises(ValueError, match=r"so that eta=None would mean alpha=.*Give eta"):
        ConstrainedSparseSVC().fit(X, Y, sample_weight=weight)
    tiny = ConstrainedSparseSVC(0.3).fit(X, Y, sample_weight=weight)
    plain = ConstrainedSparseSVC(0.3).fit(X, Y)
    assert tiny.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_margins_beyond_the_range_of_the_arithmetic_are_refused():
    for margin, sample_margin in ((1e60, None), (1e30, 1e30)):
        with pytest.raises(ValueError, match=r"largest margin is 1e\+60, but beyond 1e\+50"):
            SparseSVC(Hinge(margin=margin)).fit(X, Y, sample_margin=sample_margin)
    with pytest.raises(ValueError, match="largest margin is 1e-300, but below 1e-50"):
        SparseSVC(Hinge(margin=1e-300)).fit(X, Y)


def test_margins_that_are_all_zero_are_refused():
    for model, margin in ((SparseSVC(Hinge(margin=0.0)), None), (SparseSVC(), 0.0)):
        with pytest.raises(ValueError, match="Every margin is zero"):
            model.fit(X, Y, sample_margin=margin)


@for_all
def test_weights_that_leave_one_class_are_refused(estimator):
    with pytest.raises(ValueError, match="at least two classes, but y has only one class, 1"):
        estimator().fit(X, Y, sample_weight=(Y == 1).astype(float))
    with pytest.raises(ValueError, match="at least two classes, but y has only one class, 2"):
        estimator(class_weight={0: 0, 1: 0}).fit(X, Y)
    with pytest.raises(ValueError, match="at least two classes, but y has no class at all"):
        estimator(class_weight={0: 0, 1: 0, 2: 0}).fit(X, Y)


PARAMETERS = {
    "alpha_negative": ({"alpha": -1.0}, "'alpha' parameter of SparseSVC must be"),
    "alpha_zero": ({"alpha": 0}, "'alpha' parameter of SparseSVC must be"),
    "alpha_nan": ({"alpha": np.nan}, "'alpha' parameter of SparseSVC must be"),
    "alpha_infinite": ({"alpha": np.inf}, "'alpha' parameter of SparseSVC must be"),
    "alpha_tiny": ({"alpha": 1e-300}, "'alpha' parameter of SparseSVC must be"),
    "alpha_beyond_float": ({"alpha": 10**400}, "'alpha' parameter of SparseSVC must be"),
    "alpha_text": ({"alpha": "big"}, "'alpha' parameter of SparseSVC must be"),
    "tol_zero": ({"tol": 0}, "'tol' parameter of SparseSVC must be"),
    "tol_beyond_float": ({"tol": 10**400}, "'tol' parameter of SparseSVC must be"),
    "tol": ({"tol": -1e-3}, "'tol' parameter of SparseSVC must be"),
    "max_iter": ({"max_iter": 0}, "'max_iter' parameter of SparseSVC must be"),
    "fit_intercept": ({"fit_intercept": "yes"}, "'fit_intercept' parameter of SparseSVC must be"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs must not be 0"),
    "class_weight": ({"class_weight": "even"}, "'class_weight' parameter of SparseSVC must be"),
    "class_weight_negative": ({"class_weight": {0: -1}}, "class_weight must hold numbers from 0"),
    "class_weight_text": ({"class_weight": {0: "x"}}, "class_weight must hold numbers, but it is"),
    "class_weight_label": (
        {"class_weight": {"0": 2.0}},
        "class_weight has the label '0', which y has not, and lacks 0",
    ),
    "loss": ({"loss": "hinged"}, "'hinged'.*'hinge', 'squared_hinge', 'logistic'"),
    "loss_object": ({"loss": 3}, "3.*'hinge', 'squared_hinge', 'logistic'"),
    "penalty": ({"penalty": "lasso"}, "'lasso'.*'l1', 'l2', 'elasticnet', 'l1/l2'"),
    "penalty_object": ({"penalty": None}, "None.*'l1', 'l2', 'elasticnet', 'l1/l2'"),
    "solver": ({"solver": "newtons"}, "'auto', 'interior_point'.*'newtons'"),
    "solver_object": ({"solver": object}, "'auto', 'interior_point'"),
    "groups": ({"penalty": GroupL2(groups=[0, 1, 1])}, "3 labels.*4 features"),
    "block": ({"penalty": GroupL2(groups=0)}, "block size must be at least 1"),
    "groups_text": ({"penalty": GroupL2(groups="two")}, "groups must be None, a block size"),
    "groups_columns": ({"penalty": GroupL2(groups=np.zeros((4, 1)))}, "groups must be None, a"),
    "groups_scalar": ({"penalty": GroupL2(groups=np.array(2))}, "groups must be None, a block"),
    "groups_unordered": ({"penalty": GroupL2(groups={0, 1, 2, 3})}, "groups must be None, a block"),
    "groups_missing": ({"penalty": GroupL2(groups=[0, 0, np.nan, 1])}, "that of feature 2 is nan"),
    "groups_none": ({"penalty": GroupL2(groups=["a", None, "b", "b"])}, "of feature 1 is None"),
    "groups_null": (
        {"penalty": GroupL2(groups=pl.Series(["a", "b", None, "b"]))},
        "of feature 2 is None",
    ),
    "groups_na": ({"penalty": GroupL2(groups=[0, 1, 1, pd.NA])}, "of feature 3 is <NA>"),
    "groups_lists": ({"penalty": GroupL2(groups=[[0], [1], [2], 3])}, "of feature 0 is .0."),
    "groups_beyond": ({"penalty": GroupL2(groups=[[0], [7]])}, "only the columns 0 to 3"),
    "weights_text": ({"penalty": L1(weights=list("abcd"))}, "an array of numbers"),
    "weights_complex": ({"penalty": L1(weights=np.ones(4) * 1j)}, "an array of numbers"),
    "weights": ({"penalty": L1(weights=[1.0, 2.0])}, r"shape \(2,\).*4 features"),
    "weights_negative": ({"penalty": L1(weights=[1, 1, 1, -1])}, "finite and not negative"),
    "weights_tiny": ({"penalty": L1(weights=[1e-320] * 4)}, r"0 or between 1e-50 and 1e\+50; weig"),
    "weights_huge": ({"penalty": L2(weights=[1, 1e60, 1, 1])}, r"weight 1 is 1e\+60. Multiply"),
    "weights_beyond_float": ({"penalty": L1(weights=[10**400] * 4)}, "an array of numbers"),
    "per_class": ({"penalty": GroupL2(per_class="each")}, "per_class must be True or False; got"),
    "sharpness": ({"penalty": L0(sharpness=1e-320)}, "positive, finite sharpness, between 1e-50"),
    "cap": ({"penalty": CappedL1(cap=10**400)}, "positive, finite cap, between 1e-50"),
    "l1_ratio_beyond_float": ({"penalty": ElasticNet(10**400)}, "l1_ratio between 0 and 1"),
    "mu_beyond_float": ({"loss": Ramp(mu=10**400)}, r"Ramp needs mu in \(0, 1\]"),
    "margin_beyond_float": ({"loss": Hinge(margin=10**400)}, "margin must be a number or a square"),
    "l1_ratio": ({"penalty": SparseGroup(l1_ratio=1.5)}, "l1_ratio between 0 and 1"),
    "margin": ({"loss": Hinge(margin=-1.0)}, "finite and not negative"),
    "cost_shape": ({"loss": Hinge(margin=np.ones((2, 2)))}, "2 x 2 but there are 3 classes"),
    "cost_diagonal": ({"loss": Hinge(margin=np.ones((3, 3)))}, "zero on its diagonal"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_bad_parameters_are_refused(case):
    parameters, sentence = PARAMETERS[case]
    with pytest.raises(ValueError, match=sentence):
        SparseSVC(**parameters).fit(X, Y)


def test_a_block_larger_than_all_features_is_one_group():
    expected = SparseSVC(penalty=GroupL2(groups=D)).fit(X, Y)
    for size in (D + 1, 10**30):
        found = SparseSVC(penalty=GroupL2(groups=size)).fit(X, Y)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.filterwarnings("ignore:Every weight is zero", "ignore:.*relative duality gap of")
@pytest.mark.parametrize("weights", [[0.0, 1e-50, 1.0, 1.0], [1e-50] * 4, [1e50] * 4])
def test_weights_at_their_limits_and_zeros_are_taken(weights):
    model = SparseSVC(penalty=L1(weights=weights), alpha=0.05).fit(X, Y)
    assert np.isfinite(model.coef_).all()


def reference_scores(samples, **options):
    return SparseSVC(tol=1e-8, **options).fit(samples, Y).decision_function(X)


def test_duplicate_and_unsorted_sparse_entries_count_as_their_sum():
    tidy = sp.csr_matrix(X)
    rows = np.repeat(np.arange(N), 2 * D)
    columns = np.tile(np.r_[np.arange(D)[::-1], np.arange(D)], N)
    halves = np.column_stack([X[:, ::-1], X]).ravel() / 2
    order = np.arange(0, N * 2 * D + 1, 2 * D)
    messy = sp.csr_matrix((halves, columns, order), shape=(N, D))
    assert messy.nnz == 2 * tidy.nnz
    before = messy.data.copy(), messy.indices.copy()
    np.testing.assert_allclose(reference_scores(messy), reference_scores(tidy), atol=1e-7)
    np.testing.assert_array_equal(messy.data, before[0])
    np.testing.assert_array_equal(messy.indices, before[1])
    model = SparseSVC().fit(X, Y)
    np.testing.assert_allclose(model.decision_function(messy), model.decision_function(X))
    assert rows.size == messy.nnz


@for_all
def test_long_indices_are_accepted(estimator):
    for kind in (sp.csr_matrix, sp.csc_matrix):
        matrix = kind(X)
        matrix.indices = matrix.indices.astype(np.int64)
        matrix.indptr = matrix.indptr.astype(np.int64)
        found, expected = (estimator(tol=1e-8).fit(samples, Y) for samples in (matrix, X))
        np.testing.assert_allclose(
            found.decision_function(X), expected.decision_function(X), atol=1e-6
        )


@for_all
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_and_mapped_arrays_are_accepted_and_left_alone(estimator, tmp_path, order, dtype):
    plain = np.asarray(X, dtype=dtype, order=order)
    path = tmp_path / "X.bin"
    mapped = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
    mapped[:] = plain
    mapped.flush()
    mapped = np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)
    frozen = plain.copy(order="K")
    frozen.flags.writeable = False
    labels = Y.copy()
    labels.flags.writeable = False
    expected = estimator().fit(plain, Y)
    for samples in (mapped, frozen):
        model = estimator().fit(samples, labels)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.predict(samples), expected.predict(plain))
        np.testing.assert_array_equal(samples, plain)


TAMPERED = {
    "wrong_shape": (lambda coef: coef[:, :-1], r"coef_ has shape \(3, 3\).*needs \(3, 4\)"),
    "flat": (lambda coef: coef.ravel(), r"coef_ has shape \(12,\).*needs \(3, 4\)"),
    "nan": (lambda coef: np.where(coef == coef.max(), np.nan, coef), "coef_ contains NaN"),
    "text": (lambda coef: coef.astype(str), "coef_ holds values of type <U.*numbers are needed"),
    "sparse_shape": (lambda coef: sp.csr_matrix(coef[1:]), r"coef_ has shape \(2, 4\)"),
    "sparse_inf": (lambda coef: sp.csr_matrix(coef * np.inf), "coef_ contains NaN or infinite"),
}


@for_all
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_coefficients_are_refused(estimator, case):
    change, sentence = TAMPERED[case]
    model = estimator().fit(X, Y)
    model.coef_ = change(model.coef_)
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=sentence):
            method(X)


@for_all
def test_tampered_intercepts_are_refused(estimator):
    model = estimator().fit(X, Y)
    model.intercept_ = np.zeros(2)
    with pytest.raises(ValueError, match=r"intercept_ has shape \(2,\).*needs \(3,\)"):
        model.predict(X)
    model.intercept_ = np.array([0.0, np.inf, 0.0])
    with pytest.raises(ValueError, match="intercept_ contains NaN or infinite"):
        model.predict(X)


@for_all
@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (X[:, :2], "X has 2 features, but .*SVC is expecting 4 features"),
        (X[0], "Expected 2D array, got 1D array"),
        (spoiled(np.nan), "contains NaN"),
        (spoiled("long"), "must hold numbers, but it holds text"),
        (sparse_with_index(7, "csr"), "not a valid CSR matrix"),
        (np.empty((0, D)), r"0 sample\(s\)"),
    ],
)
def test_bad_data_is_refused_by_predict(estimator, samples, sentence):
    model = estimator().fit(X, Y)
    with pytest.raises(ValueError, match=sentence):
        model.predict(samples)


@for_all
def test_failed_fit_leaves_the_fitted_model_alone(estimator):
    model = estimator().fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X[:, :2], np.zeros(N))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)
    assert model.n_features_in_ == D


def test_the_range_of_alpha_is_told_in_round_numbers():
    with pytest.raises(ValueError, match=r"in the range \[1e-50, 1e\+50\]"):
        SparseSVC(alpha=0.0).fit(X, Y)
