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
from reference import fbpd as twin
from reference import oracles
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import L1, GroupL2, GroupLinf, SparseGroup, as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import FBPD, as_solver, resolve
from sparsvm.solvers.papers.fbpd import step_sizes

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


def follow(problem, iterations, method=None):
    """Compare the native iterates, from those of ``method`` on, with the twin's, one by one."""
    X = oracles.dense(problem)
    tau, sigma = step_sizes(problem)
    x = twin.start(problem) if method is None else twin.Iterate(*method.last())
    method = method or FBPD()._method(problem)
    for _ in range(iterations):
        x = twin.step(problem, X, x, tau, sigma)
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


@pytest.mark.native
@pytest.mark.parametrize("classes", [*range(3, 14), 66, 75])
@pytest.mark.parametrize("features", [30, 70])
def test_iterates_with_many_samples_and_classes(classes, features):
    # More samples than are projected side by side, and sizes on both sides of every switch.
    rng = np.random.default_rng(classes)
    y = (np.arange(75) % classes).astype(np.int32)
    X = rng.normal(size=(75, features))
    follow(hinge_problem(X, y, "l1/linf", alpha=1e-3), iterations=6)


@pytest.mark.native
@pytest.mark.parametrize("even", [True, False])
def test_iterates_with_more_margins_than_are_kept_if_they_are_even(even):
    samples, features, classes = 1001, 5, 70
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, features))
    y = (X @ rng.normal(size=(features, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    problem = hinge_problem(X, y, "l1", alpha=1e-3)
    problem = replace(problem, margin_scale=rng.random(samples) + 0.5)
    if not even:
        cost = rng.random((classes, classes)) + 0.2
        np.fill_diagonal(cost, 0.0)
        problem = replace(problem, cost=cost)
    method = FBPD()._method(problem)
    follow(problem, 3, method)
    for _ in range(2):  # before and after samples at rest are put together
        method.run(60)
        follow(problem, 2, method)
        np.testing.assert_allclose(method.last()[2].sum(axis=1), problem.mass, rtol=1e-13)


@pytest.mark.native
@pytest.mark.parametrize("order", ["C", "F"])
def test_iterates_on_data_too_large_to_be_kept_in_blocks(order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2650, 200)).astype(np.float32, order=order)
    follow(hinge_problem(X, np.arange(2650, dtype=np.int32) % 3, "l1"), iterations=3)


@pytest.mark.native
@pytest.mark.parametrize(
    "shape", [(2650, 200), (150, 4000), (20, 5000)], ids=["tall", "both", "wide"]
)
@pytest.mark.parametrize("scalar", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_iterates_on_dense_rows_that_are_read_once(shape, scalar, classes):
    # By blocks of rows or of columns, through a row index, with masses and margins that differ.
    rng = np.random.default_rng(classes)
    n, d = shape
    X, order = rng.normal(size=shape).astype(scalar), rng.permutation(n)
    y = (X @ rng.normal(size=(d, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    mass = rng.random(n) + 0.1
    problem = replace(
        hinge_problem(X, y, "l1", alpha=1e-2),
        design=make_design(X[order], rows=np.argsort(order)),
        mass=mass / mass.sum(),
        margin_scale=rng.random(n) + 0.5,
    )
    one, two = FBPD()._method(problem), FBPD()._method(problem)
    follow(problem, 3, one)
    one.run(60)
    follow(problem, 3, one)
    two.start(*one.last())
    one.run(5)
    two.run(5)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("classes", [2, 3, 6, 8, 9, 14, 26])
@pytest.mark.parametrize("samples", [40, 75])
def test_projections_that_start_from_the_last_are_exact(classes, samples):
    # On the way thresholds move little or much, and entries come and go.
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(samples, 5))
    y = (X @ rng.normal(size=(5, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    problem = hinge_problem(X, y, "l1", alpha=1e-4)
    method = FBPD()._method(problem)
    for _ in range(6):
        method.run(50)
        follow(problem, 2, method)
        _, _, Y = method.last()
        assert Y.min() >= 0.0
        np.testing.assert_allclose(Y.sum(axis=1), problem.mass, rtol=1e-13)


def resting_problem(samples, features, classes, order="C"):
    """Labels that the features explain, so that most samples come to lie beyond their margins."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(samples, features))
    X = (
        sp.csr_array(X * (rng.random(X.shape) < 0.2))
        if order == "csr"
        else np.asarray(X, order=order)
    )
    y = (X @ rng.normal(size=(features, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    mass = rng.random(samples) + 0.1
    problem = hinge_problem(X, y, "l1", alpha=1e-4)
    return replace(problem, mass=mass / mass.sum(), margin_scale=rng.random(samples) + 0.5)


@pytest.mark.native
@pytest.mark.parametrize(
    ("samples", "features", "classes", "order"),
    [
        (203, 4, 3, "C"),
        (120, 6, 9, "F"),
        (101, 16, 26, "C"),
        (270, 5, 30, "C"),
        (900, 40, 100, "C"),
        (203, 20, 5, "csr"),
        (203, 20, 21, "csr"),
        (270, 20, 37, "csr"),
        (600, 20, 60, "csr"),
        (2640, 200, 4, "C"),
        (2640, 200, 4, "F"),
    ],
)
def test_samples_at_rest_are_left_out_only_while_they_stay(samples, features, classes, order):
    # They are put together after 32, 64, 128, ... iterations; many wake and come to rest again.
    problem = resting_problem(samples, features, classes, order)
    method = FBPD()._method(problem)
    asleep, woken = np.zeros(samples, dtype=bool), 0
    for iterations in [30, 40, 26, 33, 40, 90]:
        method.run(iterations)
        follow(problem, 1 if samples > 1000 else 3, method)
        Y = method.last()[2]
        now = Y[np.arange(samples), problem.y] == problem.mass
        woken += np.count_nonzero(asleep & ~now)
        asleep = now
    assert asleep.mean() > 0.1
    assert woken > 0


@pytest.mark.native
@pytest.mark.parametrize("classes", [129, 300])
def test_iterates_on_dense_rows_of_many_classes(classes):
    problem = resting_problem(classes + 30, 5, classes)
    method = FBPD()._method(problem)
    follow(problem, 2, method)
    method.run(70)
    follow(problem, 2, method)


@pytest.mark.native
@pytest.mark.parametrize(("features", "classes"), [(4, 4), (4, 16), (4, 40), (150, 4)])
def test_means_and_starts_do_not_mind_the_samples_order(features, classes):
    problem = resting_problem(203 if features == 4 else 3600, features, classes)
    one, two = FBPD()._method(problem), FBPD()._method(problem)
    one.run(20)
    one.forget()
    collected = []
    for iteration in range(21, 141):
        one.run(1)
        if iteration % 4 == 0:
            collected.append(one.last())
    for got, expected in zip(one.mean(), zip(*collected, strict=True), strict=True):
        np.testing.assert_allclose(got, np.mean(expected, axis=0), rtol=1e-12, atol=1e-15)
    two.start(*one.last())
    one.start(*one.last())  # where samples at rest are together, which are on their way again
    one.run(20)
    two.run(20)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def sparse_problem(classes, scalar=np.float64, samples=150, features=40, weighted=True):
    """Rows of none to many entries, masses and margins that differ, most features of no use."""
    rng = np.random.default_rng(classes)
    X = sp.random_array((samples, features), density=0.15, format="csr", rng=rng, dtype=scalar)
    X = sp.diags_array(~np.isin(np.arange(samples), [0, 7, samples - 1]), dtype=scalar) @ X
    X.eliminate_zeros()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y = (X @ rng.normal(size=(features, classes))).argmax(axis=1).astype(np.int32)
    y[:classes] = np.arange(classes)
    problem = hinge_problem(X, y, "l1", alpha=1e-3)
    if not weighted:
        return problem
    mass = rng.random(samples) + 0.1
    scale = rng.random(samples) + 0.5
    return replace(problem, mass=mass / mass.sum(), margin_scale=scale)


@pytest.mark.native
@pytest.mark.parametrize(
    "classes",
    [*range(2, 14), 16, 17, 20, 23, 26, 29, 32, 33, 36, 47, 64, 66, 86, 100, 127, 128, 129, 130],
)
@pytest.mark.parametrize("scalar", [np.float32, np.float64])
def test_iterates_on_compressed_rows(classes, scalar):
    # Two storages, passed over once: rows for both products and the dual step, columns for both
    # products and the primal one. Rows of classes fill registers or leave lanes free, stay in them
    # or not, and are too long for them.
    rows = sparse_problem(classes, scalar, weighted=classes % 2 == 1)
    columns = replace(rows, design=make_design(sp.csc_array(oracles.dense(rows).astype(scalar))))
    for problem in (rows, columns):
        method = FBPD()._method(problem)
        follow(problem, 3, method)
        for _ in range(2):
            method.run(60)
            follow(problem, 2, method)
            _, _, Y = method.last()
            assert Y.min() >= 0.0
            np.testing.assert_allclose(Y.sum(axis=1), problem.mass, rtol=1e-13)


@pytest.mark.native
@pytest.mark.parametrize("classes", [3, 8, 26, 40, 100])
def test_iterates_on_compressed_rows_without_weights(classes):
    # With this alpha no feature comes in. What is read of weights that nobody wrote shows in the
    # sanitized build, where fresh memory holds no numbers.
    follow(replace(sparse_problem(classes), alpha=1e3), 3)


@pytest.mark.native
@pytest.mark.parametrize("classes", [2, 3, 5, 9, 26, 40])
@pytest.mark.parametrize("store", [sp.csr_array, sp.csc_array, np.asarray])
def test_samples_without_mass_have_no_dual_to_move(classes, store):
    problem = sparse_problem(classes)
    mass = problem.mass.copy()
    mass[5:60:7] = 0.0
    X = store(oracles.dense(problem))
    problem = replace(problem, design=make_design(X), mass=mass)
    method = FBPD()._method(problem)
    follow(problem, 3, method)
    method.run(60)
    follow(problem, 3, method)
    assert not method.last()[2][mass == 0.0].any()


@pytest.mark.native
@pytest.mark.parametrize("classes", [3, 4, 7, 10, 16, 19, 26, 31, 40, 130])
@pytest.mark.parametrize("weighted", [False, True])
def test_iterates_on_compressed_rows_with_costs_of_each_pair(classes, weighted):
    problem = sparse_problem(classes, weighted=weighted)
    cost = np.random.default_rng(0).random((classes, classes)) + 0.2
    np.fill_diagonal(cost, 0.0)
    problem = replace(problem, cost=cost)
    method = FBPD()._method(problem)
    follow(problem, 3, method)
    method.run(60)
    follow(problem, 2, method)


@pytest.mark.native
@pytest.mark.parametrize(
    "penalty",
    [L1(), GroupL2(), GroupLinf(groups=7, per_class=True), SparseGroup(groups=np.arange(1100) % 9)],
    ids=["l1", "rows", "blocks", "scattered groups"],
)
def test_iterates_on_columns_that_are_taken_in_several_pieces(penalty):
    problem = sparse_problem(66, samples=70, features=1100)
    tilt = np.random.default_rng(0).normal(size=(66, 1100)) / 10
    columns = make_design(sp.csc_array(oracles.dense(problem)))
    follow(replace(problem, design=columns, penalty=penalty.resolve(1100, 66, None), tilt=tilt), 2)


@pytest.mark.native
@pytest.mark.parametrize("classes", [2, 9])
def test_iterates_on_rows_with_more_weights_than_scores(classes):
    # So many that fbpd has a companion by columns made.
    features = (1 << 16) // (1 if classes == 2 else classes) + 1
    rng = np.random.default_rng(classes)
    X = sp.random_array((10, features), density=40 / features, format="csr", rng=rng)
    problem = hinge_problem(X, np.arange(10, dtype=np.int32) % classes, "l1", alpha=1e-3)
    method = FBPD()._method(problem)
    assert problem.design.companion_bytes > 0
    follow(problem, 2, method)


@pytest.mark.native
@pytest.mark.parametrize("classes", [3, 6, 40])
def test_rows_in_another_order_give_the_same_bits(classes):
    problem = sparse_problem(classes)
    X = sp.csr_array(oracles.dense(problem))
    order = np.random.default_rng(1).permutation(X.shape[0])
    shuffled = replace(problem, design=make_design(X[order], rows=np.argsort(order)))
    one, two = FBPD()._method(problem), FBPD()._method(shuffled)
    one.run(30)
    two.run(30)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.native
@pytest.mark.parametrize("classes", [3, 6, 10, 40])
def test_a_start_on_compressed_rows_goes_on_where_the_last_run_was(classes):
    problem = sparse_problem(classes)
    one, two = FBPD()._method(problem), FBPD()._method(problem)
    one.run(50)
    two.start(*one.last())
    one.run(5)
    two.run(5)
    for a, b in zip(one.last(), two.last(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("classes", [3, 5, 10, 40])
def test_samples_beyond_their_margins_rest_exactly(classes):
    # Products skip rows of zeros, so a true class must have its mass to the last bit.
    problem = sparse_problem(classes, samples=200)
    method = FBPD()._method(problem)
    method.run(3000)
    W, b, Y = method.last()
    scores = oracles.dense(problem) @ W + b
    true = (np.arange(problem.n), problem.y)
    margins = problem.margin_scale[:, None] * problem.cost[problem.y]
    slack = scores[true][:, None] - scores - margins
    slack[true] = np.inf
    beyond = slack.min(axis=1) > 0.1
    assert beyond.any()
    np.testing.assert_array_equal(Y[true][beyond], problem.mass[beyond])


@pytest.mark.native
@pytest.mark.parametrize("compressed", [None, 3, 6, 10, 26, 40])
def test_the_mean_is_that_of_every_fourth_iterate_in_the_window(compressed):
    method = FBPD()._method(sparse_problem(compressed) if compressed else problems.make(1))
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
    assert _core.operator_norm(make_design(np.zeros((3, 2))), False) == 0.0


def test_step_sizes_fill_the_bound_and_keep_the_ratio():
    for seed in range(4):
        problem = problems.make(seed)
        X = np.hstack([oracles.dense(problem), np.ones((problem.n, 1))])
        outputs = np.eye(problem.n_outputs) if problem.n_classes > 2 else np.array([[0.0], [1.0]])
        centred = outputs - outputs.mean(axis=0)
        norm = np.linalg.norm(X, 2) * np.linalg.norm(centred, 2)
        tau, sigma = step_sizes(problem, ratio=7.0)
        assert tau / sigma == pytest.approx(7.0)
        assert 0.97 <= tau * sigma * norm**2 <= 1.0 + 1e-12


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
    X, (tau, sigma) = oracles.dense(problem), step_sizes(problem)
    x, n_iter, change = twin.start(problem), 0, np.inf
    while not change <= tol:
        last, x = x, twin.step(problem, X, x, tau, sigma)
        n_iter, change = n_iter + 1, twin.change(last, x)
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
import sys, time
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
