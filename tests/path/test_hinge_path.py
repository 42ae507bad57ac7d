"""Paths of the hinge in native code: points, bounds and proofs."""

import numpy as np
import pytest
import scipy.sparse as sp

from reference.oracles import objective, solve
from sparsvm import SparseSVCCV, _core, svm_path
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge
from sparsvm.path.alpha_max import largest_alpha
from sparsvm.path.hinge_path import FAILURES, HingePath
from sparsvm.path.svm_path import first_steps, read_problem
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint
from sparsvm.solvers.registry import PathPlan
from sparsvm.solvers.run.native import hinge_problem

DOUBLE = np.dtype(float)
CASES = {
    "l1": {},
    "two classes": {"K": 2},
    "without intercept": {"intercept": False},
    "rows": {"penalty": GroupL2()},
    "largest entries of rows": {"penalty": GroupLinf()},
    "groups of single classes": {"penalty": GroupL2(groups=3, per_class=True)},
    "groups of all classes": {"penalty": GroupLinf(groups=3)},
    "entries and rows": {"penalty": SparseGroup()},
    "weights, two of them zero": {"penalty": L1(weights=np.r_[0.0, 0.0, 2.0, np.ones(37)])},
    "costs": {"loss": Hinge(margin=np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0.0]]))},
    "samples of different weight": {"weighted": True},
    "sparse data": {"sparse": True, "penalty": GroupL2()},
    "entries of sparse data": {"sparse": True, "K": 4},
}


def problem_of(case, seed):
    """Return a small random problem."""
    options = CASES[case]
    rng = np.random.default_rng(seed)
    n, d, K = 30, 40, options.get("K", 3)
    y = np.arange(n) % K
    X = rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((K, d))[y]
    if options.get("sparse"):
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    weight = rng.uniform(0.3, 2.0, n) if options.get("weighted") else None
    loss, penalty = options.get("loss", "hinge"), options.get("penalty", "l1")
    intercept = options.get("intercept", True)
    return read_problem(X, y, loss, penalty, intercept, None, weight, None)[1]


def native_path(problem, points=30, last=0.05, tol=1e-4, ahead=True, solver="auto", dtype=DOUBLE):
    """Return the alphas and what the native path finds there."""
    alphas = largest_alpha(problem).value * np.geomspace(0.95, last, points)
    steps, grid = first_steps(problem, solver, Control(tol=tol), alphas, 0, 0.0)
    assert HingePath.follows(steps)
    path = HingePath(steps, grid, dtype, ahead=ahead, solutions=True)
    return grid, [path.point(t) for t in range(grid.size)]


@pytest.mark.parametrize("case", CASES)
def test_native_points_and_bounds_enclose_the_optimum(case):
    problem = problem_of(case, seed=3)
    grid, found = native_path(problem)
    assert all(point is not None for point in found)
    for t in range(0, grid.size, 5):
        at = problem.with_alpha(grid[t])
        (point, solution), oracle = found[t], solve(at)
        error = 1e-6 * abs(oracle.value) + oracle.accuracy
        assert point.bound <= oracle.value + error
        assert oracle.value <= point.objective + error
        assert point.objective == pytest.approx(
            objective(at, solution.coef, solution.intercept), rel=1e-9
        )


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("case", CASES)
def test_the_native_proof_is_the_one_of_python(case, tol):
    problem = problem_of(case, seed=4)
    grid, found = native_path(problem, tol=tol)
    solved = 0
    for alpha, (point, solution) in zip(grid, found, strict=True):
        at = problem.with_alpha(alpha)
        proof = certify(at, solution.coef, solution.intercept, solution.dual)
        assert point.status == "optimal"
        assert point.gap <= tol
        assert solution.dual.min() >= 0.0
        assert solution.dual.sum(axis=1) == pytest.approx(at.mass, rel=1e-13)
        assert point.objective == pytest.approx(proof.objective, rel=1e-12)
        # Another certificate may scale the dual by the rounding of one more product.
        assert proof.dual_objective == pytest.approx(point.bound, rel=1e-9)
        np.testing.assert_array_equal(point.coef.toarray(), solution.coef)
        assert point.n_selected == np.count_nonzero(solution.coef.any(axis=0))
        assert point.loss == pytest.approx(
            proof.objective - alpha * at.penalty.value(solution.coef), rel=1e-9
        )
        solved += solution.n_iter > 0
    # At a tolerance that the grid is fine enough for, some are proven by their neighbours.
    assert 0 < solved < (grid.size if tol == 1e-3 else grid.size + 1)


@pytest.mark.parametrize("case", ["l1", "rows", "entries of sparse data"])
def test_points_are_the_same_one_at_a_time_and_all_at_once(case):
    problem = problem_of(case, seed=5)
    _, one = native_path(problem, ahead=False)
    _, all_of_them = native_path(problem, ahead=True)
    for (first, _), (second, _) in zip(one, all_of_them, strict=True):
        assert (first.objective, first.bound) == (second.objective, second.bound)
        assert (first.coef != second.coef).nnz == 0


def test_rough_and_sharp_bounds_enclose_each_other_on_correlated_and_on_scaled_columns():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    for scale in (np.ones(120), 10.0 ** rng.uniform(-3, 3, 120)):
        X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 120))
        X += 0.3 * rng.standard_normal((80, 120)) + 0.5 * rng.standard_normal((4, 120))[y]
        for penalty in ("l1", "l1/l2", "l1/linf"):
            _, problem = read_problem(X * scale, y, "hinge", penalty, True, None, None, None)
            rough, sharp = (native_path(problem, 12, 0.02, tol)[1] for tol in (1e-2, 1e-6))
            for one, other in zip(rough, sharp, strict=True):
                assert one.point.bound <= other.point.objective
                assert other.point.bound <= one.point.objective


def test_coefficients_of_single_precision_are_proven_as_they_are():
    problem = problem_of("l1", seed=6)
    grid, found = native_path(problem, tol=1e-3, dtype=np.dtype(np.float32))
    for alpha, (point, solution) in zip(grid, found, strict=True):
        assert point.coef.dtype == point.intercept.dtype == np.float32
        coef, intercept = point.coef.toarray().astype(float), point.intercept.astype(float)
        np.testing.assert_array_equal(coef, solution.coef)
        proof = certify(problem.with_alpha(alpha), coef, intercept, solution.dual)
        assert proof.objective == pytest.approx(point.objective, rel=1e-12)
        assert proof.relative_gap <= 1.01e-3


def data(n=60, d=80, K=3, seed=7):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((K, d))[y], y


@pytest.mark.parametrize("missing", [1, FAILURES + 1])
def test_points_that_the_native_path_leaves_are_solved_by_others(monkeypatch, missing):
    X, y = data()
    alphas = 0.2 * np.geomspace(1.0, 0.05, 24)
    whole = svm_path(X, y, alphas=alphas)
    native, lost = HingePath.point, []

    def failing(self, t):
        if t % 4 == 2 and len(lost) < missing:
            lost.append(t)
            monkeypatch.setattr(self, "_ready", [])
            with monkeypatch.context() as unable:
                unable.setattr(self, "_native", Unable(self._native))
                return native(self, t)
        return native(self, t)

    monkeypatch.setattr(HingePath, "point", failing)
    mixed = svm_path(X, y, alphas=alphas)
    assert len(lost) == missing
    assert mixed.converged
    for one, other in ((mixed, whole), (whole, mixed)):
        assert (one.objectives * (1.0 - one.gaps) <= other.objectives * (1.0 + 1e-12)).all()


class Unable:
    """A native path that proves nothing."""

    def __init__(self, native):
        self.last = native.last

    def follow(self, grid, enough):
        return []


def test_cross_validation_keeps_the_proofs_of_native_points():
    X, y = data()
    model = SparseSVCCV(n_alphas=12, cv=3).fit(X, y)
    assert 0.0 < model.dual_gap_ <= model.tol
    assert model.n_iter_ > 0


def test_which_paths_are_native():
    X, y = data()

    def follows(loss="hinge", penalty="l1", solver="auto", X=X, y=y, **control):
        _, problem = read_problem(X, y, loss, penalty, True, None, None, None)
        steps, _ = first_steps(problem, solver, Control(**control), [0.1, 0.01], 0, 0.0)
        return HingePath.follows(steps)

    assert follows()
    assert follows(solver=InteriorPoint(max_iter=50))
    assert not follows(solver="sdca")
    assert not follows(loss="logistic")
    assert not follows(penalty=ElasticNet())
    assert not follows(max_iter=7)
    many = dict(zip("Xy", data(n=501), strict=True))
    assert follows(**many)
    assert not follows(penalty=L1(weights=np.r_[0.0, np.ones(79)]), **many)


def test_the_native_path_refuses_what_does_not_fit():
    X, y = data(n=12, d=5)
    _, problem = read_problem(X, y, "hinge", "l1", True, None, None, None)
    native = hinge_problem(problem)
    good = {
        "column_norms": np.ones(5),
        "column_dual_norm": 1.0,
        "tol": 1e-4,
        "reach": 1.0,
        "max_iter": 10,
        "plan": np.array(PathPlan()),
        "single_precision": False,
        "keep_duals": False,
        "callback": None,
    }
    for wrong in (
        {"column_norms": np.ones(4)},
        {"tol": 0.0},
        {"tol": np.nan},
        {"max_iter": -1},
        {"reach": -1.0},
        {"plan": np.full(7, np.nan)},
        {"plan": np.zeros(6)},
        {"column_dual_norm": np.inf},
    ):
        with pytest.raises(ValueError, match=r"."):
            _core.HingePath(native, **{**good, **wrong})
    path = _core.HingePath(native, **good)
    with pytest.raises(RuntimeError, match="start"):
        path.last()
    assert path.follow(np.array([0.1]), 1) == []
    for alpha in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="alphas must be positive"):
            path.follow(np.array([alpha]), 1)
    with pytest.raises(ValueError, match=r"."):
        point = {"weights": np.zeros((5, 2)), "intercept": np.zeros(3), "dual": np.zeros((12, 3))}
        path.start(0.1, **point, loss=1.0, penalty=0.0, bound=1.0, zero=True)


def test_sweeps_that_prove_nothing_are_not_followed_by_newton_steps():
    X, y = data(n=12, d=5)
    _, problem = read_problem(X, y, "hinge", "l1", True, None, None, None)
    path = _core.HingePath(
        hinge_problem(problem),
        column_norms=np.ones(5),
        # Rounding errors of this size leave no bound at a tiny alpha.
        column_dual_norm=1e308,
        tol=1e-4,
        reach=1.0,
        max_iter=10,
        plan=np.array(PathPlan(exact_step=0.0)),
        single_precision=False,
        keep_duals=False,
        callback=None,
    )
    weights, intercept = np.zeros((5, problem.n_outputs)), np.zeros(problem.n_outputs)
    point = {"weights": weights, "intercept": intercept, "dual": np.zeros((12, problem.n_classes))}
    path.start(0.1, **point, loss=1.0, penalty=0.0, bound=0.5, zero=True)
    assert path.follow(np.array([1e-20]), 1) == []


def many(seed=0, n=520, d=30, K=4, sparse=False, shift=0.0):
    """Return more samples than the interior point takes, of overlapping classes of unequal size."""
    rng = np.random.default_rng(seed)
    y = np.minimum(rng.geometric(0.4, n) - 1, K - 1)
    X = rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((K, d))[y] + shift
    return (sp.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0)) if sparse else X), y


@pytest.mark.parametrize("penalty", [L1(), GroupL2(), GroupLinf(), SparseGroup(groups=3)], ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse", "two classes", "shifted"])
def test_points_on_many_samples_are_proven_as_python_proves_them(penalty, kind):
    options = {"sparse": kind == "sparse", "K": 2 if kind == "two classes" else 4}
    X, y = many(**options, shift=30.0 if kind == "shifted" else 0.0)
    _, problem = read_problem(X, y, "hinge", penalty, True, None, None, None)
    grid, found = native_path(problem, points=12, last=0.1, tol=1e-3)
    swept = 0
    for alpha, native in zip(grid, found, strict=True):
        if native is None:
            continue
        (point, solution), at = native, problem.with_alpha(alpha)
        proof = certify(at, solution.coef, solution.intercept, solution.dual)
        assert point.gap <= 1e-3
        assert point.objective == pytest.approx(proof.objective, rel=1e-12)
        assert proof.dual_objective == pytest.approx(point.bound, rel=1e-9)
        swept += solution.n_iter > 50
    assert swept > 0 or kind == "two classes"
    assert sum(point is None for point in found) <= 1


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
def test_many_samples_have_the_optimum_that_others_find(penalty):
    X, y = many(seed=1)
    alphas = 0.2 * np.geomspace(1.0, 0.1, 6)
    auto = svm_path(X, y, penalty=penalty, alphas=alphas)
    sharp = svm_path(X, y, penalty=penalty, alphas=alphas, tol=1e-6, solver="interior_point")
    assert auto.converged
    for one, other in ((auto, sharp), (sharp, auto)):
        assert (one.objectives * (1.0 - one.gaps) <= other.objectives * (1.0 + 1e-12)).all()
