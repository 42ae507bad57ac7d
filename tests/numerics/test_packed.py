"""Coefficients and duals in little memory: the same numbers, whichever way they are held."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sparsvm import SparseSVC, _core
from sparsvm.certificate.certify import certify
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.packed import Packed, paged
from sparsvm.penalties import L1, GroupL2
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import SDCA

pytestmark = pytest.mark.native


def make_problem(X, y, penalty, alpha):
    K = int(y.max()) + 1
    return Problem(
        design=make_design(X),
        y=y.astype(np.int32),
        mass=np.full(y.size, 1.0 / y.size),
        cost=Hinge().cost_matrix(K),
        n_classes=K,
        alpha=alpha,
        loss=Hinge(),
        penalty=penalty.resolve(X.shape[1], 1 if K == 2 else K, None),
    )


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (40, 12), (3, 150_000)])
@pytest.mark.parametrize("share", [0.0, 1e-5, 0.1, 0.7, 1.0])
def test_packed_matrices_come_out_as_they_went_in(shape, share):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random(shape) < share, rng.standard_normal(shape), 0.0)
    packed = Packed(matrix)
    assert packed.nbytes <= min(10 * np.count_nonzero(matrix) + 64, 8 * matrix.size + 64)
    np.testing.assert_array_equal(packed.unpacked(), matrix)
    out = np.full(shape, 7.0)
    assert packed.unpacked(out=out) is out
    np.testing.assert_array_equal(out, matrix)
    # It is a copy.
    matrix[...] = 3.0
    np.testing.assert_array_equal(packed.unpacked(), out)


def test_packed_entries_and_zeros_refuse_other_sizes():
    entries = _core.PackedEntries(np.eye(3))
    with pytest.raises(ValueError, match=r"out has length 4 .* entries is 9"):
        entries.unpack(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"shape \(-1, 2\)"):
        _core.zeros(-1, 2)


@pytest.mark.parametrize("shape", [(0, 4), (3, 5), (1000, 100)])
def test_paged_matrices_are_zero_and_can_be_written(shape):
    for _ in range(3):
        matrix = paged(shape)
        assert matrix.shape == shape and not matrix.any()
        matrix[...] = 1.0


def test_columns_give_the_objective_and_the_certificate_of_the_whole_matrix():
    rng = np.random.default_rng(1)
    X = sp.random(3000, 400, 0.02, "csr", random_state=rng)
    y = rng.integers(0, 12, 3000)
    linear_term = 1e-3 * rng.standard_normal((12, 400))
    for penalty in (L1(), GroupL2(), GroupL2(groups=np.arange(400) // 4)):
        problem = make_problem(X, y, penalty, 1e-3)
        # Few features, so that the matrix is read by columns as well, and nearly all of them.
        for used in (np.arange(0, 400, 9), np.arange(399)):
            W = np.zeros((12, 400))
            W[:, used] = rng.standard_normal((12, used.size))
            b, columns = rng.standard_normal(12), Columns.of(W)
            np.testing.assert_array_equal(columns.dense(), W)
            assert problem.objective(columns, b) == pytest.approx(
                problem.objective(W, b), rel=1e-14
            )
            assert problem.floor(columns, b) == problem.floor(W, b)
            np.testing.assert_allclose(problem.scores(columns, b), X @ W.T + b, atol=1e-11)
            dual = rng.random((3000, 12))
            one, other = (certify(problem, A, b, dual) for A in (W, columns))
            assert one.dual_objective == other.dual_objective
            np.testing.assert_array_equal(one.dual, other.dual)
            moved = replace(problem, linear_term=linear_term)
            expected = problem.objective(W, b) - 1e-3 * np.sum(linear_term * W)
            assert moved.objective(columns, b) == pytest.approx(expected, rel=1e-12)
            assert moved.objective(W, b) == pytest.approx(expected, rel=1e-12)


def test_sdca_goes_on_from_where_it_was_after_giving_its_point_away():
    rng = np.random.default_rng(2)
    X = sp.random(200, 300, 0.05, "csr", random_state=rng)
    problem = make_problem(X, rng.integers(0, 10, 200), GroupL2(), 1e-3)
    found = []
    for give in (False, True):
        method = SDCA()._method(problem, Control())
        method.start(None, np.zeros(10), None)
        for _ in range(3):
            method.run(0.0, 8)
            W, b, Y = method.point()
            if give:
                used, rows, intercept, dual = method.give_point()
                np.testing.assert_array_equal(Columns(used, rows.T, 300).dense(), W.T)
                np.testing.assert_array_equal(intercept, b)
                np.testing.assert_array_equal(dual, Y)
                dual[...] = 0.0
        found.append(method.point())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sdca_reads_rows_and_working_sets_of_more_than_65536_features(dtype):
    rng = np.random.default_rng(3)
    d = 70_000
    X = rng.standard_normal((12, d)).astype(dtype)
    X[4:, rng.random(d) < 0.7] = 0.0
    y = np.arange(12) % 3
    # A weight of their own keeps some features out, so that rows are not read as they are.
    weights = np.where(np.arange(d) % 7 == 0, 1e3, 1.0)
    found = [
        SDCA().solve(make_problem(form, y, GroupL2(weights=weights), 0.5), None, Control(tol=1e-3))
        for form in (X, sp.csr_array(X))
    ]
    assert all(solution.converged and solution.coef.any() for solution in found)
    low = max(solution.dual_objective for solution in found)
    high = min(solution.objective for solution in found)
    assert low <= high * (1.0 + 1e-12)


def test_predictions_by_blocks_are_those_of_all_scores():
    rng = np.random.default_rng(4)
    X = sp.random(60_000, 30, 0.1, "csr", random_state=rng)
    model = SparseSVC(solver="sdca", alpha=1e-4, tol=1e-1).fit(X[:500], np.arange(500) % 7)
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)]
    )
