"""Fits with the added norm: certified, by every solver that takes it, and refused by the others."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from sparsvm import SparseSVC
from sparsvm.penalties import GroupL4
from sparsvm.prox import prox_penalty

rng = np.random.default_rng(0)
for weights in (None, rng.random(6) + 0.5, [0.0, 1.0, 0.0, 2.0, 1.0, 1.0]):
    penalty = GroupL4(groups=2, weights=weights)
    terms = penalty.resolve(d=6, n_outputs=3)
    for _ in range(20):
        V = rng.normal(size=(3, 6))
        U = prox_penalty(V, penalty, step=0.7)
        assert terms.dual_norm(V - U) <= 0.7 * (1.0 + 1e-9)
        assert np.isclose(np.sum((V - U) * U), 0.7 * terms.value(U), rtol=1e-9, atol=1e-12)
        assert np.array_equal(U[:, terms.free], V[:, terms.free])

for load in (load_iris, load_wine):
    X, y = load(return_X_y=True)
    X = scale(X)
    for loss, solvers in (
        ("hinge", ("auto", "sdca", "fbpd")),
        ("logistic", ("auto", "fista", "bcd")),
    ):
        objectives = []
        for solver in solvers:
            for data in (X, sp.csr_matrix(X)):
                model = SparseSVC(loss, "l1/l4", alpha=0.05, tol=1e-4, solver=solver).fit(data, y)
                assert model.dual_gap_ <= 1e-4, (loss, solver)
                objectives.append(model.objective_)
        assert max(objectives) <= (1.0 + 2e-4) * min(objectives)
    for loss in ("hinge", "squared_hinge"):
        model = SparseSVC(loss, GroupL4(groups=np.arange(X.shape[1]) // 2), alpha=0.02).fit(X, y)
        assert model.dual_gap_ <= 1e-3, loss

assert SparseSVC(penalty="l1/l4", alpha=0.05).fit(X, y).result_.solver == "sdca"
for loss, solver in (
    ("hinge", "newton"),
    ("hinge", "interior_point"),
    ("hinge", "cone_program"),
    ("logistic", "block_newton"),
    ("logistic", "interior_point"),
):
    with pytest.raises(ValueError, match=f"{solver} needs more of l1/l4 than its prox"):
        SparseSVC(loss, "l1/l4", alpha=0.05, solver=solver).fit(X, y)
