"""SDCA against a plain reference of its update, the other solvers and its own promises."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import hinge_cases
import problems
from reference import sdca as reference
from sparsvm import SparseSVC, _core
from sparsvm.certificate.certify import certify
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge
from sparsvm.numerics.packed import Packed
from sparsvm.penalties import L1, L2, GroupL2, GroupLinf
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import SDCA, InteriorPoint
from sparsvm.solvers.run.incumbent import Incumbent
from sparsvm.solvers.run.native import hinge_problem

pytestmark = pytest.mark.native

FAMILIES = [family for family in problems.FAMILIES if family is not problems.free_features]


def dense(problem):
    return problem.design.gather_columns(np.arange(problem.d, dtype=np.int32))


def native(problem, start=None, **options):
    solver = SDCA(**options)
    method = solver._method(problem, Control())
    start = start or Start(np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs))
    dual = None if start.dual is None else start.dual / problem.alpha
    method.start(np.ascontiguousarray(start.coef.T), start.intercept, dual)
    return method


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_one_proximal_step_is_the_one_of_the_reference(family):
    for seed in range(4):
        problem = problems.make(seed, family)
        method = native(problem, relaxation=1.5)
        values = method.values()
        _, _, Y = method.point()
        expected = reference.proximal_step(
            problem,
            np.asarray(dense(problem)),
            Y,
            np.zeros((problem.d, problem.n_outputs)),
            np.zeros(problem.n_outputs),
            sigma=values["sigma"],
            sigma_b=values["sigma_b"],
            relaxation=1.5,
            sweeps=2,
            shuffle=reference.Shuffle(problem.n),
        )
        method.run(np.inf, 2)
        W, b, Y = method.point()
        size = max(1.0, np.abs(expected[1]).max())
        np.testing.assert_allclose(Y, expected[0], atol=1e-8 * (problem.mass / problem.alpha).max())
        np.testing.assert_allclose(W, expected[1], atol=1e-7 * size)
        np.testing.assert_allclose(b, expected[2], atol=1e-7 * max(1.0, np.abs(expected[2]).max()))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_certified_interval_meets_that_of_the_interior_point(family):
    for seed in range(12):
        problem = problems.make(seed, family)
        ours = SDCA().solve(problem, None, Control(tol=1e-3))
        exact = InteriorPoint().solve(problem, None, Control(tol=1e-6))
        slack = ours.floor + exact.floor
        assert ours.dual_objective <= exact.objective + slack
        assert exact.dual_objective <= ours.objective + slack
        proof = certify(problem, ours.coef, ours.intercept, ours.dual)
        assert proof.objective == ours.objective
        assert (ours.status == "optimal") == proof.within(1e-3)
        assert ours.status == "optimal", f"seed {seed}: {ours.status}, gap {ours.relative_gap:.1e}"


@pytest.mark.parametrize("kind", problems.PENALTIES)
def test_storage_and_precision_of_the_data_do_not_matter(kind):
    problem = problems.make(7, problems.sparse_rows, kind)
    X = np.asarray(dense(problem)).astype(np.float32)
    forms = [X, X.astype(float), np.asfortranarray(X), sp.csr_matrix(X), sp.csc_matrix(X)]
    forms += [sp.csr_matrix(X.astype(float)), sp.csc_matrix(X.astype(float))]
    first = None
    for form in forms:
        found = SDCA().solve(replace(problem, design=make_design(form)), None, Control(tol=1e-5))
        assert found.converged
        first = first or found
        assert found.objective == pytest.approx(first.objective, rel=2e-5)


def test_more_features_than_the_working_set_takes_at_once():
    rng = np.random.default_rng(3)
    X = sp.random(60, 3000, 0.05, "csr", random_state=rng)
    X.data = rng.standard_normal(X.nnz)
    y = (np.asarray(X[:, :40].sum(axis=1)).ravel() > 0).astype(np.int32) + (np.arange(60) % 2)
    for penalty in (L1(), GroupL2(), GroupL2(groups=7), GroupL2(groups=5, per_class=True)):
        problem = _problem(X, y.astype(np.int32), penalty, 0.01)
        ours = SDCA().solve(problem, None, Control(tol=1e-4))
        exact = InteriorPoint().solve(problem, None, Control(tol=1e-6))
        assert ours.converged
        assert ours.objective == pytest.approx(exact.objective, rel=1.1e-4)


def _problem(X, y, penalty, alpha):
    base = problems.make(0)
    n_classes = int(y.max()) + 1
    return replace(
        base,
        design=make_design(X),
        y=y,
        mass=np.full(y.size, 1.0 / y.size),
        cost=base.loss.cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=alpha,
        penalty=penalty.resolve(X.shape[1], 1 if n_classes == 2 else n_classes, None),
    )


@pytest.mark.parametrize("kind", problems.PENALTIES)
def test_restart_at_the_solution_ends_at_once(kind):
    problem = problems.make(3, problems.plain, kind)
    first = SDCA().solve(problem, None, Control(tol=1e-7))
    again = SDCA().solve(problem, Start(first.coef, first.intercept, first.dual), Control(tol=1e-6))
    assert first.converged
    assert again.converged
    assert again.n_iter == 0


def test_start_without_a_dual_keeps_its_coefficients():
    problem = problems.make(3, problems.plain, "l1")
    first = SDCA().solve(problem, None, Control(tol=1e-7))
    again = SDCA().solve(problem, Start(first.coef, first.intercept), Control(tol=1e-7))
    assert again.objective <= first.objective * (1.0 + 1e-7)
    assert again.converged


def test_zeros_are_exact_and_those_of_the_optimum():
    problem = problems.make(0, problems.plain, "l1")
    ours = SDCA().solve(problem, None, Control(tol=1e-9))
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-10))
    np.testing.assert_array_equal(ours.coef != 0.0, exact.coef != 0.0)
    assert np.any(ours.coef == 0.0)


def test_the_same_call_gives_the_same_bits():
    problem = problems.make(5, problems.plain, "l1/l2")
    first, again = (SDCA().solve(problem, None, Control(tol=1e-5)) for _ in range(2))
    np.testing.assert_array_equal(first.coef, again.coef)
    np.testing.assert_array_equal(first.dual, again.dual)


def test_iteration_limit_is_kept_and_told():
    problem = problems.make(1, problems.plain, "l1")
    short = SDCA().solve(problem, None, Control(tol=1e-12, max_iter=5))
    assert short.status == "max_iter"
    assert short.n_iter == 5


def test_unpenalised_features_are_refused_with_a_way_out():
    problem = problems.make(0, problems.free_features, "l1")
    assert "interior_point" in SDCA().unsupported(problem)


@pytest.mark.parametrize("options", [{"relaxation": 2.0}, {"sweeps": 0}, {"max_iter": 0}])
def test_options_out_of_range_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SDCA(**options).solve(problems.make(0), None, Control())


@pytest.mark.parametrize("kind", ["l1", "l2", "l1/l2", "l1/linf"])
@pytest.mark.parametrize("n_classes", [4, 9, 21, 31, 46])
def test_any_number_of_classes_passes_the_kernels(kind, n_classes):
    # Outputs are taken in packs, whose remainders differ.
    rng = np.random.default_rng(n_classes)
    X = sp.random(70, 30, 0.3, "csr", random_state=rng)
    X.data = rng.standard_normal(X.nnz)
    if kind == "l1":
        X = rng.standard_normal((70, 9))  # of more features single entries would take part
    y = (np.arange(70) % n_classes).astype(np.int32)
    penalty = {
        "l1": L1(),
        "l2": L2(weights=rng.uniform(0.5, 2.0, 30)),
        "l1/l2": GroupL2(),
        "l1/linf": GroupLinf(),
    }[kind]
    problem = _problem(X, y, penalty, 0.01)
    method = native(problem, relaxation=1.2)
    values = method.values()
    zeros = np.zeros((problem.d, problem.n_outputs)), np.zeros(problem.n_outputs)
    Y, W, _ = reference.proximal_step(
        problem,
        np.asarray(dense(problem)),
        method.point()[2],
        *zeros,
        sigma=values["sigma"],
        sigma_b=values["sigma_b"],
        relaxation=1.2,
        sweeps=2,
        shuffle=reference.Shuffle(problem.n),
    )
    method.run(np.inf, 2)
    found = method.point()
    np.testing.assert_allclose(found[2], Y, atol=1e-9 * Y.max())
    np.testing.assert_allclose(found[0], W, atol=1e-8 * np.abs(W).max())


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_l2_passes_samples_by_and_still_ends_at_the_optimum(fit_intercept):
    rng = np.random.default_rng(11)
    X = sp.random(400, 80, 0.1, "csr", random_state=rng)
    X.data = rng.standard_normal(X.nnz)
    scores = X @ rng.standard_normal((80, 5)) + rng.standard_normal((400, 5))
    problem = _problem(X, scores.argmax(axis=1).astype(np.int32), L2(), 1e-3)
    problem = replace(problem, fit_intercept=fit_intercept)
    method = native(problem)
    method.run(1e-8, 20_000)
    values = method.values()
    assert values["visits"] < 0.6 * problem.n * values["sweeps"]
    ours = SDCA().solve(problem, None, Control(tol=1e-8))
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-10))
    assert ours.converged
    assert ours.objective == pytest.approx(exact.objective, rel=1.1e-8)
    np.testing.assert_allclose(ours.coef, exact.coef, atol=1e-3 * np.abs(exact.coef).max())
    proof = certify(problem, ours.coef, ours.intercept, ours.dual)
    assert proof.gap == ours.gap


def test_best_dual_of_many_classes_is_kept_without_its_zeros():
    rng = np.random.default_rng(2)
    X = sp.random(60, 20, 0.3, "csr", random_state=rng)
    problem = _problem(X, (np.arange(60) % 12).astype(np.int32), L1(), 0.01)
    incumbent = Incumbent(problem, None, anyway=False)
    for share in (0.05, 0.9):
        dual = np.where(rng.random((60, 12)) < share, rng.random((60, 12)), 0.0)
        incumbent.packed_dual = Packed(dual.copy())
        assert incumbent.packed_dual.nbytes <= 8 * dual.size * min(1.25 * share + 0.1, 1.0)
        np.testing.assert_array_equal(incumbent.dual, dual)


def test_single_entries_of_features_are_left_out_where_few_are_used():
    rng = np.random.default_rng(5)
    X = sp.random(300, 600, 0.1, "csr", random_state=rng)
    y = np.argmax(X @ (rng.standard_normal((600, 8)) * (rng.random((600, 8)) < 0.03)), axis=1)
    full = X.toarray() + 1e-3 * rng.standard_normal(X.shape)  # without zeros
    for form in (X, X.astype(np.float32), X.toarray(), full):
        problem = _problem(form, y.astype(np.int32), L1(), 0.01)
        method = native(problem)
        method.run(np.inf, 2)
        assert 0 < method.values()["entries"] < method.values()["working_set"] * 8 / 3
        ours = SDCA().solve(problem, None, Control(tol=1e-3))
        exact = InteriorPoint().solve(problem, None, Control(tol=1e-6))
        assert ours.converged
        assert ours.objective == pytest.approx(exact.objective, rel=1.1e-3)
        assert np.count_nonzero(ours.coef) < 2 * np.count_nonzero(exact.coef)


def sparse_data(n_classes):
    """120 samples of 300 rare features, some of which tell the classes apart."""
    rng = np.random.default_rng(0)
    y = (np.arange(120) % n_classes).astype(np.int32)
    X = sp.random(120, 300, 0.08, random_state=0, format="lil")
    for i, label in enumerate(y):
        X[i, 3 * label + rng.integers(0, 6, 2)] = 0.5 + rng.random(2)
    return X.tocsr(), y


@pytest.mark.parametrize(
    ("penalty", "n_classes"), [(GroupL2(), 2), (GroupL2(), 5), (GroupLinf(), 5)], ids=str
)
def test_newton_steps_find_the_last_digits(penalty, n_classes):
    # Without them 20000 sweeps are not enough with two classes, nor with maximum norms.
    X, y = sparse_data(n_classes)
    problem = replace(
        problems.make(0, problems.plain),
        design=make_design(X),
        y=y,
        mass=np.full(120, 1 / 120),
        cost=1.0 - np.eye(n_classes),
        n_classes=n_classes,
        alpha=1 / 360,
        penalty=penalty.resolve(300, 1 if n_classes == 2 else n_classes, None),
    )
    found = SDCA().solve(problem, None, Control(tol=1e-8))
    assert found.status == "optimal"
    assert found.n_iter < 1000
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-8))
    slack = found.floor + exact.floor
    assert found.dual_objective <= exact.objective + slack
    assert exact.dual_objective <= found.objective + slack


def test_single_entries_of_many_classes_reach_the_last_digits():
    # Sweeps alone, with the duals of single proximal steps, end at 7e-5 after 20000.
    rng = np.random.default_rng(0)
    y = (np.arange(400) % 20).astype(np.int32)
    X = sp.random(400, 600, 0.02, random_state=0, format="lil")
    for i, label in enumerate(y):
        X[i, 3 * label + rng.integers(0, 6, 2)] = 0.5 + rng.random(2)
    problem = _problem(X.tocsr(), y, L1(), 1 / 1200)
    found = SDCA().solve(problem, None, Control(tol=1e-5))
    assert found.status == "optimal"
    assert found.n_iter < 10000
    proof = certify(problem, found.coef, found.intercept, found.dual)
    assert proof.gap == found.gap
    exact = InteriorPoint().solve(problem, None, Control(tol=1e-7))
    assert found.dual_objective <= exact.objective + found.floor + exact.floor
    assert exact.dual_objective <= found.objective + found.floor + exact.floor


def test_an_estimated_gap_below_zero_is_asked_for_again_with_the_tolerance():
    targets = []

    class Method:
        sweeps = 0
        outlasted = False

        def run(self, target, sweeps, rival_work):
            targets.append(target)
            self.sweeps += 2
            return True

        def values(self):
            return {"objective": 1.0, "dual": 1.1 if self.sweeps < 6 else 0.99}

    class Found:
        gap = relative_gap = 0.02

        def within(self, tol):
            return False

        def renew(self):
            return self

    assert not SDCA()._iterate(Method(), Found(), 1e-3, 8)
    # Afterwards as much less as the certified gap is beyond the tolerance, within limits.
    np.testing.assert_allclose(targets, [2e-3, 1e-3, 1e-3, 3e-3])


@pytest.mark.parametrize("work", [1.0, 1e7])
def test_sweeps_end_where_another_solver_would_be_quicker(work):
    X, y = hinge_cases.gaussian(3, 200, 30, 4)
    problem = hinge_cases.build(X, y, L1(), share=0.01)
    alone = SDCA().solve(problem, None, Control(tol=1e-6))
    ended = SDCA(rival_work=work).solve(problem, None, Control(tol=1e-6))
    assert ended.status == "stalled"
    assert ended.n_iter < alone.n_iter
    # What it leaves is a point with a bound, for the other one to go on from.
    assert ended.dual_objective <= alone.objective <= ended.objective


def test_sweeps_without_a_quicker_rival_go_on_to_the_tolerance():
    X, y = hinge_cases.gaussian(3, 200, 30, 4)
    problem = hinge_cases.build(X, y, L1(), share=0.5)
    found = SDCA(rival_work=1e15).solve(problem, None, Control(tol=1e-2))
    assert found.status == "optimal"
    assert found.n_iter == SDCA().solve(problem, None, Control(tol=1e-2)).n_iter


# ---------------------------------------------------------------- at the native border


def small(penalty=None):
    X, y = hinge_cases.gaussian(0, 30, 4, 3)
    return hinge_cases.build(X, y, penalty or L1(), share=0.1)


@pytest.mark.parametrize("call", ["run", "point", "give_point", "give_mean_dual"])
def test_a_method_that_was_not_started_says_so(call):
    method = SDCA()._method(small(), Control())
    with pytest.raises(RuntimeError, match="start"):
        method.run(0.1, 10) if call == "run" else getattr(method, call)()


@pytest.mark.parametrize("sweeps", [0, -1])
def test_no_sweeps_are_refused(sweeps):
    with pytest.raises(ValueError, match="sweeps must be at least 1"):
        _core.Sdca(hinge_problem(small()), relaxation=1.0, sweeps=sweeps, callback=None)


def test_a_start_that_is_not_finite_is_refused():
    problem = small()
    method = SDCA()._method(problem, Control())
    with pytest.raises(ValueError, match=r"intercept.0. is nan"):
        method.start(None, np.full(3, np.nan), None)
    with pytest.raises(ValueError, match=r"dual.0. is inf"):
        method.start(None, np.zeros(3), np.full((problem.n, 3), np.inf))


def test_a_method_works_for_one_thread_at_a_time():
    errors, shared, reports = [], [], []

    def other():
        method = shared[0]
        for call in (method.point, method.give_point, lambda: method.run(0.0, 1), method.history):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))

    def report(*_):
        reports.append(1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    method = _core.Sdca(hinge_problem(small()), relaxation=1.0, sweeps=2, callback=report)
    shared.append(method)
    method.start(None, np.zeros(3), None)
    method.run(1e-3, 100)
    shared.clear()  # the callback holds the list, and the method the callback
    assert reports
    assert len(errors) == 4 * len(reports)
    assert all("give every thread one of its own" in error for error in errors)
    assert np.isfinite(method.point()[2]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["sdca", "newton", "auto"])
def test_data_whose_squares_vanish_have_the_zero_model(solver, n_classes):
    X = np.random.default_rng(0).standard_normal((600, 8)) * 1e-160
    model = SparseSVC(alpha=1e-3, solver=solver)
    with pytest.warns(UserWarning, match="Every weight is zero"):
        model.fit(X, np.arange(600) % n_classes)
    assert not model.coef_.any()
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["sdca", "newton", "auto"])
@pytest.mark.parametrize("margin", [1e-50, 1e50])
def test_the_size_of_the_margins_only_scales_the_model(solver, margin, n_classes):
    X, y = hinge_cases.gaussian(3, 600, 8, n_classes)
    models = [
        SparseSVC(Hinge(size), alpha=1e-3, solver=solver, tol=1e-3).fit(X, y)
        for size in (1.0, margin)
    ]
    assert all(model.dual_gap_ <= 1e-3 for model in models)
    assert models[1].objective_ == pytest.approx(margin * models[0].objective_, rel=2e-3)


@pytest.mark.parametrize("family", [problems.plain, problems.linear_terms, problems.sparse_rows])
def test_the_history_is_of_the_best_points_and_its_last_is_returned(family):
    # Inexact proximal steps need not descend.
    for seed in range(4):
        problem = problems.make(seed, family)
        if not problem.penalty.is_norm:
            continue
        found = SDCA().solve(problem, None, Control(tol=1e-4))
        objective = found.history.objective
        assert (np.diff(objective) <= 0.0).all()
        assert found.objective <= objective[-1] + 1e-9 * abs(objective[-1]) + found.floor
