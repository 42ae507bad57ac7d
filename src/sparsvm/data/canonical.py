"""Canonical form of a training set: one row index and one weight per distinct sample.

Two training sets that mean the same thing (rows in another order, a row repeated instead of
weighted, rows of weight zero added) must give the same model, even where the optimum is not
unique.  They do so bit for bit when the solver sees the same numbers in the same order, so every
estimator passes its data through :func:`canonical_form` first.

The user's matrix is never copied: rows are hashed in blocks of a few hundred kilobytes and the
result is an index into the matrix.  The hash of row i is

    h_i = Σ_j fold(bits(x_ij)) · m_j   mod 2^64,      fold(b) = b xor (b >> 32),

with fixed odd multipliers m_j and ``bits`` the IEEE double pattern of the value.  A zero adds
nothing, so dense, CSR and CSC storage of the same values give the same hash, in float32 too; the
fold brings the exponent and the leading digits, which is all that small integers use, to the low
half, where a product modulo 2^64 spreads them over every bit.  Equal hashes are only candidates:
rows are compared in full before they are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Array, Bools, Features, Floats, Hashes, Ints

# Values hashed or compared at a time; 32768 doubles stay in a second-level cache, and MNIST
# (60000 x 784) hashes in 0.08 s against 0.25 s when the whole matrix is folded at once.
_BLOCK = 1 << 15
# Sparse blocks cost a few microseconds of scipy bookkeeping and an output of length n each; this
# size takes 2 MB and on News20 2 ms longer than the 20 MB of all entries at once.
_SPARSE_BLOCK = 1 << 16
# The constants of splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number
# generators, 2014).
_STEP, _LAST_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(31)
_MIX = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


@dataclass(frozen=True)
class CanonicalForm:
    """The distinct samples of a training set, in an order that depends on their values only.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        For each distinct sample, one row of the user's matrix that holds it.
    codes : ndarray of shape (n,), int32
        Class number of each sample; the samples are sorted by it.
    weight : ndarray of shape (n,), float64
        Sum of the weights of the rows merged into the sample, always positive.
    margin : ndarray of shape (n,), float64, or None
        The per-sample margin, where one was given.
    sample_of_row : ndarray of shape (n_rows,), int64
        Which sample each row of the user's matrix went into; -1 for rows that were dropped.
    """

    rows: Ints
    codes: Features
    weight: Floats
    margin: Floats | None
    sample_of_row: Ints

    def select(self, keep: Bools) -> CanonicalForm:
        """Return the form restricted to the samples where `keep` is true."""
        margin = None if self.margin is None else self.margin[keep]
        # One more entry, so that the index -1 of a dropped row stays -1.
        number = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)
        return CanonicalForm(
            self.rows[keep], self.codes[keep], self.weight[keep], margin, number[self.sample_of_row]
        )

    def with_weights(self, weight_of_row: Floats) -> CanonicalForm:
        """Return the form of the same rows with other weights, without reading them again.

        Samples keep their order, and lose rows of weight zero. Rows that were dropped stay so.
        """
        kept = np.flatnonzero((weight_of_row > 0) & (self.sample_of_row >= 0))
        samples, weight = self.sample_of_row[kept], weight_of_row[kept]
        # In the order in which canonical_form adds the weights that it merges.
        order = np.lexsort([weight, samples])
        present, starts = np.unique(samples[order], return_index=True)
        total = np.zeros(self.rows.size)
        if present.size:
            total[present] = np.add.reduceat(weight[order], starts)
        rows = np.full_like(self.sample_of_row, -1)
        rows[kept] = samples
        form = CanonicalForm(self.rows, self.codes, total, self.margin, rows)
        return form.select(total > 0)


def canonical_form(
    X: Any, codes: Array, weight: Floats, margin: Floats | None = None
) -> CanonicalForm:
    """Drop rows of weight zero, merge identical (row, class, margin), and fix the order.

    Parameters
    ----------
    X : ndarray, or scipy CSR or CSC matrix without duplicate entries, of shape (n_rows, d)
        Finite float32 or float64 values; it is only read.
    codes : ndarray of shape (n_rows,)
        Class numbers.
    weight : ndarray of shape (n_rows,)
        Non-negative weights.
    margin : ndarray of shape (n_rows,), optional
        Per-sample margins; rows of different margin are not merged.

    Returns
    -------
    CanonicalForm
        Samples sorted by class, then margin, then hash of the row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]])
    >>> form = canonical_form(X, np.array([1, 0, 1]), np.array([1.0, 5.0, 2.0]))
    >>> X[form.rows]
    array([[0., 3.],
           [1., 2.]])
    >>> form.weight
    array([5., 3.])
    """
    kept = np.flatnonzero(weight > 0)
    hashes = hash_rows(X)[kept]
    codes, weight = codes[kept].astype(np.int32), weight[kept]
    keys = [hashes, codes] if margin is None else [hashes, margin[kept], codes]
    # The weight is the last key so that merged weights are added in one order, hence rounded
    # in one way, whatever order the rows came in.
    order = np.lexsort([weight, *keys])
    same = np.ones(max(order.size - 1, 0), dtype=bool)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    pairs = np.flatnonzero(same)
    if pairs.size:
        X = _by_rows(X) if sp.issparse(X) else X
        same[pairs] = _rows_equal(X, kept[order[pairs]], kept[order[pairs + 1]])
        if not same[pairs].all():
            order, same = _separate_collisions(X, kept, order, weight, pairs, same)
    starts = np.flatnonzero(np.concatenate(([order.size > 0], ~same)))
    first = order[starts]
    sample_of_row = np.full(X.shape[0], -1, dtype=np.int64)
    sample_of_row[kept[order]] = np.repeat(
        np.arange(starts.size), np.diff(starts, append=order.size)
    )
    return CanonicalForm(
        rows=kept[first],
        codes=codes[first],
        weight=np.add.reduceat(weight[order], starts),
        margin=None if margin is None else margin[kept][first],
        sample_of_row=sample_of_row,
    )


def hash_rows(X: Any) -> Hashes:
    """Return one 64-bit hash per row of a dense or sparse matrix (formula above)."""
    multipliers = _multipliers(X.shape[1])
    if sp.issparse(X):
        return _hash_sparse(X, multipliers)
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        return _hash_columns(X, multipliers)
    n, d = X.shape
    out = np.empty(n, dtype=np.uint64)
    step = max(1, _BLOCK // d)
    buffer = np.empty((min(step, n), d))
    for start in range(0, n, step):
        block = X[start : start + step]
        out[start : start + step] = _fold(block, buffer[: block.shape[0]]) @ multipliers
    return out


def _hash_columns(X: Array, multipliers: Hashes) -> Hashes:
    n, d = X.shape
    out = np.zeros(n, dtype=np.uint64)
    step = max(1, _BLOCK // n)
    buffer = np.empty((min(step, d), n))
    for start in range(0, d, step):
        panel = X.T[start : start + step]
        out += multipliers[start : start + step] @ _fold(panel, buffer[: panel.shape[0]])
    return out


def _hash_sparse(X: Any, multipliers: Hashes) -> Hashes:
    by_rows = X.format == "csr"
    out = np.zeros(X.shape[0], dtype=np.uint64)
    container = sp.csr_array if by_rows else sp.csc_array
    n_major, start = len(X.indptr) - 1, 0
    while start < n_major:
        limit = X.indptr[start] + _SPARSE_BLOCK
        stop = max(start + 1, int(np.searchsorted(X.indptr, limit, side="right")) - 1)
        lo, hi = int(X.indptr[start]), int(X.indptr[stop])
        values = _fold(X.data[lo:hi], np.empty(hi - lo))
        shape = (stop - start, X.shape[1]) if by_rows else (X.shape[0], stop - start)
        triple = (values, _within(X.indices[lo:hi], X), X.indptr[start : stop + 1] - lo)
        block = container(triple, shape=shape)
        if by_rows:
            out[start:stop] = block @ multipliers
        else:
            out += block @ multipliers[start:stop]
        start = stop
    return out


def _within(indices: Array, X: Any) -> Array:
    """Return indices that scipy may trust, even if another thread has changed those of X."""
    return np.clip(indices, 0, X.shape[1 if X.format == "csr" else 0] - 1)


def _by_rows(X: Any) -> Any:
    if X.format == "csr":
        return X
    return sp.csc_array((X.data, _within(X.indices, X), X.indptr), shape=X.shape).tocsr()


def _fold(values: Array, buffer: Floats) -> Hashes:
    # Adding zero turns -0.0 into 0.0 and widens float32, in the one pass that copies the block.
    np.add(values, 0.0, out=buffer)
    bits = buffer.view(np.uint64)
    bits ^= bits >> np.uint64(32)
    return bits


def _multipliers(d: int) -> Hashes:
    """Return d odd pseudo-random 64-bit numbers (the finaliser of splitmix64 of 1 … d)."""
    z = np.arange(1, d + 1, dtype=np.uint64) * _STEP
    for shift, factor in _MIX:
        z = (z ^ (z >> shift)) * factor
    return (z ^ (z >> _LAST_SHIFT)) | np.uint64(1)


def _rows_equal(X: Any, left: Ints, right: Ints) -> Bools:
    out = np.empty(left.size, dtype=bool)
    width = max(1, X.nnz // X.shape[0]) if sp.issparse(X) else X.shape[1]
    step = max(1, _BLOCK // width)
    for start in range(0, left.size, step):
        part = slice(start, start + step)
        a, b = X[left[part]], X[right[part]]
        if sp.issparse(X):
            a.indices, b.indices = _within(a.indices, X), _within(b.indices, X)
            out[part] = np.asarray((a != b).sum(axis=1)).ravel() == 0
        else:
            out[part] = (a == b).all(axis=1)
    return out


def _separate_collisions(
    X: Any, kept: Ints, order: Ints, weight: Floats, pairs: Ints, same: Bools
) -> tuple[Ints, Bools]:
    """Sort by value the runs in which different rows share a hash.

    About one pair in 2^33 or fewer collides, so the runs are short and may be densified.
    """
    order, same = order.copy(), same.copy()
    breaks = np.flatnonzero(np.diff(pairs) > 1) + 1
    for run in np.split(pairs, breaks):
        if same[run].all():
            continue
        members = order[run[0] : run[-1] + 2]
        values = X[kept[members]]
        values = (values.toarray() if sp.issparse(values) else values) + 0.0
        members = members[np.lexsort([weight[members], *values.T[::-1]])]
        order[run[0] : run[-1] + 2] = members
        same[run] = _rows_equal(X, kept[members[:-1]], kept[members[1:]])
    return order, same
