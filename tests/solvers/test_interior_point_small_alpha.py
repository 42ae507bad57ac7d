"""Many classes, few features and a tiny alpha, where coefficients are as large as 1e5 margins."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import hinge_cases as cases
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint, interior_point

pytestmark = pytest.mark.filterwarnings("error")


def check(problem):
    cases.assert_proven(problem, InteriorPoint().solve(problem, None, Control(tol=1e-6)), 1e-6)


def cornered(penalty, columns, seed):
    """Inside the dual ball all entries are 1e-7 of the weights, which themselves differ by 1e6."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, len(columns))) * columns
    weights = 10.0 ** rng.uniform(0, 6, 40)
    return cases.build(X, np.arange(40) % 20, penalty, share=1e-7, sample_weight=weights)


@pytest.mark.parametrize("seed", range(12))
def test_a_free_feature_keeps_the_equalities_of_the_dual(seed):
    # What a fixed damping of the free coefficients left of them made gaps of 1e-3.
    X = np.random.default_rng(seed).standard_normal((30, 2))
    check(cases.build(X, np.arange(30) % 12, L1(weights=[0.0, 1.0]), share=1e-6))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("penalty", "columns"), [(SparseGroup(0.5), [1.0]), (L1(), [1e-3, 1e3])], ids=["one", "scales"]
)
def test_a_corner_of_the_dual_is_no_place_to_start(penalty, columns, seed):
    check(cornered(penalty, columns, seed))


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_start_with_entries_of_the_size_of_the_weights_leads_to_the_optimum(
    seed, kind, monkeypatch
):
    outside = interior_point._Trial(across_features=False, inside=False)
    monkeypatch.setattr(interior_point, "_trials", lambda start, problem: [outside])
    options = cases.Options(True, "sample", True, "free", 0.0, "C")
    check(cases.grid_problem(seed, kind, options))


@pytest.mark.parametrize("kind", cases.KINDS)
def test_plain_data_are_solved_down_to_a_hundred_millionth_of_the_largest_alpha(kind):
    """A cold start stays where all entries are tiny; that of a larger alpha leads on."""
    X, y = cases.gaussian(0, 150, 6, 12)
    check(cases.build(X, y, cases.PENALTIES[kind](6), share=1e-8))


@pytest.mark.parametrize("kind", cases.KINDS)
def test_rounding_of_slopes_that_cancel_costs_no_tight_tolerance(kind):
    """With l1 the bound of that rounding alone made a gap of 1e-6 here."""
    X, y = cases.gaussian(0, 100, 5, 3)
    problem = cases.build(X, y, cases.PENALTIES[kind](5), share=1e-8)
    found = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    assert found.relative_gap <= 1e-8


def test_after_the_limit_of_the_solver_but_not_of_the_caller_another_start_is_made(monkeypatch):
    problem = cornered(SparseGroup(0.5), [1.0], 0)
    run, inside = InteriorPoint._run, []

    def recorded(self, problem, trial, control):
        inside.append(trial.inside)
        return run(self, problem, trial, control)

    monkeypatch.setattr(InteriorPoint, "_run", recorded)
    own = InteriorPoint(max_iter=5).solve(problem, None, Control(tol=1e-6))
    assert own.status == "max_iter" and inside[0] and not all(inside)
    inside.clear()
    asked = InteriorPoint().solve(problem, None, Control(tol=1e-6, max_iter=5))
    assert asked.status == "max_iter" and asked.n_iter == 5 and inside == [True]


@pytest.mark.parametrize("seed", range(8))
def test_weights_that_are_all_but_free_keep_their_digits(seed):
    # Scores of 1e4 margins at a sample far away: eliminated weights left residuals of one margin.
    X = np.random.default_rng(seed).standard_normal((40, 4))
    X[0] *= 1e4
    check(cases.build(X, np.arange(40) % 20, GroupL2(per_class=True), share=5e-7))


@pytest.mark.parametrize("seed", range(8))
def test_sparse_columns_that_are_all_but_constant_do_not_compete_with_the_intercept(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 12)) + 10.0 ** rng.uniform(0, 6, 12)
    check(cases.build(sp.csr_array(X), np.arange(40) % 4, ElasticNet(0.5), share=1e-6))


def test_no_block_is_priced_where_nothing_is_penalised():
    # Separable by the free feature alone: the dual shrinks to nothing, and so do the steps.
    X = np.r_[-np.arange(1.0, 9.0), np.arange(1.0, 9.0)][:, None]
    problem = cases.build(X, X[:, 0] > 0, GroupLinf(weights=[0.0]))
    check(replace(problem, alpha=1e-3))
