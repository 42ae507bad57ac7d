"""Cutting planes find the l2 SVM that the other solvers find, intercepts included."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
import problems
from sparsvm.losses import Ramp
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import CuttingPlane, InteriorPoint, as_solver
from sparsvm.solvers.papers import cutting_plane
from sparsvm.solvers.papers.simplex_qp import simplex_qp

FAMILIES = [family for family in problems.FAMILIES if family is not problems.free_features]


def solve(problem, tol=1e-4, start=None, **options):
    return CuttingPlane().solve(problem, start, Control(tol=tol, **options))


@pytest.mark.parametrize("family", FAMILIES, ids=[family.__name__ for family in FAMILIES])
@pytest.mark.parametrize("seed", range(3))
def test_degenerate_families_agree_with_the_interior_point(family, seed):
    problem = problems.make(seed, family, "l2")
    solution = solve(problem)
    cases.assert_proven(problem, solution, 1e-4)
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    slack = solution.floor + exact.floor
    assert exact.dual_objective <= solution.objective + slack
    assert solution.dual_objective <= exact.objective + slack


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_real_data_agree_with_oracles(name):
    X, y = cases.REAL[name]()
    problem = cases.build(X, y, cases.PENALTIES["l2"](X.shape[1]), share=0.05)
    cases.assert_agrees(problem, solve(problem), 1e-4)


@pytest.mark.parametrize("storage", ["csr", "float32"])
def test_storages_agree(storage):
    X, y = cases.gaussian(1, 50, 20, 3)
    X = X.astype(np.float32).astype(np.float64)
    problem = cases.build(cases.STORAGES[storage](X), y, cases.PENALTIES["l2"](20), share=0.1)
    cases.assert_proven(problem, solve(problem), 1e-4)


def test_a_start_at_the_optimum_needs_fewer_rounds():
    X, y = cases.gaussian(2, 60, 10, 3)
    problem = cases.build(X, y, cases.PENALTIES["l2"](10), share=0.05)
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    cold = solve(problem, tol=1e-2)
    warm = solve(problem, tol=1e-2, start=Start(exact.coef, exact.intercept))
    assert warm.n_iter < cold.n_iter


def test_the_limit_of_rounds_is_kept_and_told():
    X, y = cases.gaussian(3, 60, 10, 3)
    problem = cases.build(X, y, cases.PENALTIES["l2"](10), share=0.01)
    solution = solve(problem, tol=1e-8, max_iter=4)
    assert solution.status == "max_iter" and solution.n_iter == 4
    assert solution.history.iteration.tolist() == [0, 4]
    every = CuttingPlane(check_every=1).solve(problem, None, Control(tol=1e-8, max_iter=4))
    assert every.history.iteration.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(3))
def test_the_violation_that_ends_svm_struct_is_the_gap_of_the_last_iterate(seed):
    X, y = cases.gaussian(seed, 80, 12, 4)
    problem = cases.build(X, y, cases.PENALTIES["l2"](12), share=0.02)
    solver = CuttingPlane(stopping="violation")
    ended = solver.solve(problem, None, Control(tol=1e-2))
    assert ended.gap <= 1e-2 * (1.0 + 1e-6) + ended.floor
    before = solver.solve(problem, None, Control(tol=1e-2, max_iter=ended.n_iter - 1))
    assert before.status == "max_iter" and before.gap > 1e-2
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    assert exact.objective <= ended.objective + ended.floor
    assert ended.dual_objective <= exact.objective + exact.floor


def test_a_small_violation_is_no_small_relative_gap():
    X, y = cases.gaussian(4, 60, 80, 3)  # separable: the objective is small
    problem = cases.build(X, y, cases.PENALTIES["l2"](80), share=1e-3)
    solution = CuttingPlane(stopping="violation").solve(problem, None, Control(tol=1e-3))
    assert solution.status == "stalled"
    assert solution.gap <= 1e-3 * (1.0 + 1e-6) < solution.relative_gap


def test_cuts_without_weight_leave_their_places_and_the_answer_stands(monkeypatch):
    X, y = cases.gaussian(5, 80, 12, 4)
    problem = cases.build(X, y, cases.PENALTIES["l2"](12), share=0.01)
    sizes = []

    def counted(Q, q, B):
        sizes.append(q.size)
        return simplex_qp(Q, q, B)

    monkeypatch.setattr(cutting_plane, "simplex_qp", counted)
    monkeypatch.setattr(cutting_plane, "IDLE_ROUNDS", 3)
    cases.assert_proven(problem, solve(problem), 1e-4)
    assert max(sizes) < len(sizes)


def test_what_cutting_plane_cannot_solve_it_says():
    X, y = cases.gaussian(0, 20, 5, 2)
    solver = as_solver("cutting_plane")
    problem = cases.build(X, y, cases.PENALTIES["l2"](5))
    assert solver.unsupported(problem) is None
    assert "hinge loss only" in solver.unsupported(replace(problem, loss=Ramp()))
    sparse = cases.build(X, y, cases.PENALTIES["l1"](5))
    assert "penalty l2 only, not l1" in solver.unsupported(sparse)
    free = cases.build(X, y, cases.PENALTIES["l2"](5, np.array([0.0, 1.0, 1.0, 1.0, 1.0])))
    assert "every feature penalised" in solver.unsupported(free)
    with pytest.raises(ValueError, match="stopping must be one of 'gap', 'violation'"):
        CuttingPlane(stopping="change").solve(problem, None, Control())
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        CuttingPlane(max_iter=0).solve(problem, None, Control())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("equalities", [0, 2])
def test_the_small_program_is_solved_to_its_optimality_conditions(seed, equalities):
    rng = np.random.default_rng(seed)
    m, rank = 12, [3, 12, 20][seed % 3]
    root = rng.standard_normal((m, rank))
    Q, q = root @ root.T, 3.0 * rng.standard_normal(m)
    B = rng.standard_normal((equalities, m))
    B[:, 0] = 0.0  # the first entry alone is feasible
    theta, multipliers = simplex_qp(Q, q, B)
    assert np.all(theta >= 0.0) and theta.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(B @ theta, 0.0, atol=1e-10)
    slope = Q @ theta - q - B.T @ multipliers
    level = slope[theta > 0.0].mean()
    np.testing.assert_allclose(slope[theta > 0.0], level, atol=1e-7)
    assert np.all(slope >= level - 1e-7)
