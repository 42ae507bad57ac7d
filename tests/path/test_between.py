"""Points between two solutions of a hinge path: proven, and within their gaps of the optimum."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from reference.oracles import objective, solve
from sparsvm import svm_path
from sparsvm.certificate.certify import certify
from sparsvm.certificate.lift import interpolated
from sparsvm.losses import Hinge
from sparsvm.path.alpha_max import largest_alpha
from sparsvm.path.between import PointsBetween
from sparsvm.path.svm_path import first_steps, read_problem
from sparsvm.penalties import L1, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control

TOL = 3e-3
CASES = {
    "l1": {},
    "two classes": {"K": 2},
    "rows": {"penalty": GroupL2()},
    "largest entries of rows": {"penalty": GroupLinf()},
    "groups of single classes": {"penalty": GroupL2(groups=3, per_class=True)},
    "groups of all classes": {"penalty": GroupLinf(groups=3)},
    "entries and rows": {"penalty": SparseGroup()},
    "weights, one of them zero": {"penalty": L1(weights=np.r_[0.0, 2.0, np.ones(16)])},
    "costs": {"loss": Hinge(margin=np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0.0]]))},
    "samples of different weight": {"weighted": True},
    "sparse data": {"sparse": True, "penalty": GroupL2()},
}


def problem_of(case, seed):
    """Return a small random problem and the arrays it was made of."""
    options = CASES[case]
    rng = np.random.default_rng(seed)
    n, d, K = 24, 18, options.get("K", 3)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((K, d))[y]
    if options.get("sparse"):
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    weight = rng.uniform(0.3, 2.0, n) if options.get("weighted") else None
    loss, penalty = options.get("loss", "hinge"), options.get("penalty", "l1")
    _, problem = read_problem(X, y, loss, penalty, True, None, weight, None)
    return problem


def fine_path(problem, n_alphas=60, eps=0.05, tol=TOL, solver="interior_point"):
    """Return the alphas of a fine grid, the solutions at them, and the alphas that were solved."""
    alphas = largest_alpha(problem).value * np.geomspace(0.95, eps, n_alphas)
    steps, grid = first_steps(problem, solver, Control(tol=tol), alphas, 0, 0.0)
    solved, by_hand = [], steps._solved
    steps._solved = lambda alpha, control: solved.append(alpha) or by_hand(alpha, control)
    assert PointsBetween.follows(steps)
    points = PointsBetween(steps, grid)
    return grid, [points.point(t) for t in range(grid.size)], solved


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES)
def test_every_point_is_within_its_gap_of_the_optimum_of_an_oracle(case, seed):
    problem = problem_of(case, seed)
    grid, solutions, solved = fine_path(problem)
    assert 0 < len(solved) < 0.7 * grid.size
    between = [t for t in range(grid.size) if grid[t] not in solved]
    for t in between[:: max(1, len(between) // 4)]:
        at = problem.with_alpha(grid[t])
        found, oracle = solutions[t], solve(at)
        assert found.converged
        assert found.relative_gap <= TOL
        value = objective(at, found.coef, found.intercept)
        assert found.objective == pytest.approx(value, rel=1e-9)
        error = 1e-6 * abs(oracle.value) + oracle.accuracy
        assert found.dual_objective <= oracle.value + error
        assert oracle.value <= found.objective + error


@pytest.mark.parametrize("case", CASES)
def test_the_interpolated_dual_has_the_value_that_is_claimed(case):
    problem = problem_of(case, seed=5)
    grid, solutions, _ = fine_path(problem, n_alphas=30)
    for t in range(0, grid.size, 5):
        at, found = problem.with_alpha(grid[t]), solutions[t]
        assert found.dual.sum(axis=1) == pytest.approx(at.mass)
        assert found.dual.min() >= 0.0
        proof = certify(at, found.coef, found.intercept, found.dual)
        assert proof.dual_objective == pytest.approx(found.dual_objective, rel=1e-7)


def test_the_number_of_solves_follows_the_tolerance_not_the_grid():
    problem = problem_of("rows", seed=0)
    counts = [len(fine_path(problem, n_alphas=n)[2]) for n in (50, 200)]
    assert counts[1] < 2 * counts[0]
    assert len(fine_path(problem, n_alphas=50, tol=1e-5)[2]) > counts[0]


def test_points_between_that_are_not_proven_are_solved():
    problem = problem_of("l1", seed=1)
    alphas = largest_alpha(problem).value * np.geomspace(0.95, 0.05, 40)
    steps, grid = first_steps(problem, "interior_point", Control(tol=1e-3), alphas, 0, 0.0)
    points = PointsBetween(steps, grid)
    points._stride = lambda: 6 if points._left is not None else 1
    for t in range(grid.size):
        found = points.point(t)
        assert found.converged
        assert found.relative_gap <= 1e-3


def test_the_dual_between_two_alphas_is_feasible_at_equal_ones_too():
    problem = problem_of("l1", seed=2)
    grid, solutions, _ = fine_path(problem, n_alphas=3)
    at, found = problem.with_alpha(grid[1]), solutions[1]
    same = interpolated(at, replace(found), (grid[1], found), (grid[1], found), tol=TOL)
    assert same.dual_objective == pytest.approx(found.dual_objective)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_alphas_and_fine_grids_are_all_answered(dtype):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = (rng.standard_normal((30, 40)) + rng.standard_normal((3, 40))[y]).astype(dtype)
    alphas = np.repeat(np.geomspace(0.5, 0.02, 40), 2)
    path = svm_path(X, y, alphas=alphas, tol=2e-3)
    assert path.alphas.size == 80
    assert path.converged
    assert path.gaps.max() <= 2e-3
    assert path.objectives[::2] == pytest.approx(path.objectives[1::2], rel=4e-3)
