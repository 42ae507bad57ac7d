"""Block coordinate descent against its equations, written out in NumPy, and against cones."""

import numpy as np
import pytest

import problems
from reference import oracles, smooth
from reference.bcd import CyclicDescent
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import BCD
from sparsvm.solvers.run.native import smooth_problem

pytestmark = pytest.mark.native

VARIANTS = [
    BCD(),
    BCD(shrinking=True),
    BCD(step="CST"),
    BCD(step="CST", selection="cyclic", shrinking=True),
    BCD(selection="random", shrinking=True),
]
EASY = [
    problems.plain,
    problems.lonely_class,
    problems.sample_weights,
    problems.sample_margins,
    problems.cost_matrix,
    problems.linear_terms,
    problems.sparse_rows,
    problems.free_features,
]


def described(solver):
    return str(solver)


def rows_problem(loss, seed=3, family=problems.plain):
    """A problem with l1/l2 on rows, the paper's own penalty."""
    from dataclasses import replace

    from sparsvm.penalties import GroupL2

    problem = problems.make(seed, family, "l1", loss)
    return replace(
        problem, penalty=GroupL2().resolve(problem.d, problem.n_outputs), linear_term=None
    )


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_constant_steps_follow_the_paper_for_every_penalty(loss):
    rng = np.random.default_rng(0)
    for seed in range(8):
        problem = problems.make(seed, problems.cost_matrix, None, loss)
        method = BCD(step="CST", selection="cyclic")._method(problem, 0)
        reference, terms = CyclicDescent(problem), problem.penalty
        reference.W = 0.5 * rng.standard_normal((problem.n_outputs, problem.d))
        reference.b = rng.standard_normal(problem.n_outputs) * problem.fit_intercept
        method.start(np.ascontiguousarray(reference.W.T), reference.b)
        method.run(1)
        factor = smooth_problem(problem).curvature_bound
        single = terms.n_groups == problem.d
        groups = np.arange(problem.d) if single else terms.groups
        for block in range(groups.max() + 1):
            members = np.flatnonzero(groups == block)
            X = reference.X[:, members]
            L = factor * np.sum(problem.mass @ X**2)
            target = reference.W.copy()
            target[:, members] -= np.column_stack([reference.derivatives(x)[0] for x in X.T]) / L
            target = terms.prox(target, problem.alpha / L)
            reference.W[:, members] = target[:, members]
        if problem.fit_intercept:
            reference.b = reference.b - reference.derivatives(np.ones(problem.n))[0] / factor
        weights, b = method.last()
        np.testing.assert_allclose(weights.T, reference.W, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(b, reference.b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_the_paper_s_constants_bound_the_curvature(loss):
    problem = rows_problem(loss)
    K, X = problem.n_classes, oracles.dense(problem)
    assert K > 2
    factor = {"squared_hinge": 4 * (K - 1), "logistic": 0.5, "ovr_squared_hinge": 2}[loss]
    constants = factor * np.mean(X**2, axis=0)
    rng = np.random.default_rng(1)
    reference = CyclicDescent(problem)
    for _ in range(20):
        reference.W = rng.standard_normal(reference.W.shape)
        j = int(rng.integers(problem.d))
        first, _ = reference.derivatives(X[:, j])
        move = rng.standard_normal(problem.n_outputs)
        reference.W[:, j] += move
        second, _ = reference.derivatives(X[:, j])
        assert np.linalg.norm(second - first) <= constants[j] * np.linalg.norm(move)


@pytest.mark.parametrize(
    "family, seed",
    [
        (problems.plain, 3),
        (problems.no_intercept, 3),
        (problems.cost_matrix, 3),
        (problems.sample_margins, 5),
    ],
)
@pytest.mark.parametrize("loss", problems.SMOOTH_LOSSES)
def test_cyclic_descent_follows_the_paper(loss, family, seed):
    problem = rows_problem(loss, seed, family)
    assert problem.n_classes > 2
    method, reference = BCD()._method(problem, 0), CyclicDescent(problem)
    for _ in range(6):
        method.run(1)
        violations = reference.run()
        weights, b = method.last()
        np.testing.assert_allclose(weights.T, reference.W, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(b, reference.b, rtol=1e-8, atol=1e-11)
        assert method.violation == pytest.approx((violations.sum(), violations.max()), rel=1e-7)
        assert method.searches == (reference.searches, reference.first_steps)


def test_line_searches_are_counted_in_the_history():
    problem = rows_problem("squared_hinge")
    searched = BCD(sigma=0.9).solve(problem, None, Control(tol=1e-4)).history.counts
    assert searched["line_searches"] > searched["first_steps"] > 0
    constant = BCD(step="CST").solve(problem, None, Control(tol=1e-2)).history.counts
    assert constant == {"line_searches": 0, "first_steps": 0}


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_stopping_rule_ends_at_the_paper_s_iteration(norm):
    problem, tau = rows_problem("squared_hinge"), 1e-2
    reference, sizes = CyclicDescent(problem), []
    while len(sizes) < 2 or sizes[-1] >= tau * sizes[0]:
        violations = reference.run()
        sizes.append(violations.sum() if norm == "l1" else violations.max())
    solution = BCD(stopping="violation", norm=norm).solve(problem, None, Control(tol=tau))
    assert solution.n_iter == len(sizes)
    np.testing.assert_allclose(solution.coef, reference.W, rtol=1e-6, atol=1e-9)
    assert solution.status == ("optimal" if solution.relative_gap <= tau else "stalled")


@pytest.mark.parametrize("solver", VARIANTS, ids=described)
def test_objective_equals_the_oracle(solver):
    for index, family in enumerate(EASY):
        loss = problems.SMOOTH_LOSSES[index % 3]
        problem = problems.make(2 + index, family, None, loss)
        oracle = smooth.solve(problem)
        # Constant steps are an order of magnitude slower.
        tol = 1e-3 if solver.step == "LS" else 1e-2
        solution = solver.solve(problem, None, Control(tol=tol, max_iter=100_000))
        assert solution.status == "optimal", family.__name__
        assert solution.objective >= oracle.value - oracle.accuracy
        # The tolerance is relative to the objective reached.
        assert solution.objective - oracle.value <= tol * abs(solution.objective) + oracle.accuracy


@pytest.mark.parametrize("step", ["LS", "CST"])
def test_shrinking_leaves_blocks_out_and_does_not_change_the_answer(step):
    rng = np.random.default_rng(2)
    problem = rows_problem("squared_hinge", 1)
    shrunken = False
    for seed in range(3):
        problem = many_features(rng, seed)
        # Blocks drawn among those that are left are others than those drawn among all.
        whole, some = (
            BCD(step=step, selection="random", shrinking=shrinking)._method(problem, 0)
            for shrinking in (False, True)
        )
        whole.run(12), some.run(12)
        shrunken |= not np.array_equal(whole.last()[0], some.last()[0])
        tight = Control(tol=1e-7)
        plain = BCD(step=step).solve(problem, None, tight)
        shrinking = BCD(step=step, shrinking=True).solve(problem, None, tight)
        assert plain.status == shrinking.status == "optimal"
        assert shrinking.objective == pytest.approx(plain.objective, rel=2e-7)
        np.testing.assert_array_equal(
            np.any(plain.coef != 0.0, axis=0), np.any(shrinking.coef != 0.0, axis=0)
        )
        rule = BCD(step=step, shrinking=True, stopping="violation", norm="l1")
        stopped = rule.solve(problem, None, Control(tol=1e-5))
        assert stopped.objective == pytest.approx(plain.objective, rel=1e-4)
    assert shrunken


def many_features(rng, seed):
    from sparsvm.data.design import make_design
    from sparsvm.losses import SquaredHinge
    from sparsvm.penalties import GroupL2
    from sparsvm.problem.problem import Problem

    n, d, K = 60, 200, 3
    y = (np.arange(n) % K).astype(np.int32)
    X = rng.standard_normal((n, d))
    X[:, :K] += 2.0 * np.eye(K)[y]
    loss = SquaredHinge()
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(n, 1.0 / n),
        cost=loss.cost_matrix(K),
        n_classes=K,
        alpha=0.4,
        loss=loss,
        penalty=GroupL2().resolve(d, K),
        fit_intercept=seed != 1,
    )


def test_random_blocks_depend_on_the_seed_alone():
    problem = rows_problem("logistic")
    solver = BCD(step="CST")
    runs = [
        solver.solve(problem, None, Control(max_iter=7, random_state=seed)) for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].coef, runs[1].coef)
    assert np.any(runs[0].coef != runs[2].coef)


def test_start_at_the_solution_needs_no_iteration():
    problem = rows_problem("logistic")
    first = BCD().solve(problem, None, Control(tol=1e-6))
    again = BCD().solve(problem, Start(first.coef, first.intercept), Control(tol=1e-5))
    assert again.n_iter == 0
    assert again.status == "optimal"


def test_objective_never_rises():
    for loss in problems.SMOOTH_LOSSES:
        problem = problems.make(4, problems.duplicates, None, loss)
        for solver in VARIANTS:
            method, last = solver._method(problem, 0), np.inf
            for _ in range(15):
                method.run(1)
                weights, b = method.last()
                value = problem.objective(weights.T, b)
                assert value <= last * (1.0 + 1e-13)
                last = value


def test_what_cannot_be_solved_is_said_in_a_sentence():
    assert "bcd needs a smooth loss" in BCD().unsupported(problems.make(0))


@pytest.mark.parametrize(
    "solver, sentence",
    [
        (BCD(step="fast"), "step must be one of 'LS', 'CST'"),
        (BCD(selection="greedy"), "selection must be one of None, 'cyclic', 'random'"),
        (BCD(norm="l2"), "norm must be one of None, 'l1', 'linf'"),
        (BCD(stopping="change"), "stopping must be one of 'gap', 'violation'"),
        (BCD(sigma=1.0), "sigma must lie strictly between 0 and 1"),
        (BCD(omega=0.0), "omega must lie strictly between 0 and 1"),
        (BCD(epsilon=0.0), "epsilon must lie strictly between 0"),
        (BCD(max_iter=0), "max_iter must be at least 1"),
    ],
)
def test_bad_options_are_refused(solver, sentence):
    with pytest.raises(ValueError, match=sentence):
        solver.solve(rows_problem("logistic"), None, Control())


def test_shrinking_survives_reports():
    # Many short runs, with a certificate after each, are one long run to the last bit.
    for seed in range(4):
        problem = rows_problem("squared_hinge", seed)
        problem = problem.with_alpha(3.0 * problem.alpha)
        long, short = (BCD(shrinking=True)._method(problem, 0) for _ in range(2))
        long.run(12)
        for _ in range(12):
            short.run(1)
        for one, many in zip(long.last(), short.last(), strict=True):
            np.testing.assert_array_equal(one, many)
