"""The interior point for smooth losses: its equations, and problems that stop other methods."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from sparsvm import SparseSVC
from sparsvm.data.design import make_design
from sparsvm.losses import LOSSES
from sparsvm.penalties import L1, GroupL2, GroupLinf, SparseGroup, as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import BlockNewton, InteriorPoint, choose
from sparsvm.solvers.smooth_interior_point import systems
from sparsvm.solvers.smooth_interior_point.run import InteriorPointRun
from sparsvm.solvers.smooth_interior_point.systems import (
    PenaltyCurvature,
    by_features,
    by_samples,
    factorised,
    features_work,
    samples_work,
)
from sparsvm.solvers.smooth_interior_point.working_set import ENTRY_WORK, STEP_WORK

SMOOTH = ("squared_hinge", "logistic", "ovr_squared_hinge")
PENALTIES = ("l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group")


def build(X, y, loss, penalty, alpha, **options):
    K = int(y.max()) + 1
    loss = LOSSES[loss]()
    terms = as_penalty(penalty).resolve(X.shape[1], 1 if K == 2 else K, None)
    return Problem(
        design=make_design(X),
        y=y.astype(np.int32),
        mass=np.full(y.size, 1.0 / y.size),
        cost=loss.cost_matrix(K),
        n_classes=K,
        alpha=alpha,
        loss=loss,
        penalty=terms,
        **options,
    )


def gaussian(seed, n, d, K, unscaled=False):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), np.arange(n) % K
    return (X * 10.0 ** rng.uniform(-2.0, 2.0, d) if unscaled else X), y


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("n_classes", "intercept"), [(2, True), (4, False), (4, True)])
def test_agrees_with_block_newton(loss, penalty, n_classes, intercept):
    X, y = gaussian(3, 30, 12, n_classes)
    X += np.random.default_rng(4).standard_normal((n_classes, 12))[y]
    problem = build(X, y, loss, penalty, 0.02, fit_intercept=intercept)
    control = Control(tol=1e-7)
    found = InteriorPoint().solve(problem, None, control)
    other = BlockNewton().solve(problem, None, control)
    assert found.status == other.status == "optimal"
    assert found.dual_objective <= other.objective and other.dual_objective <= found.objective


@pytest.mark.parametrize(
    "penalty",
    [
        L1(weights=[0.0, 2.0, 0.5] * 4),
        GroupL2(groups=[0, 0, 1, 1, 2, 2] * 2, weights=[0.0, *[1.0] * 11]),
        GroupL2(groups=[0, 0, 1, 1, 2, 2] * 2, per_class=True),
        GroupLinf(groups=[0, 0, 1, 1, 2, 2] * 2, per_class=True),
        SparseGroup(0.3, groups=[0, 0, 1, 1, 2, 2] * 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", SMOOTH)
def test_groups_weights_and_unpenalised_features(penalty, loss):
    X, y = gaussian(5, 40, 12, 3)
    problem = build(sp.csr_array(X), y, loss, penalty, 0.03)
    found = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    assert found.status == "optimal"
    other = BlockNewton().solve(problem, None, Control(tol=1e-6))
    assert found.dual_objective <= other.objective and other.dual_objective <= found.objective


@pytest.mark.parametrize("seed", range(12))
def test_small_problems_on_which_newton_steps_from_face_to_face_stall(seed):
    cases = (
        ("squared_hinge", "l1/linf", 1e-4, False),
        ("ovr_squared_hinge", "l1", 1e-3, True),
        ("squared_hinge", "l1/l2", 1e-5, True),
    )
    for loss, penalty, alpha, unscaled in cases:
        X, y = gaussian(seed, 40, 60, 6, unscaled)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = SparseSVC(loss, penalty, alpha=alpha, tol=1e-4).fit(X, y)
        assert model.dual_gap_ <= 1e-4


def test_features_beyond_the_working_set_are_priced():
    X, y = gaussian(0, 150, 1200, 3)
    X[:, :5] += 2.0 * np.random.default_rng(1).standard_normal((3, 5))[y]
    problem = build(X, y, "squared_hinge", "l1/l2", 0.05)
    found = InteriorPoint().solve(problem, None, Control(tol=1e-6))
    assert found.status == "optimal"
    other = BlockNewton().solve(problem, None, Control(tol=1e-6))
    assert found.objective <= other.objective * (1.0 + 1e-6)
    assert np.count_nonzero(found.coef.any(axis=0)) < 200


def test_the_coefficients_have_exact_zeros():
    X, y = gaussian(1, 40, 60, 6)
    model = SparseSVC("logistic", "l1", alpha=0.02, solver="interior_point", tol=1e-7).fit(X, y)
    reference = SparseSVC("logistic", "l1", alpha=0.02, tol=1e-7).fit(X, y)
    # A coefficient may be zero in one optimum to the tolerance and not in the other.
    assert np.count_nonzero((model.coef_ == 0.0) != (reference.coef_ == 0.0)) <= 2
    assert 20 < np.count_nonzero(model.coef_) < 120


def test_a_limit_of_steps_is_kept_and_said():
    X, y = gaussian(1, 40, 60, 6)
    problem = build(X, y, "logistic", "l1", 1e-3)
    found = InteriorPoint().solve(problem, None, Control(tol=1e-9, max_iter=3))
    assert (found.status, found.n_iter) == ("max_iter", 3)


def test_too_many_coefficients_are_refused_with_another_solver():
    X = sp.random_array(
        (50, 3000), density=0.01, random_state=np.random.default_rng(0), format="csr"
    )
    problem = build(X, np.arange(50) % 5, "logistic", "l2", 0.1)
    assert "Use block_newton" in InteriorPoint().unsupported(problem)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_both_sides_solve_the_same_equations(loss, penalty, n_classes):
    X, y = gaussian(2, 12, 9, n_classes)
    run = InteriorPointRun(build(X, y, loss, penalty, 0.05))
    for _ in range(4):
        assert run.step()
    for part in run.parts:
        part.prepare()
    penalty_part = PenaltyCurvature(run.square, [cones.curvature() for cones in run.cones])
    matrix = scipy.linalg.block_diag(*run._hessian()) + written_out(run)
    right = np.random.default_rng(0).standard_normal(matrix.shape[0])
    if n_classes > 2 and loss != "ovr_squared_hinge":
        right.reshape(n_classes, -1)[:, -1] -= right.reshape(n_classes, -1)[:, -1].mean()
    roots = run.loss.roots()
    for solve in (
        by_samples(run.X, run.outputs, n_classes, roots, penalty_part),
        by_features(run._hessian(), penalty_part),
    ):
        found = penalty_part.lower(solve(penalty_part.lift(right)))
        scale = np.abs(matrix @ found).max() + 1.0
        assert np.abs(matrix @ found - right).max() <= 1e-6 * scale


@pytest.mark.parametrize(
    "penalty",
    [
        "l1",
        "l1/linf",
        GroupL2(groups=np.arange(9) // 4),
        GroupL2(groups=np.arange(9) // 4, per_class=True),
        SparseGroup(groups=np.arange(9) // 4, weights=np.arange(9) % 3),
    ],
    ids=str,
)
def test_one_vs_rest_classes_are_factored_apart_and_step_as_one_system(penalty, monkeypatch):
    X, y = gaussian(2, 30, 9, 4)
    run = InteriorPointRun(build(X, y, "ovr_squared_hinge", penalty, 0.05))
    run.samples_are_accurate = False  # from the side of the features
    sizes = []

    def recorded(matrix):
        sizes.append(matrix.shape[0])
        return factorised(matrix)

    monkeypatch.setattr(systems, "factorised", recorded)
    for _ in range(4):
        assert run.step()
    assert max(sizes) <= 2 * run.width < run.V.size
    for part in run.parts:
        part.prepare()
    penalty_part = PenaltyCurvature(run.square, [cones.curvature() for cones in run.cones])
    hessian = run._hessian()
    assert hessian.shape == (4, run.width, run.width)
    right = penalty_part.lift(np.random.default_rng(0).standard_normal(run.V.size))
    apart = by_features(hessian, penalty_part)(right)
    joint = by_features(scipy.linalg.block_diag(*hessian)[None], penalty_part)(right)
    np.testing.assert_allclose(
        penalty_part.lower(apart), penalty_part.lower(joint), rtol=1e-7, atol=1e-9
    )


def test_an_empty_system_has_an_empty_solution():
    assert factorised(np.zeros((0, 0)))(np.zeros(0)).shape == (0,)


def written_out(run):
    """The curvature of the penalty by coordinates, D - r r' of each group."""
    matrix = np.diag(run.square)
    for part in (cones.curvature() for cones in run.cones):
        members, groups = part.cones.members, part.cones.groups
        rays = np.zeros((run.V.size, part.cones.size))
        rays[members, groups] = part.ray
        matrix[members, members] += part.diagonal
        matrix -= rays @ rays.T
    return matrix


def test_where_groups_are_tied_a_step_from_the_samples_keeps_its_digits():
    # Columns over four orders in groups of three, at an alpha where most of them are in use: with
    # D - r r' written out, or whole groups kept, this took matrices of the size of the features.
    rng = np.random.default_rng(0)
    X, y = gaussian(0, 20, 60, 4, unscaled=True)
    X += rng.standard_normal((4, 60))[y]
    run = InteriorPointRun(
        build(X, y, "ovr_squared_hinge", GroupLinf(groups=np.arange(60) // 3), 1e-3)
    )
    while run.complementarity > 1e-6 * run.problem.objective(*run.point()):
        assert run.step()
        assert run.samples_are_accurate


def test_wide_data_of_few_samples_go_on_by_the_interior_point():
    X, y = gaussian(0, 20, 810, 4)
    model = SparseSVC(
        "squared_hinge", GroupLinf(groups=np.arange(810) // 81), alpha=1e-4, tol=1e-4
    ).fit(X, y)
    assert model.result_.solver == "block_newton → interior_point"
    assert model.dual_gap_ <= 1e-4


@pytest.mark.parametrize(
    ("n", "d", "penalty"), [(138, 184, "l2"), (121, 247, "l1"), (50, 235, GroupLinf())]
)
def test_auto_tries_block_newton_for_the_work_that_this_solver_would_do(n, d, penalty):
    # Where samples are separated, Newton steps from kink to kink took many times that.
    problem = build(*gaussian(0, n, d, 9), "squared_hinge", penalty, 1e-3)
    first, second, *_ = choose(problem, Control(tol=1e-4)).stages
    assert second.solver == InteriorPoint()
    run, steps = InteriorPointRun(problem), 0
    while run.complementarity > 1e-4 * problem.objective(*run.point()):
        assert run.step()
        steps += 1
    p = problem.n_outputs * (d + 1)
    step = min(features_work(n, p), samples_work(n, 9, p, d if penalty == GroupLinf() else 0, 0))
    besides = STEP_WORK + ENTRY_WORK * n * p
    assert steps * step < first.solver.max_work < 3.0 * steps * (step + besides)


def test_auto_gives_block_newton_no_limit_where_this_solver_cannot_follow():
    problem = build(*gaussian(0, 40, 600, 9), "squared_hinge", "l2", 1e-3)
    assert InteriorPoint().unsupported(problem) is not None
    assert choose(problem, Control()).stages[0].solver.max_work is None


@pytest.mark.parametrize("seed", range(3))
def test_the_logistic_loss_of_separable_samples_at_a_tiny_alpha(seed):
    rng = np.random.default_rng(seed)
    X, y = gaussian(seed, 60, 14, 10)
    X *= rng.random(X.shape) < 0.3
    problem = build(X, y, "logistic", "l1", 2e-7)
    found = InteriorPoint().solve(problem, None, Control(tol=1e-4))
    assert found.status == "optimal"


def test_a_step_of_many_groups_stores_nothing_of_groups_times_features():
    X, y = gaussian(3, 10, 3000, 3)
    run = InteriorPointRun(build(X, y, "squared_hinge", "l1/linf", 0.05))
    tracemalloc.start()
    assert run.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * 8.0 * run.V.size * X.shape[1]


@pytest.mark.parametrize("penalty", ["l1/l2", "l1/linf", "sparse_group"])
def test_the_curvature_of_a_penalty_is_diagonal_in_more_coordinates(penalty):
    X, y = gaussian(2, 12, 9, 4)
    run = InteriorPointRun(build(X, y, "logistic", penalty, 0.05, fit_intercept=False))
    for _ in range(3):
        assert run.step()
    for part in run.parts:
        part.prepare()
    curvature = PenaltyCurvature(run.square, [cones.curvature() for cones in run.cones])
    V = np.random.default_rng(0).standard_normal(run.V.size)
    found = curvature.lower(curvature.lift(written_out(run) @ V) / curvature.curvature)
    np.testing.assert_allclose(found, V, rtol=1e-8)


def test_scaled_slacks_and_multipliers_of_round_cones_are_equal():
    X, y = gaussian(2, 12, 9, 4)
    run = InteriorPointRun(build(X, y, "logistic", "l1/l2", 0.05))
    for _ in range(3):
        assert run.step()
    (cones,) = run.cones
    cones.prepare()
    slack = cones._scaled(cones.t, cones.w, -1.0)
    multiplier = cones._scaled(cones.cones.weight, -cones.z, 1.0)
    for a, b in zip(slack, multiplier, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)
