"""A sparse matrix whose indices were edited is refused in a sentence: none ends the process."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC, SparseSVCCV, svm_path

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]

ESTIMATORS = [
    SparseSVC(),
    ConstrainedSparseSVC(),
    MaxMarginSVC(),
    SparseSVCCV(alphas=[0.02], cv=2),
]
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def edited(format):
    """Return an edit of coefficients in this format that makes an index point far outside."""

    def change(coef):
        matrix = sp.csr_matrix(coef).asformat(format)
        if format == "lil":
            matrix.rows[0] = [10**7] * len(matrix.data[0])
        elif format == "dok":
            matrix._dict[0, 10**7] = 1.0
        elif format == "dia":
            matrix.offsets = matrix.offsets[:-1]
        elif format == "coo":
            matrix.row[0] = 10**7
        else:
            matrix.indices[0] = 10**7
        return matrix

    return change


def with_indptr(position, value):
    def change(coef):
        matrix = sp.csr_matrix(coef)
        matrix.indptr[position] = value
        return matrix

    return change


def with_longer_row(coef):
    matrix = sp.lil_matrix(coef)
    matrix.data[0] = [1.0] * 10**6
    return matrix


def with_indices_of_nan(coef):
    matrix = sp.csr_matrix(coef)
    matrix.indices = np.full(matrix.nnz, np.nan)
    return matrix


# Without a check most of these end the process.
MALFORMED = {
    **{format: edited(format) for format in FORMATS},
    "indptr_beyond": with_indptr(-1, 10**7),
    "indptr_none": with_indptr(-1, 0),
    "indptr_negative": with_indptr(-1, -(10**7)),
    "indptr_falls": with_indptr(1, 10**7),
    "longer_row": with_longer_row,
    "nan": with_indices_of_nan,
}
for_malformed = pytest.mark.parametrize("case", MALFORMED)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: type(model).__name__)
@for_malformed
def test_malformed_coefficients_are_refused(estimator, case):
    model = clone(estimator).fit(X, Y)
    model.coef_ = MALFORMED[case](model.coef_)
    reads = [
        lambda: model.predict(X),
        lambda: model.decision_function(sp.csr_array(X)),
        lambda: model.selected_features_,
        model.densify,
        model.sparsify,
    ]
    if hasattr(model, "warm_start"):
        reads.append(lambda: model.set_params(warm_start=True).fit(X, Y))
    for read in reads:
        with pytest.raises(ValueError, match=r"coef_ is not a valid [A-Z]* matrix .*or fit again"):
            read()


@for_malformed
def test_malformed_samples_are_refused(case):
    samples = MALFORMED[case](X)
    with pytest.raises(ValueError, match=r"X is not a valid [A-Z]* matrix .*Build it again"):
        SparseSVC().fit(samples, Y)
    with pytest.raises(ValueError, match=r"X is not a valid [A-Z]* matrix .*Build it again"):
        SparseSVC().fit(X, Y).predict(samples)


@pytest.mark.parametrize("format", FORMATS)
def test_coefficients_and_samples_in_every_sparse_format_count(format):
    model = SparseSVC().fit(X, Y)
    expected, coef = model.decision_function(X), model.coef_
    for kind in (sp.csr_matrix, sp.csr_array):
        model.coef_ = kind(coef).asformat(format)
        np.testing.assert_allclose(model.decision_function(X), expected)
        samples = kind(X).asformat(format)
        np.testing.assert_allclose(model.decision_function(samples), expected)
        np.testing.assert_array_equal(SparseSVC().fit(samples, Y).predict(X), model.predict(X))
        np.testing.assert_array_equal(model.densify().coef_, coef)


@for_malformed
def test_plots_refuse_malformed_coefficients(case):
    pytest.importorskip("matplotlib").use("Agg")
    from sparsvm.plots import MarginDisplay, PathDisplay, SparsityPatternDisplay

    sentence = "is not a valid [A-Z]* matrix .* again"
    model = SparseSVC(penalty="l2").fit(X[:, :2], Y)
    model.coef_ = MALFORMED[case](model.coef_)
    with pytest.raises(ValueError, match=f"coef_ {sentence}"):
        SparsityPatternDisplay.from_estimator(model)
    with pytest.raises(ValueError, match=f"coef_ {sentence}"):
        MarginDisplay.from_estimator(model, X[:, :2], Y)
    path = svm_path(X, Y, alphas=[0.1, 0.01])
    path.coefs[1] = MALFORMED[case](path.coefs[1].toarray())
    with pytest.raises(ValueError, match=f"coefs {sentence}"):
        PathDisplay(path).plot()
