"""The canonical form depends on the meaning of a training set, not on how it is written down."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsvm.data import canonical
from sparsvm.data.canonical import canonical_form, hash_rows


def contents(X, form):
    """Return what a solver would see: rows, classes, weights and margins in order."""
    X = X.toarray() if sp.issparse(X) else X
    return X[form.rows], form.codes, form.weight, form.margin


def assert_same(left, right):
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


def random_set(seed, n=40, d=6, levels=3):
    """Draw small integers, so that repeated rows are frequent."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, levels - 1, (n, d)).astype(float)
    return X, rng.integers(0, 3, n), rng.integers(0, 4, n).astype(float), rng.choice([0.5, 1.0], n)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 5), st.booleans())
def test_matches_a_dictionary_of_samples(seed, n, d, with_margin):
    X, codes, weight, margin = random_set(seed, n, d)
    weight[0] = 1.0
    margin = margin if with_margin else None
    expected: dict[tuple, float] = {}
    for i in np.flatnonzero(weight):
        key = (codes[i], None if margin is None else margin[i], *X[i])
        expected[key] = expected.get(key, 0.0) + weight[i]
    rows, found_codes, found_weight, found_margin = contents(
        X, canonical_form(X, codes, weight, margin)
    )
    found = {
        (found_codes[i], None if margin is None else found_margin[i], *rows[i]): found_weight[i]
        for i in range(len(rows))
    }
    assert len(found) == len(rows)
    assert found == expected
    assert np.all(np.diff(found_codes) >= 0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_rows_does_not_matter_even_for_the_rounding_of_weights(seed):
    X, codes, weight, margin = random_set(seed)
    weight = weight * 0.1  # sums of these round differently in different orders
    permutation = np.random.default_rng(seed + 1).permutation(len(X))
    assert_same(
        contents(X, canonical_form(X, codes, weight, margin)),
        contents(
            X[permutation],
            canonical_form(
                X[permutation], codes[permutation], weight[permutation], margin[permutation]
            ),
        ),
    )


def test_weighting_equals_repetition():
    X, codes, weight, margin = random_set(3)
    repeats = weight.astype(int)
    repeated = [np.repeat(a, repeats, axis=0) for a in (X, codes, np.ones_like(weight), margin)]
    assert_same(
        contents(X, canonical_form(X, codes, weight, margin)),
        contents(repeated[0], canonical_form(*repeated)),
    )


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        lambda X: np.asfortranarray(X, dtype=np.float32),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        sp.csr_array,
        sp.csc_array,
        sp.csr_matrix,
        lambda X: sp.csc_array(X.astype(np.float32)),
    ],
    ids=["F", "float32", "F32", "strided", "csr", "csc", "csr_matrix", "csc32"],
)
def test_storage_does_not_matter(convert):
    X, codes, weight, margin = random_set(5, n=200, d=9)
    np.testing.assert_array_equal(hash_rows(convert(X)), hash_rows(X))
    assert_same(
        contents(X, canonical_form(X, codes, weight, margin)),
        contents(convert(X), canonical_form(convert(X), codes, weight, margin)),
    )


def test_blocks_do_not_matter(monkeypatch):
    X, codes, weight, _ = random_set(6, n=150, d=9)
    storages = [X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)]
    whole = [contents(A, canonical_form(A, codes, weight)) for A in storages]
    monkeypatch.setattr(canonical, "_BLOCK", 50)
    monkeypatch.setattr(canonical, "_SPARSE_BLOCK", 13)
    for A, before in zip(storages, whole, strict=True):
        assert_same(before, contents(A, canonical_form(A, codes, weight)))


def test_signed_zeros_and_explicit_zeros_are_zeros():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    form = canonical_form(X, np.zeros(3, int), np.ones(3))
    np.testing.assert_array_equal(form.weight, [3.0])
    data, indices, indptr = [1.0, 0.0, 1.0, 1.0, -0.0], [1, 0, 1, 1, 0], [0, 1, 3, 5]
    A = sp.csr_array((data, indices, indptr), shape=(3, 2))  # the last row is unsorted
    np.testing.assert_array_equal(hash_rows(A), hash_rows(X))
    np.testing.assert_array_equal(canonical_form(A, np.zeros(3, int), np.ones(3)).weight, [3.0])
    np.testing.assert_array_equal(A.indices, indices)  # the user's matrix is left alone


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array])
def test_different_rows_of_equal_hash_are_told_apart(monkeypatch, convert):
    X, codes, weight, margin = random_set(7)
    expected = canonical_form(X, codes, weight, margin)
    monkeypatch.setattr(canonical, "hash_rows", lambda X: np.zeros(X.shape[0], np.uint64))
    permutation = np.random.default_rng(0).permutation(len(X))
    forms = []
    for order in (slice(None), permutation):
        A = convert(X[order])
        form = canonical_form(A, codes[order], weight[order], margin[order])
        forms.append(contents(A, form))
        samples = {(c, m, w, *x) for x, c, w, m in zip(*forms[-1], strict=True)}
        assert samples == {(c, m, w, *x) for x, c, w, m in zip(*contents(X, expected), strict=True)}
    assert_same(*forms)


def test_small_integers_rarely_collide():
    X = np.array(np.meshgrid(*[np.arange(32.0)] * 4)).reshape(4, -1).T
    assert len(np.unique(hash_rows(X))) == len(X)


def test_rows_without_weight_leave_an_empty_form():
    form = canonical_form(np.ones((3, 2)), np.zeros(3, int), np.zeros(3))
    assert form.rows.size == form.weight.size == 0


@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, np.float32])
def test_the_matrix_is_never_copied(convert):
    X = convert(np.random.default_rng(0).standard_normal((4000, 500)))
    X[2000:] = X[:2000]  # so that rows are compared, too
    codes, weight = np.zeros(4000, int), np.ones(4000)
    tracemalloc.start()
    try:
        form = canonical_form(X, codes, weight)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert form.rows.size == 2000
    assert peak < X.nbytes / 4


@pytest.mark.parametrize("with_margin", [False, True])
def test_other_weights_give_the_form_that_reading_again_gives(with_margin):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    codes = rng.integers(0, 2, 60)
    margin = rng.integers(1, 3, 60).astype(float) if with_margin else None
    whole = canonical_form(X, codes, rng.uniform(0.1, 1.0, 60), margin)
    weight = rng.uniform(0.1, 1.0, 60) * rng.integers(0, 3, 60)
    part, again = whole.with_weights(weight), canonical_form(X, codes, weight, margin)
    np.testing.assert_array_equal(X[part.rows], X[again.rows])
    for name in ("codes", "weight", "margin", "sample_of_row"):
        np.testing.assert_array_equal(getattr(part, name), getattr(again, name))
    assert whole.with_weights(np.zeros(60)).rows.size == 0
