"""A fit over partitions is the fit of all rows, with a certificate over all of them."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sparsvm import SparseSVC as OnOneMachine
from sparsvm import load_model, report, save_model
from sparsvm.losses import Hinge, SquaredHinge
from sparsvm.partitioned import (
    SparseSVC,
    from_npy,
    from_npz,
    from_parquet,
    from_svmlight,
    split_rows,
)
from sparsvm.partitioned.aggregation import Task, divide
from sparsvm.partitioned.survey import Population, survey
from sparsvm.penalties import L1, GroupL2, GroupLinf, Penalty, SparseGroup


def _data(n=600, d=12, K=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.zeros((d, K))
    truth[:4] = rng.standard_normal((4, K))
    X = rng.standard_normal((n, d))
    y = (X @ truth + 0.7 * rng.standard_normal((n, K))).argmax(axis=1)
    return X, y


def _few(monkeypatch, singles=40, groups=30, sample=100):
    """Few clusters, so that small data take several passes."""
    monkeypatch.setattr("sparsvm.partitioned.hinge.SINGLES", singles)
    monkeypatch.setattr("sparsvm.partitioned.hinge.GROUPS", groups)
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", sample)


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "l2", "elasticnet"])
@pytest.mark.parametrize("K", [2, 4])
def test_the_optimum_is_that_of_all_rows(monkeypatch, penalty, K):
    _few(monkeypatch)
    X, y = _data(K=K)
    whole = OnOneMachine(penalty=penalty, alpha=0.01, tol=1e-7).fit(X, y)
    model = SparseSVC(penalty=penalty, alpha=0.01, tol=1e-5).fit(split_rows(X, y, rows=130))
    assert model.dual_gap_ <= 1e-5
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-5)
    assert model.result_.dual_objective <= whole.objective_ * (1 + 1e-12)
    assert len(model.result_.rounds) > 2
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.98


def test_every_bound_on_the_way_is_below_the_optimum(monkeypatch):
    _few(monkeypatch, singles=8, groups=8, sample=30)
    for seed in range(5):
        X, y = _data(seed=seed)
        best = OnOneMachine(alpha=0.02, tol=1e-8).fit(X, y).objective_
        rounds = SparseSVC(alpha=0.02, tol=1e-5).fit(split_rows(X, y, rows=200)).result_.rounds
        assert all(each.bound <= best * (1 + 1e-9) for each in rounds)
        assert all(each.objective >= best * (1 - 1e-9) for each in rounds)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "ovr_squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group", "l2", "elasticnet"])
def test_smooth_losses_have_the_optimum_of_all_rows(monkeypatch, loss, penalty):
    _few(monkeypatch, sample=40)
    X, y = _data(d=20)
    X = np.hstack([X, np.random.default_rng(9).standard_normal((len(X), 60))])
    for labels, kinds in ((y, {}), (y % 2, {"fit_intercept": False})):
        whole = OnOneMachine(loss, penalty, alpha=0.01, tol=1e-8, **kinds).fit(X, labels)
        model = SparseSVC(loss, penalty, alpha=0.01, tol=1e-5, **kinds)
        model.fit(split_rows(X, labels, rows=130))
        assert model.dual_gap_ <= 1e-5
        assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-5)
        assert model.result_.dual_objective <= whole.objective_ * (1 + 1e-9)
        assert len(model.result_.rounds) > 2


def test_smooth_losses_take_weights_costs_and_sparse_rows(monkeypatch):
    _few(monkeypatch, sample=40)
    X, y = _data(K=3)
    rng = np.random.default_rng(1)
    weight, margin = rng.integers(0, 4, y.size).astype(float), rng.uniform(0.5, 2.0, y.size)
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    loss = SquaredHinge([[0, 1, 3], [1, 0, 1], [2, 1, 0]])
    options = {"class_weight": "balanced", "alpha": 0.02, "tol": 1e-5}
    whole = OnOneMachine(loss, L1(weights="scale"), **options).fit(sparse, y, weight, margin)
    model = SparseSVC(loss, L1(weights="scale"), **options)
    model.fit(split_rows(sparse, y, weight, margin, rows=77))
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-5)
    logistic = SparseSVC("logistic", alpha=0.02).fit(split_rows(X, y, rows=77))
    assert logistic.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("tall", [np.inf, 1e-9])
def test_above_alpha_max_every_weight_is_zero(monkeypatch, penalty, loss, tall):
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", tall)
    X, y = _data(n=100)
    model = SparseSVC(loss, penalty, alpha=100.0, tol=1e-4).fit(split_rows(X, y, rows=30))
    whole = OnOneMachine(loss, penalty, alpha=100.0, tol=1e-6).fit(X, y)
    assert not model.coef_.any()
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)


def test_what_partitions_cannot_do_is_said():
    X, y = _data(n=100)
    with pytest.raises(ValueError, match="convex"):
        SparseSVC("ramp").fit(X, y)
    with pytest.raises(ValueError, match="every feature penalised"):
        SparseSVC("logistic", L1(weights=[0.0] + [1.0] * 11)).fit(X, y)
    with pytest.raises(TypeError, match="on_interrupt"):
        SparseSVC(on_interrupt="return")


def test_weights_classes_costs_and_margins_mean_what_they_mean_in_memory(monkeypatch):
    _few(monkeypatch)
    X, y = _data(K=3)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, y.size).astype(float)
    margin = rng.uniform(0.5, 2.0, y.size)
    costs = [[0, 1, 3], [1, 0, 1], [2, 1, 0]]
    labels = np.array(["a", "b", "c"])[y]
    options = {"class_weight": "balanced", "alpha": 0.02, "tol": 1e-5}
    whole = OnOneMachine(Hinge(costs), L1(weights="scale"), **options)
    whole.fit(X, labels, weight, margin)
    parts = split_rows(X, labels, weight, margin, rows=77)
    model = SparseSVC(Hinge(costs), L1(weights="scale"), **options).fit(parts)
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-5)
    assert model.class_prior_ == pytest.approx(whole.class_prior_)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert np.mean(model.predict(X) == whole.predict(X)) > 0.98


def test_partitions_may_lack_classes_be_empty_or_have_no_weight(monkeypatch):
    _few(monkeypatch)
    X, y = _data()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    parts = [(X[a : a + 50], y[a : a + 50]) for a in range(0, len(y), 50)]
    parts.insert(1, (X[:0], y[:0]))
    parts.append((np.full((3, X.shape[1]), 1e3), np.array([0, 1, 2]), np.zeros(3)))
    model = SparseSVC(alpha=0.01, tol=1e-4).fit(parts)
    whole = OnOneMachine(alpha=0.01, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)


@pytest.mark.parametrize("rows", [10, 100, 600])
def test_the_number_of_partitions_does_not_matter(monkeypatch, rows):
    _few(monkeypatch)
    X, y = _data(n=600)
    whole = OnOneMachine(alpha=0.01, tol=1e-7).fit(X, y)
    model = SparseSVC(alpha=0.01, tol=1e-4).fit(split_rows(X, y, rows=rows))
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)


def test_sparse_float32_rows_give_a_float32_model(monkeypatch):
    _few(monkeypatch)
    X, y = _data(d=30)
    X = sp.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32))
    whole = OnOneMachine(penalty=GroupL2(), alpha=0.01, tol=1e-5).fit(X, y)
    model = SparseSVC(penalty=GroupL2(), alpha=0.01, tol=1e-4).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.2e-4)


def test_the_same_partitions_give_the_same_bits(monkeypatch):
    _few(monkeypatch)
    X, y = _data()
    parts = split_rows(X, y, rows=90)
    one = SparseSVC(alpha=0.01).fit(parts)
    two = SparseSVC(alpha=0.01, n_jobs=2).fit(parts)
    assert np.array_equal(one.coef_, two.coef_)
    assert one.objective_ == two.objective_


def test_clusters_bound_the_loss_of_their_samples_from_below_at_any_point():
    X, y = _data(n=300, K=3)
    part = (X, y)
    population = Population.of([survey(part, 0, 10, 1e6, 0, 1)], None)
    rng = np.random.default_rng(2)
    cost = Hinge().cost_matrix(3)

    def loss(X, y, mass, W, b):
        scores = X @ W.T + b
        terms = cost[y] + scores - scores[np.arange(len(y)), y][:, None]
        return float(np.sum(mass * terms.max(axis=1)))

    W, b = rng.standard_normal((3, 12)), rng.standard_normal(3)
    state, report = divide(part, 0, None, Task(population, cost, W, b, 5, 10, 1000))
    everyone = np.full(len(y), 1 / len(y))
    assert report.loss == pytest.approx(loss(X, y, everyone, W, b))
    clusters = report.added
    assert clusters.mass.sum() == pytest.approx(1.0)
    assert loss(clusters.X, clusters.y, clusters.mass, W, b) == pytest.approx(report.loss)
    for _ in range(20):
        V, c = rng.standard_normal((3, 12)), rng.standard_normal(3)
        exact = loss(X, y, everyone, V, c)
        assert loss(clusters.X, clusters.y, clusters.mass, V, c) <= exact + 1e-12
    # Where all clusters of the new point are on one piece each, the two losses are equal.
    kept = {int(k): at for at, k in enumerate(clusters.number)}
    state, later = divide(part, 0, state, Task(population, cost, V, c, 5, 10, 1000))
    left = [at for k, at in kept.items() if k not in set(later.gone.tolist())]
    total = loss(clusters.X[left], clusters.y[left], clusters.mass[left], V, c)
    total += loss(later.added.X, later.added.y, later.added.mass, V, c)
    assert total == pytest.approx(later.loss)
    assert np.bincount(state.cluster, minlength=state.used).sum() == len(y)


def test_files_are_read_by_partitions(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = _data(n=200)
    whole = OnOneMachine(alpha=0.02, tol=1e-6).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    for at in range(2):
        half = slice(100 * at, 100 * at + 100)
        sp.save_npz(tmp_path / f"X{at}.npz", sp.csr_matrix(X[half]))
        np.save(tmp_path / f"y{at}.npy", y[half])
    dump_svmlight_file(X, y, str(tmp_path / "data.svm"))
    text = from_svmlight(tmp_path / "data.svm", 12, part_bytes=4000, zero_based=True)
    assert len(text) > 5
    sources = {
        "npy": from_npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=60),
        "npz": from_npz([(tmp_path / f"X{at}.npz", tmp_path / f"y{at}.npy") for at in range(2)]),
        "svmlight": text,
        "functions": [lambda at=at: (X[at::3], y[at::3]) for at in range(3)],
    }
    for name, parts in sources.items():
        model = SparseSVC(alpha=0.02, tol=1e-4).fit(parts)
        assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4), name


def test_parquet_row_groups_are_partitions(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    X, y = _data(n=200)
    table = pa.table({f"x{j}": X[:, j] for j in range(12)} | {"class": y})
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=64)
    parts = from_parquet(tmp_path / "data.parquet", "class")
    assert len(parts) == 4
    whole = OnOneMachine(alpha=0.02, tol=1e-6).fit(X, y)
    model = SparseSVC(alpha=0.02, tol=1e-4).fit(parts)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)
    assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(12)]
    named = SparseSVC(penalty=L1(weights={"x11": 0.0}), alpha=0.1).fit(parts)
    assert "x11" in named.selected_feature_names_
    with pytest.raises(ValueError, match="no column 'label'"):
        from_parquet(tmp_path / "data.parquet", "label")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no rows"),
        ([(np.ones((3, 2)), [0, 1, 1]), (np.ones((3, 4)), [0, 1, 1])], "different numbers"),
        ([(np.ones((3, 2)), [1, 1, 1])], "two classes"),
        ([(np.ones((3, 2)), [0, 1, 1]), (np.full((2, 2), np.nan), [0, 1])], "Partition 1: .*NaN"),
        ([np.ones((3, 2))], "tuple"),
    ],
)
def test_bad_partitions_are_refused_in_a_sentence(parts, message):
    with pytest.raises(ValueError, match=message):
        SparseSVC().fit(parts)


def test_too_few_passes_end_with_a_warning_that_names_the_gap(monkeypatch):
    _few(monkeypatch, singles=5, groups=5, sample=20)
    X, y = _data()
    with pytest.warns(ConvergenceWarning, match="2 passes"):
        model = SparseSVC(alpha=0.01, tol=1e-6, max_iter=2).fit(split_rows(X, y, rows=100))
    assert model.dual_gap_ > 1e-6


def test_a_model_of_partitions_is_saved_exported_and_reported_like_any_other(tmp_path):
    X, y = _data(n=200)
    model = SparseSVC(alpha=0.02).fit(split_rows(X, y, rows=60))
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert type(loaded) is OnOneMachine
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.dual_gap_ == model.dual_gap_
    assert loaded.result_.dual_objective == model.result_.dual_objective
    report(model, X, y, path=tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_warm_start_saves_passes(monkeypatch):
    _few(monkeypatch)
    X, y = _data()
    parts = split_rows(X, y, rows=150)
    model = SparseSVC(alpha=0.01, tol=1e-4, warm_start=True).fit(parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cold, again = model.n_iter_, model.fit(parts).n_iter_
    assert again < cold


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "ovr_squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "l2"])
def test_models_too_large_for_a_newton_system_have_the_same_optimum(monkeypatch, loss, penalty):
    _few(monkeypatch, sample=200)
    monkeypatch.setattr("sparsvm.partitioned.model.MOST_VARIABLES", 20)
    X, y = _data(d=20)
    X = X * np.geomspace(0.1, 10.0, 20)
    whole = OnOneMachine(loss, penalty, alpha=0.003, tol=1e-6).fit(X, y)
    model = SparseSVC(loss, penalty, alpha=0.003, tol=1e-4).fit(split_rows(X, y, rows=300))
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)


def test_a_full_driver_clusters_anew_and_still_reaches_the_optimum(monkeypatch):
    _few(monkeypatch, singles=30, groups=30)
    monkeypatch.setattr("sparsvm.partitioned.hinge.STORE_BYTES", 800 * 12 * 8)
    X, y = _data(n=3000)
    whole = OnOneMachine(alpha=0.01, tol=1e-6).fit(X, y)
    model = SparseSVC(alpha=0.01, tol=2e-3).fit(split_rows(X, y, rows=500))
    sizes = [each.size for each in model.result_.rounds]
    assert any(later < size for size, later in pairwise(sizes)), sizes
    assert max(sizes) < 2000
    assert model.dual_gap_ <= 2e-3
    assert model.objective_ == pytest.approx(whole.objective_, rel=2.1e-3)
    monkeypatch.setattr("sparsvm.partitioned.hinge.STORE_BYTES", 200 * 12 * 8)
    # Where that is of no use either, the augmented Lagrangian goes on from there.
    model = SparseSVC(alpha=0.01, tol=1e-4).fit(split_rows(X, y, rows=500))
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)
    sizes = [each.size for each in model.result_.rounds]
    assert sizes[0] > X.shape[1] >= sizes[-1], sizes  # clusters, and then features
    bounds = [each.bound for each in model.result_.rounds]
    assert bounds == sorted(bounds)
    # Features without penalty are not for it.
    with pytest.warns(ConvergenceWarning, match="than the driver may hold"):
        free = L1(weights=[0.0] + [1.0] * (X.shape[1] - 1))
        SparseSVC(penalty=free, alpha=0.01, tol=1e-4).fit(split_rows(X, y, rows=500))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sixty_four_partitions_of_sorted_float32_rows_give_the_same_answer_and_bits(loss):
    X, y = _data(n=640)
    order = np.argsort(y, kind="stable")  # most partitions hold one class
    X, y = X[order].astype(np.float32), y[order]
    parts = [*split_rows(X, y, rows=10), (X[:0], y[:0])]
    options = {"loss": loss, "alpha": 0.02, "tol": 1e-4, "class_weight": "balanced"}
    whole = OnOneMachine(**options).fit(X, y)
    model = SparseSVC(**options).fit(parts)
    assert len(parts) == 65
    assert model.coef_.dtype == np.float32
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-4)
    again = SparseSVC(**options, n_jobs=2).fit(parts)
    assert np.array_equal(model.coef_, again.coef_)


def test_lists_of_rows_are_taken_and_penalties_of_the_user_go_with_the_hinge(monkeypatch):
    class Own(Penalty):
        def value(self, W):
            return float(np.abs(W).sum())

        def prox(self, W, step):
            return np.sign(W) * np.maximum(np.abs(W) - step, 0.0)

        def dual_norm(self, G):
            return float(np.abs(G).max())

    X, y = _data(n=120, d=5, K=2)
    whole = OnOneMachine(alpha=0.1, tol=1e-6).fit(X, y)
    for penalty in (L1(), Own()):
        model = SparseSVC(penalty=penalty, alpha=0.1).fit(X.tolist(), y.tolist())
        assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
    with pytest.raises(ValueError, match="goes with the hinge"):
        SparseSVC("squared_hinge", Own()).fit(X, y)
    # What may be gathered is solved in memory, by whatever one machine takes.
    monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 1 << 20)
    model = SparseSVC("squared_hinge", Own(), alpha=0.1).fit(X, y)
    whole = OnOneMachine("squared_hinge", alpha=0.1, tol=1e-6).fit(X, y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("penalty", [GroupL2, GroupLinf, SparseGroup])
def test_groups_of_features_are_used_together(loss, penalty):
    X, y = _data(n=2000)
    groups = np.arange(X.shape[1]) // 3
    options = {"penalty": penalty(groups=groups), "alpha": 0.05}
    whole = OnOneMachine(loss, **options, tol=1e-6).fit(X, y)
    model = SparseSVC(loss, **options, tol=1e-4).fit(split_rows(X, y, rows=500))
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_that_the_driver_may_hold_are_gathered_and_others_are_not(monkeypatch, kind):
    X, y = _data(n=300, d=30)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    kept = np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32)
    rows = sp.csr_array(kept) if kind == "sparse" else kept
    size = rows.data.nbytes + rows.indices.nbytes + 300 * 8 if kind == "sparse" else rows.nbytes
    options = {"alpha": 0.02, "class_weight": "balanced", "tol": 1e-4}
    whole = OnOneMachine(**options).fit(rows, y, weight)
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 100)
    for budget, rounds in ((size - 1, range(2, 300)), (size, range(1, 2))):
        monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", budget)
        model = SparseSVC(**options).fit(split_rows(rows, y, weight, rows=70))
        assert model.n_iter_ in rounds
        assert model.dual_gap_ <= 1e-4
        assert model.objective_ == pytest.approx(whole.objective_, rel=2e-4)
        assert model.coef_.dtype == np.float32
    # Passes are as cheap where rows are many for each coefficient.
    monkeypatch.setattr("sparsvm.partitioned.prepare.TALL_ROWS", 1.0)
    model = SparseSVC(**options).fit(split_rows(rows, y, weight, rows=70))
    assert model.n_iter_ > 1
