"""Hard data for the interior point: all are solved to 1e-6, with proof and without a warning."""

from dataclasses import replace

import numpy as np
import pytest

import hinge_cases as cases
from reference import oracles
from sparsvm.certificate.gap import zero_dual_bound
from sparsvm.penalties import L1
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

# NumPy's warnings about overflow or division count as failures.
pytestmark = pytest.mark.filterwarnings("error")

KINDS = cases.KINDS


def solve(problem, tol=1e-6):
    return InteriorPoint().solve(problem, None, Control(tol=tol))


def check(problem, tol=1e-6):
    solution = solve(problem, tol)
    cases.assert_proven(problem, solution, tol)
    return solution


def build(data, kind, **options):
    X, y = data
    return cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_separable_data_with_tiny_alpha(kind, share):
    for n_classes in (2, 3, 6):
        data = cases.gaussian(n_classes, 40, 12, n_classes, apart=8.0)
        problem = build(data, kind, share=share)
        solution = check(problem)
        # So little penalty leaves every sample its class.
        scores = problem.scores(solution.coef, solution.intercept)
        np.testing.assert_array_equal(scores.argmax(axis=1), problem.y)


def no_model(y, weights):
    """The optimum of the intercepts alone, and the dual that proves it."""
    nothing = np.zeros((y.size, 1))
    return oracles.solve(cases.build(nothing, y, L1(), sample_weight=weights))


def largest_alpha(problem, dual):
    """At this alpha the dual of the model without features still proves it optimal."""
    G = problem.transposed(problem.signed_dual(dual))
    terms = problem.penalty
    if terms.is_norm:
        return terms.dual_norm(G)
    return float(np.abs(G).max()) / terms.l1_ratio


@pytest.mark.parametrize("kind", cases.SPARSE_KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_beyond_the_largest_alpha_all_coefficients_are_exactly_zero(kind, n_classes):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 32)
    data = cases.gaussian(n_classes, 32, 15, n_classes)
    blind = no_model(data[1], weights)
    problem = build(data, kind, sample_weight=weights)
    limit = largest_alpha(problem, blind.dual)
    for factor in (1.0 + 1e-3, 2.0, 1e3, 1e6):
        solution = check(replace(problem, alpha=factor * limit))
        assert not solution.coef.any()
        assert solution.objective == pytest.approx(blind.value, rel=1e-6)
    # On the edge itself other optima may exist, but none is better.
    solution = check(replace(problem, alpha=limit))
    assert solution.objective == pytest.approx(blind.value, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_huge_alpha_and_no_intercept_nothing_is_left(kind):
    data = cases.gaussian(1, 30, 10, 3)
    problem = build(data, kind, share=1e5, fit_intercept=False)
    solution = check(problem)
    assert not solution.intercept.any()
    assert solution.objective == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relabelled", [False, True], ids=["same_labels", "other_labels"])
def test_duplicate_samples_and_features_and_constant_columns(kind, relabelled):
    rng = np.random.default_rng(2)
    X, y = cases.gaussian(2, 20, 8, 3)
    constant = np.ones((20, 1)) * [[0.0, 1.0, -1e3]]
    X = np.vstack([np.hstack([X, X, -X[:, :3], constant])] * 2)
    y = np.concatenate([y, rng.permutation(y) if relabelled else y])
    for share in (0.3, 0.02):
        problem = build((X, y), kind, share=share)
        solution = check(problem)
        cases.assert_agrees(problem, solution, 1e-6)
        # A constant column does nothing that the intercept does not do for nothing.
        if kind != "l2" and "blocks" not in kind:
            assert not solution.coef[:, -3:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_samples_and_doubled_weights_have_the_same_optimum(kind):
    X, y = cases.gaussian(3, 25, 10, 3)
    repeated = build((np.vstack([X, X[:7]]), np.concatenate([y, y[:7]])), kind, share=0.05)
    weights = np.where(np.arange(25) < 7, 2.0, 1.0)
    weighted = build((X, y), kind, share=0.05, sample_weight=weights)
    assert weighted.alpha == pytest.approx(repeated.alpha, rel=1e-12)
    one, two = check(repeated, 1e-8), check(weighted, 1e-8)
    assert one.objective == pytest.approx(two.objective, rel=2e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_with_a_single_sample(kind):
    for n, n_classes in ((2, 2), (3, 3), (12, 12), (30, 4)):
        X, y = cases.gaussian(n, n, 6, n_classes)
        if n > n_classes:
            y[n_classes:] = 1
        for share in (0.5, 0.01):
            check(build((X, y), kind, share=share))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 12, 25, 50])
def test_few_and_many_classes(kind, n_classes):
    data = cases.gaussian(n_classes, n_classes + 14, 15, n_classes)
    for share in (0.3, 0.03):
        check(build(data, kind, share=share))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("matched", [False, True], ids=["even_weights", "weights_to_match"])
def test_columns_from_a_millionth_to_a_million(kind, matched):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = cases.gaussian(seed, 40, 9, 2 + seed)
        scales = 10.0 ** rng.permutation(np.linspace(-6.0, 6.0, 9))
        terms = cases.PENALTIES[kind](9, scales if matched else None)
        problem = cases.build(X * scales, y, terms, share=[0.3, 0.1, 0.03, 0.01][seed])
        solution = check(problem)
        if matched:
            # The same problem as with columns of size 1 and even weights.
            plain = replace(build((X, y), kind), alpha=problem.alpha)
            assert check(plain).objective == pytest.approx(solution.objective, rel=2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_all_columns_tiny_or_huge(kind, size):
    X, y = cases.gaussian(4, 30, 20, 3)
    check(build((size * X, y), kind, share=0.05))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_far_from_their_origin(kind):
    X, y = cases.gaussian(5, 30, 12, 3)
    centred = build((X, y), kind, share=0.05)
    shifted = replace(build((X + 1e5, y), kind), alpha=centred.alpha)
    # The free intercept takes the shift up, so the optimum stays.
    assert check(shifted).objective == pytest.approx(check(centred).objective, rel=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_sample_weights_from_a_millionth_to_a_million(kind):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        data = cases.gaussian(seed, 40, 10, 2 + seed % 4)
        weights = 10.0 ** rng.uniform(-6.0, 6.0, 40)
        check(build(data, kind, share=10.0 ** rng.uniform(-2.0, -0.3), sample_weight=weights))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_tiny_and_huge_margins_scale_the_model(kind, size):
    X, y = cases.gaussian(6, 30, 12, 3)
    one = check(build((X, y), kind, share=0.05))
    other = build((X, y), kind, share=0.05, margin=size)
    if kind in ("l2", "elasticnet"):
        # Squares scale otherwise; solving it is all that is asked.
        check(other)
    else:
        assert check(other).objective == pytest.approx(size * one.objective, rel=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_margins_need_no_model(kind):
    X, y = cases.gaussian(7, 20, 5, 3)
    solution = check(build((X, y), kind, margin_scale=np.zeros(20)))
    assert solution.objective == 0.0
    assert not solution.coef.any()


@pytest.mark.parametrize("kind", ["l2", "elasticnet"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_linear_term_needs_a_dual_even_without_margins(kind, n_classes):
    # The entries are worth nothing by their margins, only by what they take off the linear term.
    X, y = cases.gaussian(7, 20, 5, n_classes)
    problem = build((X, y), kind, margin_scale=np.zeros(20))
    linear_term = 3.0 * np.random.default_rng(7).standard_normal((problem.n_outputs, 5))
    solution = check(replace(problem, linear_term=linear_term, alpha=0.3))
    assert (
        solution.dual_objective
        > zero_dual_bound(replace(problem, linear_term=linear_term, alpha=0.3)) + 1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
def test_one_feature_and_all_features_constant(kind):
    for X in (cases.gaussian(8, 20, 1, 3)[0], np.ones((20, 3)), np.zeros((20, 2))):
        y = cases.gaussian(8, 20, 1, 3)[1]
        solution = check(build((X, y), kind, share=0.1))
        assert solution.coef.any() == (X.shape[1] == 1)


@pytest.mark.parametrize("kind", ["l1", "elasticnet", "l1/l2-blocks-per_class"])
def test_no_penalty_at_all_on_any_feature(kind):
    # Only the certificate of an unpenalised model says that it is the optimum.
    X, y = cases.gaussian(9, 40, 3, 3, apart=0.3)
    terms = cases.PENALTIES[kind](3, np.zeros(3))
    problem = replace(cases.build(X, y, terms), alpha=0.1)
    cases.assert_agrees(problem, check(problem), 1e-6)
