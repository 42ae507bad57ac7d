"""FISTA, forward-backward and SpaRSA: their kernels against NumPy, their answers against cones."""

from dataclasses import replace

import numpy as np
import pytest

import problems
from reference import oracles, smooth
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import FISTA, ForwardBackward, SpaRSA
from sparsvm.solvers.papers.first_order import first_curvature
from sparsvm.solvers.papers.smooth_reference import (
    gradient_constant,
    spectral_constant,
)
from sparsvm.solvers.run.native import smooth_problem

pytestmark = pytest.mark.native

VARIANTS = [
    FISTA(),
    FISTA(step="CST"),
    ForwardBackward(),
    ForwardBackward(step="LS"),
    SpaRSA(),
    SpaRSA(M=0),
]
EASY = [
    problems.plain,
    problems.lonely_class,
    problems.sample_margins,
    problems.cost_matrix,
    problems.no_intercept,
    problems.linear_terms,
    problems.sparse_rows,
    problems.free_features,
]


def described(solver):
    return f"{solver.name}-{solver.get_params().get('step', solver.get_params().get('M'))}"


def outputs_of(problem, matrix):
    return np.ascontiguousarray(matrix[:, 1:] if problem.n_classes == 2 else matrix)


def means(problem):
    """Means of the features, which the intercept takes in; zero without one."""
    return problem.fit_intercept * (problem.mass @ oracles.dense(problem))


def uncentred(problem, W, c):
    """The intercept b of the features as they are, from that of centred features."""
    return c - W @ means(problem)


def full_gradient(problem, W, c):
    """Gradient of the smooth part in W and in the intercept c of centred features."""
    scores = problem.scores(W, uncentred(problem, W, c))
    slopes = problem.loss.gradient(scores, problem.y, problem.margins())
    signed = outputs_of(problem, problem.mass[:, None] * slopes)
    linear_term = 0.0 if problem.linear_term is None else problem.alpha * problem.linear_term.T
    centred = oracles.dense(problem) - means(problem)
    return centred.T @ signed - linear_term, problem.fit_intercept * signed.sum(axis=0)


def test_constants_bound_the_curvature_and_the_search_starts_below_it():
    rng = np.random.default_rng(2)
    for name, problem in problems.smooth_cases(2):
        native = smooth_problem(problem)
        bound, spectral = gradient_constant(problem, native), spectral_constant(problem, native)
        W, V = rng.standard_normal((2, problem.n_outputs, problem.d))
        b, c = rng.standard_normal((2, problem.n_outputs)) * problem.fit_intercept
        G, g = full_gradient(problem, W, b)
        H, h = full_gradient(problem, V, c)
        change = np.sqrt(np.sum((G - H) ** 2) + np.sum((g - h) ** 2))
        move = np.sqrt(np.sum((W - V) ** 2) + np.sum((b - c) ** 2))
        assert change <= spectral * move * (1.0 + 1e-9), name
        assert spectral <= bound * (1.0 + 1e-12), name
        assert first_curvature(problem) <= bound * (1.0 + 1e-12), name


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_constant_of_the_paper(loss):
    problem = problems.make(1, problems.plain, "l1/l2", loss)
    K, X = problem.n_classes, oracles.dense(problem)
    assert K > 2
    factor = {"squared_hinge": 4 * (K - 1), "logistic": 0.5, "ovr_squared_hinge": 2}[loss]
    # The free intercept is a column of ones beside centred features.
    expected = factor * (np.sum(X.var(axis=0)) + 1.0)
    assert gradient_constant(problem, smooth_problem(problem)) == pytest.approx(expected)
    alone = replace(problem, fit_intercept=False)
    expected = factor * np.mean(np.sum(X**2, axis=1))
    assert gradient_constant(alone, smooth_problem(alone)) == pytest.approx(expected)


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_fista_follows_its_equations(loss):
    problem = problems.make(2, problems.linear_terms, "l1/l2", loss)
    native = smooth_problem(problem)
    L = gradient_constant(problem, native)
    method = _core.FirstOrder(native, method="fista", line_search=False, L=L, largest=L)
    x, b = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)
    y, c, t = x, b, 1.0
    for _ in range(5):
        G, g = full_gradient(problem, y, c)
        ahead = problem.penalty.prox(y - G.T / L, problem.alpha / L)
        ahead_b = c - g / L
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2))
        y, c = ahead + (t - 1.0) / after * (ahead - x), ahead_b + (t - 1.0) / after * (ahead_b - b)
        x, b, t = ahead, ahead_b, after
    method.run(5)
    weights, intercept = method.last()
    np.testing.assert_allclose(weights.T, x, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(intercept, uncentred(problem, x, b), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_line_search_keeps_its_inequality(loss):
    problem = problems.make(3, problems.plain, "l1", loss)
    native = smooth_problem(problem)
    bound = gradient_constant(problem, native)
    method = _core.FirstOrder(
        native, method="forward_backward", line_search=True, L=1e-3 * bound, largest=bound
    )
    x, b = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)

    def smooth_part(W, c):
        b = uncentred(problem, W, c)
        return problem.objective(W, b) - problem.alpha * problem.penalty.value(W)

    for _ in range(10):
        G, g = full_gradient(problem, x, b)
        method.run(1)
        weights, intercept = method.last()
        ahead_b = intercept + means(problem) @ weights
        shift = ahead_b - b
        L = -(g @ shift) / (shift @ shift)  # the intercept is not penalised: its step is -g/L
        ahead = problem.penalty.prox(x - G.T / L, problem.alpha / L)
        np.testing.assert_allclose(weights.T, ahead, rtol=1e-9, atol=1e-13)
        move = ahead - x
        model = smooth_part(x, b) + np.sum(G.T * move) + g @ shift
        model += 0.5 * L * (np.sum(move**2) + shift @ shift)
        assert smooth_part(ahead, ahead_b) <= model + 1e-12
        x, b = ahead, ahead_b


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_sparsa_takes_the_barzilai_borwein_step(loss):
    problem = problems.make(4, problems.plain, "l1", loss)
    solver = SpaRSA()
    method = solver._method(problem)
    points = [(np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs))]
    for _ in range(7):
        method.run(1)
        weights, intercept = method.last()
        points.append((weights.T.copy(), intercept + means(problem) @ weights))
    (x, b), (x_next, b_next), (_, b_after) = points[-3:]
    (G, g), (G_next, g_next) = full_gradient(problem, x, b), full_gradient(problem, x_next, b_next)
    inner = np.sum((x_next - x) * (G_next - G).T) + (b_next - b) @ (g_next - g)
    expected = inner / (np.sum((x_next - x) ** 2) + np.sum((b_next - b) ** 2))
    shift = b_after - b_next
    # The intercept is not penalised: its step is -g/L. No step had to be shortened.
    assert -(g_next @ shift) / (shift @ shift) == pytest.approx(expected, rel=1e-6)
    values = [problem.objective(W, uncentred(problem, W, c)) for W, c in points]
    for k in range(1, len(values)):
        assert values[k] <= max(values[max(0, k - 6) : k]) * (1.0 + 1e-12)


@pytest.mark.parametrize("solver", VARIANTS, ids=described)
def test_objective_equals_the_oracle(solver):
    for index, family in enumerate(EASY):
        loss = problems.SMOOTH_LOSSES[index % 3]
        problem = problems.make(2 + index, family, None, loss)
        oracle = smooth.solve(problem)
        solution = solver.solve(problem, None, Control(tol=1e-3, max_iter=200_000))
        assert solution.status == "optimal", family.__name__
        assert solution.objective >= oracle.value - oracle.accuracy
        assert solution.objective <= oracle.value + 1e-3 * abs(oracle.value) + oracle.accuracy


@pytest.mark.parametrize("solver", VARIANTS, ids=described)
def test_means_of_the_features_do_not_slow_the_methods_down(solver):
    """With an intercept, features far from zero are the same problem as centred ones."""
    centred = problems.make(3, problems.plain, "l1/l2", "squared_hinge")
    X = oracles.dense(centred)
    X = X - X.mean(axis=0)
    at_zero, far_off = (replace(centred, design=make_design(X + m)) for m in (0.0, 50.0))
    counts = [solver.solve(p, None, Control(tol=1e-3)).n_iter for p in (at_zero, far_off)]
    assert counts[1] <= 2 * counts[0]


@pytest.mark.parametrize("solver", VARIANTS[:1] + VARIANTS[2:3] + VARIANTS[4:5], ids=described)
def test_start_at_the_solution_needs_no_iteration(solver):
    problem = problems.make(5, problems.plain, "l1", "logistic")
    first = SpaRSA().solve(problem, None, Control(tol=1e-6))
    again = solver.solve(problem, Start(first.coef, first.intercept), Control(tol=1e-5))
    assert again.n_iter == 0
    assert again.status == "optimal"


def test_change_stops_but_proves_nothing():
    problem = problems.make(1, problems.plain, "l1/l2", "squared_hinge")
    loose = ForwardBackward(stopping="change").solve(problem, None, Control(tol=1e-3))
    assert loose.n_iter < 2000
    assert loose.status == ("optimal" if loose.relative_gap <= 1e-3 else "stalled")
    tight = ForwardBackward(stopping="change").solve(problem, None, Control(tol=1e-6))
    assert tight.objective <= loose.objective
    assert tight.n_iter > loose.n_iter


def test_what_cannot_be_solved_is_said_in_a_sentence():
    hinge = problems.make(0)
    for solver in (FISTA(), ForwardBackward(), SpaRSA()):
        assert "needs a smooth loss" in solver.unsupported(hinge)
        assert "not hinge" in solver.unsupported(hinge)


@pytest.mark.parametrize(
    "solver, sentence",
    [
        (FISTA(step="fast"), "step must be one of 'LS', 'CST'"),
        (FISTA(eta=1.0), "eta must lie strictly between 1 and inf"),
        (ForwardBackward(gamma=2.0), "gamma must lie strictly between 0 and 2"),
        (SpaRSA(M=-1), "M must not be negative"),
        (SpaRSA(alpha_max=1e-31), "alpha_max must lie strictly between 1e-30"),
        (FISTA(stopping="violation"), "stopping must be one of 'gap', 'change'"),
        (FISTA(check_every=0), "check_every must be at least 1"),
    ],
)
def test_bad_options_are_refused(solver, sentence):
    problem = problems.make(1, problems.plain, "l1", "logistic")
    with pytest.raises(ValueError, match=sentence):
        solver.solve(problem, None, Control())


def test_sizes_are_checked_at_the_border():
    problem = problems.make(1, problems.plain, "l1", "logistic")
    method = FISTA()._method(problem)
    with pytest.raises(ValueError, match="weights has shape"):
        method.start(np.zeros((problem.d + 1, problem.n_outputs)), np.zeros(problem.n_outputs))
    with pytest.raises(ValueError, match="y has length"):
        smooth_problem(replace(problem, design=problems.make(3).design))
