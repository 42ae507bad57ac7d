"""The interior point finds the optimum that HiGHS and Clarabel find, over everything it accepts."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
import problems
from reference import oracles
from sparsvm.certificate.certify import certify
from sparsvm.losses import Ramp
from sparsvm.penalties import L2, CappedL1, ElasticNet, SparseGroup
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import InteriorPoint, as_solver, interior_point, resolve

FAMILY_NAMES = [family.__name__ for family in problems.FAMILIES]
KIND_NAMES = list(cases.PENALTIES)


def solve(problem, tol=1e-6, start=None, **options):
    return InteriorPoint().solve(problem, start, Control(tol=tol, **options))


# ---------------------------------------------------------------- agreement


def spread(kind, count):
    """``count`` cells of the grid, another set of them for every penalty."""
    first = count * KIND_NAMES.index(kind)
    # A prime that does not divide the grid's size: all cells, and all options, come by.
    return [127 * (first + step) % len(cases.GRID) for step in range(count)]


QUICK_GRID = [(kind, cell) for kind in KIND_NAMES for cell in spread(kind, 18)]
FULL_GRID = [(kind, cell) for kind in KIND_NAMES for cell in range(len(cases.GRID))]


def check_cell(kind, cell):
    problem = cases.grid_problem(1000 * KIND_NAMES.index(kind) + cell, kind, cases.GRID[cell])
    solution = solve(problem)
    cases.assert_agrees(problem, solution, 1e-6)
    cases.assert_proven(problem, solution, 1e-6)


@pytest.mark.parametrize(
    ("kind", "cell"), QUICK_GRID, ids=[f"{kind}-{cases.GRID[cell]}" for kind, cell in QUICK_GRID]
)
def test_penalties_groupings_margins_weights_and_storages_agree_with_oracles(kind, cell):
    check_cell(kind, cell)


def test_unpenalised_features_keep_their_digits_when_groups_leave():
    check_cell("l1/l2-blocks-per_class", 261)


@pytest.mark.native
def test_nothing_penalised():
    y = np.array([0, 1, 0, 1], dtype=np.int32)
    problem = cases.build(np.array([[1.0], [2.0], [-1.0], [0.5]]), y, L2(), share=0.1)
    problem = replace(problem, penalty=replace(problem.penalty, omega=np.zeros(1)))
    cases.assert_agrees(problem, solve(problem), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("part", range(6))
def test_the_whole_grid_agrees_with_oracles(kind, part):
    for cell in range(part, len(cases.GRID), 6):
        check_cell(kind, cell)


def test_the_quick_grid_has_every_value_of_every_option():
    for kind in KIND_NAMES:
        cells = [cases.GRID[cell] for name, cell in QUICK_GRID if name == kind]
        for option in vars(cells[0]):
            wanted = {getattr(cell, option) for cell in cases.GRID}
            assert {getattr(cell, option) for cell in cells} == wanted, (kind, option)


@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_degenerate_families_agree_with_oracles(family, penalty, seed):
    problem = problems.make(seed, family, penalty)
    cases.assert_agrees(problem, solve(problem), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
def test_many_degenerate_problems_are_solved(family, penalty):
    failed = []
    for seed in range(100):
        problem = problems.make(seed, family, penalty)
        if problem.alpha < 1e-15:
            # No feature tells the classes apart; alpha is the rounding error of a zero.
            continue
        solution = solve(problem)
        if not solution.converged:
            failed.append((seed, solution.status, solution.relative_gap))
    assert not failed


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_well_scaled_problems_are_solved_to_eight_digits(kind, n_classes):
    for seed, (n, d) in enumerate([(40, 8), (30, 30), (15, 80)]):
        X, y = cases.gaussian(seed, n, d, n_classes)
        problem = cases.build(X, y, cases.PENALTIES[kind](d), share=[0.3, 0.1, 0.02][seed])
        solution = solve(problem, tol=1e-8)
        cases.assert_proven(problem, solution, 1e-8)


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("name", [name for name in cases.REAL if name != "leukemia"])
def test_real_data_agree_with_oracles(name, kind):
    X, y = cases.REAL[name]()
    problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=0.05)
    oracle = oracles.solve(problem)
    for tol in (1e-4, 1e-6, 1e-8):
        cases.assert_agrees(problem, solve(problem, tol), tol, oracle)


# Where SPARSVM_DATA names no folder there is one data set less, and digits stand in.
WIDE = "leukemia" if "leukemia" in cases.REAL else "digits"


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_more_features_than_an_oracle_could_take_are_solved_with_proof(kind, scaled):
    X, y = cases.REAL[WIDE]()
    X = cases.standardised(X) if scaled else X
    for share in (0.3, 0.02):
        problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=share)
        cases.assert_proven(problem, solve(problem), 1e-6)


@pytest.mark.parametrize("kind", ["l1", "l1/l2-blocks-per_class", "l1/linf-rows-joint"])
def test_the_most_varying_features_of_wide_data_agree_with_oracles(kind):
    X, y = cases.REAL[WIDE]()
    X = cases.standardised(X[:, np.argsort(X.std(axis=0))[-150:]])
    problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=0.1)
    cases.assert_agrees(problem, solve(problem), 1e-6)


@pytest.mark.parametrize(
    ("penalty", "limit"),
    [
        (ElasticNet(l1_ratio=1.0), "l1"),
        (ElasticNet(l1_ratio=0.0), "l2"),
        (SparseGroup(l1_ratio=1.0), "l1"),
        (SparseGroup(l1_ratio=0.0), "l1/l2-rows-joint"),
    ],
    ids=["elasticnet1", "elasticnet0", "sparse_group1", "sparse_group0"],
)
def test_mixtures_at_their_ends_are_the_pure_penalties(penalty, limit):
    X, y = cases.gaussian(4, 30, 9, 3)
    pure = cases.build(X, y, cases.PENALTIES[limit](9))
    terms = penalty.resolve(9, 3, None)
    mixed = replace(pure, penalty=terms)
    assert solve(mixed).objective == solve(pure).objective


# ---------------------------------------------------------------- the way there


@pytest.mark.parametrize("kind", cases.KINDS)
def test_every_bound_on_the_way_is_below_the_optimum_and_the_gap_never_grows(kind):
    for seed in range(3):
        X, y = cases.gaussian(seed, 30, [8, 40, 160][seed], 2 + seed)
        problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), share=0.1)
        solution, oracle = solve(problem, 1e-7), oracles.solve(problem)
        history = solution.history
        assert solution.n_iter >= 3
        np.testing.assert_array_equal(history.iteration, np.arange(solution.n_iter + 1))
        assert (np.diff(history.seconds) >= 0.0).all()
        assert (np.diff(history.objective) <= 0.0).all()
        assert (np.diff(history.gap) <= 0.0).all()
        assert (history.objective >= oracle.value - oracle.accuracy).all()
        bounds = history.objective - history.gap
        assert (bounds <= oracle.value + oracle.accuracy + solution.floor).all()
        assert history.gap[-1] <= 1e-7 * abs(solution.objective)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_one_iteration_gives_an_honest_certificate(kind):
    X, y = cases.gaussian(5, 30, 12, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](12), share=0.05)
    oracle = oracles.solve(problem)
    for limit in (1, 3):
        solution = solve(problem, max_iter=limit)
        assert (solution.status, solution.n_iter, solution.converged) == ("max_iter", limit, False)
        assert solution.dual_objective <= oracle.value + oracle.accuracy
        assert oracle.value - oracle.accuracy <= solution.objective
        assert solution.gap == solution.objective - solution.dual_objective > 1e-6
        proof = certify(problem, solution.coef, solution.intercept, solution.dual)
        assert proof.objective == solution.objective
        assert proof.dual_objective == pytest.approx(solution.dual_objective, rel=1e-9)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_the_answer_is_the_same_bit_for_bit_in_any_order_of_the_rows(kind):
    X, y = cases.gaussian(6, 30, 50, 4)
    problem = cases.build(X, y, cases.PENALTIES[kind](50), share=0.05)
    order = np.random.default_rng(0).permutation(30)
    shuffled = cases.make_design(X[order], rows=np.argsort(order))
    one, two = solve(problem), solve(problem)
    three = solve(replace(problem, design=shuffled))
    for other in (two, three):
        np.testing.assert_array_equal(one.coef, other.coef)
        np.testing.assert_array_equal(one.intercept, other.intercept)
        np.testing.assert_array_equal(one.dual, other.dual)
        np.testing.assert_array_equal(one.history.gap, other.history.gap)


@pytest.mark.parametrize("kind", cases.KINDS)
def test_any_start_leads_to_the_same_optimum(kind):
    X, y = cases.gaussian(7, 30, 60, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](60), share=0.05)
    double = replace(problem, alpha=2.0 * problem.alpha)
    cold, near = solve(problem), solve(double)
    rng = np.random.default_rng(0)
    starts = {
        "solution": Start(cold.coef, cold.intercept, cold.dual),
        "without dual": Start(cold.coef, cold.intercept),
        "next alpha": Start(near.coef, near.intercept, near.dual),
        "zero": Start(0.0 * cold.coef, 0.0 * cold.intercept, 0.0 * cold.dual),
        "far": Start(1e3 * rng.standard_normal(cold.coef.shape), 1e3 + cold.intercept),
        "infeasible": Start(cold.coef, cold.intercept, rng.exponential(size=cold.dual.shape)),
    }
    for name, start in starts.items():
        warm = solve(problem, start=start)
        assert warm.converged, name
        assert warm.dual_objective <= cold.objective + cold.floor, name
        assert cold.dual_objective <= warm.objective + cold.floor, name
    assert solve(problem, start=starts["solution"]).n_iter <= cold.n_iter


@pytest.mark.parametrize("kind", cases.KINDS)
def test_along_a_path_every_start_from_the_last_alpha_is_as_good_as_none(kind):
    X, y = cases.gaussian(8, 30, 40, 4)
    first = cases.build(X, y, cases.PENALTIES[kind](40), share=1.0)
    start = None
    # Down in small steps, and back up in one leap.
    for share in [2.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.01, 3.0]:
        problem = replace(first, alpha=share * first.alpha)
        warm, cold = solve(problem, start=start), solve(problem)
        cases.assert_proven(problem, warm, 1e-6)
        assert warm.dual_objective <= cold.objective + cold.floor
        assert cold.dual_objective <= warm.objective + warm.floor
        start = Start(warm.coef, warm.intercept, warm.dual)


def test_gaps_are_shown_relative_to_the_objective(capsys):
    problem = problems.make(0)
    solution = solve(replace(problem, cost=5.0 * problem.cost), verbose=True)
    history = solution.history
    np.testing.assert_array_equal(history.relative_gap, history.gap / np.abs(history.objective))
    assert history.relative_gap[-1] == pytest.approx(solution.relative_gap, rel=0.5, abs=1e-12)
    lines = capsys.readouterr().out.splitlines()
    shown = [float(line.split("relative gap ")[1].split()[0]) for line in lines]
    np.testing.assert_allclose(shown[0], history.relative_gap[0], rtol=0.01)


def test_verbose_prints_progress(capsys):
    solve(problems.make(0), verbose=True)
    assert capsys.readouterr().out.startswith("interior_point: iteration")


# ---------------------------------------------------------------- what it does not solve


def test_what_it_cannot_solve_is_refused_in_a_sentence(monkeypatch):
    problem = problems.make(0)
    ramp = replace(problem, loss=Ramp())
    with pytest.raises(ValueError, match="interior_point solves convex losses and penalties only"):
        resolve("interior_point", ramp, Control())
    terms = CappedL1().resolve(problem.d, problem.n_outputs, None)
    capped = replace(problem, penalty=terms)
    with pytest.raises(ValueError, match="interior_point solves convex losses and penalties only"):
        resolve("interior_point", capped, Control())
    monkeypatch.setattr(interior_point, "MEMORY_LIMIT", 8 * 3 * problem.n**2)
    with pytest.raises(ValueError, match=rf"with {problem.n} samples \(its limit is 0 GiB"):
        resolve("interior_point", problem, Control())
    assert as_solver("interior_point") == InteriorPoint()


def test_a_start_that_meets_the_tolerance_is_returned_whatever_its_floor(monkeypatch):
    X, y = cases.gaussian(0, 20, 4, 3)
    problem = cases.build(X, y, cases.PENALTIES["l1"](4), share=0.1)
    certify, runs = InteriorPoint._certify, []

    def certified(self, problem, raw, control, began):
        found = certify(self, problem, raw, control, began)
        runs.append(found)
        if len(runs) == 1:
            bound = found.objective * (1.0 - 1e-5)
            return replace(
                found, status="stalled", gap=found.objective - bound, dual_objective=bound
            )
        return replace(found, floor=1e-3 * found.objective)

    monkeypatch.setattr(InteriorPoint, "_certify", certified)
    assert solve(problem).converged
    assert len(runs) == 2


# ---------------------------------------------------------------- steps
