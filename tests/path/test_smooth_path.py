"""Paths of smooth losses in native code: points, bounds and certificates."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from reference import smooth
from sparsvm import _core, alpha_max, svm_path
from sparsvm.certificate.certify import certify
from sparsvm.path.alpha_max import quick_bound
from sparsvm.path.smooth_path import SmoothPath
from sparsvm.path.svm_path import first_steps, read_problem
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control
from sparsvm.solvers.run.native import smooth_problem

LOSSES = ("logistic", "squared_hinge", "ovr_squared_hinge")
PENALTIES = (
    L1(),
    ElasticNet(l1_ratio=0.7),
    GroupL2(),
    GroupLinf(),
    SparseGroup(groups=3),
    GroupL2(groups=4, per_class=True),
    L1(weights=np.r_[0.0, np.ones(10), 2.0]),
    GroupL2(weights=np.r_[0.0, 0.0, np.ones(10)]),
)


def data(seed, K=3, n=40, d=12):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d))
    X[:, :4] += 0.7 * rng.standard_normal((K, 4))[y]
    return X, y, rng.uniform(0.2, 2.0, n)


def native_path(X, y, loss, penalty, share=1e-2, points=8, tol=1e-6, sample_weight=None):
    """Return the problem, the alphas and the native points, found on a falling grid."""
    _, problem = read_problem(X, y, loss, penalty, True, None, sample_weight, None)
    largest = quick_bound(problem).value
    grid = largest * np.geomspace(1.0, share, points)
    steps, _ = first_steps(problem, "auto", Control(tol=tol), grid, points, 0.5)
    assert SmoothPath.follows(steps, np.dtype(float))
    path = SmoothPath(steps)
    return problem, grid, [path.point(alpha) for alpha in grid]


@pytest.mark.parametrize(("loss", "penalty"), list(product(LOSSES, PENALTIES)), ids=str)
@pytest.mark.parametrize("K", [2, 4])
def test_native_points_and_bounds_enclose_the_optimum(loss, penalty, K):
    X, y, weights = data(K + 10)
    problem, grid, points = native_path(X, y, loss, penalty, sample_weight=weights)
    assert all(point is not None for point in points)
    assert max(point.gap for point in points) <= 1e-6
    for t in (3, 7):
        oracle = smooth.solve(problem.with_alpha(grid[t]))
        slack = oracle.accuracy + 1e-12
        assert points[t].bound <= oracle.value + slack
        assert points[t].objective >= oracle.value - slack


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_native_certificate_is_the_one_of_python(loss, sparse):
    X, y, _ = data(7, K=3)
    X = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0)) if sparse else X
    for penalty in (L1(), GroupL2(), GroupLinf(), SparseGroup(groups=3)):
        problem, grid, points = native_path(X, y, loss, penalty)
        for alpha, point in zip(grid, points, strict=True):
            at = problem.with_alpha(alpha)
            proof = certify(at, point.coef.toarray(), point.intercept, None)
            assert point.objective == pytest.approx(proof.objective, rel=1e-13)
            assert point.bound <= proof.dual_objective + 1e-13 * proof.objective
            assert point.bound == pytest.approx(proof.dual_objective, rel=1e-7)
            assert point.loss == pytest.approx(
                proof.objective - alpha * at.penalty.value(point.coef.toarray()), rel=1e-12
            )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("free", [0, 2])
def test_columns_with_means_far_above_their_spread_are_left_to_no_other_solver(loss, free):
    """The rounding of scores leaves slopes out of balance; the certificate repairs the dual."""
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = 1000.0 + rng.standard_normal((45, 20)) + 0.8 * rng.standard_normal((3, 20))[y]
    penalty = L1(weights=np.r_[np.zeros(free), np.ones(20 - free)])
    problem, grid, points = native_path(X, y, loss, penalty, 1e-3, 12, 1e-4)
    for alpha, point in zip(grid, points, strict=True):
        assert point is not None
        assert point.gap <= 1e-4
        proof = certify(problem.with_alpha(alpha), point.coef.toarray(), point.intercept, None)
        assert proof.relative_gap <= 1.1e-4


def test_intercepts_of_native_points_sum_to_zero_where_only_differences_count():
    X, y, _ = data(3)
    for point in native_path(X, y, "logistic", L1())[2]:
        assert abs(point.intercept.sum()) <= 1e-14


def test_a_point_that_the_native_path_leaves_is_solved_by_others(monkeypatch):
    X, y, _ = data(5)
    native = SmoothPath.point
    asked = []

    def failing(self, alpha):
        asked.append(alpha)
        return None if len(asked) == 3 else native(self, alpha)

    alphas = alpha_max(X, y, "logistic", "l1") * np.geomspace(1.0, 1e-2, 6)
    whole = svm_path(X, y, loss="logistic", alphas=alphas, tol=1e-7)
    monkeypatch.setattr(SmoothPath, "point", failing)
    mixed = svm_path(X, y, loss="logistic", alphas=alphas, tol=1e-7)
    assert len(asked) == 6
    assert mixed.converged
    np.testing.assert_allclose(mixed.objectives, whole.objectives, rtol=2e-7)


def test_more_weights_than_a_model_holds_are_left_to_descent():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 700)), np.arange(60) % 6
    path = svm_path(X, y, loss="logistic", penalty="l1/l2", n_alphas=4, eps=1e-2, tol=1e-4)
    assert path.converged
    assert path.gaps.max() <= 1e-4


def test_the_native_path_refuses_what_does_not_fit():
    X, y, _ = data(1)
    _, problem = read_problem(X, y, "logistic", "l1", True, None, None, None)
    native = smooth_problem(problem)
    good = {"column_norms": np.ones(12), "tol": 1e-4, "max_iter": 10, "callback": None}
    for wrong in ({"column_norms": np.ones(11)}, {"tol": 0.0}, {"tol": np.nan}, {"max_iter": -1}):
        with pytest.raises(ValueError, match=r"."):
            _core.SmoothPath(native, **{**good, **wrong})
    path = _core.SmoothPath(native, **good)
    for alpha in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="alpha must be positive"):
            path.solve(alpha)
    with pytest.raises(ValueError, match=r"."):
        path.start(np.zeros((12, 2)), np.zeros(3))
    with pytest.raises(ValueError, match=r"."):
        path.start(np.full((12, 3), np.nan), np.zeros(3))
    assert path.solve(0.1)["converged"]


@pytest.mark.parametrize(("loss", "penalty"), list(product(LOSSES, PENALTIES[:4])), ids=str)
def test_points_and_cold_fits_agree_within_their_gaps_whatever_the_order_of_alphas(loss, penalty):
    # Alphas that are repeated, rise or come in steps of any length: the secant may only help.
    X, y, weights = data(11, K=5, n=60)
    _, problem = read_problem(X, y, loss, penalty, True, None, weights, None)
    largest = quick_bound(problem).value
    grid = largest * np.array([1.0, 0.8, 0.8, 0.7, 0.69, 0.2, 0.5, 0.05, 0.049, 0.3])
    steps, _ = first_steps(problem, "auto", Control(tol=1e-5), grid, grid.size, 0.5)
    path = SmoothPath(steps)
    for alpha in grid:
        point = path.point(alpha)
        assert point is not None
        cold = SmoothPath(steps).point(alpha)
        assert cold is not None
        assert point.bound <= cold.objective * (1 + 1e-14)
        assert cold.bound <= point.objective * (1 + 1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_by_panels_of_columns_are_those_of_sparse_columns(loss):
    # Dense columns are multiplied by BLAS in panels, thin ones walked: the same path either way.
    X, y, _ = data(4, K=13, n=90, d=40)
    options = {"loss": loss, "penalty": "l1/l2", "n_alphas": 6, "eps": 0.02, "tol": 1e-8}
    dense, sparse = svm_path(X, y, **options), svm_path(sp.csr_array(X), y, **options)
    assert dense.nonzeros[-1] > 300
    np.testing.assert_allclose(dense.objectives, sparse.objectives, rtol=2e-8)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", L1(weights=np.r_[0.0, np.ones(39)])])
def test_one_vs_rest_with_penalties_on_single_weights_is_one_path_for_each_class(penalty):
    # Nothing couples the classes then: the Newton systems are solved class by class.
    X, y, _ = data(8, K=5, n=90, d=40)
    path = svm_path(
        X, y, loss="ovr_squared_hinge", penalty=penalty, n_alphas=12, eps=0.01, tol=1e-8
    )
    assert path.nonzeros[-1] > 60
    total = np.zeros(12)
    for k in range(5):
        alone = svm_path(
            X, y == k, loss="squared_hinge", penalty=penalty, alphas=path.alphas, tol=1e-8
        )
        total += alone.objectives
    np.testing.assert_allclose(path.objectives, total, rtol=2e-8)


def test_columns_that_are_there_twice_take_hardly_more_iterations():
    """Weight exchanged between copies has no curvature: steps are not lost in rounding there."""
    X, y = make_classification(
        1000,
        100,
        n_informative=8,
        n_redundant=0,
        n_classes=5,
        n_clusters_per_class=1,
        random_state=0,
    )

    def iterations(X):
        loss, penalty = "squared_hinge", GroupL2()
        _, problem = read_problem(X, y, loss, penalty, True, None, None, None)
        grid = quick_bound(problem).value * np.geomspace(1.0, 1e-3, 100)
        steps, _ = first_steps(problem, "auto", Control(tol=1e-3), grid, 100, 0.5)
        native = SmoothPath(steps)._native
        found = [native.solve(alpha) for alpha in grid]
        assert all(point["converged"] for point in found)
        return sum(point["iterations"] for point in found)

    assert iterations(np.hstack([X, X[:, :30]])) <= 1.5 * iterations(X)


@pytest.mark.parametrize("K", [2, 3, 6, 12])
@pytest.mark.parametrize("separated", [False, True])
def test_the_native_logistic_loss_has_the_digits_of_its_formula(K, separated):
    rng = np.random.default_rng(K)
    y = np.arange(30 * K) % K
    X = 10.0 ** rng.uniform(-9, 2, (y.size, K)) * rng.choice([-1.0, 1.0], (y.size, K))
    if separated:  # all losses are small: log(1 + s) must keep the digits of s
        X = np.eye(K)[y] + 1e-3 * rng.standard_normal((y.size, K))
    share = 1e-7 if separated else 1e-3
    problem, _, points = native_path(X, y, "logistic", L1(), share=share, tol=1e-4)
    found = 0
    for point in points:
        if point is None:
            continue
        found += 1
        W, b = point.coef.toarray().astype(np.longdouble), point.intercept.astype(np.longdouble)
        S = X.astype(np.longdouble) @ W.T + b
        S = np.column_stack([np.zeros(y.size), S]) if K == 2 else S
        terms = np.exp(S - S[np.arange(y.size), y][:, None])
        terms[np.arange(y.size), y] = 0.0
        exact = np.sum(problem.mass * np.log1p(np.sum(terms, axis=1)))
        # Of the sum over the samples, and of the scores, which losses have as they are large.
        rounding = (y.size + 8) * np.finfo(float).eps * (1.0 + np.abs(S).max())
        assert abs(point.loss - exact) <= rounding * exact
    assert found >= 6 and (exact < 1e-4 or not separated)
