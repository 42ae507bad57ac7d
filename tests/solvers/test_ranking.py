"""Every solver of label ranking ends at the optimum of a conic solver, with a valid bound."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from reference import smooth
from sparsvm.certificate.certify import certify
from sparsvm.certificate.ranking_gap import balanced
from sparsvm.data.design import make_design
from sparsvm.losses.pairwise import PairwiseSquaredHinge
from sparsvm.penalties import L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.restriction import group_strength
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import BCD, FISTA, BlockNewton, ProxNewton, SpaRSA
from sparsvm.solvers.prox_newton import least_shifted
from sparsvm.solvers.ranking import resolve_ranking

WEIGHTS = np.array([1.0, 0.5, 2.0, 1.0, 0.0, 1.0, 1.5, 1.0])
PENALTIES = {
    "l1": L1(),
    "l1, weights": L1(weights=WEIGHTS),
    "l2": L2(),
    "elasticnet": ElasticNet(0.3),
    "l1/l2": GroupL2(),
    "l1/l2, groups": GroupL2(groups=3, weights=WEIGHTS),
    "l1/l2, per class": GroupL2(groups=3, per_class=True),
    "l1/linf": GroupLinf(),
    "l1/linf, groups": GroupLinf(groups=3, weights=WEIGHTS),
    "sparse_group": SparseGroup(0.4),
}


def build(penalty, *, sparse=False, normalise=False, intercept=True, n=24, d=8, L=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (0.4 if sparse else 1.0))
    truth = np.zeros((d, L))
    truth[:3] = rng.normal(size=(3, L))
    Y = X @ truth + 0.5 * rng.normal(size=(n, L)) + 0.5 * rng.normal(size=L) > 0.2
    sets, y = np.unique(Y, axis=0, return_inverse=True)
    mass = rng.random(n) + 0.1
    loss = PairwiseSquaredHinge(sets, normalise)
    design = make_design(sp.csr_matrix(X) if sparse else X)
    args = (design, y.reshape(-1).astype(np.int32), mass / mass.sum(), loss)
    problem = RankingProblem.of(*args, penalty.resolve(d, L), 1.0, intercept)
    if penalty.name == "l2":
        return problem.with_alpha(0.1)
    scores, *_ = balanced(problem, np.zeros((n, L)))
    return problem.with_alpha(0.15 * float(group_strength(problem, scores).max()))


@pytest.mark.parametrize("name", PENALTIES)
def test_prox_newton_ends_at_the_optimum_of_a_conic_solver(name):
    for options in ({}, {"sparse": True, "normalise": True}, {"intercept": False}):
        problem = build(PENALTIES[name], **options)
        oracle = smooth.solve(problem)
        found = ProxNewton().solve(problem, None, Control(tol=1e-8))
        assert found.status == "optimal"
        assert found.objective == pytest.approx(oracle.value, rel=1e-6)
        assert found.dual_objective <= oracle.value + oracle.accuracy


@pytest.mark.parametrize("solver", [BCD(), BCD(step="CST"), FISTA(), SpaRSA()], ids=repr)
def test_the_papers_methods_end_there_too(solver):
    problem = build(GroupL2(), normalise=True)
    oracle = smooth.solve(problem)
    found = solver.solve(problem, None, Control(tol=1e-5, random_state=0))
    assert found.status == "optimal"
    assert found.objective == pytest.approx(oracle.value, rel=2e-5)
    assert found.dual_objective <= oracle.value + oracle.accuracy


@pytest.mark.parametrize("name", PENALTIES)
def test_the_bound_holds_at_any_point_and_from_any_dual_scores(name):
    problem = build(PENALTIES[name])
    oracle, rng = smooth.solve(problem), np.random.default_rng(1)
    for size in (0.0, 0.1, 1.0, 30.0):
        W, b = size * rng.normal(size=(4, 8)), size * rng.normal(size=4)
        for dual in (None, size * rng.normal(size=(24, 4))):
            proof = certify(problem, W, b, dual)
            assert proof.dual_objective <= oracle.value + oracle.accuracy
            assert proof.objective >= oracle.value - oracle.accuracy
            # The dual point that comes back proves as much again.
            again = certify(problem, W, b, proof.dual)
            assert again.dual_objective >= proof.dual_objective - 1e-9 * abs(proof.objective)


def test_the_equalities_of_intercepts_and_free_features_hold_to_rounding():
    problem = build(L1(weights=WEIGHTS))
    rng = np.random.default_rng(2)
    scores, left, _ = balanced(problem, 3.0 * rng.normal(size=(24, 4)))
    R = problem.signed_dual(scores)
    columns = np.hstack([np.ones((24, 1)), problem.design.gather_columns(np.array([4], np.int32))])
    assert np.abs(columns.T @ R).max() <= 1e-14
    assert left.max() <= 1e-14


def test_a_working_set_grows_to_the_solution_of_many_features():
    problem = build(GroupL2(), n=60, d=600, L=5)
    found = ProxNewton().solve(problem, None, Control(tol=1e-6))
    assert found.status == "optimal"
    other = SpaRSA().solve(problem, None, Control(tol=1e-5))
    assert found.objective == pytest.approx(other.objective, rel=2e-5)
    # From the solution there is nothing left to do.
    start = Start(found.coef, found.intercept)
    assert ProxNewton().solve(problem, start, Control(tol=1e-6)).n_iter == 0


@pytest.mark.parametrize("name", ["l1", "elasticnet"])
def test_columns_of_any_scale_take_tens_of_iterations(name):
    # Hundreds, or 2000 in vain, while steps along scores that all labels share were not limited.
    rng = np.random.default_rng(7)
    X = rng.standard_normal((100, 20)) * 10.0 ** rng.uniform(-3.0, 3.0, 20)
    Y = rng.random((100, 3)) < 0.4
    sets, y = np.unique(Y, axis=0, return_inverse=True)
    args = (make_design(X), y.reshape(-1).astype(np.int32), np.full(100, 0.01))
    terms = {"l1": L1(), "elasticnet": ElasticNet(0.5)}[name].resolve(20, 3)
    problem = RankingProblem.of(*args, PairwiseSquaredHinge(sets, False), terms, 0.01, True)
    found = ProxNewton().solve(problem, None, Control(tol=1e-6))
    assert found.status == "optimal"
    assert found.n_iter < 200


@pytest.mark.parametrize("L", [2, 3, 4, 7])
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.3), ElasticNet(0.9), L2()])
def test_no_shift_of_all_labels_has_a_smaller_penalty(penalty, L):
    rng = np.random.default_rng(L)
    W = rng.standard_normal((L, 5))
    terms = replace(penalty.resolve(5, L), omega=np.array([0.0, 0.1, 1.0, 2.0, 10.0]))
    shifted = least_shifted(terms, W)
    np.testing.assert_array_equal(shifted[:, 0], W[:, 0])
    np.testing.assert_allclose(np.ptp(shifted - W, axis=0), 0.0, atol=1e-15)
    least = terms.value(shifted)
    for j in range(1, 5):
        for shift in np.linspace(-2.0, 2.0, 41):
            other = shifted.copy()
            other[:, j] += shift
            assert terms.value(other) >= least * (1.0 - 1e-14)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5), SparseGroup(0.5), GroupLinf()])
def test_columns_far_from_zero_are_no_harder_than_centred_ones(penalty, seed):
    # 2000 iterations were not enough, at gaps of 0.2 to 0.6.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 30))
    Y = X[:, :4] @ rng.standard_normal((4, 4)) + rng.standard_normal((80, 4)) > 0.5
    sets, y = np.unique(Y, axis=0, return_inverse=True)
    objectives = []
    for offset in (0.0, 5.0):
        args = (make_design(X + offset), y.reshape(-1).astype(np.int32), np.full(80, 1.0 / 80.0))
        terms = penalty.resolve(30, 4)
        problem = RankingProblem.of(*args, PairwiseSquaredHinge(sets, False), terms, 1e-3, True)
        found = ProxNewton().solve(problem, None, Control(tol=1e-6))
        assert found.status == "optimal"
        assert found.n_iter < 600
        objectives.append(found.objective)
    assert objectives[1] == pytest.approx(objectives[0], rel=2e-6)


@pytest.mark.parametrize("name", PENALTIES)
def test_constant_columns_and_empty_ones_get_no_weight(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    X[:, 1], X[:, 2] = 3.0, 0.0
    Y = X[:, 5:] @ rng.standard_normal((3, 3)) + rng.standard_normal((40, 3)) > 0.5
    sets, y = np.unique(Y, axis=0, return_inverse=True)
    args = (make_design(X), y.reshape(-1).astype(np.int32), np.full(40, 1.0 / 40.0))
    terms = PENALTIES[name].resolve(8, 3)
    problem = RankingProblem.of(*args, PairwiseSquaredHinge(sets, False), terms, 0.01, True)
    with np.errstate(all="raise"):
        found = ProxNewton().solve(problem, None, Control(tol=1e-6))
    assert found.status == "optimal"
    if "groups" not in name:
        np.testing.assert_allclose(found.coef[:, 1:3], 0.0, atol=1e-12)


@pytest.mark.parametrize("penalty", [L1(), GroupL2(), GroupLinf()])
def test_a_cold_start_at_a_small_alpha_ends_where_more_features_than_samples_separate(penalty):
    # The objective is nearly all penalty; steps from zero ended far above the optimum.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6, 42)) * 10.0 ** rng.integers(-2, 3, 42)
    Y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    args = (make_design(X), np.arange(6, dtype=np.int32), np.full(6, 1.0 / 6.0))
    loss = PairwiseSquaredHinge(Y, True)
    problem = RankingProblem.of(*args, loss, penalty.resolve(42, 3), 1.0, True)
    scores, *_ = balanced(problem, np.zeros((6, 3)))
    largest = float(group_strength(problem, scores).max())
    found = ProxNewton().solve(problem.with_alpha(1e-4 * largest), None, Control(tol=1e-6))
    assert found.status == "optimal"


@pytest.mark.parametrize("name", ["l1", "l1/l2", "l1/linf", "sparse_group"])
def test_a_label_that_every_sample_has_leaves_the_bound_as_sharp(name):
    # Its intercept is flat at the optimum but for rounding, by which the repair once divided.
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = sp.csr_matrix(rng.normal(size=(14, 5)))
        Y = np.hstack([np.ones((14, 1), dtype=bool), rng.random((14, 2)) < 0.5])
        sets, y = np.unique(Y, axis=0, return_inverse=True)
        mass = rng.uniform(0.1, 2.0, 14)
        args = (make_design(X), y.reshape(-1).astype(np.int32), mass / mass.sum())
        loss, terms = PairwiseSquaredHinge(sets, False), PENALTIES[name].resolve(5, 3)
        problem = RankingProblem.of(*args, loss, terms, 0.05, True)
        for solver in (ProxNewton(), BCD()):
            found = solver.solve(problem, None, Control(tol=1e-6, random_state=0))
            assert found.status == "optimal"


def test_a_limit_of_iterations_is_kept_and_told():
    problem = build(L1(), n=60, d=100, L=6)
    found = ProxNewton(max_iter=1).solve(problem, None, Control(tol=1e-9))
    assert (found.status, found.n_iter) == ("max_iter", 1)
    assert found.gap > 0.0
    # What was reached on the way from larger strengths of the penalty is what is returned.
    zero = certify(problem, np.zeros((6, 100)), np.zeros(6), None)
    assert found.objective < zero.objective


def test_solvers_of_other_problems_are_refused():
    with pytest.raises(ValueError, match="cannot rank labels"):
        resolve_ranking(BlockNewton(), build(L1()), Control())
    with pytest.raises(ValueError, match="'prox_newton'"):
        resolve_ranking("sdca", build(L1()), Control())
