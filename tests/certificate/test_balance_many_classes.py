"""The balance of the dual between hundreds of classes."""

import numpy as np

from sparsvm.certificate.balance import _is_strongly_connected, balanced_class_sums


def test_flows_between_many_classes_are_balanced_by_one_factor_a_class():
    """T = D S D⁻¹ with a diagonal D, rows and columns of equal sums; arcs that are missing stay."""
    rng = np.random.default_rng(0)
    sums = rng.exponential(size=(150, 150)) * (rng.random((150, 150)) < 0.1)
    sums *= 10.0 ** rng.uniform(-3, 0, 150)[:, None]
    np.fill_diagonal(sums, 0.0)
    balanced = balanced_class_sums(sums, of_differences=True)
    np.testing.assert_allclose(balanced.sum(axis=0), balanced.sum(axis=1), rtol=1e-12)
    arcs = sums > 0.0
    assert np.array_equal(balanced > 0.0, arcs)
    # Products along a cycle do not change: T_ab T_bc T_ca is that of S.
    changes = np.zeros_like(sums)
    changes[arcs] = np.log(balanced[arcs] / sums[arcs])
    for a, b in np.argwhere(arcs):
        c = np.flatnonzero(arcs[b] & arcs[:, a])
        np.testing.assert_allclose(changes[a, b] + changes[b, c] + changes[c, a], 0.0, atol=1e-9)


def test_a_ring_of_many_classes_is_strongly_connected_and_a_chain_is_not():
    """Both ways of finding out agree with what is known of rings and chains."""
    for K in (5, 64, 65, 200):
        ring = np.roll(np.eye(K), 1, axis=1) > 0.0
        chain = ring.copy()
        chain[K - 1, 0] = False
        assert _is_strongly_connected(ring)
        assert not _is_strongly_connected(chain)
