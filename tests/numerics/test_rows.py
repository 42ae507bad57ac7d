"""Reductions over few columns agree with NumPy's own."""

import numpy as np
import pytest

from sparsvm.numerics.rows import NARROW_WIDTH, of_class, row_blocks, row_max, row_sum


@pytest.mark.parametrize("columns", [1, 2, NARROW_WIDTH, NARROW_WIDTH + 1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_reduced_as_by_numpy_and_left_alone(columns, order):
    rng = np.random.default_rng(columns)
    matrix = np.asarray(rng.standard_normal((7, columns)), order=order)
    before = matrix.copy()
    np.testing.assert_array_equal(row_max(matrix), matrix.max(axis=1))
    np.testing.assert_allclose(row_sum(matrix), matrix.sum(axis=1), rtol=1e-14)
    y = rng.integers(columns, size=7)
    np.testing.assert_array_equal(of_class(matrix, y), [matrix[i, y[i]] for i in range(7)])
    np.testing.assert_array_equal(matrix, before)
    assert row_max(matrix[:0]).shape == (0,)


@pytest.mark.parametrize("n", [0, 1, 5, 6, 13])
def test_blocks_hold_every_row_once(n, monkeypatch):
    monkeypatch.setattr("sparsvm.numerics.rows.BLOCK", 6)
    for width, most in ((1, 6), (2, 3), (7, 1)):
        blocks = [np.arange(n)[rows] for rows in row_blocks(n, width)]
        assert all(0 < block.size <= most for block in blocks)
        np.testing.assert_array_equal(np.concatenate([np.zeros(0, int), *blocks]), np.arange(n))
