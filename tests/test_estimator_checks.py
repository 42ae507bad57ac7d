"""Every check of scikit-learn, for every convex penalty, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import SparseSVC

PENALTIES = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]


# The checks fit random labels and single samples, where an all-zero model is the right answer.
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC(penalty=penalty) for penalty in PENALTIES])
def test_scikit_learn_check(estimator, check):
    check(estimator)
