"""The interior point returns exactly sparse models, and the certificates are theirs."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
from reference import oracles
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

NAMES = [name for name in cases.PENALTIES if name != "l2"]


def solve(problem, tol):
    return InteriorPoint().solve(problem, None, Control(tol=tol))


def draw(kind, seed, n_classes=None):
    X, y = cases.gaussian(seed, 30, [8, 24, 90][seed % 3], n_classes or 2 + seed % 4)
    return cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=[0.5, 0.1, 0.03][seed // 3])


def slacks(problem, solution):
    """One minus the dual norm of each group (coefficient), and which of them are not zero."""
    terms = problem.penalty
    G = problem.transposed(problem.signed_dual(solution.dual)) / problem.alpha
    if terms.kind in ("l1", "elasticnet"):
        return 1.0 - np.abs(G) * terms.inverse_omega / terms.l1_ratio, solution.coef != 0.0
    norms = terms.group_norms(solution.coef).reshape(-1)
    return 1.0 - terms.group_dual_norms(G), norms > 0.0


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize(("tol", "edge"), [(1e-6, 1e-2), (1e-8, 1e-3)])
def test_only_groups_on_the_edge_of_their_dual_ball_are_in_the_model(kind, tol, edge):
    zeros = 0
    for seed in range(9):
        problem = draw(kind, seed)
        solution = solve(problem, tol)
        assert solution.converged
        slack, used = slacks(problem, solution)
        assert np.all(slack[used] <= edge), (seed, slack[used].max())
        # What is well inside its ball is zero in every optimum.
        zeros += np.count_nonzero(~used)
    assert zeros > 0


@pytest.mark.parametrize("kind", NAMES)
def test_groups_are_zero_as_a_whole_and_where_the_oracle_has_zeros(kind):
    # With an odd number of classes the median of a row is unique, and so is the optimum.
    for seed in (1, 2, 4, 5):
        problem = draw(kind, seed, n_classes=3)
        solution, oracle = solve(problem, 1e-8), oracles.solve(problem)
        size = np.abs(oracle.coef).max()
        assert size > 1e-3
        expected = np.abs(oracle.coef) > 1e-5 * size
        np.testing.assert_array_equal(solution.coef != 0.0, expected)
        if problem.penalty.kind == "l1/l2":
            for members in oracles.group_members(problem.penalty):
                assert len(set(expected.reshape(-1)[members])) == 1


@pytest.mark.parametrize("kind", NAMES)
def test_the_certificate_is_that_of_the_sparse_coefficients(kind):
    for seed in range(3, 6):
        problem = draw(kind, seed)
        for tol in (1e-3, 1e-8):
            solution = solve(problem, tol)
            objective = oracles.objective(problem, solution.coef, solution.intercept)
            assert abs(solution.objective - objective) <= solution.floor
            cases.assert_proven(problem, solution, tol)


@pytest.mark.parametrize("kind", NAMES)
def test_intercepts_sum_to_zero_and_no_intercept_is_exactly_none(kind):
    problem = draw(kind, 5)
    assert problem.n_outputs > 2
    solution = solve(problem, 1e-6)
    assert solution.intercept.any()
    assert abs(solution.intercept.sum()) <= 1e-14 * np.abs(solution.intercept).sum()
    without = replace(problem, fit_intercept=False)
    assert not solve(without, 1e-6).intercept.any()


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_wide_real_data_keep_few_features(tol):
    X, y = cases.REAL["leukemia" if "leukemia" in cases.REAL else "digits"]()
    for kind in ("l1", "l1/l2-rows-joint", "l1/linf-blocks-per_class"):
        for share in (0.1, 0.001):
            problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=share)
            solution = solve(problem, tol)
            assert solution.converged
            slack, used = slacks(problem, solution)
            assert 0 < np.count_nonzero(used) <= min(used.size // 2, 3 * problem.n)
            assert np.all(slack[used] <= 1e4 * tol)


LEAVING = ("l1", "elasticnet", "l1/l2-rows-joint", "l1/l2-blocks-per_class", "l1/linf-rows-joint")


@pytest.mark.parametrize("kind", [*LEAVING, "l1/linf-blocks-per_class", "sparse_group-rows-joint"])
def test_groups_leave_the_working_set_before_the_end(kind):
    """The history counts what is in the set, which is not zero, until the sparse point is best."""
    shrunk = 0
    # Without a free feature l1/l2 in single classes ends on the face, before anything could leave.
    weights = np.ones(1500)
    weights[0] = 0.0 if kind == "l1/l2-blocks-per_class" else 1.0
    for seed in range(4):
        X, y = cases.gaussian(seed, 40, 1500, 3)
        problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1], weights), share=0.1)
        solution = solve(problem, 1e-8)
        cases.assert_proven(problem, solution, 1e-8)
        counts = solution.history.nonzeros
        fewer = (counts[1:] < counts[:-1]) & (counts[1:] > np.count_nonzero(solution.coef))
        shrunk += np.count_nonzero(fewer)
    assert shrunk > 0
