"""The kernels of the method of multipliers against their plain definitions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import hinge_cases as cases
from reference import newton as naive
from sparsvm import prox
from sparsvm.data.design import make_design
from sparsvm.solvers.newton import _method

pytestmark = pytest.mark.native
KINDS = [*cases.KINDS, "l1/linf-labels-joint", "sparse_group-labels-per_class"]


def draw(kind, seed=0, n_classes=3, free=False, linear=False):
    rng = np.random.default_rng(seed)
    X, y = cases.gaussian(seed, 25, 9, n_classes)
    weights = rng.uniform(0.5, 2.0, 9)
    if free:
        weights[4] = 0.0
    problem = cases.build(X, y, cases.PENALTIES[kind](9, weights), share=0.1)
    if linear:
        problem = replace(problem, linear_term=cases._linear_term(rng, problem.penalty, 0.5))
    return X, problem, rng


def centre(problem, rng):
    W = rng.standard_normal((problem.n_outputs, problem.d)) * 0.1
    Y = rng.dirichlet(np.full(problem.n_classes, 0.5), problem.n) * problem.mass[:, None]
    return W, 0.1 * rng.standard_normal(problem.n_outputs), Y / problem.alpha


def differences(f, x, step=1e-6):
    """Jacobian of f at x by central differences."""
    moves = step * np.eye(x.size)
    return np.column_stack([(f(x + move) - f(x - move)) / (2.0 * step) for move in moves])


@pytest.mark.parametrize("seed", range(5))
def test_the_simplex_jacobian_is_the_derivative_of_the_projection(seed):
    v = np.random.default_rng(seed).standard_normal(6)
    found = differences(lambda u: naive.project_simplex(u, 1.3), v)
    np.testing.assert_allclose(found, naive.simplex_jacobian(v, 1.3), atol=1e-8)
    np.testing.assert_allclose(prox.project_simplex(v, 1.3), naive.project_simplex(v, 1.3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_prox_jacobian_is_the_derivative_of_the_prox(kind, seed):
    _, problem, rng = draw(kind, seed, free=seed == 2)
    terms = problem.penalty
    V = rng.standard_normal((terms.n_outputs, terms.d)) * 1.5
    found = differences(lambda v: terms.prox(v.reshape(V.shape), 0.4).reshape(-1), V.reshape(-1))
    np.testing.assert_allclose(found, naive.prox_jacobian(terms, V, 0.4), atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_slope_and_hessian_are_the_derivatives_of_the_smoothed_hinge(n_classes):
    X, problem, rng = draw("l1", 1, n_classes, linear=True)
    sub = naive.Subproblem(problem, X, centre(problem, rng), 3.0, 10.0, 20.0)
    W, b, _ = centre(problem, rng)
    shape, size = W.shape, W.size

    def value(x):
        return np.atleast_1d(sub.smooth_value(x[:size].reshape(shape), x[size:]))

    def slope(x):
        G, g = sub.slope(x[:size].reshape(shape), x[size:])
        return np.concatenate([G.reshape(-1), g])

    x = np.concatenate([W.reshape(-1), b])
    np.testing.assert_allclose(differences(value, x)[0], slope(x), atol=1e-6)
    np.testing.assert_allclose(differences(slope, x), sub.hessian(W, b), atol=1e-6)


def subproblem(X, problem, point, limit=200, direct=3000, accuracy=1e-9, **terms):
    method = _method(problem)
    W, b, Y = point
    method.start(np.ascontiguousarray(W.T), b, Y)
    steps, solved = method.solve(
        **terms, accuracy=accuracy, limit=limit, typical=0.1, direct=direct
    )
    found, intercept, dual = method.point()
    return steps, solved, found.T, intercept, dual


TERMS = {"gain": 2.0, "sigma": 5.0, "sigma_free": 8.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("direct", [3000, 1], ids=["factored", "conjugate gradients"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_native_minimiser_is_a_fixed_point_of_the_plain_proximal_step(
    kind, n_classes, direct, sparse
):
    X, problem, rng = draw(kind, 2, n_classes, free=True, linear=kind != "l2")
    if sparse:
        X = np.where(np.abs(X) < 0.7, 0.0, X)
        problem = replace(problem, design=make_design(csr_array(X)))
    point = centre(problem, rng)
    _, solved, W, b, Y = subproblem(X, problem, point, direct=direct, **TERMS)
    assert solved
    sub = naive.Subproblem(problem, X, point, **TERMS)
    np.testing.assert_allclose(Y, sub.dual(W, b), atol=1e-9)
    G, g = sub.slope(W, b)
    np.testing.assert_allclose(problem.penalty.prox(W - 0.01 * G, 0.01), W, atol=1e-9)
    np.testing.assert_allclose(g, 0.0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direct", [3000, 1], ids=["factored", "conjugate gradients"])
def test_steps_too_short_to_change_the_objective_are_still_taken(kind, direct):
    # At this accuracy the last steps lower the objective by far less than its rounding error.
    for seed in range(10):
        for n_classes in (2, 3):
            X, problem, rng = draw(kind, seed, n_classes, free=seed % 2 == 0, linear=kind != "l2")
            _, solved, *_ = subproblem(
                X, problem, centre(problem, rng), direct=direct, accuracy=1e-12, **TERMS
            )
            assert solved, (seed, n_classes)


def test_the_first_step_solves_the_plain_newton_equation():
    X, problem, rng = draw("l2", 3, free=True)
    point = centre(problem, rng)
    sub = naive.Subproblem(problem, X, point, **TERMS)
    W, b, _ = point
    G, g = sub.slope(W, b)
    omega = np.tile(problem.penalty.omega, W.shape[0])
    H = sub.hessian(W, b) + np.diag(np.r_[omega**2, np.zeros(b.size)])
    right = -np.concatenate([(G + problem.penalty.omega**2 * W).reshape(-1), g])
    step = np.linalg.solve(H, right)
    steps, _, found, intercept, _ = subproblem(X, problem, point, limit=1, **TERMS)
    assert steps == 1
    moved = np.concatenate([(found - W).reshape(-1), intercept - b])
    length = np.linalg.norm(moved) / np.linalg.norm(step)
    assert np.log2(length) == pytest.approx(np.round(np.log2(length)), abs=1e-9)
    np.testing.assert_allclose(moved, length * step, atol=1e-10)


def test_sizes_that_disagree_are_named():
    _, problem, _ = draw("l1")
    method = _method(problem)
    with pytest.raises(ValueError, match=r"shape \(3, 3\) but must have shape \(9, 3\)"):
        method.start(np.zeros((3, 3)), np.zeros(3), np.zeros((25, 3)))
    with pytest.raises(ValueError, match="25"):
        _method(replace(problem, mass=problem.mass[:25], y=problem.y)).start(
            np.zeros((9, 3)), np.zeros(3), np.zeros((24, 3))
        )


def test_what_a_subproblem_cannot_be_made_of_is_refused():
    _, problem, rng = draw("l1")
    method = _method(problem)
    W, b, Y = centre(problem, rng)
    with pytest.raises(ValueError, match=r"weights.0. is nan"):
        method.start(np.full((problem.d, problem.n_outputs), np.nan), b, Y)
    method.start(np.ascontiguousarray(W.T), b, Y)
    sizes = {"gain": 1.0, "sigma": 1.0, "sigma_free": 1.0, "accuracy": 1e-3, "typical": 1.0}
    for name in sizes:
        for wrong in (0.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="must be positive and finite"):
                method.solve(**(sizes | {name: wrong}), limit=10, direct=100)
