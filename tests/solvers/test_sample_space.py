"""l2 with fewer samples than features is solved in the space of the samples, to the last digits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from sparsvm import SparseSVC
from sparsvm.data.design import make_design
from sparsvm.losses import as_loss
from sparsvm.penalties import L2
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import BlockNewton
from sparsvm.solvers.sample_space import LARGEST_SYSTEM, fits_sample_space

LOSSES = ["squared_hinge", "logistic", "ovr_squared_hinge"]


def make(loss, classes=3, n=18, d=90, alpha=1e-3, seed=0, weights=None, sparse=False, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 3, size=d)
    loss = as_loss(loss)
    return Problem(
        design=make_design(sp.csr_array(X) if sparse else X),
        y=(np.arange(n) % classes).astype(np.int32),
        mass=rng.dirichlet(np.full(n, 3.0)),
        cost=loss.cost_matrix(classes),
        n_classes=classes,
        alpha=alpha,
        loss=loss,
        penalty=L2(weights=weights).resolve(d, 1 if classes == 2 else classes, None),
        **options,
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("alpha", [1e3, 1.0, 1e-3, 1e-6])
def test_badly_scaled_features_are_solved_at_any_alpha(loss, classes, alpha):
    problem = make(loss, classes, alpha=alpha)
    assert fits_sample_space(problem)
    # Objectives go down to 1e-11 of what they are without weights.
    solution = BlockNewton().solve(problem, None, Control(tol=1e-6))
    assert solution.converged and solution.n_iter <= 100
    assert solution.history.gap[-1] == solution.gap


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("classes", [3, 5])
def test_margins_that_hold_with_next_to_nothing_to_spare_do_not_end_the_search(loss, classes):
    # Newton steps at this alpha alone would be cut to 1e-12 of their length on some.
    for seed in range(20):
        problem = make(loss, classes, alpha=1e-6, seed=seed)
        solution = BlockNewton().solve(problem, None, Control(tol=1e-6))
        assert solution.converged, seed


def test_an_iteration_limit_holds_where_larger_alphas_help():
    problem = make("squared_hinge", 3, alpha=1e-6, seed=1)
    solutions = [
        BlockNewton().solve(problem, None, Control(tol=1e-6, max_iter=limit)) for limit in (3, 8)
    ]
    assert [solution.n_iter for solution in solutions] == [3, 8]
    assert solutions[1].objective <= solutions[0].objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {"weights": np.linspace(0.5, 20.0, 90)},
        {"sparse": True},
        {"fit_intercept": False},
        {"margin_scale": np.linspace(0.0, 2.0, 18)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_weights_margins_and_storage(loss, options):
    solution = BlockNewton().solve(make(loss, **options), None, Control(tol=1e-8))
    assert solution.converged


def test_the_answer_is_that_of_liblinear():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 200)), rng.integers(0, 2, 30)
    ours = SparseSVC("squared_hinge", "l2", alpha=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = LinearSVC(C=1 / (30 * 0.5), fit_intercept=False, tol=1e-9, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)


def test_a_start_at_the_solution_ends_at_once():
    problem = make("logistic")
    first = BlockNewton().solve(problem, None, Control(tol=1e-9))
    again = BlockNewton().solve(problem, Start(first.coef, first.intercept), Control(tol=1e-6))
    assert first.n_iter > 2 >= again.n_iter
    np.testing.assert_allclose(again.coef, first.coef, rtol=1e-3, atol=1e-8)


def test_max_iter_is_kept_and_verbose_reports(capsys):
    solution = BlockNewton().solve(make("logistic"), None, Control(max_iter=1, verbose=True))
    assert (solution.status, solution.n_iter) == ("max_iter", 1)
    assert "block_newton: iteration      1" in capsys.readouterr().out


def test_where_it_does_not_apply():
    assert not fits_sample_space(make("logistic", n=18, d=18))
    assert not fits_sample_space(make("logistic", n=LARGEST_SYSTEM // 3, d=600))
    free = np.ones(90)
    free[3] = 0.0
    assert not fits_sample_space(make("logistic", weights=free))
    assert not fits_sample_space(make("logistic", linear_term=np.zeros((3, 90))))
