"""alpha_max: zero weights are optimal there, and nowhere below."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_digits, load_iris, load_wine

from problems import FAMILIES, linear_terms, make
from sparsvm import SparseSVC, alpha_max, svm_path
from sparsvm.certificate.balance import free_columns
from sparsvm.certificate.certify import certify
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.path.alpha_max import GRID_PRECISION, largest_alpha, quick_bound
from sparsvm.path.svm_path import read_problem
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

NORMS = ("l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet")
PENALTIES = (L1(), GroupL2(), GroupLinf(), SparseGroup(), GroupL2(groups=2, per_class=True))


def drawn(per_family):
    for family in FAMILIES:
        if family is linear_terms:
            continue
        for seed in range(per_family):
            for penalty in NORMS[seed % 2 :: 2]:
                yield f"{family.__name__}-{seed}-{penalty}", make(seed, family, penalty)


CASES = dict(drawn(2))


@cache
def solved(name):
    return largest_alpha(CASES[name])


def dual_norm(problem, dual):
    G = problem.transposed(problem.signed_dual(dual))
    terms = problem.penalty
    if terms.is_norm:
        return terms.dual_norm(G)
    return np.abs(G * terms.inverse_omega).max(initial=0.0) / terms.l1_ratio


@pytest.mark.parametrize("name", CASES)
def test_a_dual_point_proves_zero_weights_optimal_at_alpha_max(name):
    problem, found = CASES[name], solved(name)
    # Feasible: rows within their masses, and nothing that intercepts or free features could use.
    off = found.dual.copy()
    off[np.arange(problem.n), problem.y] = 0.0
    assert np.all(off >= 0.0)
    assert np.all(off.sum(axis=1) <= problem.mass * (1 + 1e-12))
    if found.value == 0.0:
        return
    assert np.all(np.abs(free_columns(problem).T @ problem.signed_dual(off)) <= 1e-12)
    assert dual_norm(problem, off) <= found.value * (1 + 1e-12)
    zero_loss = problem.objective(found.zero.coef, found.zero.intercept)
    assert np.sum(off * problem.margins()) >= zero_loss * (1 - 1e-9)


@pytest.mark.parametrize("name", list(CASES)[::2])
def test_weights_better_than_zero_exist_just_below_alpha_max(name):
    problem, found = CASES[name], solved(name)
    assert found.value - found.lower <= 1e-6 * found.value
    if found.value == 0.0:
        return
    terms = problem.penalty
    if not terms.is_norm:
        # The quadratic part makes the gain below alpha_max second order: look at the l1 part.
        problem = replace(problem, penalty=terms.as_l1())
    share = 1.0 if terms.is_norm else terms.l1_ratio
    alpha = (1 - 1e-5) * found.value * share
    best = InteriorPoint().solve(replace(problem, alpha=alpha), None, Control(tol=1e-10))
    zero_loss = problem.objective(found.zero.coef, found.zero.intercept)
    assert best.objective < zero_loss
    assert problem.penalty.value(best.coef) > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_alpha_max_of_l1_is_the_linear_program_over_the_optimal_dual_face(seed):
    problem = make(seed, FAMILIES[0], "l1")
    n, K = problem.n, problem.n_classes
    X = problem.design.gather_columns(np.arange(problem.d, dtype=np.int32))
    classes = range(1, 2) if K == 2 else range(K)
    rows = sp.kron(sp.eye(n), np.ones((1, K)))
    true = np.eye(K)[problem.y] * problem.mass[:, None]
    entries = sp.vstack([sp.kron(np.ones((1, n)), np.eye(K)[[k]]) for k in range(K)])
    balance = entries.tocsr()
    gains = problem.margins().reshape(-1)
    first = linprog(
        -gains,
        A_eq=sp.vstack([rows, balance]),
        b_eq=np.concatenate([problem.mass, true.sum(axis=0)]),
    )
    correlations = sp.vstack([sp.kron(X.T, np.eye(K)[[k]]) for k in classes])
    shift = np.concatenate([X.T @ true[:, k] for k in classes])
    ones = np.ones((correlations.shape[0], 1))
    second = linprog(
        np.concatenate([np.zeros(n * K), [1.0]]),
        A_ub=sp.vstack(
            [
                sp.hstack([correlations, -ones]),
                sp.hstack([-correlations, -ones]),
                sp.csr_matrix(np.concatenate([-gains, [0.0]])),
            ]
        ),
        b_ub=np.concatenate([shift, -shift, [first.fun + 1e-10]]),
        A_eq=sp.hstack([sp.vstack([rows, balance]), np.zeros((n + K, 1))]),
        b_eq=np.concatenate([problem.mass, true.sum(axis=0)]),
    )
    assert largest_alpha(problem).value == pytest.approx(second.fun, rel=1e-5)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), Logistic(margin=1.0)])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_alpha_max_of_a_smooth_loss_is_the_dual_norm_of_its_gradient(loss, penalty):
    X, y = load_iris(return_X_y=True)
    counts = np.bincount(y) / y.size
    value = alpha_max(X, y, loss, penalty)
    # With equal classes the best intercepts are zero, by symmetry.
    assert counts.std() == 0.0
    margins = loss.cost_matrix(3)[y]
    slopes = loss.gradient(np.zeros((y.size, 3)), y, margins) / y.size
    expected = penalty.resolve(4, 3, None).dual_norm(slopes.T @ X)
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), OvrSquaredHinge(), Hinge()])
def test_the_zero_model_is_optimal_at_alpha_max_for_every_loss(loss):
    for seed in range(2):
        for family in FAMILIES:
            if family is linear_terms:
                continue
            problem = replace(make(seed, family, "l1"), loss=loss)
            found = largest_alpha(problem)
            if found.value > 0.0:
                at = replace(problem, alpha=found.value)
                proof = certify(at, found.zero.coef, found.zero.intercept, found.dual)
                assert proof.gap <= max(1e-8 * proof.objective, proof.floor), family.__name__


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_path_has_exact_zeros_at_alpha_max_and_a_weight_just_below(penalty):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    value = alpha_max(X, y, penalty=penalty)
    path = svm_path(X, y, penalty=penalty, alphas=[value, (1 - 1e-5) * value], tol=1e-9)
    assert path.nonzeros[0] == 0
    assert path.nonzeros[1] > 0
    assert path.converged


def test_a_fit_is_zero_above_alpha_max_and_not_below():
    X, y = load_iris(return_X_y=True)
    value = alpha_max(X, y)
    with pytest.warns(UserWarning, match="Every weight is zero"):
        above = SparseSVC(alpha=1.001 * value, tol=1e-8).fit(X, y)
    below = SparseSVC(alpha=0.999 * value, tol=1e-8).fit(X, y)
    assert not above.coef_.any()
    assert below.coef_.any()


def test_l2_never_gives_zero_weights():
    X, y = load_iris(return_X_y=True)
    assert alpha_max(X, y, penalty="l2") == np.inf
    assert alpha_max(X, y, penalty=ElasticNet(l1_ratio=0.0)) == np.inf
    assert alpha_max(X, y, loss="logistic", penalty="l2") == np.inf


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_elastic_net_divides_by_its_share_of_l1(loss):
    X, y = load_iris(return_X_y=True)
    l1 = alpha_max(X, y, loss, "l1")
    assert alpha_max(X, y, loss, ElasticNet(l1_ratio=0.25)) == pytest.approx(4 * l1, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "ovr_squared_hinge"])
def test_alpha_max_is_zero_where_no_feature_tells_the_classes_apart(loss):
    X = np.ones((12, 3))
    y = np.arange(12) % 3
    assert alpha_max(X, y, loss) == 0.0
    with pytest.raises(ValueError, match="alpha_max is 0"):
        svm_path(X, y, loss=loss)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_and_repetitions_have_the_same_alpha_max(loss):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 4, y.size)
    repeated = np.repeat(np.arange(y.size), weight)
    weighted = alpha_max(X, y, loss, "l1/l2", sample_weight=weight)
    assert weighted == pytest.approx(alpha_max(X[repeated], y[repeated], loss, "l1/l2"), rel=1e-9)


def test_alpha_max_scales_with_the_features_and_the_margin():
    X, y = load_iris(return_X_y=True)
    value = alpha_max(X, y)
    assert alpha_max(7 * X, y) == pytest.approx(7 * value, rel=1e-6)
    # Where zero is optimal, scores grow from zero and do not see the margin's size.
    assert alpha_max(X, y, Hinge(margin=5.0)) == pytest.approx(value, rel=1e-6)
    assert alpha_max(sp.csr_matrix(X), y) == pytest.approx(value, rel=1e-9)


def test_the_cheap_bound_is_never_below_alpha_max():
    for name, problem in CASES.items():
        assert quick_bound(problem).value >= (1 - 1e-6) * solved(name).value, name
    _, problem = read_problem(*load_iris(return_X_y=True), Hinge(), L1(), True, None, None, None)
    assert largest_alpha(problem).value <= quick_bound(problem).value
    assert quick_bound(problem).value <= 1.5 * largest_alpha(problem).value


@pytest.mark.parametrize("name", CASES)
def test_a_rough_alpha_max_is_certified_from_both_sides(name):
    problem, exact = CASES[name], solved(name)
    rough = largest_alpha(problem, GRID_PRECISION)
    assert (1 - 1e-6) * exact.value <= rough.value
    assert rough.lower <= exact.value * (1 + 1e-9)
    assert rough.value - rough.lower <= GRID_PRECISION * rough.value
    if rough.value == 0.0:
        return
    proof = certify(
        replace(problem, alpha=rough.value), rough.zero.coef, rough.zero.intercept, rough.dual
    )
    assert proof.gap <= max(1e-8 * proof.objective, proof.floor)


def test_a_dual_that_has_lost_its_balance_still_bounds_alpha_max_from_above():
    # Where a rough dual has no mass, no scaling of its entries is balanced between the classes.
    X, y = load_digits(return_X_y=True)
    bound = alpha_max(X, y, penalty="l1/linf", tol=0.05)
    fit = SparseSVC(penalty="l1/linf", alpha=0.949 * bound, tol=1e-4).fit(X, y)
    assert fit.coef_.any()


def test_a_tolerance_that_is_no_positive_number_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="tol"):
        alpha_max(X, y, tol=0.0)


def test_a_penalty_that_is_not_convex_has_no_alpha_max():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="convex problems"):
        alpha_max(X, y, penalty="capped_l1")
