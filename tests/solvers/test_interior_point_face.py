"""Newton steps on the face of the optimum end the interior point early, and exactly."""

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm.penalties import GroupL2
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

pytestmark = pytest.mark.native

KIND = "l1/l2-blocks-per_class"
N, D = 60, 120


def draw(seed, n_classes=4, **options):
    X, y = cases.gaussian(seed, N, D, n_classes)
    return cases.build(X, y, cases.PENALTIES[KIND](D), **{"share": 0.1, **options})


def solve(problem, tol=1e-6):
    solution = InteriorPoint().solve(problem, None, Control(tol=tol))
    cases.assert_proven(problem, solution, tol)
    return solution


def jump(solution):
    """By what the last step divided the gap."""
    return solution.history.gap[-2] / max(solution.history.gap[-1], 1e-300)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("share", [0.3, 0.03])
def test_one_last_step_takes_the_gap_from_a_hundredth_to_the_tolerance(n_classes, share):
    """A step of the interior point itself divides the gap by twenty or so."""
    solution = solve(draw(n_classes, n_classes, share=share))
    assert solution.history.gap[-2] > 1e-3 * solution.objective
    assert jump(solution) > 1e3


@pytest.mark.parametrize("n_classes", [3, 7])
def test_with_many_samples_it_begins_far_from_the_optimum(n_classes):
    """Blocks that join on the way do not throw it off, and the interior point takes few steps."""
    for seed in range(4):
        X, y = cases.gaussian(seed, 100, 600, n_classes)
        solution = solve(cases.build(X, y, cases.PENALTIES[KIND](600), share=0.1))
        assert solution.n_iter <= 5
        assert solution.history.gap[-2] > 0.1 * solution.objective


def test_the_support_is_on_the_edge_of_its_balls_to_rounding():
    problem = draw(1)
    solution = solve(problem)
    terms = problem.penalty
    G = problem.transposed(problem.signed_dual(solution.dual)) / problem.alpha
    used = terms.group_norms(solution.coef).reshape(-1) > 0.0
    norms = terms.group_dual_norms(G)
    assert used.any() and not used.all()
    np.testing.assert_allclose(norms[used], 1.0, atol=1e-5)
    assert norms[~used].max() < 1.0


def test_weights_and_margins_of_each_sample():
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.01, 2.0, N)
    problem = draw(3, sample_weight=weight, margin_scale=rng.uniform(0.5, 2.0, N))
    solution = solve(problem, 1e-8)
    cases.assert_agrees(problem, solution, 1e-8)


def test_twice_the_same_samples_leave_the_face_to_many_dual_points():
    X, y = cases.gaussian(4, N // 2, D, 3)
    penalty = cases.PENALTIES[KIND](D)
    once = solve(cases.build(X, y, penalty))
    twice = solve(cases.build(np.vstack([X, X]), np.concatenate([y, y]), penalty))
    assert twice.objective == pytest.approx(once.objective, rel=1e-6)


def test_a_working_set_that_grows_on_the_face_gives_the_same_answer_every_time():
    X, y = cases.gaussian(6, 40, 2000, 4)
    problem = cases.build(X, y, cases.PENALTIES[KIND](2000), share=0.03)
    one, two = solve(problem), solve(problem)
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.history.gap, two.history.gap)


@pytest.mark.parametrize("width", [2, 3, 4, 7])
def test_blocks_of_any_width(width):
    """Blocks of four have a kernel of their own."""
    X, y = cases.gaussian(width, N, 84, 5)
    problem = cases.build(X, y, GroupL2(groups=width, per_class=True))
    solution = solve(problem)
    assert jump(solution) > 1e3
    cases.assert_agrees(problem, solution, 1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_beyond_single_precision(unit):
    """Early steps are taken in single precision, which squares of these do not fit."""
    X, y = cases.gaussian(8, N, D, 4)
    penalty = cases.PENALTIES[KIND](D)
    plain, other = (solve(cases.build(scale * X, y, penalty)) for scale in (1.0, unit))
    assert other.objective == pytest.approx(plain.objective, rel=1e-6)
    assert jump(other) > 1e3


def test_columns_in_other_units_do_not_matter():
    X, y = cases.gaussian(5, N, D, 3)
    scale = np.repeat(10.0 ** np.random.default_rng(5).integers(-3, 4, D // 4), 4)
    penalty = cases.PENALTIES[KIND](D)
    solution = solve(cases.build(X * scale, y, penalty))
    cases.assert_agrees(cases.build(X * scale, y, penalty), solution, 1e-6)
