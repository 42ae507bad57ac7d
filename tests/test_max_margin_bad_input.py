"""Bad input to MaxMarginSVC is refused in a sentence, and changes nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sparsvm import MaxMarginSVC

X, Y = load_iris(return_X_y=True)
N, D = X.shape


def spoiled(value):
    out = X.astype(object) if isinstance(value, str) else X.copy()
    out[3, 1] = value
    return out


DATA = {
    "nan": (spoiled(np.nan), Y, "contains NaN"),
    "infinite": (spoiled(np.inf), Y, "contains infinity"),
    "huge": (spoiled(1e200), Y, "beyond 1e\\+50 its products may overflow"),
    "text": (spoiled("long"), Y, "must hold numbers, but it holds text"),
    "flat": (X[0], Y[:1], "Expected 2D array, got 1D array"),
    "lengths": (X, Y[:-1], "inconsistent numbers of samples"),
    "continuous": (X, np.linspace(0, 1, N), "Unknown label type: continuous"),
    "one_class": (X, np.zeros(N), "at least two classes, but y has only one class, 0.0"),
    "empty": (np.empty((0, D)), np.empty(0), r"0 sample\(s\)"),
    "complex": (X * 1j, Y, "Complex data not supported"),
}


@pytest.mark.parametrize("case", DATA)
def test_bad_data_are_refused(case):
    samples, labels, sentence = DATA[case]
    with pytest.raises(ValueError, match=sentence):
        MaxMarginSVC().fit(samples, labels)


WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(N - 1)], "sample_weight must not be negative"),
    "nan": (np.r_[np.nan, np.ones(N - 1)], "sample_weight contains NaN"),
    "shape": (np.ones(N - 1), "one number for each of the 150 rows"),
    "zero": (np.zeros(N), "at least one non-zero number"),
    "one_class": ((Y == 1).astype(float), "at least two classes, but y has only one class, 1"),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_bad_weights_are_refused(case):
    weight, sentence = WEIGHTS[case]
    with pytest.raises(ValueError, match=sentence):
        MaxMarginSVC().fit(X, Y, sample_weight=weight)


PARAMETERS = {
    "solver": (
        {"solver": "newton"},
        "solver must be one of 'auto', 'staged', 'hsdm'.*'newton' was given",
    ),
    "solver_class": ({"solver": object}, "solver must be one of 'auto'"),
    "tol": ({"tol": -1.0}, "'tol' parameter of MaxMarginSVC must be"),
    "tol_text": ({"tol": "small"}, "'tol' parameter of MaxMarginSVC must be"),
    "class_weight": ({"class_weight": "even"}, "'class_weight' parameter of MaxMarginSVC must be"),
    "class_weight_label": ({"class_weight": {"0": 2.0}}, "class_weight has the label '0'"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_bad_parameters_are_refused(case):
    parameters, sentence = PARAMETERS[case]
    with pytest.raises(ValueError, match=sentence):
        MaxMarginSVC(**parameters).fit(X, Y)


def test_failed_fit_leaves_the_fitted_model_alone():
    model = MaxMarginSVC().fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X[:, :2], np.zeros(N))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


def test_wide_ranges_of_weights_and_scales_are_solved():
    weight = np.logspace(-4, 4, N)
    for scale in (1e-20, 1.0, 1e20):
        model = MaxMarginSVC().fit(scale * X, Y, sample_weight=weight)
        assert model.result_.status == "optimal"
        expected = MaxMarginSVC().fit(X, Y, sample_weight=weight).smallest_margin_
        assert model.smallest_margin_ == pytest.approx(scale * expected, rel=1e-6)


def test_sparse_input_of_any_kind_is_accepted():
    expected = MaxMarginSVC().fit(X, Y).coef_
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        found = MaxMarginSVC().fit(kind(X), Y).coef_
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
