"""Native entries refuse what they cannot use with a sentence, or survive it."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from sparsvm import _core
from sparsvm.data.design import make_design

pytestmark = pytest.mark.native

DENSE = np.arange(12.0).reshape(4, 3) % 5
SPARSE = np.where(DENSE > 2, DENSE, 0.0)
MATRICES = {
    "dense_rows": DENSE,
    "dense_cols": np.asfortranarray(DENSE),
    "csr": csr_array(SPARSE),
    "csc": csc_array(SPARSE),
    "csr float32": csr_array(SPARSE.astype(np.float32)),
    "csc float32": csc_array(SPARSE.astype(np.float32)),
}
PENALTY = {"kind": "l1/l2", "l1_ratio": 0.0, "per_class": False}
GROUPS = {"groups": np.array([0, 1, 1], np.int32), "n_groups": 2}
BOUND = {"scale": 1.0, "error": np.zeros(2), "column_norms": np.ones(3), "omega": np.ones(3)}


@pytest.mark.parametrize("name", MATRICES)
def test_products_without_outputs_are_empty(name):
    # Sparse kernels took K = 0 for rows of 32 entries and wrote beyond their output.
    X = make_design(MATRICES[name])
    features = np.array([0, 2], np.int32)
    for _ in range(50):
        assert X.scores(np.empty((3, 0))).shape == (4, 0)
        assert X.scores_subset(features, np.empty((2, 0))).shape == (4, 0)
        assert X.scores_range(1, 3, features, np.empty((2, 0))).shape == (2, 0)
        assert X.transposed(np.empty((4, 0))).shape == (3, 0)


@pytest.mark.parametrize("n, d", [(0, 3), (4, 0), (0, 0)])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, csr_array, csc_array])
def test_designs_without_samples_or_features_have_products_of_zeros(kind, n, d):
    X = make_design(kind(np.empty((n, d))))
    for K in (0, 1, 2, 5, 40):
        np.testing.assert_array_equal(X.scores(np.ones((d, K))), np.zeros((n, K)))
        np.testing.assert_array_equal(X.transposed(np.ones((n, K))), np.zeros((d, K)))
    np.testing.assert_array_equal(X.column_norms(), np.zeros(d))
    np.testing.assert_array_equal(X.abs_scores(np.ones(d)), np.zeros(n))
    assert [values.size for values in X.column_stats()] == [d] * 4
    assert X.gather_columns(np.empty(0, np.int32)).shape == (n, 0)


def test_what_no_memory_could_hold_is_refused():
    # Arrays without entries may have any shape, and products of such sizes overflow.
    huge = 2**40
    X = _core.Design.dense(np.empty((huge, 0)))
    for call in (
        lambda: X.scores(np.empty((0, huge))),
        lambda: _core.zeros(huge, huge),
        lambda: _core.class_sums(np.empty((0, huge)), np.empty(0, np.int32)),
    ):
        with pytest.raises(MemoryError):
            call()
    with pytest.raises(ValueError, match=r"cannot have the shape \(-1, 2\)"):
        _core.zeros(-1, 2)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_dual_norms_refuse_what_does_not_fit(kind):
    X = make_design(kind(DENSE))
    with pytest.raises(ValueError, match="Y has no columns; give one for each output"):
        _core.feature_norms(X, np.empty((4, 0)), **{**BOUND, "error": np.empty(0)}, **PENALTY)
    with pytest.raises(ValueError, match="Y has no columns; give one for each output"):
        bound = {**BOUND, "error": np.empty(0)}
        _core.largest_dual_norm(X, np.empty((4, 0)), **bound, **PENALTY, **GROUPS)
    for what, wrong, sentence in [
        ("error", np.zeros(3), "error has length 3 .* outputs is 2"),
        ("column_norms", np.ones(2), "column_norms has length 2 .* features is 3"),
        ("omega", np.ones(4), "omega has length 4 .* features is 3"),
    ]:
        bad = {**BOUND, what: wrong}
        with pytest.raises(ValueError, match=sentence):
            _core.feature_norms(X, np.ones((4, 2)), **bad, **PENALTY)
        with pytest.raises(ValueError, match=sentence):
            _core.largest_dual_norm(X, np.ones((4, 2)), **bad, **PENALTY, **GROUPS)
    for wrong, sentence in [
        ({"n_groups": 1}, r"groups\[1\] is 1, outside 0 .. 0"),
        ({"n_groups": 7}, "n_groups is 7 for 3 features"),
        ({"groups": -GROUPS["groups"]}, r"groups\[1\] is -1, outside 0 .. 1"),
        ({"omega": np.array([1.0, np.nan, 1.0])}, r"omega\[1\] is nan, but must be finite"),
        ({"l1_ratio": np.nan}, "l1_ratio is nan, but must lie between 0 and 1"),
    ]:
        arguments = {**BOUND, **PENALTY, **GROUPS, **wrong}
        with pytest.raises(ValueError, match=sentence):
            _core.largest_dual_norm(X, np.ones((4, 2)), **arguments)


def test_a_packed_matrix_is_unpacked_to_its_own_size_only():
    packed = _core.PackedEntries(np.eye(3))
    with pytest.raises(ValueError, match="out has length 8"):
        packed.unpack(np.empty((4, 2)))
    assert _core.PackedEntries(np.empty((0, 5))).bytes == 0
