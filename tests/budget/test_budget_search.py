"""The least penalty within a hinge budget: certificate, search, both ends of the frontier."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases
import problems
from reference import oracles
from reference.hierarchical import least_hinge_by_highs
from sparsvm.budget import BudgetSearch
from sparsvm.budget import search as budget_search
from sparsvm.budget.cone import by_cone_program
from sparsvm.budget.frontier_ends import Infeasible, least_hinge, zero_point
from sparsvm.budget.problem import FEASIBILITY, ConstrainedProblem
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, L2, GroupL2, GroupLinf
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

FAMILIES = [family for family in problems.FAMILIES if family is not problems.linear_terms]


def exact(problem, start, tol):
    return InteriorPoint().solve(problem, start, Control(tol=tol))


def ends(problem):
    """The least hinge of any model and that of the intercepts alone."""
    constrained = ConstrainedProblem(problem, 0.0)
    least, _ = least_hinge(constrained, exact)
    return 0.0 if least <= FEASIBILITY else least, zero_point(constrained).hinge


def solve(problem, eta, tol=1e-6):
    return BudgetSearch().solve(ConstrainedProblem(problem, eta), None, Control(tol=tol))


def assert_optimal(problem, solution, tol=1e-6):
    constrained = ConstrainedProblem(problem, solution.eta)
    assert solution.status == "optimal", (solution.relative_gap, solution.violation)
    assert solution.gap <= max(tol * solution.objective, solution.floor)
    assert solution.violation <= 1e-9 * constrained.unit
    W, b = solution.coef, solution.intercept
    alpha_free = replace(problem, alpha=1e-300)
    assert solution.hinge == pytest.approx(
        oracles.objective(alpha_free, W, b), rel=1e-10, abs=1e-12
    )
    assert solution.objective == pytest.approx(oracles.penalty_value(problem.penalty, W), rel=1e-10)


def assert_agrees(problem, solution, tol=1e-5):
    oracle = oracles.solve_constrained(problem, solution.eta)
    # Either may exceed the budget by a rounding, of which 1 / alpha is the price.
    unit = ConstrainedProblem(problem, solution.eta).unit
    price = 1.0 / solution.alpha if solution.alpha > 0.0 else 0.0
    slack = oracle.accuracy + FEASIBILITY * unit * price
    assert abs(solution.objective - oracle.value) <= tol * oracle.value + slack
    assert solution.dual_objective <= oracle.value * (1.0 + 1e-7) + slack


SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 30))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_optimum_agrees_with_an_independent_solver(family, seed):
    problem = problems.make(seed, family)
    least, most = ends(problem)
    share = (0.0, 0.1, 0.6)[(seed + FAMILIES.index(family)) % 3]
    eta = least + share * (most - least)
    solution = solve(problem, eta)
    assert_optimal(problem, solution)
    # Without a budget every sample counts alike, and masses of 1e-12 are beyond the oracles.
    assert_agrees(ConstrainedProblem(problem, eta).even.regularised, solution)


@pytest.mark.parametrize("kind", hinge_cases.PENALTIES)
def test_every_penalty_and_grouping_agrees_with_clarabel(kind):
    X, y = hinge_cases.gaussian(5, 24, 9, 3)
    problem = hinge_cases.build(X, y, hinge_cases.PENALTIES[kind](9))
    solution = solve(problem, 0.4)
    assert_optimal(problem, solution)
    oracle = oracles.solve_constrained(problem, 0.4, clarabel_only=True)
    assert solution.objective == pytest.approx(oracle.value, rel=1e-5)


@pytest.mark.parametrize("kind", hinge_cases.KINDS)
@pytest.mark.parametrize("name", hinge_cases.REAL)
def test_real_data_agree_with_clarabel(name, kind):
    X, y = hinge_cases.REAL[name]()
    if name == "leukemia":
        # All 7129 genes would take Clarabel minutes.
        X = hinge_cases.standardised(X[:, np.argsort(-X.var(axis=0))[:150]])
    problem = hinge_cases.build(X, y, hinge_cases.PENALTIES[kind](X.shape[1]))
    solution = solve(problem, 0.15)
    assert_optimal(problem, solution)
    oracle = oracles.solve_constrained(problem, 0.15, clarabel_only=True)
    assert solution.objective == pytest.approx(oracle.value, rel=2e-6)


@pytest.mark.parametrize("storage", hinge_cases.STORAGES)
def test_storage_does_not_matter(storage):
    X, y = hinge_cases.gaussian(1, 30, 12, 3)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    plain = solve(hinge_cases.build(X, y, GroupL2()), 0.5)
    stored = solve(hinge_cases.build(hinge_cases.STORAGES[storage](X), y, GroupL2()), 0.5)
    assert stored.objective == pytest.approx(plain.objective, rel=2e-6)


def test_the_bound_holds_for_any_dual_point():
    rng = np.random.default_rng(3)
    for seed in range(4):
        problem = problems.make(seed, problems.sample_margins)
        least, most = ends(problem)
        eta = 0.5 * (least + most)
        optimum = oracles.solve_constrained(problem, eta).value
        constrained = ConstrainedProblem(problem, eta)
        for _ in range(20):
            guess = rng.exponential(size=(problem.n, problem.n_classes)) ** 3
            guess *= rng.choice([1e-3, 1.0, 1e3]) / problem.n
            assert constrained.bound(guess).value <= optimum * (1.0 + 1e-7)


def test_the_multiplier_makes_the_regularised_problem_equivalent():
    for kind in ("l1", "l2", "elasticnet", "l1/l2-rows-joint", "l1/linf-blocks-per_class"):
        X, y = hinge_cases.gaussian(2, 30, 8, 3)
        problem = hinge_cases.build(X, y, hinge_cases.PENALTIES[kind](8))
        solution = solve(problem, 0.45, tol=1e-7)
        refit = exact(replace(problem, alpha=solution.alpha), None, 1e-9)
        ours = solution.hinge + solution.alpha * solution.objective
        assert refit.objective == pytest.approx(ours, rel=1e-6)


# ---------------------------------------------------------------- the ends


def test_a_budget_of_intercepts_alone_gives_exact_zeros_and_alpha_max():
    X, y = hinge_cases.gaussian(4, 30, 10, 3)
    for penalty in (L1(), GroupL2(), GroupLinf(groups=3, per_class=True)):
        problem = hinge_cases.build(X, y, penalty)
        _, most = ends(problem)
        for eta in (most, 1.5 * most):
            solution = solve(problem, eta)
            assert solution.status == "optimal"
            assert not solution.coef.any()
            assert solution.objective == 0.0 and solution.relative_gap == 0.0
        zero = exact(replace(problem, alpha=1.001 * solution.alpha), None, 1e-8)
        more = exact(replace(problem, alpha=0.99 * solution.alpha), None, 1e-8)
        assert not zero.coef.any()
        assert more.coef.any()
        assert more.objective < most * (1.0 - 1e-6)


def test_just_below_the_budget_of_intercepts_the_penalty_is_proportional_to_what_is_missing():
    X, y = hinge_cases.gaussian(4, 30, 10, 3)
    problem = hinge_cases.build(X, y, L1())
    _, most = ends(problem)
    top = solve(problem, most).alpha
    solution = solve(problem, most * (1.0 - 1e-3), tol=1e-4)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1e-3 * most / top, rel=1e-3)


def test_the_squared_penalty_never_reaches_zero_at_a_finite_alpha():
    X, y = hinge_cases.gaussian(4, 30, 10, 3)
    problem = hinge_cases.build(X, y, L2())
    assert solve(problem, ends(problem)[1]).alpha == np.inf


@pytest.mark.parametrize("kind", hinge_cases.KINDS)
def test_no_budget_on_separable_data_is_the_hard_margin(kind):
    X, y = hinge_cases.gaussian(6, 24, 30, 3)
    problem = hinge_cases.build(X, y, hinge_cases.PENALTIES[kind](30))
    solution = solve(problem, 0.0, tol=1e-7)
    assert_optimal(problem, solution, tol=1e-7)
    scores = problem.scores(solution.coef, solution.intercept)
    lead = scores[np.arange(24), y][:, None] - scores
    assert np.all(lead[problem.margins() > 0.0] >= 1.0 - 1e-14)
    assert_agrees(problem, solution, tol=1e-6)


@pytest.mark.parametrize("kind", ["l1", "l2", "l1/l2-rows-joint", "l1/linf-blocks-per_class"])
def test_without_a_budget_masses_do_not_matter_but_to_the_multiplier(kind):
    X, y = hinge_cases.gaussian(6, 24, 30, 3)
    weight = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 24)
    penalty = hinge_cases.PENALTIES[kind](30)
    even = hinge_cases.build(X, y, penalty)
    plain = solve(even, 0.0, tol=1e-7)
    problem = hinge_cases.build(X, y, penalty, sample_weight=weight)
    weighted = solve(problem, 0.0, tol=1e-7)
    assert_optimal(problem, weighted, tol=1e-7)
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-7)
    assert 0.0 < weighted.alpha < plain.alpha
    # No sample is given up, however small its mass.
    loss = oracles.objective(replace(even, alpha=1e-300), weighted.coef, weighted.intercept)
    assert loss <= 1e-9
    np.testing.assert_allclose(weighted.dual.sum(axis=1), problem.mass, rtol=1e-12)
    # With the masses as they are, the model minimises hinge + alpha penalty at that alpha.
    proof = certify(
        replace(problem, alpha=weighted.alpha), weighted.coef, weighted.intercept, weighted.dual
    )
    assert proof.gap <= max(2e-7 * proof.objective, proof.floor)


def test_a_sample_of_next_to_no_mass_may_forbid_a_hard_margin():
    X, y = hinge_cases.gaussian(6, 24, 30, 3)
    X[1], y[1], y[0] = X[0], 1, 0
    problem = hinge_cases.build(X, y, L1(), sample_weight=np.where(np.arange(24) == 1, 1e-12, 1.0))
    with pytest.raises(Infeasible, match=r"eta=0 is below the least mean hinge .*e-1[1-4]"):
        solve(problem, 0.0)


@pytest.mark.parametrize("eta", [0.0, 0.2])
def test_a_column_far_larger_than_the_others_of_its_group_is_solved_all_the_same(eta):
    problem = problems.make(28, problems.column_scales)
    assert problem.penalty.kind == "l1/linf"
    solution = solve(problem, eta)
    assert_optimal(problem, solution)
    assert_agrees(problem, solution)


def test_a_search_that_gets_nowhere_stops_soon(monkeypatch):
    monkeypatch.setattr(budget_search, "fits_cone_program", lambda problem: False)
    solution = solve(problems.make(58, problems.column_scales), 0.0)
    assert solution.status == "stalled"
    assert solution.n_iter <= 20
    assert solution.alpha > 1e-9
    assert solution.violation <= 1e-9 and solution.relative_gap < 1.0


@pytest.mark.parametrize("kind", hinge_cases.PENALTIES)
@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_the_cone_program_has_the_same_solution(kind, eta):
    rng = np.random.default_rng(0)
    n_classes = 2 if eta > 0.0 else 3
    X, y = hinge_cases.gaussian(5, 16, 14, n_classes)
    problem = hinge_cases.build(
        X,
        y,
        hinge_cases.PENALTIES[kind](14, rng.uniform(0.5, 2.0, 14)),
        margin_scale=rng.uniform(0.5, 1.5, 16),
        sample_weight=rng.uniform(0.5, 2.0, 16),
        fit_intercept=not kind.startswith("sparse_group"),
    )
    constrained = ConstrainedProblem(problem, eta)
    found = by_cone_program(constrained)
    exact = solve(problem, eta)
    assert_optimal(problem, exact)
    assert constrained.penalty(found.coef) == pytest.approx(exact.objective, rel=2e-6)
    assert constrained.bound(found.dual).value == pytest.approx(exact.objective, rel=2e-6)
    assert constrained.violation(found.coef, found.intercept) <= 1e-7


def test_no_budget_with_margins_of_zero():
    problem = problems.make(1, problems.separable, "l1")
    cost = problem.cost.copy()
    cost[0] = 0.0
    problem = replace(problem, cost=cost, loss=Hinge(margin=cost))
    solution = solve(problem, 0.0)
    assert_optimal(problem, solution)
    assert_agrees(problem, solution)


def test_a_budget_that_no_model_meets_names_the_least_hinge_and_its_proof():
    X, y = hinge_cases.gaussian(0, 60, 2, 3)
    problem = hinge_cases.build(X, y, L1())
    least, _ = ends(problem)
    assert least > 0.1
    with pytest.raises(Infeasible, match=r"no model with a penalty up to .* has one below") as info:
        solve(problem, 0.5 * least)
    assert f"{least:.4f}"[:6] in str(info.value)
    proof = float(str(info.value).split("has one below ")[1].split(")")[0])
    assert proof == pytest.approx(0.99 * least, rel=1e-8)
    best = solve(problem, least * (1.0 + 1e-9))
    assert best.status == "optimal"
    # The proof is not only about models that are shorter than the best one.
    assert float(str(info.value).split("penalty up to ")[1].split(" ")[0]) > 100.0 * best.objective


@pytest.mark.parametrize("shape", [(100, 4, 3), (60, 2, 2), (40, 1, 4), (80, 6, 3)])
def test_the_least_hinge_is_found_wherever_the_data_lie(shape):
    # Far from the origin the size of alpha is misjudged, and zeros are the first to be found.
    n, d, n_classes = shape
    X, y = hinge_cases.gaussian(n, n, d, n_classes, apart=0.1)
    problem = hinge_cases.build(X + 100.0, y, L1())
    least, _ = ends(problem)
    assert least == pytest.approx(least_hinge_by_highs(X, y) / n, rel=1e-8)


def test_columns_of_very_different_size_do_not_look_infeasible():
    # Feature 1 separates the classes, at a penalty 1e5 times that of feature 0.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 2)) * [1.0, 1e-5]
    y = (X[:, 1] > 0.0).astype(int)
    X[:, 0] += y
    problem = hinge_cases.build(X, y, L1())
    solution = solve(problem, 1e-3, tol=1e-4)
    assert solution.status == "optimal"
    assert solution.objective > 1e5


def test_the_constrained_problem_refuses_what_it_is_not():
    problem = problems.make(0, problems.linear_terms)
    with pytest.raises(ValueError, match="no linear term"):
        ConstrainedProblem(problem, 0.1)
    with pytest.raises(ValueError, match=r"finite number from 0 on; got eta=-0\.1"):
        ConstrainedProblem(problems.make(0), -0.1)
