"""The design matrix does the arithmetic of NumPy on X[rows], whatever the storage."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sparsvm import _core
from sparsvm.data.design import make_design

pytestmark = pytest.mark.native

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
}
DENSE = ["C", "F"]
SPARSE = ["csr", "csc"]
ALL = DENSE + SPARSE
ROWS = ["all", "identity", "permuted", "subset", "repeated", "none"]


def random_matrix(n, d, dtype=np.float64, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * (rng.random((n, d)) < density)).astype(dtype)


def random_rows(kind, n, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "all": None,
        "identity": np.arange(n),
        "permuted": rng.permutation(n),
        "subset": rng.permutation(n)[: n // 2],
        "repeated": rng.integers(0, n, size=2 * n) if n else np.arange(0),
        "none": np.arange(0),
    }[kind]


def seen(A, rows):
    """What the design should be, as a plain float64 array."""
    return (A if rows is None else A[rows]).astype(np.float64)


def norms_by_blocks(design, Y):
    """Norms of the rows of X'Y, which certificates ask for in blocks of features."""
    return _core.feature_norms(
        design,
        np.ascontiguousarray(Y),
        scale=1.0,
        error=np.zeros(Y.shape[1]),
        column_norms=np.ones(design.d),
        kind="l1/l2",
        l1_ratio=0.0,
        per_class=False,
        omega=np.ones(design.d),
    )


def check_against_numpy(design, B, seed=2):
    """Every method, against one line of NumPy; B is the matrix the design claims to be."""
    rng = np.random.default_rng(seed)
    n, d = B.shape
    close = {"rtol": 1e-12, "atol": 1e-12}
    assert (design.n, design.d) == (n, d)
    for K in (1, 3):
        W, Y = rng.normal(size=(d, K)), rng.normal(size=(n, K))
        np.testing.assert_allclose(design.scores(W), B @ W, **close)
        np.testing.assert_allclose(design.transposed(Y), B.T @ Y, **close)
        W_sparse = W * (rng.random((d, 1)) < 0.15)
        np.testing.assert_allclose(design.scores(W_sparse), B @ W_sparse, **close)
        Y_sparse = Y * (rng.random((n, 1)) < 0.3)
        np.testing.assert_allclose(design.transposed(Y_sparse), B.T @ Y_sparse, **close)

        features = rng.integers(0, d, size=min(d, 9)).astype(np.int32)
        Wm = W[: len(features)]
        subset = B[:, features]
        before = design.scores_subset(features, Wm)
        np.testing.assert_allclose(before, subset @ Wm, **close)
        gathered = design.gather_columns(features)
        assert gathered.flags.f_contiguous
        np.testing.assert_array_equal(gathered, subset)
        expected = np.linalg.norm(B.T @ Y_sparse, axis=1)
        np.testing.assert_allclose(norms_by_blocks(design, Y_sparse), expected, **close)
        distinct = np.unique(features)
        for first, last in ((0, n), (n // 3, n - n // 4), (n, n)):
            part = design.scores_range(first, last, distinct, W[: distinct.size])
            expected = B[first:last, distinct] @ W[: distinct.size]
            np.testing.assert_allclose(part, expected, **close)
        # A companion may exist by now; it must not change a bit.
        np.testing.assert_array_equal(design.scores_subset(features, Wm), before)
    w = rng.random(d)
    np.testing.assert_allclose(design.abs_scores(w), np.abs(B) @ w, **close)
    had = (B != 0.0) | (not design.is_sparse)
    np.testing.assert_array_equal(design.largest_weights(w), np.max(had * w, axis=1, initial=0.0))
    check_column_stats(design, B, rng.random(n))
    check_column_stats(design, B, None)


def check_column_stats(design, B, mass):
    mean, variance, norm2, maxabs = design.column_stats(mass)
    if B.size == 0:
        assert not np.concatenate([mean, variance, norm2, maxabs]).any()
        return
    expected = np.average(B, axis=0, weights=mass)
    np.testing.assert_allclose(mean, expected, rtol=1e-12, atol=1e-12)
    spread = np.average((B - expected) ** 2, axis=0, weights=mass)
    np.testing.assert_allclose(variance, spread, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(norm2, np.linalg.norm(B, axis=0), rtol=1e-12)
    np.testing.assert_allclose(design.column_norms(), norm2, rtol=1e-15)
    np.testing.assert_array_equal(maxabs, np.abs(B).max(axis=0, initial=0.0))


@pytest.mark.parametrize("rows_kind", ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
def test_every_method_agrees_with_numpy(storage, dtype, rows_kind):
    A = random_matrix(40, 23, dtype)
    rows = random_rows(rows_kind, 40)
    check_against_numpy(make_design(STORAGES[storage](A), rows), seen(A, rows))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (1, 1), (1, 9), (9, 1)])
@pytest.mark.parametrize("storage", ALL)
def test_empty_and_single_shapes_agree_with_numpy(storage, shape):
    A = random_matrix(*shape, density=1.0)
    check_against_numpy(make_design(STORAGES[storage](A)), A)


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", SPARSE)
def test_sparse_products_with_any_number_of_columns(storage, dtype):
    # Rows of K numbers are cut into pieces, differently for each K; nothing beyond them is touched.
    A = random_matrix(40, 23, dtype, density=0.2)
    A[[3, 39]] = 0.0
    A[:, 5] = 0.0
    design = make_design(STORAGES[storage](A))
    B, rng = A.astype(float), np.random.default_rng(0)
    for K in [*range(1, 70), 97, 128, 131]:
        W, Y = rng.normal(size=(23, K)), rng.normal(size=(40, K))
        Y[rng.random(40) < 0.3] = 0.0
        np.testing.assert_allclose(design.scores(W), B @ W, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(design.transposed(Y), B.T @ Y, rtol=1e-12, atol=1e-13)


@pytest.mark.native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(8, 66003), (13, 40401), (6001, 93)])
def test_products_with_rows_where_they_lie(shape, dtype):
    # Beyond 4 MB; outputs, samples and features are cut into pieces, of which the last are shorter.
    A = random_matrix(*shape, dtype, density=1.0)
    rows, rng = random_rows("permuted", shape[0]), np.random.default_rng(0)
    design, B = make_design(A, rows), seen(A, rows)
    np.testing.assert_allclose(design.column_norms(), np.linalg.norm(B, axis=0), rtol=1e-14)
    for K in (1, 2, 3, 5, 7, 10, 11):
        Y, W = rng.normal(size=(shape[0], K)), rng.normal(size=(shape[1], K))
        Y[::3] = 0.0  # these rows are not read
        expected, scale = B.T @ Y, np.abs(B.T) @ np.abs(Y)
        assert (np.abs(design.transposed(Y) - expected) <= 1e-14 * scale + 1e-300).all()
        error = np.abs(norms_by_blocks(design, Y) - np.linalg.norm(expected, axis=1))
        assert (error <= 1e-14 * np.linalg.norm(scale, axis=1) + 1e-300).all()
        error = np.abs(design.scores(W) - B @ W)
        assert (error <= 1e-14 * (np.abs(B) @ np.abs(W))).all()


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("shape", [(1001, 301), (7, 40003), (70001, 9)])
@pytest.mark.parametrize("storage", ALL)
def test_shapes_of_several_blocks_agree_with_numpy(storage, shape, K):
    A = random_matrix(*shape, np.float32, density=0.1)
    rows = random_rows("permuted", shape[0])
    rng = np.random.default_rng(0)
    design, B = make_design(STORAGES[storage](A), rows), seen(A, rows)
    W, Y = rng.normal(size=(shape[1], K)), rng.normal(size=(shape[0], K))
    np.testing.assert_allclose(design.scores(W), B @ W, atol=1e-9)
    np.testing.assert_allclose(design.transposed(Y), B.T @ Y, atol=1e-9)
    features = rng.permutation(shape[1])[:500].astype(np.int32)
    np.testing.assert_array_equal(design.gather_columns(features), B[:, features])
    expected = np.linalg.norm(B.T @ Y, axis=1)
    np.testing.assert_allclose(norms_by_blocks(design, Y), expected, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(40, 23), (600, 150), (9001, 31), (131, 2003)])
@pytest.mark.parametrize("storage", ALL)
def test_results_do_not_depend_on_the_users_row_order_to_the_last_bit(storage, shape, dtype):
    n, d = shape
    A = random_matrix(n, d, dtype)
    rng = np.random.default_rng(3)
    shuffle = rng.permutation(n)
    plain = make_design(STORAGES[storage](A))
    shuffled = make_design(STORAGES[storage](A[shuffle]), np.argsort(shuffle))
    features = rng.permutation(d)[:10].astype(np.int32)
    mass = rng.random(n)
    for K in (1, 2, 5):
        W, Y = rng.normal(size=(d, K)), rng.normal(size=(n, K))
        Wm = W[: len(features)]
        for method, arguments in {
            "scores": (W,),
            "transposed": (Y,),
            "scores_subset": (features, Wm),
            "gather_columns": (features,),
            "abs_scores": (np.abs(W[:, 0]),),
            "column_stats": (mass,),
            "column_norms": (),
        }.items():
            np.testing.assert_array_equal(
                getattr(plain, method)(*arguments),
                getattr(shuffled, method)(*arguments),
                err_msg=method,
            )
        np.testing.assert_array_equal(norms_by_blocks(plain, Y), norms_by_blocks(shuffled, Y))


@pytest.mark.parametrize("storage", ALL)
def test_merged_rows_are_a_subset_of_the_repeated_ones(storage):
    A = random_matrix(60, 11)
    repeated = np.repeat(A, 3, axis=0)
    Y = np.random.default_rng(0).normal(size=(60, 4))
    once = make_design(STORAGES[storage](A)).transposed(Y)
    thrice = make_design(STORAGES[storage](repeated), np.arange(60) * 3).transposed(Y)
    np.testing.assert_array_equal(once, thrice)


@pytest.mark.parametrize("storage", ALL)
def test_a_constant_feature_has_exactly_zero_variance(storage):
    A = np.column_stack([np.full(57, 0.1), np.zeros(57), np.arange(57.0)])
    mean, variance, _, _ = make_design(STORAGES[storage](A)).column_stats(
        np.random.default_rng(0).random(57)
    )
    assert variance[0] == variance[1] == 0.0 < variance[2]
    assert mean[0] == 0.1 and mean[1] == 0.0


@pytest.mark.parametrize("storage", ALL)
def test_zero_mass_samples_do_not_count_in_mean_and_variance(storage):
    A = random_matrix(30, 6, density=0.8)
    mass = np.random.default_rng(0).random(30)
    mass[::3] = 0.0
    kept = mass > 0
    full = make_design(STORAGES[storage](A)).column_stats(mass)
    part = make_design(STORAGES[storage](A[kept])).column_stats(mass[kept])
    np.testing.assert_allclose(full[0], part[0], rtol=1e-13)
    np.testing.assert_allclose(full[1], part[1], rtol=1e-12)


def read_only(A):
    A = A.copy(order="K")
    A.flags.writeable = False
    return A


@pytest.mark.parametrize("order", DENSE)
def test_read_only_dense_arrays_are_viewed(order):
    A = read_only(STORAGES[order](random_matrix(12, 5)))
    check_against_numpy(make_design(A), A)


@pytest.mark.parametrize("storage", SPARSE)
def test_read_only_sparse_arrays_are_viewed(storage):
    X = STORAGES[storage](random_matrix(12, 5))
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    check_against_numpy(make_design(X, np.arange(12)[::-1]), X.toarray()[::-1])


@pytest.mark.parametrize("order", DENSE)
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_mapped_arrays_are_viewed(tmp_path, order, mode):
    A = STORAGES[order](random_matrix(12, 5))
    np.save(tmp_path / "X.npy", A)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    check_against_numpy(make_design(mapped, [3, 1, 1]), A[[3, 1, 1]])


@pytest.mark.parametrize(
    "view",
    [
        lambda A: A[::2, ::3],
        lambda A: A[::-1],
        lambda A: A[:, 2:9],
        lambda A: A.T[3:, ::-1],
        lambda A: np.broadcast_to(A[0], A.shape),
    ],
)
def test_other_strides_are_copied_and_agree_with_numpy(view):
    A = view(random_matrix(20, 15))
    assert not A.flags.c_contiguous and not A.flags.f_contiguous
    check_against_numpy(make_design(A), A)


def test_unaligned_arrays_are_copied_and_agree_with_numpy():
    A = random_matrix(6, 4)
    buffer = np.empty(A.nbytes + 1, dtype=np.uint8)
    unaligned = buffer[1:].view(np.float64).reshape(A.shape)
    unaligned[...] = A
    assert not unaligned.flags.aligned
    check_against_numpy(make_design(unaligned), A)


@pytest.mark.parametrize("rows", [None, [4, 0, 2]])
@pytest.mark.parametrize("storage", SPARSE)
def test_int64_indices_are_narrowed(storage, rows):
    A = random_matrix(12, 5)
    X = STORAGES[storage](A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    check_against_numpy(make_design(X, rows), seen(A, rows))
    assert X.indices.dtype == np.int64


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("storage", SPARSE)
def test_unsorted_and_duplicated_entries_are_summed_without_touching_the_users_matrix(
    storage, index_type
):
    data = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    indices = np.array([2, 0, 2, 1, 1], dtype=index_type)
    indptr = np.array([0, 3, 3, 5], dtype=index_type)
    X = STORAGES[storage]((data, indices, indptr), shape=(3, 3))
    dense = X.toarray()
    kept = [part.copy() for part in (X.data, X.indices, X.indptr)]
    # A flag that lies: the arrays themselves decide.
    X.has_canonical_format = True
    check_against_numpy(make_design(X, [2, 0]), dense[[2, 0]])
    for part, before in zip((X.data, X.indices, X.indptr), kept, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("storage", SPARSE)
def test_spare_room_behind_the_last_entry_is_ignored(storage):
    A = random_matrix(5, 4)
    X = STORAGES[storage](A)
    X.data = np.append(X.data, np.nan)
    X.indices = np.append(X.indices, np.int32(99))
    check_against_numpy(make_design(X), A)


@pytest.mark.parametrize("storage", ALL)
def test_nan_reaches_exactly_the_results_it_should(storage):
    A = random_matrix(30, 6, density=1.0)
    A[4, 2] = np.nan
    design = make_design(STORAGES[storage](A))
    W, Y = np.ones((6, 2)), np.ones((30, 2))
    np.testing.assert_array_equal(np.isnan(design.scores(W)).all(axis=1), np.arange(30) == 4)
    np.testing.assert_array_equal(np.isnan(design.transposed(Y)).all(axis=1), np.arange(6) == 2)
    np.testing.assert_array_equal(design.gather_columns(np.arange(6, dtype=np.int32)), A)
    for statistic in design.column_stats():
        np.testing.assert_array_equal(np.isnan(statistic), np.arange(6) == 2)


@pytest.mark.parametrize("storage", ALL)
def test_nan_in_a_feature_without_weight_does_not_matter(storage):
    A = random_matrix(30, 6, density=1.0)
    A[:, 2] = np.nan
    W = np.zeros((6, 2))
    W[4] = 1.0
    scores = make_design(STORAGES[storage](A)).scores(W)
    np.testing.assert_array_equal(scores, A[:, [4, 4]])


@pytest.mark.parametrize("storage", ALL)
def test_wrong_sizes_are_errors_that_name_both(storage):
    design = make_design(STORAGES[storage](random_matrix(7, 5)))
    two = np.array([0, 1], dtype=np.int32)
    for call in (
        lambda: design.scores(np.ones((6, 2))),
        lambda: design.abs_scores(np.ones(6)),
        lambda: design.largest_weights(np.ones(6)),
    ):
        with pytest.raises(ValueError, match=r"length 6 .*number of features is 5"):
            call()
    for call in (
        lambda: design.transposed(np.ones((6, 2))),
        lambda: norms_by_blocks(design, np.ones((6, 2))),
        lambda: design.column_stats(np.ones(6)),
    ):
        with pytest.raises(ValueError, match=r"length 6 .*number of samples is 7"):
            call()
    with pytest.raises(ValueError, match=r"length 6 .*listed features is 2"):
        design.scores_subset(two, np.ones((6, 2)))


@pytest.mark.parametrize("bad", [-1, 5])
@pytest.mark.parametrize("storage", ALL)
def test_indices_out_of_range_are_errors_that_name_them(storage, bad):
    X = STORAGES[storage](random_matrix(5, 5))
    design = make_design(X)
    features, samples = np.array([0, bad], dtype=np.int32), np.array([0, bad])
    for call in (
        lambda: design.gather_columns(features),
        lambda: design.scores_subset(features, np.ones((2, 1))),
        lambda: make_design(X, samples),
    ):
        with pytest.raises(IndexError, match=rf"{bad} at position 1 is outside the 5 "):
            call()


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones(3), "two-dimensional"),
        (np.ones((2, 2, 2)), "found 3 dimensions"),
        (np.ones((2, 2), dtype=int), r"found int64; convert it with X.astype\(float\)"),
        (np.ones((2, 2), dtype=complex), "found complex128"),
        (np.ones((2, 2), dtype=">f8"), "found >f8"),
        (np.array([["a"]], dtype=object), "found object"),
        (sp.csr_array(np.ones((2, 2), dtype=int)), "found int64"),
        (sp.coo_array(np.ones((2, 2))), r"COO format; convert it with X.tocsr\(\)"),
    ],
)
def test_matrices_it_cannot_view_are_refused_in_a_sentence(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_design(X)


@pytest.mark.parametrize("rows", [[0.5], [[0, 1]], [True, False]])
def test_row_indices_must_be_integers(rows):
    with pytest.raises(ValueError, match="1-D array of integers"):
        make_design(np.ones((2, 2)), rows)


@pytest.mark.parametrize(
    ("indices", "indptr", "sentence"),
    [
        ([0, 3], [0, 1, 2], "outside the 2 positions"),
        ([0, -1], [0, 1, 2], "outside the 2 positions"),
        ([0, 2**32], [0, 1, 2], "outside the 2 positions"),
        ([0, 1], [0, 1, 9], "stored entries"),
        ([0, 1], [1, 1, 2], "must start at 0"),
        ([0, 1], [0, 2, 1], "indptr decreases from 2 to 1"),
    ],
)
@pytest.mark.parametrize("storage", SPARSE)
def test_malformed_sparse_matrices_are_refused_in_a_sentence(storage, indices, indptr, sentence):
    X = STORAGES[storage](np.eye(2))
    kind = np.int64 if max(indices) > 2**31 else np.int32
    X.indices, X.indptr = np.array(indices, dtype=kind), np.array(indptr, dtype=kind)
    with pytest.raises(ValueError, match=sentence):
        make_design(X)


def resident():
    """Bytes of memory that this process holds, less what the C library could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    (line,) = [s for s in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in s]
    return 1024 * int(line.split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the memory held.")
def test_the_users_data_are_not_copied_where_that_is_promised():
    rng, n, d = np.random.default_rng(0), 4000, 1500
    rows, features = random_rows("permuted", n), np.arange(4, dtype=np.int32)
    W, Y = np.ones((d, 3)), np.ones((n, 3))
    A = rng.random((n, d))
    S = sp.csr_array(np.where(A < 0.5, A, 0.0))

    def used(design):
        design.scores(W), design.transposed(Y[: design.n]), design.abs_scores(W[:, 0])
        design.scores_subset(features, W[:4]), design.scores_range(3, 30, features, W[:4])
        design.column_stats(), norms_by_blocks(design, Y[: design.n])
        return design

    used(make_design(A[:1000])), used(make_design(S[:1000]))
    for X, held in (
        *((storage(A), 0) for storage in (np.ascontiguousarray, np.asfortranarray)),
        (S, 0),
        (S.tocsc(), 12 * S.nnz),  # rows in another order: the columns in that order
    ):
        before = resident()
        design = used(make_design(X, rows))
        grown = resident() - before
        assert abs(grown - held) < 0.15 * S.nnz * 12, (type(X).__name__, grown, held)
        del design


def test_an_indexed_csc_answers_alike_from_either_orientation():
    A = random_matrix(50, 20)
    W, Y = np.ones((20, 3)), np.ones((50, 3))
    rows, features = random_rows("permuted", 50), np.arange(4, dtype=np.int32)
    reference = make_design(sp.csr_array(A), rows)

    def statistics(design):
        return [design.column_norms(), *design.column_stats(np.arange(1.0, 51.0))]

    def products(design):
        return [
            design.scores(W),
            design.transposed(Y),
            design.scores_subset(features, W[:4]),
            design.scores_range(3, 30, features, W[:4]),
            norms_by_blocks(design, Y),
            design.abs_scores(W[:, 0]),
            design.largest_weights(np.arange(20.0)),
            *statistics(design),
        ]

    for first in (
        lambda design: design.gather_columns(features),
        lambda design: design.scores_range(3, 30, features, W[:4]),
    ):
        design = make_design(sp.csc_array(A), rows)
        for got, expected in zip(statistics(design), statistics(reference), strict=True):
            np.testing.assert_array_equal(got, expected)
        first(design)
        for got, expected in zip(products(design), products(reference), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("first, last", [(-1, 2), (3, 2), (0, 6)])
def test_ranges_that_do_not_lie_within_the_samples_are_errors(first, last):
    design = make_design(random_matrix(5, 4))
    with pytest.raises(ValueError, match=rf"{first} ... {last} does not lie within the 5 samples"):
        design.scores_range(first, last, np.arange(4, dtype=np.int32), np.ones((4, 1)))


@pytest.mark.parametrize("storage", ALL)
def test_a_design_keeps_its_arrays_alive_and_lets_them_go(storage):
    A = random_matrix(30, 8)
    X = STORAGES[storage](A).copy()
    if sp.issparse(X):
        X.data = X.data.copy()
    held = X.data if sp.issparse(X) else X
    watch = weakref.ref(held)
    design = make_design(X)
    del X, held
    gc.collect()
    assert watch() is not None
    np.testing.assert_allclose(design.scores(np.ones((8, 1)))[:, 0], A.sum(axis=1), atol=1e-13)
    del design
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize("storage", ALL)
def test_threads_sharing_a_design_get_the_same_bits(storage):
    A = random_matrix(400, 60)
    design = make_design(STORAGES[storage](A), np.random.default_rng(0).permutation(400))
    Y = np.random.default_rng(1).normal(size=(400, 4))
    features = np.arange(0, 60, 2, dtype=np.int32)
    answers = [None] * 8
    barrier = threading.Barrier(8)

    def work(slot):
        barrier.wait()
        answers[slot] = design.gather_columns(features), design.transposed(Y)

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        np.testing.assert_array_equal(answer[0], answers[0][0])
        np.testing.assert_array_equal(answer[1], answers[0][1])
    np.testing.assert_allclose(answers[0][1][::2], answers[0][0].T @ Y, atol=1e-12)
