"""Reductions over few columns agree with NumPy's own."""

import numpy as np
import pytest

from sparsvm.rows import NARROW, of_class, row_max, row_sum


@pytest.mark.parametrize("columns", [1, 2, NARROW, NARROW + 1])
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
