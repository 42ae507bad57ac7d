"""block_newton solves every smooth loss with every convex penalty to a certified gap."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine

import hinge_cases
import problems
from reference import proximal_gradient, smooth
from sparsvm import SparseSVC, _core
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.penalties import L0, L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import BlockNewton
from sparsvm.solvers.run.native import undivided_arguments

LOSSES = {"squared_hinge": SquaredHinge, "logistic": Logistic, "ovr_squared_hinge": OvrSquaredHinge}
EVERY_PENALTY = sorted(hinge_cases.PENALTIES)


def solve(problem, tol=1e-8, start=None, **options):
    return BlockNewton().solve(problem, start, Control(tol=tol, **options))


def build(X, y, penalty, share=0.05, loss="squared_hinge", **options):
    """A problem with that loss at ``share`` of the alpha at which coefficients appear."""
    kind = LOSSES[loss]()
    problem = hinge_cases.build(X, y, penalty, share, **options)
    cost = kind.cost_matrix(problem.n_classes)
    return replace(problem, loss=kind, cost=cost)


def sparse_data(seed, n=300, d=4000, n_classes=5):
    """Sparse rows of norm 1 whose first features tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = sp.random(n, d, 0.01, "csr", random_state=rng)
    marks = sp.csr_matrix((np.ones(n), (np.arange(n), 3 * y + rng.integers(0, 3, n))), (n, d))
    X = sp.csr_matrix(X + marks)
    return sp.diags(1.0 / sp.linalg.norm(X, axis=1)) @ X, y


def has_no_minimiser(problem, solution):
    """Free features, or a linear term on the edge, separate classes: no minimiser is finite."""
    free = problem.penalty.free.size > 0 or problem.linear_term is not None
    endless = solution.objective < 1e-12 or np.abs(solution.coef).max() > 100.0
    return problem.loss.name == "logistic" and free and endless


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_family_of_problems_is_solved_to_a_certified_gap(loss):
    for name, problem in problems.cases(12, loss=loss):
        solution = solve(problem, 1e-6)
        assert solution.converged or has_no_minimiser(problem, solution), name


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("penalty", EVERY_PENALTY)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_every_penalty_meets_a_sharp_tolerance(loss, penalty, n_classes):
    X, y = hinge_cases.gaussian(n_classes, 60, 12, n_classes)
    problem = build(X, y, hinge_cases.PENALTIES[penalty](12), 0.2, loss)
    solution = solve(problem)
    assert solution.converged
    assert solution.relative_gap <= 1e-8


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(), GroupL2(), SparseGroup()], ids=repr)
def test_noise_features_get_exact_zeros(loss, penalty):
    X, y = hinge_cases.gaussian(7, 80, 4, 3)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((80, 20))])
    coef = solve(build(X, y, penalty, 0.3, loss)).coef
    assert coef[:, :4].any()
    assert np.count_nonzero(np.all(coef == 0.0, axis=0)) > 5


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("kind", problems.PENALTIES)
def test_agrees_with_clarabel(loss, kind):
    for family in (problems.plain, problems.sample_weights, problems.cost_matrix):
        problem = problems.make(3, family, kind, loss)
        oracle = smooth.solve(problem)
        solution = solve(problem)
        assert solution.objective == pytest.approx(oracle.value, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("kind", ["l1/l2", "l1/linf", "elasticnet"])
def test_agrees_with_plain_proximal_gradient_steps(loss, kind):
    X, y = hinge_cases.gaussian(3, 40, 6, 3)
    penalty = {"l1/l2": GroupL2(), "l1/linf": GroupLinf(groups=2), "elasticnet": ElasticNet()}[kind]
    problem = build(X, y, penalty, 0.3, loss)
    reference = problem.objective(*proximal_gradient.solve(problem, 1000))
    solution = solve(problem)
    assert solution.objective <= reference * (1.0 + 1e-9)
    assert solution.objective == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("penalty", [L1(), GroupL2(), GroupLinf(), SparseGroup()], ids=repr)
def test_a_thousandth_of_alpha_max_is_reached_on_sparse_data(loss, penalty):
    X, y = sparse_data(0)
    problem = build(X, y, penalty, 1e-3, loss)
    solution = solve(problem, 1e-4)
    assert solution.converged
    used = np.count_nonzero(np.any(solution.coef != 0.0, axis=0))
    assert 0 < used < 0.5 * problem.d


def test_storage_and_scalar_do_not_matter():
    X, y = hinge_cases.gaussian(0, 50, 9, 4)
    X = np.float32(X * (np.abs(X) > 0.5)).astype(float)
    values = [
        solve(build(store(X), y, GroupL2(), loss="logistic"), 1e-9).objective
        for store in hinge_cases.STORAGES.values()
    ]
    np.testing.assert_allclose(values, values[0], rtol=3e-9)


def test_equal_calls_give_equal_bits():
    problem = build(*sparse_data(1), GroupL2(), 0.01)
    first, second = solve(problem), solve(problem)
    np.testing.assert_array_equal(first.coef, second.coef)
    np.testing.assert_array_equal(first.intercept, second.intercept)


def test_a_warm_start_at_the_solution_is_certified_at_once():
    problem = build(*sparse_data(2), GroupL2(), 0.01, "logistic")
    cold = solve(problem)
    warm = solve(problem, start=Start(cold.coef, cold.intercept))
    assert cold.n_iter > 1
    assert warm.n_iter <= 1
    assert warm.converged


def test_starts_far_away_lead_to_the_same_optimum():
    X, y = hinge_cases.gaussian(4, 60, 10, 3)
    problem = build(X, y, SparseGroup(), 0.1)
    cold = solve(problem)
    rng = np.random.default_rng(0)
    start = Start(100.0 * rng.standard_normal(cold.coef.shape), 10.0 * rng.standard_normal(3))
    assert solve(problem, start=start).objective == pytest.approx(cold.objective, rel=1e-7)


def test_intercepts_sum_to_zero_where_only_differences_count():
    X, y = hinge_cases.gaussian(5, 60, 8, 4, apart=0.5)
    for loss in LOSSES:
        intercept = solve(build(X, y, L1(), loss=loss)).intercept
        assert (abs(intercept.sum()) < 1e-12) == (loss != "ovr_squared_hinge")


def test_no_intercept_is_none():
    X, y = hinge_cases.gaussian(5, 60, 8, 4)
    solution = solve(build(X, y, L1(), fit_intercept=False))
    assert solution.converged
    np.testing.assert_array_equal(solution.intercept, 0.0)


def test_a_large_alpha_leaves_nothing_but_the_intercept():
    X, y = hinge_cases.gaussian(6, 60, 8, 3)
    for penalty in (L1(), GroupL2(), GroupLinf(), SparseGroup()):
        solution = solve(build(X, y, penalty, 1e3))
        assert solution.converged
        assert not solution.coef.any()


def test_dense_columns_full_of_zeros_are_stored_without_them():
    X, y = sparse_data(3, n=200, d=300)
    sparse, full = (solve(build(store, y, GroupL2(), 0.02)) for store in (X, X.toarray()))
    assert full.objective == pytest.approx(sparse.objective, rel=1e-8)
    np.testing.assert_array_equal(full.coef != 0.0, sparse.coef != 0.0)


def test_the_iteration_limit_is_kept_and_told():
    problem = build(*sparse_data(4), GroupL2(), 1e-3)
    solution = solve(problem, 1e-10, max_iter=2)
    assert solution.status == "max_iter"
    assert solution.n_iter == 2


@pytest.mark.parametrize(
    "penalty", [L1(), GroupLinf(groups=np.arange(120) // 3), L2()], ids=["l1", "l1/linf", "l2"]
)
def test_the_work_allowed_ends_a_run_soon_after_and_is_no_iteration_limit(penalty):
    # With l2 Newton steps in the span of the samples are counted.
    X, y = hinge_cases.gaussian(0, 60, 120, 6)
    problem, control = build(X, y, penalty, 1e-5), Control(tol=1e-8)
    whole = BlockNewton().solve(problem, None, control)
    cut = [BlockNewton(max_work=work).solve(problem, None, control) for work in (1.0, 1e8)]
    assert [one.status for one in cut] == ["stalled", "stalled"]
    assert cut[0].n_iter < cut[1].n_iter < whole.n_iter
    assert BlockNewton(max_work=1e15).solve(problem, None, control).n_iter == whole.n_iter
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="max_work must lie strictly between 0 and inf"):
            BlockNewton(max_work=bad).solve(problem, None, control)


def test_the_history_ends_with_what_is_returned():
    problem = build(*sparse_data(5), GroupL2(), 0.01)
    solution = solve(problem, 1e-5)
    history = solution.history
    assert history.objective[-1] == pytest.approx(solution.objective, rel=1e-10)
    assert np.all(np.diff(history.seconds) >= 0.0)
    assert np.all(np.diff(history.objective) <= 1e-9 * history.objective[:-1])
    assert history.nonzeros[-1] == np.count_nonzero(solution.coef)


def test_other_problems_are_refused_in_a_sentence():
    X, y = hinge_cases.gaussian(0, 30, 4, 3)
    smooth_problem = build(X, y, L1())
    assert BlockNewton().unsupported(smooth_problem) is None
    hinge = replace(smooth_problem, loss=Hinge())
    assert BlockNewton().unsupported(hinge) == "block_newton solves smooth losses only."
    terms = L0().resolve(4, 3, None)
    assert "convex" in BlockNewton().unsupported(replace(smooth_problem, penalty=terms))


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet", "l2"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "ovr_squared_hinge"])
def test_measurements_as_they_are(penalty, loss):
    """Means far above the spread, and columns a thousand times others: no scaling is needed."""
    X, y = load_wine(return_X_y=True)
    for alpha in (1e-2, 1e-3, 1e-4, 1e-5):
        model = SparseSVC(penalty=penalty, loss=loss, alpha=alpha, solver="block_newton")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, y)
        assert model.result_.relative_gap <= model.tol


@pytest.mark.parametrize("loss", ["squared_hinge", "ovr_squared_hinge"])
def test_a_cold_start_far_below_alpha_max_is_solved_by_continuation(loss):
    """Samples in general position are separated, and Newton steps at that alpha alone stall."""
    for seed in range(2):
        X = np.random.default_rng(seed).standard_normal((90, 90))
        model = SparseSVC(loss, "l1/l2", alpha=1e-7, tol=1e-4, solver="block_newton")
        assert model.fit(X, np.arange(90) % 5).dual_gap_ <= model.tol


@pytest.mark.parametrize("loss", ["squared_hinge", "ovr_squared_hinge"])
def test_a_cold_start_at_a_small_alpha_is_solved_by_continuation_with_l2(loss):
    """It ended after hundreds of iterations at gaps of 0.5 to 0.9, where paths took a few each."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = np.arange(400) % 10
        X = rng.poisson(2.4 * rng.gamma(0.05, 1.0, (10, 200))[y]).astype(float)
        model = SparseSVC(loss, "l2", alpha=1e-5, solver="block_newton").fit(X, y)
        assert model.dual_gap_ <= model.tol
        assert model.n_iter_ < 200


@pytest.mark.parametrize("seed", range(3))
def test_features_of_single_samples_leave_scores_finite(seed):
    """Their weights all but vanish with l2, and ratios of their squares were infinite."""
    rng = np.random.default_rng(seed)
    n, K = 300, 10
    y = np.arange(n) % K
    X = np.maximum(rng.normal(size=(n, 150)) + rng.normal(size=(K, 150))[y], 0.0)
    rare = np.zeros((n, 60))
    rare[rng.integers(0, n, 60), np.arange(60)] = rng.random(60) * 10.0 ** -rng.integers(0, 4, 60)
    model = SparseSVC("ovr_squared_hinge", "l2", alpha=1e-4, solver="block_newton")
    assert model.fit(np.hstack([X, rare]), y).dual_gap_ <= model.tol


# ---------------------------------------------------------------- at the native border


def native(problem, **changes):
    """The native solver's dictionary, and the weights it left."""
    weights = np.zeros((problem.d, problem.n_outputs))
    parts = undivided_arguments(problem) | {"loss": problem.loss.name}
    options = {"weights": weights, "warm": False, "start_intercept": None, "tol": 1e-4}
    options |= {"max_iter": 50, "continuation": True, "callback": None}
    for name, value in changes.items():
        (parts if name in parts else options)[name] = value
    return _core.block_newton(_core.SmoothProblem(**parts), **options), weights


@pytest.mark.native
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": np.ones(3)}, "mass has length 3"),
        ({"y": np.full(30, 7, np.int32)}, "y.0. is 7, outside 0 .. 2"),
        ({"cost": np.ones((3, 2))}, r"cost has shape \(3, 2\)"),
        ({"omega": np.full(4, -1.0)}, "omega.0. is -1"),
        (
            {"linear_term": np.zeros((3, 4))},
            r"linear_term has shape \(3, 4\) but must have shape \(4, 3\)",
        ),
        ({"weights": np.zeros((3, 4))}, r"weights has shape \(3, 4\) but must have"),
        ({"weights": np.full((4, 3), np.nan), "warm": True}, "weights.0. is nan"),
        ({"start_intercept": np.zeros(2)}, "start_intercept has length 2"),
        ({"alpha": 0.0}, "alpha = 0"),
        ({"max_work": np.nan}, "max_work = nan not negative"),
        ({"loss": "hinge"}, "must be one of squared_hinge"),
        ({"kind": "l3"}, "penalty kind must be one of"),
    ],
)
def test_wrong_sizes_and_values_are_named(change, message):
    X, y = hinge_cases.gaussian(0, 30, 4, 3)
    with pytest.raises(ValueError, match=message):
        native(build(X, y, L1()), **change)


@pytest.mark.native
@pytest.mark.parametrize("n_classes", [2, 3, 9, 17, 20, 30])
def test_every_width_of_the_kernels_is_right(n_classes):
    """Rows are padded and dispatched by their width; the objective inside must be the true one."""
    X, y = hinge_cases.gaussian(n_classes, 80, 5, n_classes)
    for loss in LOSSES:
        for store in (X, np.float32(X), sp.csr_array(X)):
            problem = build(store, y, GroupL2(), 0.3, loss)
            raw, weights = native(problem)
            W, b = weights.T.copy(), raw["intercept"]
            assert raw["history"]["objective"][-1] == pytest.approx(
                problem.objective(W, b), rel=1e-10
            )
            proof = certify(problem, W, b, None)
            assert proof.relative_gap < 1.2e-4


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_correlated_features_of_many_samples_take_few_products(loss):
    rng = np.random.default_rng(5)
    spread = np.diag(np.geomspace(1.0, 1e-3, 40)) @ rng.standard_normal((40, 40))
    X = rng.standard_normal((1500, 40)) @ spread
    y = np.argmax(X @ rng.standard_normal((40, 4)) + rng.standard_normal((1500, 4)), axis=1)
    problem = build(X, y, GroupL2(), share=1e-4, loss=loss)
    raw, _ = native(problem, tol=1e-7, max_iter=100)
    assert raw["products"] <= 1000


def test_groups_take_few_products_where_features_outnumber_samples():
    """With a diagonal that is stiff along the groups, which lengths are not, it took 287."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 8
    X = rng.standard_normal((100, 600)) + 0.3 * rng.standard_normal((8, 600))[y]
    problem = build(X, y, GroupL2(), share=0.03, loss="logistic")
    raw, _ = native(problem, tol=1e-6, max_iter=500, continuation=False)
    assert raw["products"] <= 140


def test_groups_of_several_features_take_few_pricings_with_l1_linf():
    """Conjugate gradients cut short in this small problem once took 385."""
    problem = problems.make(1, problems.plain, "l1/linf", "ovr_squared_hinge")
    solution = BlockNewton().solve(problem, None, Control(tol=1e-6))
    assert solution.converged
    assert solution.n_iter <= 100


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_bumps_of_few_spectra_are_solved(seed):
    """With fewer samples than features to choose from, a Gram matrix stalled the steps of l1."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 400, (30, 1))
    bumps = np.exp(-0.5 * ((np.arange(400) - centres) / 8.0) ** 2)
    X = np.round(rng.gamma(1.0, 1.0, (40, 30)) @ bumps * 100 + rng.gamma(1.0, 3.0, (40, 400)))
    y = (rng.random(40) < 0.45).astype(int)
    X[y == 1] += np.round(5 * bumps[0])
    problem = build(X, y, L1(), share=1e-3, loss="squared_hinge")
    assert BlockNewton().solve(problem, None, Control(tol=1e-4)).converged
