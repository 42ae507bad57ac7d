"""Enough samples for the interior point to begin in single precision: it must not end there."""

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

# 80 samples with many more features, so that the samples' side is the cheaper one.
N, D, K = 80, 240, 5
KINDS = [f"{norm}-blocks-per_class" for norm in ("l1/l2", "l1/linf", "sparse_group")]


def solve(X, y, kind, tol=1e-8, **options):
    problem = cases.build(X, y, cases.PENALTIES[kind](X.shape[1]), **options)
    solution = InteriorPoint().solve(problem, None, Control(tol=tol))
    cases.assert_proven(problem, solution, tol)
    return solution


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.01])
def test_solutions_are_as_accurate_as_ever(kind, share):
    X, y = cases.gaussian(1, N, D, K)
    solve(X, y, kind, share=share)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_that_occur_twice_leave_the_matrices_singular_but_for_their_slacks(kind):
    X, y = cases.gaussian(2, N // 2, D, K)
    once = solve(X, y, kind, share=0.05)
    twice = solve(np.vstack([X, X]), np.concatenate([y, y]), kind, share=0.05)
    assert twice.objective == pytest.approx(once.objective, rel=1e-7)


def test_units_beyond_the_range_of_single_precision():
    """Scaled by a power of two the problem is the same up to alpha and the size of its weights."""
    power = 140
    X, y = cases.gaussian(3, N, D, K)
    plain = solve(X, y, "l1/l2-blocks-per_class", share=0.05)
    scaled = solve(X * 2.0**power, y, "l1/l2-blocks-per_class", share=0.05)
    np.testing.assert_allclose(scaled.coef * 2.0**power, plain.coef, atol=1e-4)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-7)
