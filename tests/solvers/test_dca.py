"""Difference-of-convex-functions algorithm: tangents, descent, critical points, oracles."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import hinge_cases as cases
from reference import dc_programs
from sparsvm import SparseSVC
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import (
    L0,
    L1,
    L2,
    CappedL1,
    ElasticNet,
    GroupL2,
    GroupLinf,
    SparseGroup,
)
from sparsvm.problem.linearise import convex_relative, finite, tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt, Control, Start
from sparsvm.solvers import DCA, FBPD, InteriorPoint, Solver, resolve
from sparsvm.solvers.chain import Chain, Stage

# The non-convex objectives for two classes: loss, penalty.
OBJECTIVES = {
    "ZeroNormSVM": (Hinge(), L0()),
    "CapOneNormSVM": (Hinge(), CappedL1()),
    "RLSVM2": (Ramp(), L2()),
    "RLSVM1": (Ramp(), L1()),
    "RLSVM0": (Ramp(), L0()),
    "RLSVMC1": (Ramp(), CappedL1()),
}
LINEAR = [name for name in OBJECTIVES if name != "RLSVM2"]


class Spy(Solver):
    """The interior point, keeping every problem it was given and what it answered."""

    name = "spy"

    def __init__(self, word=False):
        self.word = word
        self.seen = []

    def unsupported(self, problem):
        return InteriorPoint().unsupported(problem)

    def solve(self, problem, start, control):
        solution = InteriorPoint().solve(problem, start, control)
        self.seen.append((problem, start, solution))
        return solution

    def attempt(self, problem, start, control):
        found = InteriorPoint().attempt(problem, start, control) if self.word else None
        if found is not None:
            self.seen.append((problem, start, found))
        return found


def build(X, y, loss, penalty, alpha, weight=None, **options):
    y = np.asarray(y, dtype=np.int32)
    K = int(y.max()) + 1
    weight = np.ones(y.size) if weight is None else weight
    return Problem(
        design=cases.make_design(X),
        y=y,
        mass=weight / weight.sum(),
        cost=loss.cost_matrix(K),
        n_classes=K,
        alpha=alpha,
        loss=loss,
        penalty=penalty.resolve(X.shape[1], 1 if K == 2 else K, None),
        **options,
    )


def solve(problem, tol=1e-6, start=None, **options):
    return DCA(**options).solve(problem, start, Control(tol=tol))


def random_problem(seed, n_classes=None, penalty=None, mu=None):
    """Overlapping classes with weights, margins of every kind, and sometimes no intercept."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5)) if n_classes is None else n_classes
    n, d = int(rng.integers(15, 40)), int(rng.integers(3, 12))
    X, y = cases.gaussian(seed, n, d, K, apart=0.7)
    margin = rng.uniform(0.3, 2.0, (K, K)) * (1 - np.eye(K)) if seed % 3 == 0 else 1.0
    mu = float(rng.choice([0.3, 0.7, 1.0])) if mu is None else mu
    loss = Ramp(mu=mu, margin=margin) if seed % 4 else Hinge(margin=margin)
    weights = rng.uniform(0.5, 2.0, d) if seed % 5 == 0 else None
    if penalty is None:
        penalty = [L0(weights=weights), CappedL1(cap=0.4, weights=weights)][seed % 2]
    return X, build(
        X,
        y,
        loss,
        penalty,
        alpha=float(10.0 ** rng.uniform(-2.5, -1)),
        weight=rng.uniform(0.2, 3.0, n) if seed % 2 else None,
        margin_scale=rng.exponential(size=n) if seed % 7 == 0 else None,
        fit_intercept=bool(seed % 6),
    )


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return cases.standardised(X)[::2], y[::2]


# ---------------------------------------------------------------- tangents


GROUPED = [
    L0(),
    CappedL1(cap=0.5),
    L0(sharpness=2.0, groups=3),
    CappedL1(cap=0.7, groups=3),
    L0(groups=2, per_class=True),
    CappedL1(groups=[0, 1, 0, 2, 1, 2, 0], weights=[1.0, 2.0, 0.5, 0.0, 1.0, 3.0, 0.1]),
]


@pytest.mark.parametrize("penalty", [*GROUPED, L1(), L2()], ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_tangent_problem_touches_the_objective_and_lies_above_it(penalty, n_classes):
    rng = np.random.default_rng(0)
    X, y = cases.gaussian(1, 30, 7, n_classes)
    cost = rng.uniform(0.2, 2.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    problem = build(X, y, Ramp(mu=0.6, margin=cost), penalty, 0.05, weight=rng.uniform(1, 2, 30))
    shape = (problem.n_outputs, 7)
    for _ in range(20):
        W, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
        touching = tangent(problem, W, b)
        assert touching.problem.convex
        here = problem.objective(W, b)
        assert touching.problem.objective(W, b) == pytest.approx(touching.scale * here, abs=1e-12)
        for _ in range(20):
            step = 10.0 ** rng.uniform(-3, 1)
            U = W + step * rng.standard_normal(shape)
            c = b + step * rng.standard_normal(shape[0])
            above = touching.problem.objective(U, c) / touching.scale
            assert above >= problem.objective(U, c) - 1e-12


def test_a_sample_on_the_kink_of_the_ramp_is_not_given_up():
    scores, y = np.array([[0.0, 1.0], [0.0, 1.0 + 1e-6]]), np.zeros(2, dtype=np.int32)
    margins = Hinge().cost_matrix(2)[y]
    labels, shifted, constants = Ramp().majorant(scores, y, margins)
    np.testing.assert_array_equal(labels, [0, 1])
    np.testing.assert_array_equal(shifted, [[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_array_equal(constants, [0.0, 2.0])


def test_the_start_is_the_ordinary_machine_with_the_same_alpha():
    X, y = cases.gaussian(0, 30, 6, 3)
    relative = convex_relative(build(X, y, Ramp(mu=0.4), L0(), 0.1))
    same = build(X, y, Hinge(), L1(), 0.1)
    W, b = np.arange(18.0).reshape(3, 6), np.arange(3.0)
    assert relative.convex
    assert relative.objective(W, b) == same.objective(W, b)


# ---------------------------------------------------------------- oracles


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("mu", [1.0, 0.4])
@pytest.mark.parametrize("word", [True, False])
def test_every_iterate_for_two_classes_solves_the_linear_program_of_the_paper(name, mu, word):
    loss, penalty = OBJECTIVES[name]
    is_ramp = isinstance(loss, Ramp)
    options = {
        "mu": mu if is_ramp else None,
        "kind": penalty.name,
        "a": penalty.resolve(1, 1).shape,
    }
    for seed, (n, d, lam) in enumerate([(60, 8, 1.0), (40, 30, 0.3), (80, 4, 3.0)]):
        X, y = cases.gaussian(seed, n, d, 2, apart=0.4)
        labels = 2.0 * y - 1.0
        problem = build(X, y, Ramp(mu=mu) if is_ramp else loss, penalty, lam / n)
        spy = Spy(word)
        solution = solve(problem, solver=spy)
        assert solution.status == "optimal"
        # The convex start, then one problem a step, less the last one where it was solved before.
        assert len(spy.seen) in (solution.n_iter, solution.n_iter + 1)
        for touching, start, inner in spy.seen[1:]:
            w, b = start.coef[0], start.intercept[0]
            value = dc_programs.binary_step(X, labels, w, b, lam, **options)
            scale = n / (mu if is_ramp else 1.0)
            found = touching.objective(inner.coef, inner.intercept)
            assert scale * found == pytest.approx(value, abs=1e-6 * n)
            here = dc_programs.binary_objective(X, labels, w, b, lam, **options)
            assert scale * touching.objective(start.coef, start.intercept) == pytest.approx(here)
        w, b = solution.coef[0], solution.intercept[0]
        final = dc_programs.binary_objective(X, labels, w, b, lam, **options)
        assert n * solution.objective == pytest.approx(final, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("word", [True, False])
def test_every_iterate_for_many_classes_solves_its_linear_program(seed, word):
    X, problem = random_problem(seed)
    spy = Spy(word)
    solution = solve(problem, solver=spy)
    assert solution.status == "optimal"
    scale = problem.loss.mu if problem.loss.name == "ramp" else 1.0
    for touching, start, inner in spy.seen[1:]:
        value = dc_programs.step(problem, start.coef, start.intercept, X)
        found = touching.objective(inner.coef, inner.intercept)
        assert found / scale == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("seed", [43, 51, 53, 55, 57])
def test_a_dual_across_the_edge_of_the_linear_term_by_rounding_still_proves_the_optimum(seed):
    X, problem = random_problem(seed)
    scale = problem.loss.mu if problem.loss.name == "ramp" else 1.0
    spy, rng = Spy(), np.random.default_rng(seed)
    solve(problem, solver=spy)
    with_terms = [case for case in spy.seen if case[0].linear_term is not None]
    assert any(np.any(np.abs(q.linear_term) >= q.penalty.omega) for q, _, _ in with_terms)
    for touching, start, inner in with_terms:
        noise = 1.0 + 1e-11 * rng.standard_normal(inner.dual.shape)
        proof = certify(touching, inner.coef, inner.intercept, inner.dual * noise)
        # Coefficients that cost nothing may be millions, and then the objective has few digits.
        assert proof.dual_objective <= inner.objective + max(1e-12, inner.floor)
        optimum = scale * dc_programs.step(problem, start.coef, start.intercept, X)
        assert proof.dual_objective <= optimum + 1e-9
        assert proof.gap <= inner.gap + 1e-8 * abs(inner.objective)


# ---------------------------------------------------------------- descent and critical points


def check_descent(problem, solution, tol):
    history = solution.history
    assert solution.status == "optimal", (solution.criticality, solution.objective)
    assert np.isnan([solution.gap, solution.relative_gap, solution.dual_objective]).all()
    np.testing.assert_array_equal(history.iteration, np.arange(history.iteration.size))
    assert (np.diff(history.objective) <= 0.0).all()
    assert history.objective[-1] == solution.objective
    assert solution.objective == problem.objective(solution.coef, solution.intercept)
    touching = tangent(problem, solution.coef, solution.intercept)
    convex = touching.problem
    best = InteriorPoint().solve(convex, None, Control(tol=1e-8))
    residual = convex.objective(solution.coef, solution.intercept) - best.dual_objective
    assert residual / touching.scale <= solution.criticality + 1e-6 * abs(solution.objective)
    assert solution.criticality <= max(tol * abs(solution.objective), solution.floor)


@pytest.mark.parametrize("seed", range(30, 50))
def test_the_objective_falls_to_a_point_that_its_own_tangent_cannot_improve(seed):
    _, problem = random_problem(seed)
    solution = solve(problem)
    assert finite(problem)
    check_descent(problem, solution, 1e-6)
    assert solution.n_iter <= 40


@pytest.mark.parametrize("penalty", GROUPED[2:], ids=str)
@pytest.mark.parametrize("loss", [Hinge(), Ramp(mu=0.8)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_group_forms_reach_critical_points(penalty, loss, n_classes):
    X, y = cases.gaussian(3, 40, 7, n_classes, apart=0.6)
    problem = build(X, y, loss, penalty, 0.02)
    check_descent(problem, solve(problem, tol=1e-4), 1e-4)


@pytest.mark.parametrize(
    "penalty",
    [L1(), L2(), ElasticNet(), GroupL2(groups=2), GroupLinf(), SparseGroup(groups=2)],
    ids=str,
)
def test_the_ramp_with_every_convex_penalty_comes_to_rest(penalty):
    for seed, n_classes in enumerate([2, 3, 5]):
        X, y = cases.gaussian(seed, 50, 6, n_classes, apart=0.5)
        problem = build(X, y, Ramp(), penalty, 0.02)
        solution = solve(problem)
        assert finite(problem)
        check_descent(problem, solution, 1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine, load_iris])
def test_real_data_need_a_few_tens_of_iterations_at_most(name, data):
    X, y = data(return_X_y=True)
    loss, penalty = OBJECTIVES[name]
    for alpha in (0.1, 0.01):
        problem = build(cases.standardised(X)[::3], y[::3], loss, penalty, alpha)
        solution = solve(problem)
        assert solution.status == "optimal"
        assert solution.n_iter <= 30


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_small_problems_reach_critical_points(part):
    failed = []
    for seed in range(1000 + part, 1200, 4):
        _, problem = random_problem(seed)
        solution = solve(problem)
        if not solution.converged:
            failed.append((seed, solution.status, solution.criticality / solution.objective))
    assert not failed


def test_a_class_that_the_ramp_gives_up_altogether_leaves_a_solvable_problem():
    X, y = cases.gaussian(0, 40, 5, 3)
    y[:] = np.minimum(y, 1)
    y[:2] = 2
    problem = build(X, y, Ramp(), L1(), 0.05)
    # Far below the others in every sample, class 2 is given up at the start.
    start = Start(np.zeros((3, 5)), np.array([0.0, 0.0, -9.0]))
    first = tangent(problem, start.coef, start.intercept).problem
    assert np.count_nonzero(first.y == 2) == 0
    solution = solve(problem, start=start)
    check_descent(problem, solution, 1e-6)


def test_more_starts_are_never_worse_and_sometimes_better():
    better = 0
    for seed in range(50, 60):
        _, problem = random_problem(seed)
        one, five = solve(problem), solve(problem, starts=5)
        assert five.objective <= one.objective
        better += five.objective < one.objective * (1.0 - 1e-6)
    assert better > 0


def test_restarts_leave_the_zeros_at_which_one_start_of_a_ramp_rests():
    # A quarter of the samples, two of them far off: the 1-norm machine gives them all up.
    rng = np.random.default_rng(1)
    y = (np.arange(40) < 10).astype(int)
    X = rng.standard_normal((40, 6))
    X[:, 0] += 2.0 * y
    X[:2, 0] -= 6.0
    with pytest.warns(UserWarning, match="Every weight is zero"):
        once = SparseSVC("ramp", "l1", alpha=0.05).fit(X, y)
    twice = SparseSVC("ramp", "l1", alpha=0.05, solver=DCA(starts=2)).fit(X, y)
    assert once.result_.converged
    assert twice.result_.converged
    assert once.objective_ == pytest.approx(0.5)
    assert twice.objective_ < 0.4
    assert twice.selected_features_.size > 0


class Boaster(InteriorPoint):
    """Takes the model of zeros for the solution of everything; its certificates are honest."""

    def attempt(self, problem, start, control):
        zero = np.zeros((problem.n_outputs, problem.d))
        return Attempt(zero, np.zeros(problem.n_outputs), np.zeros((problem.n, 2)), np.inf)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_solver_that_vouches_for_too_much_is_overruled_by_certificates(cancer, name):
    loss, penalty = OBJECTIVES[name]
    problem = build(*cancer, loss, penalty, 0.01)
    honest = DCA(solver=InteriorPoint()).solve(problem, None, Control())
    found = DCA(solver=Boaster()).solve(problem, None, Control())
    assert honest.converged
    assert found.converged
    assert found.criticality <= 1e-4 * found.objective
    assert np.count_nonzero(found.coef) > 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_word_of_the_interior_point_is_worth_its_certificate(cancer, name):
    problem = build(*cancer, *OBJECTIVES[name], 0.02)
    start = resolve("auto", convex_relative(problem), Control()).solve(
        convex_relative(problem), None, Control()
    )
    touching = tangent(problem, start.coef, start.intercept).problem
    control = Control(tol=1e-6)
    for solver in (InteriorPoint(), Chain((Stage(InteriorPoint()),))):
        found = solver.attempt(touching, None, control)
        proof = certify(touching, found.coef, found.intercept, found.dual)
        assert proof.within(1e-6)
        assert found.bound == pytest.approx(proof.dual_objective, rel=1e-6)
    assert Chain((Stage(InteriorPoint(), 1e-2),)).attempt(touching, None, control) is None
    assert FBPD().attempt(touching, None, control) is None


def test_the_same_problem_gives_the_same_bits():
    _, problem = random_problem(7)
    one, two = solve(problem, starts=3), solve(problem, starts=3)
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.history.objective, two.history.objective)


def test_an_iteration_limit_is_reported_with_an_honest_residual():
    _, problem = random_problem(31)
    full = solve(problem)
    assert full.n_iter > 1
    start = Start(np.zeros_like(full.coef), np.zeros_like(full.intercept))
    cut = DCA().solve(problem, start, Control(tol=1e-9, max_iter=1))
    assert (cut.status, cut.n_iter) == ("max_iter", 1)
    assert cut.criticality > 1e-9 * cut.objective
    # One step was taken, and the residual is that of the point it led to.
    assert cut.objective < problem.objective(start.coef, start.intercept)
    assert cut.criticality == pytest.approx(cut.history.gap[-1], rel=1e-3)
    assert cut.objective >= full.objective


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("penalty", [L0(), CappedL1(), L0(groups=3)], ids=str)
def test_smooth_losses_reach_critical_points(cancer, loss, penalty):
    X, y = cancer
    for labels in (y, y + (X[:, 0] > 1.0)):
        model = SparseSVC(loss=loss, penalty=penalty, alpha=0.05).fit(X, labels)
        history = model.result_.history
        assert model.result_.solver == "dca"
        assert model.result_.criticality <= 1e-3 * model.objective_
        assert (np.diff(history.objective) <= 0.0).all()


@pytest.mark.parametrize("penalty", ["l0", "capped_l1"])
def test_the_logistic_loss_on_separable_data_is_refused(penalty):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"there is no minimiser\. Use loss='squared_hinge'"):
        SparseSVC(loss="logistic", penalty=penalty, alpha=0.001).fit(X, y == 0)
    model = SparseSVC(loss="squared_hinge", penalty=penalty, alpha=0.001).fit(X, y == 0)
    assert model.score(X, y == 0) == 1.0


def test_verbose_prints_every_iteration(capsys):
    _, problem = random_problem(31)
    solution = DCA().solve(problem, None, Control(verbose=True))
    assert capsys.readouterr().out.count("dca: iteration") == solution.n_iter


# ---------------------------------------------------------------- the estimator


@pytest.mark.parametrize("name", OBJECTIVES)
def test_non_convex_objectives_fit_through_the_estimator(cancer, name):
    loss, penalty = OBJECTIVES[name]
    model = SparseSVC(loss=loss, penalty=penalty, alpha=0.02).fit(*cancer)
    assert np.isnan(model.dual_gap_)
    assert model.result_.solver == "dca"
    assert model.result_.criticality <= 1e-4 * model.objective_
    assert model.score(*cancer) > 0.9


def test_fewer_features_than_with_l1_and_fewer_support_vectors_than_with_the_hinge(cancer):
    models = {
        (loss, penalty): SparseSVC(loss=loss, penalty=penalty, alpha=0.02).fit(*cancer)
        for loss in ("hinge", "ramp")
        for penalty in ("l1", "l0", "capped_l1")
    }
    used = {key: model.selected_features_.size for key, model in models.items()}
    support = {key: model.support_.size for key, model in models.items()}
    for loss in ("hinge", "ramp"):
        assert used[loss, "l0"] < used[loss, "l1"]
        assert used[loss, "capped_l1"] <= used[loss, "l1"]
    for penalty in ("l1", "l0", "capped_l1"):
        assert support["ramp", penalty] <= support["hinge", penalty]


@pytest.mark.parametrize("loss", [Hinge(), Ramp(mu=0.5), Ramp(margin=2.0)], ids=str)
def test_support_vectors_are_the_samples_on_the_slope_of_the_loss(cancer, loss):
    X, y = cancer
    X, y = np.vstack([X, X[:40]]), np.concatenate([y, y[:40]])
    weight = np.ones(y.size)
    weight[5] = weight[-3] = 0.0
    model = SparseSVC(loss=loss, penalty="capped_l1", alpha=0.05).fit(X, y, sample_weight=weight)
    t = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    level = loss.margin * getattr(loss, "mu", 1.0)
    expected = t < level + 1e-2
    if isinstance(loss, Ramp):
        expected &= t > -(loss.mu**2) * loss.margin - 1e-2
    expected &= weight > 0.0
    np.testing.assert_array_equal(model.support_, np.flatnonzero(expected))
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[expected], minlength=2))
    used = model.selected_features_.size * expected.sum() / (X.shape[1] * (y.size - 2))
    assert model.parameter_fraction_ == pytest.approx(used)


def test_support_vectors_of_many_classes_by_loops():
    X, y = load_iris(return_X_y=True)
    cost = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]])
    for loss in (Hinge(margin=cost), Ramp(mu=0.7, margin=cost)):
        model = SparseSVC(loss=loss, penalty="l1", alpha=0.02).fit(X, y)
        expected = []
        for i, scores in enumerate(model.decision_function(X)):
            others = [k for k in range(3) if k != y[i]]
            mu = getattr(loss, "mu", 1.0)
            lead = max(mu * cost[y[i], k] + scores[k] - scores[y[i]] for k in others)
            lost = max(-(mu**2) * cost[y[i], k] + scores[k] - scores[y[i]] for k in others)
            if lead >= -1e-2 and not (isinstance(loss, Ramp) and lost > 1e-2):
                expected.append(i)
        np.testing.assert_array_equal(model.support_, expected)


@pytest.mark.parametrize("penalty", ["l0", "capped_l1", "l1"])
def test_weighting_and_repeating_samples_give_the_same_bits(penalty):
    X, y = cases.gaussian(2, 40, 6, 3, apart=0.5)
    weight = np.random.default_rng(0).integers(0, 4, 40)
    weighted = SparseSVC(loss="ramp", penalty=penalty, alpha=0.02).fit(X, y, sample_weight=weight)
    repeated = SparseSVC(loss="ramp", penalty=penalty, alpha=0.02)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.intercept_, repeated.intercept_)


def test_float32_data_keep_their_type_and_their_criticality(cancer):
    X, y = cancer
    model = SparseSVC(loss="ramp", penalty="l0", alpha=0.02).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.result_.criticality <= 1e-4 * model.objective_


def test_a_model_of_zeros_says_from_which_alpha_on_zero_is_critical(cancer):
    X, y = cancer
    for loss in ("hinge", "ramp"):
        with pytest.warns(UserWarning, match="Every weight is zero") as caught:
            SparseSVC(loss=loss, penalty="capped_l1", alpha=5.0).fit(X, y)
        bound = float(str(caught[0].message).split("at most about ")[1].split(";")[0])
        model = SparseSVC(loss=loss, penalty="capped_l1", alpha=0.5 * bound).fit(X, y)
        assert model.selected_features_.size > 0


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"loss": Ramp(mu=0.0)}, r"mu in \(0, 1\]; got mu=0.0"),
        ({"loss": Ramp(mu=1.5)}, r"mu in \(0, 1\]; got mu=1.5"),
        ({"loss": Ramp(mu="wide")}, r"mu in \(0, 1\]; got mu='wide'"),
        ({"loss": Ramp(mu=float("nan"))}, r"mu in \(0, 1\]; got mu=nan"),
        ({"loss": Ramp(margin=-1.0)}, "finite and not negative"),
        ({"loss": Ramp(margin=0.0)}, "Every margin is zero"),
        ({"penalty": L0(sharpness=0.0)}, "positive, finite sharpness.*; got sharpness=0.0"),
        ({"penalty": L0(sharpness=-1.0)}, "positive, finite sharpness"),
        ({"penalty": CappedL1(cap=0.0)}, "positive, finite cap.*; got cap=0.0"),
        ({"penalty": CappedL1(cap=float("inf"))}, "positive, finite cap"),
        ({"penalty": CappedL1(groups=0)}, "block size must be at least 1"),
        ({"loss": "ramp", "solver": DCA(starts=0)}, "starts must be at least 1, but is 0"),
        ({"loss": "ramp", "solver": DCA(starts=1.5)}, "starts must be an integer, at least 1"),
        ({"loss": "ramp", "solver": DCA(starts="many")}, "at least 1, but is 'many'"),
        ({"loss": "ramp", "solver": DCA(max_iter=0)}, "max_iter must be at least 1"),
        ({"loss": "ramp", "solver": "fbpd"}, "fbpd solves the hinge loss only.*'dca'"),
        ({"loss": "hinge", "solver": "dca"}, "this problem is convex.*'interior_point'"),
        (
            {"loss": "ramp", "solver": DCA(solver="cutting_plane")},
            "dca cannot solve its convex problems",
        ),
    ],
)
def test_bad_options_are_refused_in_a_sentence(cancer, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseSVC(**parameters).fit(*cancer)


def test_a_fit_that_did_not_converge_warns_of_the_criticality(cancer):
    model = SparseSVC(loss="ramp", penalty="l0", alpha=0.02, max_iter=1, tol=1e-9)
    with pytest.warns(UserWarning, match="relative criticality of .* above tol=1e-09"):
        model.fit(*cancer)


def test_unsupported_problems_are_named_to_the_registry():
    _, problem = random_problem(1)
    assert resolve("auto", problem, Control()) == DCA()
    convex = replace(problem, loss=Hinge(), penalty=L1().resolve(problem.d, problem.n_outputs))
    assert "convex" in DCA().unsupported(convex)


@pytest.mark.parametrize("name", ["CapOneNormSVM", "RLSVM2", "RLSVM1", "RLSVMC1"])
def test_no_point_near_a_local_minimum_is_lower(cancer, name):
    problem = build(*cancer, *OBJECTIVES[name], 0.02)
    solution = solve(problem)
    assert solution.local_minimum is True
    least = solution.objective - solution.criticality - solution.floor
    rng = np.random.default_rng(0)
    for size in (1e-7, 1e-5):
        for _ in range(40):
            W = solution.coef + size * rng.standard_normal(solution.coef.shape)
            b = solution.intercept + size * rng.standard_normal(solution.intercept.shape)
            assert problem.objective(W, b) >= least


def test_what_is_no_proven_local_minimum_is_not_said_to_be_one(cancer):
    # A sample at -mu^2 is on the kink of the ramp, a weight of the cap on that of capped l1.
    scores, margins = np.array([[0.0, 1.0], [0.0, 0.5]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    labels = np.zeros(2, dtype=np.int32)
    assert not Ramp(mu=1.0).off_kinks(scores, labels, margins)
    assert Ramp(mu=1.0).off_kinks(scores[1:], labels[1:], margins[1:])
    capped = build(*cancer, Hinge(), CappedL1(cap=0.5), 0.02)
    W = np.zeros((1, capped.d))
    W[0, :2] = 0.3, -0.5
    assert capped.penalty.off_kinks(W) is False
    assert capped.penalty.off_kinks(W + 1e-3) is True
    # Ended before it is critical; a curved concave part; a convex problem.
    assert solve(capped, max_iter=1).local_minimum is False
    assert solve(build(*cancer, Hinge(), L0(), 0.02)).local_minimum is None
    convex = build(*cancer, Hinge(), L1(), 0.02)
    assert InteriorPoint().solve(convex, None, Control()).local_minimum is None


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_rule_of_the_paper_ends_at_a_small_change_of_the_parameters(cancer, name):
    problem = build(*cancer, *OBJECTIVES[name], 0.02)
    usual = solve(problem)
    rule = DCA(stopping="change")
    soon = rule.solve(problem, None, Control(tol=1e6))
    assert soon.n_iter == 1 and soon.objective >= usual.objective - usual.floor
    close = rule.solve(problem, None, Control(tol=1e-3))
    assert close.objective <= usual.objective * (1.0 + 1e-3)
    with pytest.raises(ValueError, match="stopping must be one of 'objective', 'change'"):
        DCA(stopping="gap").solve(problem, None, Control())
