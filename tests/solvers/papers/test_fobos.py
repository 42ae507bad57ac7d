"""Stochastic forward-backward splitting against its equations and against cones."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import problems
from reference import oracles, smooth
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.losses import as_loss
from sparsvm.penalties import L1
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import FOBOS
from sparsvm.solvers.papers.fobos import STEPS, _native, choose_step
from sparsvm.solvers.run.native import smooth_problem

pytestmark = pytest.mark.native

LOSSES = ("hinge", *problems.SMOOTH_LOSSES)


def slopes_of(problem, scores, i):
    at = (scores[None, :], problem.y[i : i + 1], problem.margins()[i : i + 1])
    if problem.loss.name != "hinge":
        return problem.loss.gradient(*at)[0]
    exceeded = problem.margins()[i] + scores - scores[problem.y[i]]
    slopes = np.zeros_like(scores)
    if exceeded.max() > 0.0:
        slopes[np.argmax(exceeded)] += 1.0
        slopes[problem.y[i]] -= 1.0
    return slopes


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_follow_the_equations(loss):
    for seed, family in enumerate((problems.plain, problems.linear_terms, problems.no_intercept)):
        problem = problems.make(seed + 2, family, "l1", loss)
        X, i, eta0 = oracles.dense(problem), 1, 0.3
        one = np.array([i], dtype=np.int64)
        method = _core.Fobos(smooth_problem(problem), samples=one, eta0=eta0, lazy=False, seed=0)
        W, b = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)
        for t in range(1, 6):
            scores = W @ X[i] + b
            scores = np.concatenate([[0.0], scores]) if problem.n_classes == 2 else scores
            slope = slopes_of(problem, scores, i)
            slope = slope[1:] if problem.n_classes == 2 else slope
            # A single sample has all the mass.
            eta = eta0 / np.sqrt(t)
            linear_term = (
                0.0 if problem.linear_term is None else problem.alpha * problem.linear_term
            )
            W = problem.penalty.prox(
                W - eta * (np.outer(slope, X[i]) - linear_term), eta * problem.alpha
            )
            b = b - eta * slope * problem.fit_intercept
            method.run(1)
            weights, intercept = method.last()[:2]
            np.testing.assert_allclose(weights.T, W, rtol=1e-11, atol=1e-14)
            np.testing.assert_allclose(intercept, b, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("family", [problems.plain, problems.sparse_rows])
def test_proxes_that_wait_come_to_the_same(penalty, family):
    compared = 0
    for seed in range(12):
        problem = problems.make(seed, family, penalty, "logistic")
        if penalty != "l1" and problem.penalty.n_groups != problem.d:
            continue
        everyone = np.arange(problem.n, dtype=np.int64)
        points = [
            _core.Fobos(smooth_problem(problem), samples=everyone, eta0=0.5, lazy=lazy, seed=3)
            for lazy in (False, True)
        ]
        for point in points:
            point.run(3)
        (W, b), (lazy_W, lazy_b) = points[0].last(), points[1].last()
        np.testing.assert_allclose(lazy_W, W, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(lazy_b, b, rtol=1e-9, atol=1e-13)
        compared += 1
    assert compared >= 3


def iris(loss, weights=None):
    """Standardised iris with l1."""
    X, y = load_iris(return_X_y=True)
    loss, weights = as_loss(loss), np.ones(y.size) if weights is None else weights
    return Problem(
        design=make_design((X - X.mean(axis=0)) / X.std(axis=0)),
        y=y.astype(np.int32),
        mass=weights / weights.sum(),
        cost=loss.cost_matrix(3),
        n_classes=3,
        alpha=0.02,
        loss=loss,
        penalty=L1().resolve(4, 3),
    )


def excess(problem, solution):
    """How far the objective is from the optimum, as a share of the way from the zero model."""
    solve = oracles.solve if problem.loss.name == "hinge" else smooth.solve
    oracle = solve(problem)
    assert solution.objective >= oracle.value - oracle.accuracy
    zero = problem.objective(0.0 * solution.coef, 0.0 * solution.intercept)
    return (solution.objective - oracle.value) / (zero - oracle.value)


@pytest.mark.parametrize("loss", LOSSES)
def test_comes_near_the_optimum(loss):
    problem = iris(loss)
    solution = FOBOS(max_iter=300).solve(problem, None, Control(random_state=0))
    assert excess(problem, solution) <= 0.05


def test_weights_count_like_repetitions_on_average():
    weights = np.where(np.arange(150) % 3 == 0, 5.0, 0.5)
    problem = iris("squared_hinge", weights)
    solution = FOBOS(max_iter=300).solve(problem, None, Control(random_state=0))
    assert excess(problem, solution) <= 0.05


def test_subgradients_of_the_hinge_prove_a_bound():
    solution = FOBOS(max_iter=300).solve(iris("hinge"), None, Control(random_state=0))
    assert solution.relative_gap <= 0.2


def test_first_step_is_the_best_of_the_list_on_held_out_samples():
    problem = problems.make(5, problems.plain, "l1", "squared_hinge")
    chosen = choose_step(problem, np.random.RandomState(0))
    assert chosen in STEPS
    random = np.random.RandomState(0)
    order = random.permutation(problem.n).astype(np.int64)
    cut = problem.n // 5
    seeds = random.randint(2**31 - 1, size=2)
    losses = {}
    for eta0 in STEPS:
        worse = []
        for seed in seeds:
            method = _native(problem, order[cut:], eta0, int(seed))
            method.run(-(-2000 // (problem.n - cut)))
            weights, b = method.last()
            with np.errstate(over="ignore", invalid="ignore"):
                scores = problem.scores(weights.T, b)
                values = problem.loss.value(scores, problem.y, problem.margins())
            worse.append(np.sum((problem.mass * values)[order[:cut]]))
        losses[eta0] = np.max(worse)
    best = min(losses, key=lambda eta0: np.nan_to_num(losses[eta0], nan=np.inf))
    assert chosen == best


def test_same_seed_same_answer():
    problem = problems.make(3, problems.plain, "l1", "logistic")
    runs = [
        FOBOS(eta0=0.1, max_iter=3).solve(problem, None, Control(random_state=seed))
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].coef, runs[1].coef)
    assert np.any(runs[0].coef != runs[2].coef)


def test_bad_options_and_samples_are_refused():
    problem = problems.make(1, problems.plain, "l1", "logistic")
    with pytest.raises(ValueError, match="eta0 must lie strictly between 0"):
        FOBOS(eta0=0.0).solve(problem, None, Control())
    outside = np.array([problem.n], dtype=np.int64)
    with pytest.raises(ValueError, match=f"samples holds {problem.n}, outside"):
        _native(problem, outside, 1.0, 0)
    with pytest.raises(ValueError, match="samples must not be empty"):
        _native(problem, outside[:0], 1.0, 0)
