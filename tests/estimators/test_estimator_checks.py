"""Every check of scikit-learn, for every loss and penalty, with no expected failure."""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import SparseSVC, SparseSVCCV

PENALTIES = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]
NOT_CONVEX = [("ramp", "capped_l1")]
OTHERS_NOT_CONVEX = [
    ("hinge", "l0"),
    ("squared_hinge", "capped_l1"),
    ("hinge", "capped_l1"),
    ("ramp", "l0"),
    ("squared_hinge", "l0"),
]


# The checks fit random labels and single samples, where an all-zero model is the right answer.
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC(), SparseSVC(penalty="l1/linf")])
def test_scikit_learn_check(estimator, check):
    check(estimator)


# The estimator does the same with every penalty.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks(
    [SparseSVC(penalty=name) for name in PENALTIES if name not in ("l1", "l1/linf")]
)
def test_scikit_learn_check_with_other_penalties(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@parametrize_with_checks([SparseSVCCV(n_alphas=4, eps=0.1)])
def test_scikit_learn_check_of_cross_validation(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC(loss, penalty) for loss, penalty in NOT_CONVEX])
def test_scikit_learn_check_where_not_convex(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks(
    [SparseSVC(loss, penalty) for loss, penalty in OTHERS_NOT_CONVEX]
    + [SparseSVC("ramp", penalty) for penalty in PENALTIES]
)
def test_scikit_learn_check_of_the_other_problems_that_are_not_convex(estimator, check):
    check(estimator)


# Many checks fit separable samples, for which this loss and these penalties have no minimiser. What
# they must not do is anything but say so: the data are looked at and refused like any bad input.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC("logistic", penalty) for penalty in ("l0", "capped_l1")])
def test_scikit_learn_check_of_the_logistic_loss_is_clean_or_refused(estimator, check):
    try:
        check(estimator)
    except (ValueError, AssertionError) as error:
        assert "there is no minimiser" in str(error)


SMOOTH = [("squared_hinge", "l1/l2"), ("logistic", "l1")]
OTHERS = [
    (loss, penalty)
    for loss in ("squared_hinge", "logistic", "ovr_squared_hinge")
    for penalty in PENALTIES
    if (loss, penalty) not in SMOOTH
]


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC(loss, penalty) for loss, penalty in SMOOTH])
def test_scikit_learn_check_of_smooth_losses(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@parametrize_with_checks([SparseSVC(loss, penalty) for loss, penalty in OTHERS])
def test_scikit_learn_check_of_the_other_smooth_problems(estimator, check):
    check(estimator)


def test_array_api_checks():
    # scikit-learn leaves these out unless scipy was imported under this setting.
    code = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from sparsvm import SparseSVC
for estimator, check in estimator_checks_generator(SparseSVC()):
    if "array_api" in str(check):
        check(estimator)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
