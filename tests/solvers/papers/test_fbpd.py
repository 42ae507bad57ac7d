"""FBPD against Algorithm 1 written out, against oracles, and its manners."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine

import problems
from reference import fbpd as algorithm_1
from reference import oracles, prox
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import L1, GroupL2, GroupLinf, SparseGroup, as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import FBPD, as_solver, resolve

FAMILY_NAMES = [family.__name__ for family in problems.FAMILIES]
# Off centre or at such scales a first-order method gets nowhere; its single iterations are compared
# all the same.
HOPELESS = {"column_scales", "sample_weights", "separable"}


def standardised(load):
    data = load()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return np.ascontiguousarray(X), data.target.astype(np.int32)


def hinge_problem(X, y, penalty, alpha=0.05):
    K = int(y.max()) + 1
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(y.size, 1 / y.size),
        cost=Hinge().cost_matrix(K),
        n_classes=K,
        alpha=alpha,
        loss=Hinge(),
        penalty=as_penalty(penalty).resolve(X.shape[1], 1 if K == 2 else K, None),
    )


# ---------------------------------------------------------------- the algorithm


def follow(problem, iterations, method=None, solver=None):
    """Compare the native iterates, from those of ``method`` on, with the reference, one by one."""
    X = oracles.dense(problem)
    x = algorithm_1.start(problem) if method is None else algorithm_1.Iterate(*method.last())
    method = method or (solver or FBPD())._method(problem)
    tau, sigma = method.steps
    for _ in range(iterations):
        x = algorithm_1.step(problem, X, x, tau, sigma)
        assert method.run(1) == 1
        W, b, Y = method.last()
        size = max(np.abs(x.W).max(), np.abs(x.b).max(), tau * np.abs(X).max())
        np.testing.assert_allclose(W, x.W, rtol=1e-9, atol=1e-11 * size)
        np.testing.assert_allclose(b, x.b, rtol=1e-9, atol=1e-11 * size)
        np.testing.assert_allclose(Y, x.Y, rtol=1e-9, atol=1e-11 * problem.mass.max())


@pytest.mark.native
@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
def test_iterates_are_those_of_algorithm_1(family, penalty):
    follow(problems.make(7 if penalty == "l1" else 4, family, penalty), iterations=15)


def weighted_problem(samples, features, classes, store=np.asarray, penalty="l1"):
    """Masses and margins that differ; labels that the features explain."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(samples, features))
    if store is not np.asarray:
        X *= rng.random(X.shape) < 0.2
    y = (X @ rng.normal(size=(features, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    mass = rng.random(samples) + 0.1
    problem = hinge_problem(store(X), y, penalty, alpha=1e-3)
    return replace(problem, mass=mass / mass.sum(), margin_scale=rng.random(samples) + 0.5)


@pytest.mark.native
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("classes", [2, 3, 9, 66])
def test_iterates_do_not_leave_those_of_algorithm_1(classes, store):
    problem = weighted_problem(120, 20, classes, store)
    method = FBPD()._method(problem)
    for _ in range(3):
        follow(problem, 2, method)
        method.run(60)
        Y = method.last()[2]
        assert Y.min() >= 0.0
        np.testing.assert_allclose(Y.sum(axis=1), problem.mass, rtol=1e-13)


@pytest.mark.native
@pytest.mark.parametrize("classes", [2, 4])
def test_iterates_with_costs_of_each_pair_and_with_margins_of_either_sign(classes):
    problem = weighted_problem(50, 8, classes)
    rng = np.random.default_rng(0)
    cost = rng.random((classes, classes)) + 0.2
    np.fill_diagonal(cost, 0.0)
    follow(replace(problem, cost=cost), 10)
    margins = rng.normal(size=(50, classes))
    margins[np.arange(50), problem.y] = 0.0
    follow(replace(problem, margin_scale=None, margin_matrix=margins), 10)


@pytest.mark.native
@pytest.mark.parametrize(
    "penalty",
    [L1(), GroupL2(), GroupLinf(groups=7, per_class=True), SparseGroup(groups=np.arange(110) % 9)],
    ids=["l1", "rows", "blocks", "scattered groups"],
)
def test_iterates_with_a_linear_term(penalty):
    problem = weighted_problem(70, 110, 6, sp.csc_array, penalty)
    linear_term = np.random.default_rng(0).normal(size=(6, 110)) / 10
    follow(replace(problem, linear_term=linear_term), 5)


@pytest.mark.native
def test_rows_in_another_order_give_the_same_bits():
    problem = weighted_problem(60, 20, 6, sp.csr_array)
    X = sp.csr_array(oracles.dense(problem))
    order = np.random.default_rng(1).permutation(X.shape[0])
    shuffled = replace(problem, design=make_design(X[order], rows=np.argsort(order)))
    one, two = FBPD()._method(problem), FBPD()._method(shuffled)
    one.run(30)
    two.run(30)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.native
@pytest.mark.parametrize("classes", [2, 5])
def test_a_start_goes_on_where_the_last_run_was(classes):
    problem = weighted_problem(60, 20, classes)
    one, two = FBPD()._method(problem), FBPD()._method(problem)
    one.run(50)
    two.start(*one.last())
    one.run(5)
    two.run(5)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.native
def test_samples_beyond_their_margins_have_their_whole_mass_on_the_true_class():
    # Products skip rows of zeros, so it must be there to the last bit.
    problem = weighted_problem(200, 40, 5)
    method = FBPD()._method(problem)
    method.run(3000)
    W, b, Y = method.last()
    scores = oracles.dense(problem) @ W + b
    true = (np.arange(problem.n), problem.y)
    slack = scores[true][:, None] - scores - problem.margins()
    slack[true] = np.inf
    beyond = slack.min(axis=1) > 0.1
    assert beyond.any()
    np.testing.assert_array_equal(Y[true][beyond], problem.mass[beyond])


@pytest.mark.native
def test_the_mean_is_that_of_every_fourth_iterate_in_the_window():
    method = FBPD()._method(problems.make(1))
    method.run(6)
    method.forget()
    collected = []
    for iteration in range(7, 20):
        method.run(1)
        if iteration % 4 == 0:
            collected.append(method.last())
    for got, expected in zip(method.mean(), zip(*collected, strict=True), strict=True):
        np.testing.assert_allclose(got, np.mean(expected, axis=0), rtol=1e-12, atol=1e-15)


@pytest.mark.native
def test_one_run_equals_many_short_ones():
    problem = problems.make(3)
    one, many = FBPD()._method(problem), FBPD()._method(problem)
    one.run(40)
    for _ in range(8):
        many.run(5)
    for a, b in zip(one.last(), many.last(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.native
@pytest.mark.parametrize("intercept", [False, True])
def test_the_norm_estimate_is_an_upper_bound_and_tight(intercept):
    rng = np.random.default_rng(0)
    for n, d in [(1, 1), (30, 4), (5, 200), (60, 60)]:
        X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d) + rng.normal()
        full = np.hstack([X, np.ones((n, 1))]) if intercept else X
        exact = np.linalg.norm(full, 2)
        for design in (make_design(X), make_design(sp.csr_matrix(X))):
            assert exact <= _core.operator_norm(design, intercept) <= 1.0101 * exact
            centred = np.linalg.norm(X - X.mean(axis=0), 2)
            found = _core.operator_norm(design, False, centred=True)
            assert centred <= found <= 1.0101 * centred or n == 1
    assert _core.operator_norm(make_design(np.zeros((3, 2))), False) == 0.0


# ---------------------------------------------------------------- steps


def centred_norm(problem):
    """The norm of the map from coefficients to scores less their mean over the classes."""
    X = np.hstack([oracles.dense(problem), np.ones((problem.n, 1))])
    outputs = np.eye(problem.n_outputs) if problem.n_classes > 2 else np.array([[0.0], [1.0]])
    return np.linalg.norm(X, 2) * np.linalg.norm(outputs - outputs.mean(axis=0), 2)


def papers_norm(problem):
    """The norm of the paper's T, written out as a matrix."""
    X, m = oracles.dense(problem), problem.n_outputs
    columns = []
    for e in np.eye((problem.d + 1) * m):
        W, b = e[: problem.d * m].reshape(problem.d, m), e[problem.d * m :]
        columns.append(algorithm_1.differences(problem, X, W, b).ravel())
    return np.linalg.norm(np.array(columns), 2)


@pytest.mark.parametrize(("rule", "norm"), [("centred", centred_norm), ("paper", papers_norm)])
def test_step_sizes_fill_the_bound_of_their_norm_and_keep_the_ratio(rule, norm):
    for seed in range(6):
        problem = problems.make(seed)
        tau, sigma = FBPD(ratio=7.0, step_norm=rule)._method(problem).steps
        assert tau / sigma == pytest.approx(7.0)
        assert 0.97 <= tau * sigma * norm(problem) ** 2 <= 1.0 + 1e-12


def test_the_papers_steps_are_followed_and_solve_the_problem():
    problem = hinge_problem(*standardised(load_iris), "l1")
    solver = FBPD(step_norm="paper")
    follow(problem, 5, solver=solver)
    solution = solver.solve(problem, None, Control(tol=1e-3, max_iter=20_000))
    assert solution.converged
    assert solution.objective == pytest.approx(oracles.solve(problem).value, rel=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_algorithm_1_is_reproduced_with_the_papers_lambda_and_steps(classes):
    # The paper's own variables: masses lambda, penalty unscaled, two vectors for two classes.
    X, y = standardised(load_iris)
    X, y = X[: 50 * classes], y[: 50 * classes]
    lam, n = 0.3, y.size
    problem = hinge_problem(X, y, "l1", alpha=1 / (n * lam))
    wide = np.hstack([X, np.ones((n, 1))])
    r = 1.0 - np.eye(classes)[y]

    def T(x):
        scores = wide @ x
        return scores - scores[np.arange(n), y][:, None]

    def adjoint(u):
        u = u.copy()
        u[np.arange(n), y] -= u.sum(axis=1)
        return wide.T @ u

    basis = np.eye(5 * classes).reshape(-1, 5, classes)
    norm = np.linalg.norm(np.array([T(e).ravel() for e in basis]), 2)
    tau, sigma = 0.5 / norm, 2.0 / norm
    doubled = 2 if classes == 2 else 1
    method = FBPD(tau=tau * doubled / problem.alpha, sigma=sigma * problem.alpha)._method(problem)
    x, u = np.zeros((5, classes)), np.zeros((n, classes))
    u[np.arange(n), y] = lam
    for _ in range(200):
        last, x = x, x - tau * adjoint(u)
        x[:4] = np.sign(x[:4]) * np.maximum(np.abs(x[:4]) - tau, 0.0)
        moved = u + sigma * T(2 * x - last) + sigma * r
        u = np.array([prox.project_simplex(row, lam) for row in moved])
        method.run(1)
        W, b, Y = method.last()
        coef = x[:, 1:] - x[:, :1] if classes == 2 else x
        np.testing.assert_allclose(np.vstack([W, b]), coef, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(Y / problem.alpha, u, rtol=1e-9, atol=1e-12)


def test_one_step_alone_fixes_the_other():
    problem = problems.make(0)
    tau, sigma = FBPD(tau=0.01)._method(problem).steps
    assert tau == 0.01 and 0.97 <= tau * sigma * centred_norm(problem) ** 2 <= 1.0 + 1e-12
    tau, sigma = FBPD(sigma=0.3, step_norm="paper")._method(problem).steps
    assert sigma == 0.3 and 0.97 <= tau * sigma * papers_norm(problem) ** 2 <= 1.0 + 1e-12


def test_steps_that_are_too_long_are_refused_and_exact_ones_are_not():
    problem = problems.make(0)
    square = centred_norm(problem) ** 2
    FBPD(tau=0.1, sigma=10 / square)._method(problem)
    with pytest.raises(ValueError, match=r"steps tau=0.1 and sigma=.* are too long"):
        FBPD(tau=0.1, sigma=11 / square).solve(problem, None, Control())


# ---------------------------------------------------------------- solutions


@pytest.mark.parametrize("penalty", problems.PENALTIES)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_real_data_are_solved_to_tolerance(load, penalty):
    problem = hinge_problem(*standardised(load), penalty)
    solution = FBPD().solve(problem, None, Control(tol=1e-3, max_iter=20_000))
    assert solution.converged and solution.n_iter < 20_000
    optimum = oracles.solve(problem).value
    slack = 1e-6 * optimum
    assert solution.dual_objective <= optimum + slack
    assert optimum - slack <= solution.objective <= optimum * (1 + 1e-3) + slack


@pytest.mark.parametrize("family", problems.FAMILIES, ids=FAMILY_NAMES)
@pytest.mark.parametrize("penalty", problems.PENALTIES)
def test_random_problems_are_bracketed_by_the_certificate(family, penalty):
    problem = problems.make(2, family, penalty)
    control = Control(tol=1e-3, max_iter=200 if family.__name__ in HOPELESS else 60_000)
    solution = FBPD().solve(problem, None, control)
    oracle = oracles.solve(problem)
    slack = max(10 * oracle.accuracy, 1e-6 * abs(oracle.value), solution.floor)
    assert solution.dual_objective - slack <= oracle.value <= solution.objective + slack
    assert solution.converged or family.__name__ in HOPELESS


def test_two_classes_are_solved_with_one_vector():
    X, y = standardised(load_wine)
    problem = hinge_problem(X, (y == 1).astype(np.int32), "l1", alpha=0.02)
    solution = FBPD().solve(problem, None, Control(tol=1e-3, max_iter=20_000))
    assert solution.coef.shape == (1, 13) and solution.dual.shape == (178, 2)
    assert solution.converged
    assert solution.objective == pytest.approx(oracles.solve(problem).value, rel=1e-3)


def test_coefficients_are_exactly_sparse_and_intercepts_sum_to_zero():
    problem = hinge_problem(*standardised(load_wine), "l1", alpha=0.1)
    solution = FBPD().solve(problem, None, Control(tol=1e-4, max_iter=50_000))
    oracle = oracles.solve(problem)
    assert solution.converged
    assert np.count_nonzero(solution.coef) <= np.count_nonzero(np.abs(oracle.coef) > 1e-9) + 2
    assert abs(solution.intercept.sum()) <= 1e-14
    huge = replace(problem, alpha=1e3)
    assert not FBPD().solve(huge, None, Control(tol=1e-3, max_iter=5000)).coef.any()


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_storage_and_precision_do_not_matter(penalty):
    X, y = standardised(load_iris)
    X = X.astype(np.float32).astype(float)  # so that float32 holds the same numbers
    order = np.random.default_rng(0).permutation(y.size)
    back = np.argsort(order)
    forms = [X, np.asfortranarray(X), X.astype(np.float32), sp.csr_matrix(X), sp.csc_matrix(X)]
    designs = [make_design(form) for form in forms] + [make_design(X[order], rows=back)]
    base = hinge_problem(X, y, penalty)
    control = Control(tol=1e-3, max_iter=20_000)
    reference = FBPD().solve(base, None, control)
    for design in designs:
        solution = FBPD().solve(replace(base, design=design), None, control)
        assert solution.n_iter == reference.n_iter
        np.testing.assert_allclose(solution.coef, reference.coef, rtol=1e-6, atol=1e-9)


def test_the_answer_is_the_same_bit_for_bit_every_time():
    problem = problems.make(5)
    control = Control(tol=1e-3, max_iter=3000)
    one, two = (FBPD().solve(problem, None, control) for _ in range(2))
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.dual, two.dual)


# ---------------------------------------------------------------- stopping


def test_the_papers_rule_stops_at_the_first_small_change():
    problem = problems.make(0, penalty="l1/l2")
    tol = 1e-3
    solution = FBPD(stopping="change").solve(problem, None, Control(tol=tol, max_iter=10_000))
    X, (tau, sigma) = oracles.dense(problem), FBPD()._method(problem).steps
    x, n_iter, change = algorithm_1.start(problem), 0, np.inf
    while not change <= tol:
        last, x = x, algorithm_1.step(problem, X, x, tau, sigma)
        n_iter, change = n_iter + 1, algorithm_1.change(last, x)
    assert solution.n_iter == n_iter
    np.testing.assert_allclose(solution.coef, x.W.T, rtol=1e-6, atol=1e-9)
    assert solution.status == ("optimal" if solution.relative_gap <= tol else "stalled")


def test_the_papers_rule_does_not_take_the_start_for_the_end():
    problem = hinge_problem(*standardised(load_iris), "l1")
    control = Control(tol=1e-4, max_iter=20_000)
    solution = FBPD(stopping="change").solve(problem, None, control)
    assert solution.coef.any() and solution.n_iter > 10
    zero = FBPD(stopping="change").solve(replace(problem, alpha=1e3), None, control)
    assert zero.n_iter < 20_000 and not zero.coef.any()


def test_max_iter_is_kept_and_reported():
    problem = problems.make(0)
    for limit in (1, 7, 130):
        solution = FBPD().solve(problem, None, Control(tol=1e-12, max_iter=limit))
        assert (solution.n_iter, solution.status) == (limit, "max_iter")
        assert np.isfinite(solution.gap)


def test_a_solution_as_start_is_recognised_at_once():
    problem = hinge_problem(*standardised(load_iris), "l1/l2")
    control = Control(tol=1e-3, max_iter=20_000)
    first = FBPD().solve(problem, None, control)
    again = FBPD().solve(problem, Start(first.coef, first.intercept, first.dual), control)
    assert first.n_iter > 0 and again.n_iter == 0 and again.converged
    np.testing.assert_array_equal(again.coef, first.coef)
    without_dual = FBPD().solve(problem, Start(first.coef, first.intercept), control)
    assert without_dual.converged


def test_the_history_runs_forward_and_its_gap_never_grows():
    problem = hinge_problem(*standardised(load_iris), "l1")
    solution = FBPD(check_every=10).solve(problem, None, Control(tol=1e-3, max_iter=20_000))
    history = solution.history
    assert (np.diff(history.iteration) > 0).all() and history.iteration[-1] == solution.n_iter
    assert (np.diff(history.seconds) >= 0).all() and (np.diff(history.gap) <= 0).all()
    assert history.gap[-1] == pytest.approx(solution.gap, rel=1e-6)
    assert history.nonzeros[-1] == np.count_nonzero(solution.coef)


def test_verbose_prints_progress(capsys):
    FBPD().solve(problems.make(0), None, Control(tol=1e-3, max_iter=100, verbose=True))
    assert capsys.readouterr().out.startswith("fbpd: iteration")


# ---------------------------------------------------------------- manners


def test_what_it_cannot_solve_is_refused_in_a_sentence():
    problem = problems.make(0)
    ramp = replace(problem, loss=Ramp())
    with pytest.raises(ValueError, match="fbpd solves the hinge loss only"):
        resolve("fbpd", ramp, Control())
    capped = as_penalty("capped_l1").resolve(problem.d, problem.n_outputs, None)
    with pytest.raises(ValueError, match="fbpd needs a convex penalty"):
        resolve("fbpd", replace(problem, penalty=capped), Control())
    assert as_solver("fbpd") == FBPD()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stopping": "gab"}, "stopping must be one of 'gap', 'change', but 'gab'"),
        ({"ratio": 0.0}, "ratio must be positive"),
        ({"step_norm": "mean"}, "step_norm must be one of 'centred', 'paper', but 'mean'"),
        ({"tau": -1.0}, "tau must be positive"),
        ({"sigma": np.inf}, "sigma must be positive"),
        ({"sigma": 1.0, "ratio": 1.0}, "ratio and sigma were both given"),
        ({"check_every": 0}, "check_every must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
    ],
)
def test_bad_options_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        FBPD(**options).solve(problems.make(0), None, Control())


@pytest.mark.native
def test_wrong_sizes_are_named():
    problem = problems.make(0)
    method = FBPD()._method(problem)
    W, b, Y = method.last()
    with pytest.raises(ValueError, match=r"weights has shape .* but must have shape"):
        method.start(W[:-1], b, Y)
    with pytest.raises(ValueError, match=r"dual has shape .* but must have shape"):
        method.start(W, b, Y[:, :-1])


INTERRUPTED = """
import signal, sys, time
# What a shell starts in the background ignores Ctrl-C, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge
from sparsvm.penalties import L1
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import FBPD

rng = np.random.default_rng(0)
n, d, K = 2000, 300, 4
problem = Problem(
    design=make_design(rng.normal(size=(n, d))), y=rng.integers(0, K, n).astype(np.int32),
    mass=np.full(n, 1 / n), cost=Hinge().cost_matrix(K), n_classes=K, alpha=1e-3, loss=Hinge(),
    penalty=L1().resolve(d, K, None),
)
print("ready", flush=True)
try:
    FBPD(check_every=10**9).solve(problem, None, Control(tol=1e-15, max_iter=10**9))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_running_solve():
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)  # well inside the native loop
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        answer = process.stdout.readline()
        waited = time.perf_counter() - sent
        process.wait(10)
    assert answer == "interrupted\n"
    assert waited < 2.0  # 0.1 s as a rule; a loaded machine must not fail the test
