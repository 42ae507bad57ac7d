"""Bad input to MaxMarginSVC is refused in a sentence, and changes nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sparsvm import MaxMarginSVC

X, Y = load_iris(return_X_y=True)
N, D = X.shape


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
