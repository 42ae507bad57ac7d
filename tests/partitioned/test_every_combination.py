"""Every loss with every penalty on every kind of rows over partitions: the answer in memory."""

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparsvm import SparseSVC as OnOneMachine
from sparsvm.losses import Hinge, SquaredHinge
from sparsvm.partitioned import SparseSVC
from sparsvm.partitioned.model import MOST_VARIABLES

LOSSES = {
    "hinge": Hinge([[0, 1, 2], [1, 0, 1], [3, 1, 0]]),
    "squared_hinge": SquaredHinge([[0, 1, 2], [1, 0, 1], [3, 1, 0]]),
    "logistic": "logistic",
    "ovr_squared_hinge": "ovr_squared_hinge",
}
KINDS = {
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
}
OPTIONS = {"alpha": 0.03, "class_weight": "balanced"}


def _rows():
    """Return rows by class, so that partitions lack some; one partition has no weight."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((160, 9))
    X[np.abs(X) < 0.5] = 0.0
    y = (X[:, :3] + 0.8 * rng.standard_normal((160, 3))).argmax(axis=1)
    order = np.argsort(y, kind="stable")
    weight = rng.integers(0, 3, 160).astype(float)
    weight[40:60] = 0.0
    return X[order], np.array(["a", "b", "c"])[y[order]], weight


def _parts(X, y, weight, count):
    cuts = np.linspace(0, len(y), count + 1).astype(int)
    cuts = np.insert(cuts, 1, cuts[1])  # one partition without rows
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    pieces = [slice(a, b) for a, b in pairwise(cuts)]
    return [(take(piece), y[piece], weight[piece]) for piece in pieces]


@cache
def _optimum(name, penalty, dtype):
    X, y, weight = _rows()
    model = OnOneMachine(LOSSES[name], penalty, **OPTIONS, tol=1e-7)
    return model.fit(X.astype(dtype), y, weight).objective_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group", "l2", "elasticnet"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_answer_is_that_in_memory(monkeypatch, name, penalty, kind):
    monkeypatch.setattr("sparsvm.partitioned.hinge.SINGLES", 20)
    monkeypatch.setattr("sparsvm.partitioned.hinge.GROUPS", 20)
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 60)
    X, y, weight = _rows()
    dtype = np.float32 if kind == "float32" else np.float64
    best = _optimum(name, penalty, dtype)
    parts = _parts(KINDS[kind](X), y, weight, 8)
    for budget in (0, 1 << 20):
        monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", budget)
        model = SparseSVC(LOSSES[name], penalty, **OPTIONS, tol=1e-4).fit(parts)
        assert model.result_.status == "optimal"
        assert model.dual_gap_ <= 1e-4
        assert model.objective_ == pytest.approx(best, rel=1.1e-4)
        assert model.result_.dual_objective <= best * (1 + 1e-6)
        assert model.coef_.dtype == dtype
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert (model.n_iter_ == 1) == (budget > 0)


@pytest.mark.parametrize(("penalty", "alpha"), [("l1/l2", 0.003), ("l2", 0.03)])
def test_more_coefficients_than_a_newton_system_takes(monkeypatch, penalty, alpha):
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 200)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 450))
    scores = X @ rng.standard_normal((450, 10)) / np.sqrt(450)
    y = (scores + 0.5 * rng.standard_normal((800, 10))).argmax(axis=1)
    whole = OnOneMachine("logistic", penalty, alpha=alpha, tol=1e-6).fit(X, y)
    model = SparseSVC("logistic", penalty, alpha=alpha, tol=1e-3)
    model.fit(_parts(X, y, np.ones(800), 4))
    assert np.count_nonzero(model.coef_) > MOST_VARIABLES
    assert model.dual_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
    assert model.result_.dual_objective <= whole.objective_ * (1 + 1e-6)
