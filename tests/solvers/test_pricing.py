"""Pricing only the blocks that may have come near finds all that are near."""

import numpy as np
import pytest
from scipy.optimize import brentq

from hinge_cases import STORAGES
from sparsvm import _core
from sparsvm.data.design import make_design
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.solvers.run.native import penalty_arguments
from sparsvm.solvers.run.threads import blas_threads

pytestmark = pytest.mark.native

N, D, STEPS, THETA = 12, 240, 12, 0.95
PENALTIES = {
    "l1": L1,
    "elasticnet": lambda **options: ElasticNet(l1_ratio=0.4, **options),
    "l1/l2 rows": GroupL2,
    "l1/l2 blocks": lambda **options: GroupL2(groups=5, per_class=True, **options),
    "l1/linf rows": GroupLinf,
    "l1/linf blocks": lambda **options: GroupLinf(groups=4, per_class=True, **options),
    "l1/linf joint blocks": lambda **options: GroupLinf(groups=3, **options),
    "sparse_group": lambda **options: SparseGroup(groups=4, l1_ratio=0.5, **options),
}


def dual_norm(terms, g):
    """The dual norm of one block, already divided by its weights."""
    sizes, ratio = np.abs(g), terms.l1_ratio
    if sizes.max() == 0.0:
        return 0.0
    if terms.kind in ("l1", "elasticnet"):
        return sizes[0] / (ratio if terms.kind == "elasticnet" else 1.0)
    if terms.kind == "l1/l2":
        return np.linalg.norm(g)
    if terms.kind == "l1/linf":
        return sizes.sum()

    def beyond(c):
        return np.linalg.norm(np.maximum(sizes - c * ratio, 0.0)) - c * (1.0 - ratio)

    return brentq(beyond, 0.0, 2.0 * sizes.sum() / (1.0 - ratio), xtol=1e-13)


def norms_of(X, Y, terms):
    """The dual norm of every block of X'Y, Y being outputs x samples."""
    grouped = terms.kind not in ("l1", "elasticnet")
    groups = terms.groups if grouped else np.arange(D)
    free = terms.omega == 0.0
    G = (Y @ X) / np.where(free, 1.0, terms.omega)
    norms = []
    for g in range(groups.max() + 1):
        block = G[:, (groups == g) & ~free]
        rows = [block.ravel()] if grouped and not terms.per_class else block
        norms += [dual_norm(terms, row) if row.size > 0 else 0.0 for row in rows]
    return np.array(norms)


def reference(X, moves, terms):
    """The numbers of the blocks beyond THETA after each move, from all of X."""
    return [list(np.flatnonzero(norms_of(X, Y, terms) > THETA)) for Y in np.cumsum(moves, axis=0)]


def walk(rng, X, terms, outputs):
    """Moves that shrink, of such a length that two blocks are near where they end."""
    moves = rng.standard_normal((STEPS, outputs, N)) * 0.5 ** np.arange(STEPS)[:, None, None]
    second = np.sort(norms_of(X, moves.sum(axis=0), terms))[-2]
    return 1.01 * THETA / second * moves


def near_blocks(X, moves, terms, store=np.asarray, **changes):
    arguments = {**penalty_arguments(terms), "column_norms": np.linalg.norm(X, axis=0)}
    with blas_threads(1):
        return _core.near_blocks(
            make_design(store(X)), moves, **{**arguments, "theta": THETA, **changes}
        )


@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", PENALTIES)
def test_finds_every_near_block(name, outputs, storage):
    rng = np.random.default_rng(len(name) + outputs)
    X = rng.standard_normal((N, D)) * rng.uniform(0.1, 1.0, D)
    X[rng.uniform(size=X.shape) < 0.4] = 0.0
    X[:, 7] = 0.0
    weights = rng.uniform(0.5, 2.0, D)
    weights[[3, 20, 21, 22, 23, 24]] = 0.0
    terms = PENALTIES[name](weights=weights).resolve(D, outputs, None)
    moves = walk(rng, X, terms, outputs)
    found = near_blocks(X, moves, terms, STORAGES[storage])
    expected = reference(X, moves, terms)
    assert [near for near, _ in found] == expected
    assert any(expected)
    # Some steps go without the other blocks, the first one not.
    some = [priced < D for _, priced in found]
    assert not some[0] and sum(some) >= STEPS // 3


def test_a_long_move_brings_all_up_to_date():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    terms = L1().resolve(D, 3, None)
    moves = walk(rng, X, terms, 3)
    moves = np.concatenate([moves, -0.5 * moves[:3]])
    found = near_blocks(X, moves, terms)
    assert [near for near, _ in found] == reference(X, moves, terms)
    assert found[STEPS - 1][1] < D and found[STEPS][1] == D


@pytest.mark.parametrize("storage", ["C", "csc"])
@pytest.mark.parametrize("outputs", [1, 3, 6])
@pytest.mark.parametrize("name", ["l1", "l1/l2 blocks", "l1/linf rows", "sparse_group"])
def test_blocks_that_join_later_are_not_missed(name, outputs, storage):
    # Short steps that lead ever farther away, and now and then a long one.
    rng = np.random.default_rng(len(name) + outputs)
    X = rng.standard_normal((N, D)) * rng.uniform(0.02, 1.0, D) ** 2
    terms = PENALTIES[name]().resolve(D, outputs, None)
    way = rng.standard_normal((outputs, N))
    moves = way + 0.3 * rng.standard_normal((24, outputs, N))
    moves[12] += 8.0 * rng.standard_normal((outputs, N))
    moves[19:] *= -1.0
    moves[18] += 8.0 * rng.standard_normal((outputs, N))
    largest = max(norms_of(X, Y, terms).max() for Y in np.cumsum(moves, axis=0))
    moves *= 1.1 / largest
    found = near_blocks(X, moves, terms, STORAGES[storage])
    expected = reference(X, moves, terms)
    assert [near for near, _ in found] == expected
    assert any(expected)
    priced = np.array([count for _, count in found])
    some = priced < D
    assert np.any(some[1:] & some[:-1] & (priced[1:] > priced[:-1]))
    assert np.any(some[:-1] & ~some[1:])


def test_sizes_are_checked():
    X, terms = np.ones((N, D)), L1().resolve(D, 3, None)
    with pytest.raises(ValueError, match=f"{N - 1}.*{N}"):
        near_blocks(X, np.zeros((2, 3, N - 1)), terms)
    with pytest.raises(ValueError, match=f"{D - 1}.*{D}"):
        near_blocks(X, np.zeros((2, 3, N)), terms, column_norms=np.ones(D - 1))
    with pytest.raises(ValueError, match="theta"):
        near_blocks(X, np.zeros((2, 3, N)), terms, theta=0.5)
