"""Groups that hold columns a million times the size of their others, at every alpha.

The weight of the large column is then far below the bound of its group and all but free.
"""

import warnings

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm.path.alpha_max import largest_alpha
from sparsvm.penalties import GroupL2, GroupLinf
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

pytestmark = pytest.mark.filterwarnings("error")

GROUPED = tuple(
    f"{kind}-{grouping}"
    for kind in ("l1/l2", "l1/linf", "sparse_group")
    for grouping in ("blocks-joint", "blocks-per_class", "labels-joint", "labels-per_class")
)
FACTORS = (1e-6, 1e6)
# At 1e-6 of the largest alpha the columns of ordinary size have weights too.
SHARES = (0.5, 0.1, 1e-2, 1e-3, 1e-5, 1e-6, 1e-7, 1e-8)


def contrasted(seed, factor):
    """Gaussian classes, one column in six multiplied by the factor."""
    n, d, n_classes = (20, 30, 40)[seed % 3], (6, 9, 30, 60)[seed % 4], 2 + seed % 4
    X, y = cases.gaussian(seed, n, d, n_classes)
    large = np.random.default_rng(1000 + seed).choice(d, size=d // 6, replace=False)
    X[:, large] *= factor
    return X, y


def build(seed, factor, kind, share):
    X, y = contrasted(seed, factor)
    return cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=share)


def check(seed, factor, kind, share):
    problem = build(seed, factor, kind, share)
    solution = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)
    return problem, solution


@pytest.mark.parametrize("kind", GROUPED)
@pytest.mark.parametrize("seed", range(3))
def test_groups_of_columns_a_million_times_apart(kind, seed):
    for factor in FACTORS:
        for share in SHARES:
            check(seed, factor, kind, share)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROUPED)
@pytest.mark.parametrize("seed", range(3, 12))
def test_more_groups_of_columns_a_million_times_apart(kind, seed):
    for factor in FACTORS:
        for share in SHARES:
            check(seed, factor, kind, share)


@pytest.mark.parametrize("kind", sorted(set(cases.PENALTIES) - {"l2"}))
def test_classes_that_overlap_with_a_tiny_alpha(kind):
    # Forty samples of six features: the loss stays, and all weights are all but free.
    for share in (1e-7, 1e-8, 1e-9):
        check(8, 1.0, kind, share)
    for factor in FACTORS:
        check(8, factor, kind, 1e-8)


@pytest.mark.parametrize(
    "kind", ["l1/l2-blocks-joint", "l1/l2-labels-per_class", "sparse_group-labels-joint"]
)
@pytest.mark.parametrize("seed", [14, 25, 33, 37])
def test_a_few_large_columns_do_not_hold_the_start_back(kind, seed):
    # The other columns alone would allow dual entries a million times those the large ones do.
    for share in (1e-7, 1e-8):
        check(seed, 1e6, kind, share)


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_span_fifty_classes_keep_their_digits(seed):
    # No regularisation helps: all coordinates of such groups must become unknowns of their own.
    X, y = cases.gaussian(seed, 80, 8, 50)
    X[np.random.default_rng(seed).random(X.shape) < 0.7] = 0.0
    X[:, [2, 6]] *= 1e6
    X = cases.STORAGES["csr"](X)
    problem = cases.build(X, y, cases.PENALTIES["l1/linf-blocks-joint"](8), share=1e-3)
    solution = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)


def test_wide_groups_that_span_many_classes_are_opened_at_any_price():
    # From the side of the samples a step would cost a hundredth, and has no digits.
    rng = np.random.default_rng(1)
    y = np.r_[np.arange(20), rng.integers(0, 20, 15)]
    X = rng.integers(-1, 2, (35, 24)) * 1.0
    X[:, [3, 11]] *= 1e6
    X[:, 17] *= 1e-6
    problem = cases.build(X, y, GroupLinf(groups=np.arange(24) % 3), share=1e-6)
    solution = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_solves_whose_elimination_keeps_no_constraint_are_refined_all_the_same(seed):
    # Gradients that are only all but conjugate left the gap where it was, for a hundred steps more.
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(16), rng.integers(0, 16, 14)]
    X = rng.integers(-1, 2, (30, 12)) * 1.0
    X[:, [1, 4]] *= 1e6
    X[:, 6] *= 1e-6
    problem = cases.build(X, y, GroupL2(groups=np.arange(12) % 3), share=1e-6)
    solution = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)
    assert solution.n_iter <= 60


@pytest.mark.parametrize("kind", GROUPED)
@pytest.mark.parametrize("factor", FACTORS)
def test_the_largest_alpha_of_such_groups_is_certified(kind, factor):
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = largest_alpha(build(seed, factor, kind, 1.0))
        assert found.value - found.lower <= 1e-6 * found.value


@pytest.mark.parametrize("kind", ["l1/linf-blocks-joint", "l1/linf-labels-per_class"])
def test_such_groups_agree_with_the_oracle(kind):
    for share in (0.1, 1e-6):
        problem, solution = check(0, 1e6, kind, share)
        cases.assert_agrees(problem, solution, 1e-6)
