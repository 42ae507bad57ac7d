"""Pricing only the blocks that may have come near loses none of them."""

import numpy as np
import pytest

import hinge_cases as cases
from sparsvm import _core
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.solvers.run.native import hinge_problem
from sparsvm.solvers.run.threads import blas_threads

pytestmark = pytest.mark.native

N, D = 30, 1500
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


def build(name, n_classes, storage):
    """Columns of very different sizes, some of them unpenalised."""
    X, y = cases.gaussian(3, N, D, n_classes, apart=0.3)
    rng = np.random.default_rng(0)
    X *= 10.0 ** rng.uniform(-2.5, 0.0, D)
    weights = rng.uniform(0.5, 2.0, D)
    weights[[3, 20]] = 0.0
    return cases.build(cases.STORAGES[storage](X), y, PENALTIES[name](weights=weights), share=0.3)


def solve(problem, factor):
    """With the norms of the columns, which tell who may come near, multiplied by a factor."""
    with blas_threads(1):
        return _core.interior_point(
            hinge_problem(problem),
            column_norms=factor * problem.column_norms,
            dual=None,
            weights=None,
            intercept=None,
            tol=1e-8,
            max_iter=100,
            across_features=True,
            inside=True,
            residual=0.0,
            callback=None,
        )


@pytest.mark.parametrize("storage", ["C", "csr"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", PENALTIES)
def test_no_near_block_is_missed(name, n_classes, storage):
    problem = build(name, n_classes, storage)
    found, every = solve(problem, 1.0), solve(problem, 1e9)  # the latter prices all, always
    assert found["converged"] and every["converged"]
    np.testing.assert_allclose(found["bound"], every["bound"], rtol=1e-9)
    np.testing.assert_array_equal(found["used"], every["used"])
    np.testing.assert_allclose(found["dual"], every["dual"], atol=1e-6 * every["dual"].max())
    # With norms that are far too small near blocks are missed, and the dual point leaves their
    # balls: its value is then no bound. So these problems would show one that is missed.
    wrong = solve(problem, 1e-2)
    assert abs(wrong["bound"] - every["bound"]) > 5e-4 * abs(every["bound"])
