"""Split products against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsvm.numerics.split_products import UNIT, split_products


def exactly(x, y):
    return sum((Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True)), Fraction(0))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([0.0, 3.0, 12.0]))
def test_errors_are_within_their_bounds(seed, n, orders):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(-orders, orders, (n, 3))
    Y = rng.standard_normal((n, 2)) * 10.0 ** rng.uniform(-orders, orders, (n, 2))
    X[rng.random((n, 3)) < 0.2] = 0.0
    products, bounds = split_products(X, Y)
    for j in range(3):
        for k in range(2):
            error = abs(exactly(X[:, j], Y[:, k]) - Fraction(products[j, k]))
            assert error <= Fraction(bounds[j, k])


@pytest.mark.parametrize("n", [1, 10, 1000, 100_000])
def test_products_that_cancel_keep_their_digits(n):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    X, Y = np.concatenate([x, x, [1.0]])[:, None], np.concatenate([y, -y, [1e-12]])[:, None]
    products, bounds = split_products(X, Y)
    assert products[0, 0] == pytest.approx(1e-12, rel=1e-9)
    plain = (2 * n + 3) * UNIT * np.linalg.norm(X) * np.linalg.norm(Y)
    assert bounds[0, 0] <= 1e-4 * plain + 3.0 * UNIT * 1e-12


def test_what_is_too_large_to_split_is_said():
    products, bounds = split_products(np.array([[1e308], [1e308]]), np.array([[1.0], [-1.0]]))
    assert products.shape == (1, 1) and not np.isfinite(bounds[0, 0])


def test_empty_and_zero_factors_have_products_of_zero():
    for n in (0, 3):
        products, bounds = split_products(np.zeros((n, 2)), np.zeros((n, 4)))
        assert products.shape == bounds.shape == (2, 4)
        assert not products.any() and np.all(bounds < 1e-300)
