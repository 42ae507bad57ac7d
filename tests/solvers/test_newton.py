"""newton finds the optimum that the other solvers find, over everything it accepts."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
import problems
from sparsvm.losses import Ramp
from sparsvm.penalties import CappedL1
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import InteriorPoint, Newton, as_solver

FAMILY_NAMES = [family.__name__ for family in problems.FAMILIES]


def solve(problem, tol=1e-6, start=None, **options):
    return Newton().solve(problem, start, Control(tol=tol, **options))


def assert_overlap(one, other):
    """The certified intervals of two solutions of a problem meet."""
    slack = one.floor + other.floor
    assert one.dual_objective <= other.objective + slack
    assert other.dual_objective <= one.objective + slack


@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
def test_degenerate_families_agree_with_the_interior_point(family, penalty):
    for seed in range(2):
        problem = problems.make(seed, family, penalty)
        solution = solve(problem)
        assert_overlap(solution, InteriorPoint().solve(problem, None, Control(tol=1e-6)))
        cases.assert_proven(problem, solution, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
def test_many_degenerate_problems_agree_with_the_interior_point(family, penalty):
    unsolved = 0
    for seed in range(20):
        problem = problems.make(seed, family, penalty)
        if problem.alpha < 1e-15:
            # No feature tells the classes apart; alpha is the rounding error of a zero.
            continue
        solution = solve(problem)
        assert_overlap(solution, InteriorPoint().solve(problem, None, Control(tol=1e-6)))
        unsolved += not solution.converged
    assert unsolved <= 2


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_real_data_agree_with_oracles(name, kind):
    X, y = cases.REAL[name]()
    problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=0.05)
    cases.assert_agrees(problem, solve(problem), 1e-6)


@pytest.mark.parametrize("kind", cases.SPARSE_KINDS)
def test_features_outside_the_working_set_are_priced(kind):
    X, y = cases.gaussian(0, 40, 1500, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](1500), share=0.2)
    cases.assert_proven(problem, solve(problem), 1e-6)


@pytest.mark.parametrize("storage", cases.STORAGES)
@pytest.mark.parametrize("kind", ["l1", "l1/l2-rows-joint", "l1/linf-blocks-per_class"])
def test_every_storage_gives_the_same_optimum(kind, storage):
    X, y = cases.gaussian(1, 50, 20, 3)
    X = X.astype(np.float32).astype(np.float64)
    X[np.abs(X) < 0.5] = 0.0
    plain = cases.build(X, y, cases.PENALTIES[kind](20), share=0.1)
    stored = cases.build(cases.STORAGES[storage](X), y, cases.PENALTIES[kind](20), share=0.1)
    one, other = solve(plain), solve(stored)
    cases.assert_proven(stored, other, 1e-6)
    assert_overlap(one, other)


@pytest.mark.parametrize("kind", cases.SPARSE_KINDS)
def test_the_support_is_that_of_the_interior_point(kind):
    X, y = cases.gaussian(4, 60, 30, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](30), share=0.2)
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-9))
    found = solve(problem, tol=1e-8)
    assert 0 < np.count_nonzero(found.coef) < found.coef.size
    np.testing.assert_array_equal(found.coef != 0.0, exact.coef != 0.0)


def test_conjugate_gradients_reach_what_the_factorisation_reaches():
    X, y = cases.gaussian(5, 80, 25, 4)
    problem = cases.build(X, y, cases.PENALTIES["l1/l2-rows-joint"](25), share=0.05)
    solution = Newton(direct=10).solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_a_start_nearby_saves_most_of_the_steps(kind):
    X, y = cases.gaussian(6, 80, 30, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](30), share=0.1)
    zeros = Start(np.zeros((3, 30)), np.zeros(3))
    cold = solve(problem, start=zeros)
    near = replace(problem, alpha=0.97 * problem.alpha)
    warm = solve(near, start=Start(cold.coef, cold.intercept, cold.dual))
    cases.assert_proven(near, warm, 1e-6)
    assert warm.n_iter < max(0.7 * cold.n_iter, 12), (warm.n_iter, cold.n_iter)


def test_starts_without_a_dual_or_of_zeros_are_fine():
    X, y = cases.gaussian(7, 40, 10, 3)
    problem = cases.build(X, y, cases.PENALTIES["l1"](10), share=0.1)
    zeros = Start(np.zeros((3, 10)), np.zeros(3))
    cases.assert_proven(problem, solve(problem, start=zeros), 1e-6)


def test_the_step_limit_is_kept_and_told():
    X, y = cases.gaussian(8, 60, 20, 4)
    problem = cases.build(X, y, cases.PENALTIES["l1"](20), share=0.05)
    zeros = Start(np.zeros((4, 20)), np.zeros(4))
    solution = solve(problem, tol=1e-9, start=zeros, max_iter=5)
    assert solution.status == "max_iter" and solution.n_iter == 5
    assert solution.gap > 1e-9 * abs(solution.objective)


def test_the_limit_of_work_is_kept_and_told():
    X, y = cases.gaussian(8, 60, 20, 4)
    problem = cases.build(X, y, cases.PENALTIES["l1"](20), share=0.05)
    zeros = Start(np.zeros((4, 20)), np.zeros(4))
    free = solve(problem, tol=1e-9, start=zeros)
    cut = Newton(max_work=1.0).solve(problem, zeros, Control(tol=1e-9))
    assert cut.status == "stalled" and 1 <= cut.n_iter < free.n_iter
    assert cut.dual_objective <= free.objective <= cut.objective
    same = Newton(max_work=1e12).solve(problem, zeros, Control(tol=1e-9))
    np.testing.assert_array_equal(same.coef, free.coef)
    with pytest.raises(ValueError, match="max_work"):
        Newton(max_work=0.0).solve(problem, zeros, Control())


def test_equal_calls_give_equal_bits_and_a_history():
    X, y = cases.gaussian(9, 60, 20, 4)
    problem = cases.build(X, y, cases.PENALTIES["l1"](20), share=0.05)
    one, other = solve(problem), solve(problem)
    np.testing.assert_array_equal(one.coef, other.coef)
    assert one.history.gap[-1] <= one.history.gap[0]
    assert one.history.iteration[-1] == one.n_iter


def test_what_newton_cannot_solve_it_says():
    X, y = cases.gaussian(0, 20, 5, 2)
    problem = cases.build(X, y, cases.PENALTIES["l1"](5))
    assert isinstance(as_solver("newton"), Newton)
    assert "hinge loss only" in Newton().unsupported(replace(problem, loss=Ramp()))
    bent = replace(problem, penalty=CappedL1().resolve(5, 1, None))
    assert "convex penalty" in Newton().unsupported(bent)
    with pytest.raises(ValueError, match="direct must be at least 1"):
        Newton(direct=0).solve(problem, None, Control())
