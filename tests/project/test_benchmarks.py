"""The baselines of the benchmarks solve the same problem: the certificate says so."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sparsvm import SparseSVC
from sparsvm.certificate.certify import certify
from sparsvm.penalties import L1, GroupL2, GroupLinf

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "paths"))

import constrained
import deployment
import same_objectives
import stress
from exact_hinge.cases import CASES, make_problem, simulated
from exact_hinge.fbpd import GRID, FbpdRun
from objectives.benchmark_utils import problems
from objectives.benchmark_utils.programs import programs_for

PROBLEMS = {
    "l1": (L1(), "highs"),
    "l1/linf blocks": (GroupLinf(groups=4, per_class=True), "highs"),
    "l1/linf rows": (GroupLinf(), "highs"),
    "l1/l2 blocks": (GroupL2(groups=4, per_class=True), "clarabel"),
    "l1/l2 rows": (GroupL2(), "clarabel"),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_program_reaches_a_certified_optimum(name, n_classes):
    penalty, baseline = PROBLEMS[name]
    X, y = simulated()
    X, y = X[y < n_classes], y[y < n_classes].astype(np.int32)
    X[:, 7] = 0.0  # left out by the programs
    problem = make_problem(X, y, penalty, 0.3)
    for program, make in programs_for(problem, X, baseline):
        coef, intercept, dual = make().solve()
        assert certify(problem, coef, intercept, dual).relative_gap < 1e-6, program
        assert 0 < np.count_nonzero(np.abs(coef) > 1e-6) < coef.size


@pytest.mark.parametrize(("n_classes", "penalty"), [(2, "l1"), (3, "l1"), (3, "l1/l2")])
def test_the_packages_of_the_path_benchmark_follow_the_same_path(n_classes, penalty):
    X, y = load_iris(return_X_y=True)
    X, code = same_objectives.prepared(X[y < n_classes], y[y < n_classes])
    problem = same_objectives.Problem(X, code, penalty)
    tol, _ = problem.reached(1e-3)
    assert 0.0 <= problem.distance(problem.ours(tol)[1]) <= 1e-3
    rows = 1 if n_classes == 2 else n_classes
    zero = [(np.zeros((rows, 4)), np.zeros(rows))] * problem.alphas.size
    assert problem.distance(problem.objectives(zero)) > 0.1
    # Those that are not installed are left out.
    for name, found in problem.peers(limit=60):
        if found is not None:
            models = zip(*found[1:], strict=True)
            assert -1e-9 <= problem.distance(problem.objectives(models)) < 0.02, name


def test_fbpd_in_slices_reaches_a_certified_optimum():
    problem = CASES["simulated_rows_1"].problem()
    run = FbpdRun(problem, GRID[2])
    run.advance(until=60.0, tol=1e-4)
    assert run.reached(1e-4)
    assert certify(problem, *run.point()).relative_gap <= 1e-4
    assert run.done > 0
    assert run.seconds > 0.0


def test_the_proximal_methods_of_the_budget_benchmark_approach_the_certified_optimum():
    problem = constrained.ConstrainedProblem(CASES["simulated_rows_1"].problem(), 0.3)
    found = constrained.BudgetSearch().solve(problem, None, constrained.Control(tol=1e-6))
    for kind in (constrained.FBPDEpigraph, constrained.FBPDLinear):
        run = constrained.Run(kind, problem, 3.0, found.objective, found.alpha)
        run.advance(until=1.0)
        assert run.error < 0.05
        assert 0.0 < run.reached[1e-1] <= run.seconds


@pytest.mark.parametrize("linear_terms", [False, True])
def test_a_seed_is_one_stacked_problem_and_nothing_is_wrong_with_its_fit(linear_terms):
    for seed in range(6):
        case, again = stress.draw(seed, linear_terms), stress.draw(seed, linear_terms)
        assert str(case) == str(again) and case.problem.alpha == again.problem.alpha
        assert set(stress.fit(case).wrong) <= {"slow"}


def test_a_stressed_fit_with_a_false_proof_or_without_one_is_told(capsys):
    found = stress.fit(stress.draw(0))
    problem, solution = found.case.problem, found.solution
    assert stress.contradicted(problem, solution) is None
    boast = replace(solution, dual_objective=1.1 * solution.objective)
    assert "not proven" in stress.contradicted(problem, boast)
    short = replace(solution, status="stalled")
    assert stress.judged(replace(found, solution=short)).wrong[0].startswith("stalled at")
    stress.main(["--seconds", "0.2"])
    assert " fits (seeds 0 to " in capsys.readouterr().out
    stress.main(["--one", "0"])
    assert "norms of columns" in capsys.readouterr().out


def test_files_of_one_model_are_compared(tmp_path):
    _, X, y, model = next(deployment.cases())
    ours, joblib, sparsified, *_ = deployment.sizes(model.fit(X, y), X, y, tmp_path)
    assert 0 < ours < joblib and sparsified < joblib
    assert all(taken >= 0.0 for taken in deployment.microseconds(lambda: None, lambda: None))


def test_the_distance_of_a_fit_from_its_proven_bound_is_its_gap_for_every_objective():
    rng = np.random.default_rng(0)
    for kind in problems.PROBLEMS.values():
        y = np.arange(40) % (2 if kind.binary else 3)
        X = rng.standard_normal((40, 12)) + y[:, None]
        reference = problems.Reference(X, y, kind, 0.1)
        parts = {"alpha": reference.alpha, "fit_intercept": False, "tol": 1e-5}
        model = SparseSVC(kind.loss, kind.penalty, **parts).fit(X, y)
        assert -1e-8 <= reference.suboptimality(model.coef_) <= 1.1e-5
        assert reference.suboptimality(reference.zeros()) > 1e-3
