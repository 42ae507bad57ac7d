"""Conjugate gradients solve what a positive semidefinite matrix can, and leave the rest."""

import numpy as np
import pytest

from sparsvm.numerics.conjugate_gradients import conjugate_gradients


@pytest.mark.parametrize("seed", range(5))
def test_a_singular_matrix_is_inverted_on_its_range_whatever_rounding_leaves_beside_it(seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.1, 1.0, (3, 3)), 1)
    laplacian = np.diag((weights + weights.T).sum(axis=1)) - weights - weights.T
    solution = rng.normal(size=3)
    solution -= solution.mean()
    right = 1e-9 * (laplacian @ solution) + 1e-17
    inverse = 1.0 / np.diag(laplacian)
    found = conjugate_gradients(lambda x: laplacian @ x, right, inverse, 300, 1e-12)
    np.testing.assert_allclose(found - found.mean(), 1e-9 * solution, rtol=1e-5, atol=1e-15)
    assert np.abs(found).max() < 1e-7


def test_a_badly_scaled_matrix_is_inverted_to_rounding():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 12)) * 10.0 ** rng.uniform(-4.0, 4.0, 12)
    H = A.T @ A
    right = H @ np.ones(12)
    found = conjugate_gradients(lambda x: H @ x, right, 1.0 / np.diag(H), 300, 1e-14)
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)
