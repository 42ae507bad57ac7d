"""The ranking loss equals its sum over pairs, in NumPy and in native code, to rounding."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.losses.pairwise import PairwiseSquaredHinge
from sparsvm.penalties import L1
from sparsvm.problem.ranking import RankingProblem


def by_pairs(scores, own, factor, direction):
    """Value, derivative, product with the second derivative and its diagonal, pair by pair."""
    value, n, L = np.zeros(len(scores)), *scores.shape
    slopes, product, diagonal = np.zeros((n, L)), np.zeros((n, L)), np.zeros((n, L))
    for i in range(n):
        for r in np.flatnonzero(own[i]):
            for t in np.flatnonzero(~own[i]):
                hinge = max(0.0, 1.0 - (scores[i, r] - scores[i, t]))
                value[i] += factor[i] * hinge**2
                slopes[i, [r, t]] += 2.0 * factor[i] * hinge * np.array([-1.0, 1.0])
                if hinge > 0.0:
                    change = 2.0 * factor[i] * (direction[i, r] - direction[i, t])
                    product[i, [r, t]] += change * np.array([1.0, -1.0])
                    diagonal[i, [r, t]] += 2.0 * factor[i]
    return value, slopes, product, diagonal


def make(n_labels, normalise, n=25, seed=0):
    rng = np.random.default_rng(seed)
    # Empty and full sets, which have no pairs, are among them.
    sets = np.vstack([rng.random((6, n_labels)) < 0.4, np.zeros(n_labels), np.ones(n_labels)])
    loss = PairwiseSquaredHinge(sets.astype(bool), normalise)
    y, mass = rng.integers(0, 8, n).astype(np.int32), rng.random(n) + 0.1
    design = make_design(rng.normal(size=(n, 3)))
    terms = L1().resolve(3, n_labels)
    problem = RankingProblem.of(design, y, mass / mass.sum(), loss, terms, 0.1, True)
    # Integers are often exactly at a kink.
    scores = rng.normal(size=(n, n_labels)) * 1.5
    scores[: n // 2] = np.round(scores[: n // 2])
    return problem, scores, rng.normal(size=(n, n_labels))


@pytest.mark.native
@pytest.mark.parametrize("n_labels", [2, 3, 9, 60])
@pytest.mark.parametrize("normalise", [False, True])
def test_sorted_sums_are_the_sums_over_pairs(n_labels, normalise):
    problem, scores, direction = make(n_labels, normalise)
    loss, y, mass = problem.loss, problem.y, problem.mass
    expected = by_pairs(scores, loss.sets[y], loss.factor[y], direction)
    value, slopes, product, diagonal = expected
    at = (scores, y, None)
    assert_allclose(loss.value(*at), value, rtol=1e-12, atol=1e-13)
    assert_allclose(loss.gradient(*at), slopes, rtol=1e-12, atol=1e-12)
    assert_allclose(loss.hessian_product(*at, direction), product, rtol=1e-11, atol=1e-12)
    hessian = _core.PairHessian(problem.rows, scores)
    assert_allclose(hessian.product(direction), mass[:, None] * product, rtol=1e-11, atol=1e-12)
    assert_allclose(hessian.diagonal(), mass[:, None] * diagonal, rtol=1e-12)
    mean, residual = problem.rows.slopes(scores)
    assert mean == pytest.approx(mass @ value, rel=1e-12)
    assert_allclose(residual, mass[:, None] * slopes, rtol=1e-12, atol=1e-13)


@pytest.mark.native
def test_small_losses_at_large_scores_keep_their_digits():
    problem, _, _ = make(6, False)
    own = problem.loss.sets[problem.y]
    # Every pair violates its margin by 1e-5, at scores of 1e6.
    scores = 1e6 + np.where(own, 1.0 - 1e-5, 0.0)
    pairs = own.sum(axis=1) * (~own).sum(axis=1)
    assert problem.rows.mean_loss(scores) == pytest.approx(problem.mass @ pairs * 1e-10, rel=1e-4)


@pytest.mark.native
def test_scores_that_are_no_numbers_are_survived_and_seen():
    problem, scores, direction = make(40, False)
    scores[0, :20] = np.nan
    scores[1, 3] = np.inf
    assert np.isnan(problem.rows.mean_loss(scores))
    _core.PairHessian(problem.rows, scores).product(direction)


@pytest.mark.native
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(25, 8, dtype=np.int32)}, "outside 0 .. 7"),
        ({"mass": np.zeros(25)}, "positive"),
        ({"factor": np.ones(3)}, "factor has length 3"),
        ({"sets": np.ones((8, 1), dtype=np.uint8)}, "two labels"),
    ],
)
def test_the_border_refuses_what_does_not_fit(change, message):
    problem, _, _ = make(5, False)
    arguments = {
        **problem.samples,
        "alpha": 1.0,
        "intercept": True,
        "kind": "l1",
        "l1_ratio": 1.0,
        "groups": np.arange(3, dtype=np.int32),
        "n_groups": 3,
        "per_class": True,
        "omega": np.ones(3),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        _core.RankingProblem(**arguments)
