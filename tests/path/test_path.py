"""Paths: every point is the optimum, certified, whatever was carried over from the last one."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine

from sparsvm import SparseSVC, alpha_max, svm_path
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge
from sparsvm.path.alpha_max import largest_alpha, quick_bound
from sparsvm.path.continuation import Continuation
from sparsvm.path.svm_path import first_steps, read_problem
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.restriction import Restriction
from sparsvm.problem.solution import Attempt, Control
from sparsvm.solvers import InteriorPoint

PENALTIES = (
    L1(),
    GroupL2(),
    GroupLinf(),
    SparseGroup(),
    ElasticNet(),
    GroupL2(groups=5, per_class=True),
    GroupLinf(groups=3),
    L1(weights="scale"),
)


def wide(seed=0, n=30, d=200, K=3):
    """Few samples in many features, of which six tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d))
    X[:, :6] += 1.5 * rng.standard_normal((K, 6))[y]
    return X, y


def grid(X, y, n_alphas, eps, penalty="l1"):
    """Return a whole grid: those by default end where nothing changes any more."""
    return alpha_max(X, y, penalty=penalty) * np.geomspace(1.0, eps, n_alphas)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_every_point_of_the_path_has_the_objective_of_a_cold_fit(penalty):
    X, y = wide()
    path = svm_path(X, y, penalty=penalty, alphas=grid(X, y, 12, 1e-2, penalty), tol=1e-7)
    assert path.converged
    assert path.gaps.max() <= 1e-7
    for t in (1, 4, 7, 11):
        cold = SparseSVC(penalty=penalty, alpha=path.alphas[t], tol=1e-7).fit(X, y)
        assert path.objectives[t] == pytest.approx(cold.objective_, rel=2e-7)


@pytest.mark.parametrize("penalty", [L1(), GroupL2(), ElasticNet()], ids=str)
def test_the_objectives_are_those_of_the_returned_coefficients(penalty):
    X, y = wide(seed=1)
    path = svm_path(X, y, penalty=penalty, n_alphas=20)
    _, problem = read_problem(X, y, Hinge(), penalty, True, None, None, None)
    for alpha, coef, intercept, objective in zip(
        path.alphas, path.coefs, path.intercepts, path.objectives, strict=True
    ):
        at = problem.with_alpha(alpha)
        assert at.objective(coef.toarray(), intercept) == pytest.approx(objective, rel=1e-12)


def test_dual_points_that_were_scaled_along_are_feasible():
    X, y = wide(seed=2)
    _, problem = read_problem(X, y, Hinge(), GroupL2(), True, None, None, None)
    steps, grid = first_steps(problem, "auto", Control(tol=1e-5), None, 60, 1e-3)
    reused = 0
    for alpha in grid:
        solution = steps.solve(alpha)
        at = problem.with_alpha(alpha)
        fresh = certify(at, solution.coef, solution.intercept, solution.dual)
        # The bound carried over is never better than what the dual point itself proves.
        assert solution.dual_objective <= fresh.dual_objective * (1 + 1e-12) + 1e-15
        assert solution.objective == pytest.approx(fresh.objective, rel=1e-12)
        assert fresh.within(1e-5)
        reused += solution.n_iter == 0
    assert reused > 20


def test_alphas_run_from_alpha_max_down_and_the_first_point_is_zero():
    X, y = wide()
    path = svm_path(X, y, penalty="l1/l2", n_alphas=10, eps=0.3)
    largest = alpha_max(X, y, penalty="l1/l2")
    assert (1 - 1e-6) * largest <= path.alphas[0] <= largest / 0.95
    assert path.alphas[-1] == pytest.approx(0.3 * path.alphas[0])
    assert np.all(np.diff(path.alphas) < 0)
    assert path.nonzeros[0] == 0
    assert path.n_selected[-1] > 5
    assert np.all(np.diff(path.objectives) <= 1e-12)


def test_all_processors_follow_the_same_path_as_one():
    X, y = wide()
    one, all_of_them = (svm_path(X, y, n_alphas=5, n_jobs=n_jobs) for n_jobs in (None, -1))
    np.testing.assert_allclose(all_of_them.objectives, one.objectives, rtol=1e-4)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        svm_path(X, y, n_jobs=0)


def test_given_alphas_are_solved_in_decreasing_order_also_above_alpha_max():
    X, y = wide()
    largest = alpha_max(X, y)
    path = svm_path(X, y, alphas=[0.1 * largest, 3.0 * largest, 0.5 * largest, 1.01 * largest])
    np.testing.assert_allclose(path.alphas, largest * np.array([3.0, 1.01, 0.5, 0.1]))
    assert path.n_selected[0] == path.n_selected[1] == 0
    assert path.n_selected[2] > 0
    assert path.converged


def test_coefficients_are_sparse_and_predict_like_a_fit():
    X, y = wide()
    labels = np.array(["a", "b", "c"])[y]
    path = svm_path(X, labels, alphas=grid(X, y, 8, 0.02), tol=1e-8)
    assert all(sp.issparse(coef) and coef.format == "csr" for coef in path.coefs)
    assert all(coef.nnz == np.count_nonzero(coef.data) for coef in path.coefs)
    model = SparseSVC(alpha=path.alphas[5], tol=1e-8).fit(X, labels)
    scores = X @ path.coefs[5].T + path.intercepts[5]
    np.testing.assert_array_equal(path.classes[scores.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(path.classes, ["a", "b", "c"])


def test_two_classes_have_one_row_of_weights():
    X, y = wide(K=2)
    path = svm_path(X, y, alphas=grid(X, y, 5, 1e-3))
    assert path.coefs[0].shape == (1, X.shape[1])
    assert path.intercepts.shape == (5, 1)
    assert path.converged


def test_dense_and_sparse_data_have_the_same_path():
    X, y = wide()
    X[np.random.default_rng(3).random(X.shape) < 0.6] = 0.0
    dense = svm_path(X, y, penalty="l1/l2", n_alphas=8, tol=1e-8)
    for other in (sp.csr_matrix(X), sp.csc_matrix(X)):
        path = svm_path(other, y, penalty="l1/l2", alphas=dense.alphas, tol=1e-8)
        np.testing.assert_allclose(path.objectives, dense.objectives, rtol=3e-8)


def test_a_path_of_float32_data_is_certified_for_the_rounded_coefficients():
    X, y = wide()
    path = svm_path(X.astype(np.float32), y, n_alphas=6, eps=0.05)
    assert path.coefs[-1].dtype == np.float32
    assert path.intercepts.dtype == np.float32
    assert path.converged


def test_unpenalised_features_and_weights_enter_the_path():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, y.size)
    penalty = L1(weights=[0.0, 1.0, 1.0, 1.0])
    path = svm_path(X, y, penalty=penalty, sample_weight=weight, n_alphas=5, tol=1e-8)
    assert path.coefs[0].toarray()[:, 1:].any() == 0
    assert path.coefs[0].toarray()[:, 0].any()
    cold = SparseSVC(penalty=penalty, alpha=path.alphas[3], tol=1e-8).fit(X, y, weight)
    assert path.objectives[3] == pytest.approx(cold.objective_, rel=1e-7)


def test_l2_uses_every_feature():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    path = svm_path(X, y, penalty="l2", alphas=[1.0, 0.1, 0.01])
    assert path.converged
    assert np.all(path.nonzeros == 3 * X.shape[1])


def test_what_is_wrong_with_the_grid_is_said():
    X, y = wide()
    for alphas in ([], [1.0, -1.0], [np.nan], [0.0]):
        with pytest.raises(ValueError, match="alphas must be positive"):
            svm_path(X, y, alphas=alphas)
    with pytest.raises(ValueError, match="n_alphas"):
        svm_path(X, y, n_alphas=0)
    with pytest.raises(ValueError, match="eps"):
        svm_path(X, y, eps=1.5)


def test_a_point_without_the_tolerance_is_told():
    X, y = wide()
    path = svm_path(X, y, n_alphas=4, eps=0.05, max_iter=1)
    assert not path.converged
    assert path.statuses[-1] != "optimal"
    assert path.gaps[-1] > 1e-4


def test_the_path_is_the_same_from_run_to_run():
    X, y = wide()
    first, second = (svm_path(X, y, penalty="l1/l2", n_alphas=15) for _ in range(2))
    for a, b in zip(first.coefs, second.coefs, strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())


def test_restricting_a_problem_keeps_its_values():
    X, y = wide()
    _, problem = read_problem(X, y, Hinge(), GroupL2(groups=5), True, None, None, None)
    features = np.arange(20, 60, dtype=np.int32)
    part = Restriction.to(problem, features).at(0.3)
    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((3, 40)), rng.standard_normal(3)
    assert part.part.objective(coef, intercept) == pytest.approx(
        part.whole.objective(part.lift(coef), intercept), rel=1e-13
    )
    np.testing.assert_array_equal(part.drop(part.lift(coef)), coef)


def test_features_left_out_at_first_are_found_again():
    """From far away, with everything near its limit left out, the optimum is still reached."""
    X, y = wide(seed=5)
    _, problem = read_problem(X, y, Hinge(), L1(), True, None, None, None)
    steps = Continuation(problem, "auto", Control(tol=1e-6))
    largest = quick_bound(problem).value
    steps.solve(0.999 * largest)
    far = steps.solve(0.01 * largest)
    cold = SparseSVC(alpha=0.01 * largest, tol=1e-6).fit(X, y)
    assert far.converged
    assert far.objective == pytest.approx(cold.objective_, rel=2e-6)


def test_groups_near_their_limit_open_beside_any_number_of_used_ones():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 400)), np.arange(40) % 2
    _, problem = read_problem(X, y, Hinge(), GroupL2(), True, None, None, None)
    steps = Continuation(problem, "auto", Control(tol=1e-4))
    used = np.arange(120)
    coef = np.zeros((1, 400))
    coef[:, used] = 1.0
    strength = np.zeros(400)
    strength[used], strength[200:210] = 1.0, 0.99
    solution = replace(steps.solve(0.1), coef=coef)
    steps._last = replace(steps._last, solution=solution, strength=strength)
    np.testing.assert_array_equal(steps._opening(0.09), [*used, *range(200, 210)])


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "ovr_squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_smooth_losses_have_certified_paths_too(loss, penalty):
    X, y = wide()
    path = svm_path(X, y, loss=loss, penalty=penalty, n_alphas=12, eps=0.02, tol=1e-6)
    assert path.converged
    assert path.nonzeros[0] == 0
    cold = SparseSVC(loss, penalty, alpha=path.alphas[8], tol=1e-6).fit(X, y)
    assert path.objectives[8] == pytest.approx(cold.objective_, rel=2e-6)


@pytest.mark.parametrize("penalty", [L1(), GroupL2(groups=5), GroupLinf(groups=5, per_class=True)])
def test_what_a_solver_vouches_for_is_certified_on_all_features(penalty):
    X, y = wide(seed=3)
    _, problem = read_problem(X, y, Hinge(), penalty, True, None, None, None)
    steps = Continuation(problem, "auto", Control(tol=1e-6))
    steps.begin_at_zero(largest_alpha(problem))
    for share in (0.5, 0.45, 0.2):
        found = steps.solve(share * quick_bound(problem).value)
        proof = certify(steps.at(steps._last.alpha), found.coef, found.intercept, found.dual)
        assert found.converged
        assert found.objective == pytest.approx(proof.objective, rel=1e-13)
        assert found.dual_objective == pytest.approx(proof.dual_objective, rel=1e-10)
        assert found.coef.any()


def test_a_far_step_goes_to_the_solver_whole(monkeypatch):
    X, y = wide(seed=3)
    _, problem = read_problem(X, y, Hinge(), L1(), True, None, None, None)
    largest = largest_alpha(problem)
    seen = []
    kept = Restriction.to
    monkeypatch.setattr(
        Restriction,
        "to",
        lambda whole, features: seen.append(features.size) or kept(whole, features),
    )
    for share, restricted in ((0.1, False), (0.8, True)):
        steps = Continuation(problem, "auto", Control(tol=1e-6))
        steps.begin_at_zero(largest)
        assert steps.solve(share * largest.value).converged
        assert bool(seen) == restricted


class Boaster(InteriorPoint):
    """Vouches for zero weights with a bound that they would need."""

    name = "boaster"

    def attempt(self, problem, start, control):
        zero = np.zeros((problem.n_outputs, problem.d))
        return Attempt(zero, np.zeros(problem.n_outputs), np.zeros((problem.n, 3)), 1.0)


def test_a_solver_whose_word_does_not_hold_is_asked_to_solve():
    X, y = wide(seed=3)
    steady = svm_path(X, y, n_alphas=5, eps=0.1, tol=1e-6)
    found = svm_path(X, y, alphas=steady.alphas, solver=Boaster(), tol=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.objectives, steady.objectives, rtol=2e-6)
