"""The scaling conventions: one problem, written as each paper writes it."""

from dataclasses import replace

import numpy as np
import pytest

import problems
from reference import oracles
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, SquaredHinge
from sparsvm.numerics.columns import Columns
from sparsvm.penalties import L1, L2, GroupL2
from sparsvm.problem.build import column_std
from sparsvm.problem.problem import Problem


def build(penalty, n_classes=3, n=12, d=4, alpha=0.07, loss=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (np.arange(n) % n_classes).astype(np.int32)
    n_outputs = 1 if n_classes == 2 else n_classes
    loss = loss or Hinge()
    problem = Problem(
        design=make_design(X),
        y=y,
        mass=np.full(n, 1.0 / n),
        cost=loss.cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=alpha,
        loss=loss,
        penalty=penalty.resolve(d, n_outputs),
    )
    W, b = rng.standard_normal((n_outputs, d)), rng.standard_normal(n_outputs)
    return problem, X, W, b


def hinge_sum(problem, X, W, b):
    scores = X @ W.T + b
    return sum(
        max(float(k != t) + s[k] - s[t] for k in range(problem.n_classes))
        for s, t in zip(scores, problem.y, strict=True)
    )


def test_penalty_plus_lambda_times_loss_sum_has_lambda_one_over_n_alpha():
    # Chierchia et al.: minimise g(W) + lambda * sum of hinges, with lambda = 1/(n alpha) for norms.
    problem, X, W, b = build(L1())
    lam = 1.0 / (problem.n * problem.alpha)
    paper = np.abs(W).sum() + lam * hinge_sum(problem, X, W, b)
    assert problem.objective(W, b) / problem.alpha == pytest.approx(paper, rel=1e-13)


def test_squared_norm_without_half_has_lambda_two_over_n_alpha():
    # Chierchia et al. (4): minimise ||W||^2 + lambda * sum of hinges.
    problem, X, W, b = build(L2())
    lam = 2.0 / (problem.n * problem.alpha)
    paper = np.sum(W**2) + lam * hinge_sum(problem, X, W, b)
    assert 2.0 * problem.objective(W, b) / problem.alpha == pytest.approx(paper, rel=1e-13)


def test_mean_squared_hinge_plus_lambda_rows_has_lambda_alpha():
    # Blondel et al. (2): mean over samples of the sum over classes, lambda times row norms.
    problem, X, W, b = build(GroupL2(), loss=SquaredHinge())
    scores = X @ W.T + b
    loss = sum(
        max(0.0, 1.0 + s[k] - s[t]) ** 2
        for s, t in zip(scores, problem.y, strict=True)
        for k in range(3)
        if k != t
    )
    paper = loss / problem.n + problem.alpha * np.linalg.norm(W, axis=0).sum()
    assert problem.objective(W, b) == pytest.approx(paper, rel=1e-13)


@pytest.mark.parametrize(("penalty", "factor"), [(L1(), 1.0), (L2(), 0.5)])
def test_binary_loss_sum_plus_lambda_penalty_has_lambda_n_alpha(penalty, factor):
    # Ong and Le Thi: sum of hinges + lambda ||w||_1, or lambda ||w||^2 with lambda = n alpha/2.
    problem, X, w, b = build(penalty, n_classes=2)
    signs = np.where(problem.y == 1, 1.0, -1.0)
    hinges = np.maximum(0.0, 1.0 - signs * (X @ w[0] + b[0])).sum()
    size = np.abs(w).sum() if factor == 1.0 else np.sum(w**2)
    paper = hinges + factor * problem.n * problem.alpha * size
    assert problem.n * problem.objective(w, b) == pytest.approx(paper, rel=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_pairwise_differences_plus_c_times_loss_has_c_of_k_over_n_alpha(n_classes):
    # Nakayama et al. (15): 1/2 sum_{r<t} ||w_r - w_t||^2 + C sum of hinges, where sum_r w_r = 0.
    problem, X, W, b = build(L2(), n_classes=n_classes)
    if n_classes == 2:
        rows, C = np.vstack([np.zeros_like(W), W]), 1.0 / (problem.n * problem.alpha)
        biases = np.append(0.0, b)
        scale = 1.0
    else:
        W = W - W.mean(axis=0)
        rows, C, biases = W, n_classes / (problem.n * problem.alpha), b
        scale = n_classes
    pairs = sum(
        0.5 * np.sum((rows[r] - rows[t]) ** 2)
        for r in range(n_classes)
        for t in range(r + 1, n_classes)
    )
    paper = pairs + C * hinge_sum(problem, X, rows, biases)
    assert scale * problem.objective(W, b) / problem.alpha == pytest.approx(paper, rel=1e-12)


def test_objective_equals_loops_on_every_family():
    rng = np.random.default_rng(0)
    for name, problem in problems.cases(6):
        W = rng.standard_normal((problem.n_outputs, problem.d))
        b = rng.standard_normal(problem.n_outputs)
        expected = oracles.objective(problem, W, b)
        assert problem.objective(W, b) == pytest.approx(
            expected, rel=1e-12, abs=problem.floor(W, b)
        ), name


def test_floor_equals_its_formula():
    problem, X, W, b = build(L1())
    margins = problem.margins().max(axis=1)
    sizes = margins + 2 * np.abs(X) @ np.abs(W).max(axis=0) + 2 * np.abs(b).max()
    expected = 16 * np.finfo(float).eps * np.sum(problem.mass * sizes)
    assert problem.floor(W, b) == pytest.approx(expected, rel=1e-12)


def test_the_floor_covers_a_linear_term_that_cancels_the_penalty():
    """As beyond the cap of capped l1: a huge alpha then multiplies nothing but rounding errors."""
    errors = []
    for seed in range(5):
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, 4)
        problem, _, W, b = build(L1(weights=weights), alpha=1e-300, seed=seed)
        flat = replace(problem, alpha=1e8, linear_term=problem.penalty.omega * np.sign(W))
        errors.append(abs(flat.objective(W, b) - problem.objective(W, b)))
        assert errors[-1] <= flat.floor(W, b)
        assert flat.floor(Columns.of(W), b) == pytest.approx(flat.floor(W, b))
    assert max(errors) > problem.floor(W, b)


def test_scores_of_two_classes_pin_the_first_to_zero():
    problem, X, W, b = build(L1(), n_classes=2)
    scores = problem.scores(W, b)
    np.testing.assert_array_equal(scores[:, 0], 0.0)
    np.testing.assert_allclose(scores[:, 1], X @ W[0] + b[0], rtol=1e-13)


def test_signed_dual_rows_balance_and_its_product_has_output_columns():
    problem, X, _, _ = build(L1(), n_classes=2)
    dual = np.random.default_rng(1).random((problem.n, 2))
    signed = problem.signed_dual(dual)
    np.testing.assert_array_equal(signed.sum(axis=1), 0.0)
    np.testing.assert_allclose(problem.transposed(signed), (X.T @ signed[:, 1:]).T, atol=1e-14)


def test_column_std_of_a_constant_column_is_exactly_zero():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(50, 0.1), rng.standard_normal(50), np.zeros(50)])
    mass = rng.random(50)
    mass /= mass.sum()
    std = column_std(make_design(X), mass)
    assert std[0] == std[2] == 0.0
    mean = mass @ X[:, 1]
    assert std[1] == pytest.approx(np.sqrt(mass @ (X[:, 1] - mean) ** 2), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mass": np.ones(3)}, "12 labels but 3 sample masses"),
        ({"cost": np.zeros((2, 2))}, r"shape \(2, 2\) for 3 classes"),
        ({"margin_scale": np.ones(5)}, "12 labels but 5 sample margins"),
        (
            {"linear_term": np.zeros((1, 4))},
            r"shape \(1, 4\) but the coefficients have shape \(3, 4\)",
        ),
        ({"penalty": L1().resolve(4, 1)}, "resolved for 1 outputs but 3 classes have 3"),
        (
            {"penalty": L1(weights=[0.0, 1, 1, 1]).resolve(4, 3), "linear_term": np.ones((3, 4))},
            "zero on unpenalised features",
        ),
    ],
)
def test_inconsistent_problems_are_refused_with_both_sizes(change, sentence):
    problem, *_ = build(L1())
    with pytest.raises(ValueError, match=sentence):
        replace(problem, **change)
