"""Clusters and the augmented Lagrangian: both methods of the hinge give the optimum of all rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsvm import SparseSVC as OnOneMachine
from sparsvm.losses import Hinge, Logistic
from sparsvm.partitioned import SparseSVC, split_rows
from sparsvm.partitioned.derivatives import SPARSE_SHARE, Place, curvature
from sparsvm.partitioned.engine import Threads
from sparsvm.partitioned.multipliers import MultiplierFits
from sparsvm.partitioned.proximal_hinge import ProximalHinge
from sparsvm.partitioned.sums import Sums
from sparsvm.partitioned.survey import Population, survey
from sparsvm.penalties import L1


def _data(n=900, d=12, K=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.zeros((d, K))
    truth[:4] = rng.standard_normal((4, K))
    X = rng.standard_normal((n, d))
    return X, (X @ truth + 0.7 * rng.standard_normal((n, K))).argmax(axis=1)


@pytest.fixture(params=["clusters", "multipliers"])
def method(request, monkeypatch):
    """Let one method solve everything, from a small sample and with few clusters."""
    tall = np.inf if request.param == "clusters" else 1e-9
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", tall)
    monkeypatch.setattr("sparsvm.partitioned.hinge.SINGLES", 40)
    monkeypatch.setattr("sparsvm.partitioned.hinge.GROUPS", 30)
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 100)
    return request.param


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "l2", "elasticnet", "sparse_group"])
@pytest.mark.parametrize("K", [2, 4])
def test_both_methods_prove_the_optimum_of_all_rows(method, penalty, K):
    X, y = _data(K=K)
    whole = OnOneMachine(penalty=penalty, alpha=0.01, tol=1e-8).fit(X, y)
    model = SparseSVC(penalty=penalty, alpha=0.01, tol=1e-5).fit(split_rows(X, y, rows=200))
    assert model.dual_gap_ <= 1e-5
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-5)
    for each in model.result_.rounds:
        assert each.bound <= whole.objective_ * (1 + 1e-9)
        assert each.objective >= whole.objective_ * (1 - 2e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_classes_costs_margins_and_types_mean_what_they_mean_in_memory(
    method, fit_intercept, kind, dtype
):
    X, y = _data(n=600, K=3)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, y.size).astype(float)
    margin = rng.uniform(0.5, 2.0, y.size)
    labels = np.array(["a", "b", "c"])[y]
    X = np.where(np.abs(X) > 0.7, X, 0.0).astype(dtype)
    X = sp.csr_matrix(X) if kind == "sparse" else X
    options = {
        "loss": Hinge([[0, 1, 3], [1, 0, 1], [2, 1, 0]]),
        "penalty": L1(weights="scale"),
        "class_weight": {"a": 1.0, "b": 2.0, "c": 0.5},
        "alpha": 0.02,
        "tol": 1e-4,
        "fit_intercept": fit_intercept,
    }
    whole = OnOneMachine(**options).fit(X, labels, weight, margin)
    model = SparseSVC(**options).fit(split_rows(X, labels, weight, margin, rows=77))
    assert model.dual_gap_ <= 1e-4
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-4)
    assert model.class_prior_ == pytest.approx(whole.class_prior_)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_one_to_64_partitions_give_the_same_answer_and_the_same_bits_again(method, count):
    X, y = _data(n=640)
    order = np.argsort(y, kind="stable")  # most of many partitions hold one class
    X, y = X[order], y[order]
    parts = [(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), count)]
    parts.insert(count // 2, (X[:0], y[:0]))
    parts.append((np.full((3, X.shape[1]), 1e3), np.array([0, 1, 2]), np.zeros(3)))
    whole = OnOneMachine(alpha=0.01, tol=1e-7).fit(X, y)
    model = SparseSVC(alpha=0.01, tol=1e-4).fit(parts)
    again = SparseSVC(alpha=0.01, tol=1e-4, n_jobs=2).fit(parts)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal(model.intercept_, again.intercept_)
    assert model.objective_ == again.objective_


def test_many_rows_and_few_coefficients_are_solved_without_clusters(monkeypatch):
    calls = []
    fit = MultiplierFits.fit
    monkeypatch.setattr(MultiplierFits, "fit", lambda *given: calls.append(1) or fit(*given))
    X, y = _data(n=12_000, d=6, K=2)
    wide = np.random.default_rng(1).standard_normal((400, 200))
    SparseSVC(alpha=0.1, tol=1e-4).fit(split_rows(X, y, rows=4000))
    assert len(calls) == 1
    SparseSVC(alpha=0.001).fit(split_rows(wide, y[:400], rows=100))
    free = L1(weights=[0.0] + [1.0] * 5)
    model = SparseSVC(penalty=free, alpha=0.1).fit(split_rows(X, y, rows=4000))
    assert len(calls) == 1
    assert model.coef_[0, 0] != 0.0


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_sparse_rows_whose_means_the_driver_cannot_hold_need_no_clusters(monkeypatch, penalty):
    """With more coefficients than a Newton system takes, too: by a quasi-Newton model."""
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 100)
    monkeypatch.setattr("sparsvm.partitioned.hinge.STORE_BYTES", 1 << 14)
    monkeypatch.setattr("sparsvm.partitioned.model.MOST_VARIABLES", 30)
    monkeypatch.setattr("sparsvm.partitioned.hinge.divide", None)  # forms clusters
    X, y = _data(d=60, K=3)
    X = sp.csr_array(np.where(np.abs(X) > 1.2, X, 0.0))
    whole = OnOneMachine(penalty=penalty, alpha=0.005, tol=1e-6).fit(X, y)
    model = SparseSVC(penalty=penalty, alpha=0.005).fit(split_rows(X, y, rows=225))
    assert np.count_nonzero(model.coef_.any(axis=0)) * 3 > 30
    assert model.dual_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
    for each in model.result_.rounds:
        assert each.bound <= whole.objective_ * (1 + 1e-9)


def test_features_that_no_curved_sample_has_do_not_end_a_quasi_newton_fit(monkeypatch):
    """The diagonal alone left them without curvature: no step was a descent, and the gap 0.9."""
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 100)
    monkeypatch.setattr("sparsvm.partitioned.hinge.STORE_BYTES", 1000)
    monkeypatch.setattr("sparsvm.partitioned.model.MOST_VARIABLES", 20)
    rng = np.random.default_rng(0)
    n, d, each = 400, 300, 5
    often = np.arange(1, d + 1) ** -0.7
    columns = rng.choice(d, size=n * each, p=often / often.sum())
    rows = np.repeat(np.arange(n), each)
    X = sp.csr_array((np.abs(rng.standard_normal(n * each)), (rows, columns)), shape=(n, d))
    y = (X @ rng.standard_normal((d, 3))).argmax(axis=1)
    best = OnOneMachine(penalty="l1/l2", alpha=1e-3, tol=1e-6).fit(X, y).objective_
    model = SparseSVC(penalty="l1/l2", alpha=1e-3, tol=0.02).fit(split_rows(X, y, rows=200))
    assert model.dual_gap_ <= 0.02
    assert model.result_.dual_objective <= best * (1 + 1e-9) <= model.objective_ * (1 + 2e-9)


def test_the_lagrangian_is_below_the_hinge_with_derivatives_of_both_orders():
    rng = np.random.default_rng(0)
    n, K = 60, 4
    y, margins = rng.integers(0, K, n).astype(np.int32), rng.uniform(0.5, 2.0, (n, K))
    margins[np.arange(n), y] = 0.0
    centre = rng.dirichlet(np.ones(K), n)
    scores, direction = rng.standard_normal((n, K)), rng.standard_normal((n, K))
    for loss in (ProximalHinge(3.0, centre), ProximalHinge(0.7)):
        value = loss.value(scores, y, margins)
        assert np.all(value <= Hinge().value(scores, y, margins) + 1e-14)
        assert loss.hinge(scores, y, margins) == pytest.approx(Hinge().value(scores, y, margins))
        t = 1e-6
        ahead, behind = scores + t * direction, scores - t * direction
        slope = (loss.value(ahead, y, margins) - loss.value(behind, y, margins)) / (2 * t)
        assert slope == pytest.approx(
            (loss.gradient(scores, y, margins) * direction).sum(axis=1), abs=1e-7
        )
        change = (loss.gradient(ahead, y, margins) - loss.gradient(behind, y, margins)) / (2 * t)
        product = loss.hessian_product(scores, y, margins, direction)
        assert change == pytest.approx(product, abs=1e-6)
        assert np.array_equal(loss.curved(scores, y, margins), product.any(axis=1))


def test_too_few_passes_end_with_the_gap_that_is_proved(monkeypatch):
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", 1e-9)
    X, y = _data()
    best = OnOneMachine(alpha=0.01, tol=1e-8).fit(X, y).objective_
    with pytest.warns(UserWarning, match=r"passes \(max_iter\)"):
        model = SparseSVC(alpha=0.01, tol=1e-7, max_iter=3).fit(split_rows(X, y, rows=300))
    assert model.dual_gap_ > 1e-7
    assert 0.0 <= model.result_.dual_objective <= best <= model.objective_ * (1 + 1e-9)


def test_sums_over_many_partitions_hold_few_partial_sums():
    live, most = set(), 0

    class Counted:
        def __init__(self, value):
            nonlocal most
            self.value = value
            live.add(id(self))
            most = max(most, len(live))

        def __del__(self):
            live.discard(id(self))

        def plus(self, other):
            return Counted(self.value + other.value)

    sums = Sums(Threads(1), list(range(100)))
    assert sums.of(lambda part, number, state: Counted(part)).value == 4950
    assert most <= 10


def test_a_fit_that_no_step_improves_any_more_ends(monkeypatch):
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", 1e-9)
    X, y = _data(n=200)
    with pytest.warns(UserWarning, match=r"\(stalled\)"):
        model = SparseSVC(alpha=0.01, tol=1e-14).fit(split_rows(X, y, rows=50))
    assert model.n_iter_ < 300
    assert model.dual_gap_ < 1e-2


@pytest.mark.parametrize("loss", [Logistic(), ProximalHinge(3.0)])
@pytest.mark.parametrize("share", [0.3 * SPARSE_SHARE, 3.0 * SPARSE_SHARE])
@pytest.mark.parametrize("count", [0, 7, 20])
def test_sparse_and_dense_columns_have_the_same_second_derivatives(loss, share, count):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.standard_normal((200, 20)) * (rng.random((200, 20)) < share))
    y = np.arange(200) % 3
    population = Population.of([survey((X, y), 0, 10, 1e6, 0, 1)], None)
    terms, cost = L1().resolve(20, 3, None), Hinge().cost_matrix(3)
    place = Place(population, loss, cost, terms, rng.standard_normal((3, 20)), np.zeros(3))
    features = np.arange(count, dtype=np.int32)
    sparse = curvature((X, y), 0, None, place, features)
    dense = curvature((X.toarray(), y), 0, None, place, features)
    assert sparse == pytest.approx(dense, rel=1e-12, abs=1e-15)
