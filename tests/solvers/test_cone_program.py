"""Small problems as cone programs: the optimum of the other solvers, and a last resort."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm.losses import Ramp
from sparsvm.penalties import GroupL2
from sparsvm.problem.solution import Control
from sparsvm.solvers import Chain, ConeProgram, InteriorPoint, Stage, choose

OPTIONS = [
    cases.Options(False, "scalar", True, "even", 0.0, "csr"),
    cases.Options(True, "sample", True, "free", 0.0, "F"),
    cases.Options(True, "cost", False, "uneven", 0.6, "csc"),
]


def solve(problem, tol=1e-6, **options):
    return ConeProgram().solve(problem, None, Control(tol=tol, **options))


def uneven_classes():
    """Thirty classes with weights over six orders, margins of which half are zero, a tiny alpha."""
    rng = np.random.default_rng(59)
    y = np.r_[np.arange(30), rng.integers(0, 30, 21)]
    X = rng.standard_normal((51, 12)) + rng.standard_normal((30, 12))[y]
    return cases.build(
        X,
        y,
        GroupL2(per_class=True, weights=rng.uniform(0.5, 2.0, 12)),
        share=1.6e-5,
        sample_weight=10.0 ** rng.uniform(0, 6, 51),
        margin_scale=rng.integers(0, 2, 51) * 1.0,
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", cases.PENALTIES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_it_finds_the_optimum_of_the_interior_point(seed, kind, options):
    problem = cases.grid_problem(seed, kind, options)
    solution = solve(problem)
    cases.assert_proven(problem, solution, 1e-6)
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    slack = solution.floor + exact.floor
    assert exact.dual_objective <= solution.objective + slack
    assert solution.dual_objective <= exact.objective + slack


@pytest.mark.parametrize("kind", cases.SPARSE_KINDS)
def test_the_model_is_exactly_sparse(kind):
    X, y = cases.gaussian(4, 30, 12, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](12), share=0.3)
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    assert 0 < np.count_nonzero(exact.coef) < exact.coef.size
    # Of several optima it may take another, but none with dust on all features.
    assert np.count_nonzero(solve(problem).coef) < exact.coef.size


def test_auto_asks_it_last_for_small_problems_only():
    X, y = cases.gaussian(0, 20, 5, 3)
    chain = choose(cases.build(X, y, cases.PENALTIES["l1"](5)), Control())
    assert isinstance(chain, Chain) and chain.stages[-1].solver.name == "cone_program"
    X, y = cases.gaussian(0, 100, 1000, 3)
    chain = choose(cases.build(X, y, cases.PENALTIES["l1"](1000)), Control())
    assert [stage.solver.name for stage in chain.stages] == ["interior_point", "newton"]


def test_a_chain_ends_with_it_where_the_others_have_not():
    problem = uneven_classes()
    stages = (Stage(InteriorPoint(max_iter=5)), Stage(ConeProgram()))
    solution = Chain(stages).solve(problem, None, Control(tol=1e-6))
    assert solution.solver == "interior_point → cone_program"
    cases.assert_proven(problem, solution, 1e-6)
    assert solution.history.iteration.size > 1 and solution.history.gap[-1] == solution.gap


def test_interior_point_keeps_its_digits_where_weights_and_classes_are_uneven():
    problem = uneven_classes()
    solution = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    cases.assert_proven(problem, solution, 1e-6)


def test_the_limit_of_iterations_is_kept_and_told():
    X, y = cases.gaussian(3, 30, 10, 3)
    problem = cases.build(X, y, cases.PENALTIES["l1"](10), share=0.01)
    solution = solve(problem, tol=1e-8, max_iter=3)
    assert solution.status == "max_iter" and solution.n_iter == 3
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        ConeProgram(max_iter=0).solve(problem, None, Control())


def test_what_it_cannot_solve_it_says():
    X, y = cases.gaussian(0, 20, 5, 2)
    problem = cases.build(X, y, cases.PENALTIES["l2"](5))
    assert ConeProgram().unsupported(problem) is None
    assert "hinge loss only" in ConeProgram().unsupported(replace(problem, loss=Ramp()))
    X, y = cases.gaussian(0, 400, 1000, 2)
    large = cases.build(X, y, cases.PENALTIES["l2"](1000))
    assert "400000 entries of constraints" in ConeProgram().unsupported(large)
