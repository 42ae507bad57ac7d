"""Warnings name the line of the user, whatever lies between it and the package."""

import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC
from sparsvm.hierarchical import HSDM

SHORT = {"max_iter": 1, "tol": 1e-9}
FITS = [
    SparseSVC(**SHORT),
    make_pipeline(SparseSVC(**SHORT)),
    ConstrainedSparseSVC(eta=0.2, **SHORT),
    MaxMarginSVC(solver=HSDM(max_iter=100)),
]


@pytest.mark.parametrize("estimator", FITS, ids=lambda estimator: type(estimator).__name__)
def test_a_warning_of_a_fit_names_the_line_that_fits(estimator):
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit(X / X.std(axis=0), y)
    assert {each.filename for each in caught} == {__file__}
