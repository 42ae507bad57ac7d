"""The classifier on a real Dask cluster of two worker processes."""

import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sparsvm import SparseSVC as OnOneMachine

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from distributed import Client, LocalCluster  # noqa: E402

import sparsvm.dask  # noqa: E402
from sparsvm import partitioned  # noqa: E402
from sparsvm.dask import SparseSVC, SparseSVCCV, svm_path  # noqa: E402
from sparsvm.losses import Hinge, SquaredHinge  # noqa: E402
from sparsvm.partitioned import split_rows  # noqa: E402
from sparsvm.penalties import L1  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _data(n=2000, d=15, K=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.zeros((d, K))
    truth[:4] = rng.standard_normal((4, K))
    X = rng.standard_normal((n, d))
    return X, (X @ truth + 0.7 * rng.standard_normal((n, K))).argmax(axis=1)


def left_over(client, seconds=10.0):
    """Return how many tasks the scheduler still has, after some seconds if there are any."""
    deadline = time.monotonic() + seconds
    while count := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        if time.monotonic() > deadline:
            return count
        time.sleep(0.05)
    return 0


def test_the_optimum_is_that_of_one_machine_and_predictions_are_lazy(client):
    X, y = _data()
    whole = OnOneMachine(penalty="l1/l2", alpha=0.01, tol=1e-7).fit(X, y)
    lazy, labels = da.from_array(X, chunks=(300, 8)), da.from_array(y, chunks=300)
    model = SparseSVC(penalty="l1/l2", alpha=0.01, tol=1e-5, client=client).fit(lazy, labels)
    assert model.dual_gap_ <= 1e-5
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-5)
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(), model.to_local().predict(X))
    scores = model.decision_function(lazy).compute()
    assert scores == pytest.approx(model.to_local().decision_function(X))
    assert model.score(lazy, labels) == pytest.approx(model.to_local().score(X, y))


def test_sparse_blocks_of_unknown_size_and_delayed_parts(client):
    import dask

    X, y = _data()
    sparse = sp.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0))
    whole = OnOneMachine(alpha=0.01, tol=1e-6).fit(sparse, y)
    parts = [
        dask.delayed(lambda a=a: (sparse[a : a + 700], y[a : a + 700]))() for a in (0, 700, 1400)
    ]
    model = SparseSVC(alpha=0.01, tol=1e-4, client=client).fit(parts)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-4)
    dense, labels = da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)
    kept = dense[:, 0] > -10.0  # all rows, which Dask cannot know
    unknown = SparseSVC(alpha=0.01, tol=1e-4, client=client).fit(dense[kept], labels[kept])
    expected = OnOneMachine(alpha=0.01, tol=1e-6).fit(X, y).objective_
    assert unknown.objective_ == pytest.approx(expected, rel=1.1e-4)


def test_smooth_losses_sum_their_derivatives_on_the_cluster(client):
    X, y = _data()
    whole = OnOneMachine("logistic", "l1/l2", alpha=0.01, tol=1e-7).fit(X, y)
    arrays = da.from_array(X, chunks=(300, -1)), da.from_array(y, chunks=300)
    model = SparseSVC("logistic", "l1/l2", alpha=0.01, tol=1e-5, client=client).fit(*arrays)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-5)
    expected = model.to_local().predict_proba(X)
    assert model.predict_proba(arrays[0]).compute() == pytest.approx(expected)


@pytest.mark.parametrize("tall", [np.inf, 1e-9], ids=["clusters", "multipliers"])
def test_the_same_partitioning_gives_the_same_bits(client, monkeypatch, tall):
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", tall)
    X, y = _data()
    arrays = da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250)
    one = SparseSVC(alpha=0.01, client=client).fit(*arrays)
    two = SparseSVC(alpha=0.01, client=client).fit(*arrays)
    assert np.array_equal(one.coef_, two.coef_)
    alone = partitioned.SparseSVC(alpha=0.01).fit(split_rows(X, y, rows=250))
    assert np.array_equal(one.coef_, alone.coef_)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("method", ["clusters", "multipliers", "smooth", "gathered"])
def test_64_partitions_without_some_classes_rows_or_weight_have_the_bits_of_threads(
    client, monkeypatch, method, kind
):
    tall = 1e-9 if method == "multipliers" else np.inf
    monkeypatch.setattr("sparsvm.partitioned.hinge.TALL_ROWS", tall)
    if method == "gathered":
        monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 1 << 28)
    X, y = _data(n=640, d=8)
    order = np.argsort(y, kind="stable")
    X, y = np.where(np.abs(X) > 0.5, X, 0.0)[order].astype(np.float32), np.array(list("abc"))[y]
    X, y = sp.csr_array(X) if kind == "sparse" else X, y[order]
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    weight[100:130] = 0.0  # three partitions
    cost = [[0, 1, 2], [1, 0, 1], [3, 1, 0]]
    loss = SquaredHinge(cost) if method == "smooth" else Hinge(cost)
    cuts = [slice(at, at + 10) for at in range(0, 640, 10)]
    parts = [(X[cut], y[cut], weight[cut]) for cut in [*cuts, slice(0, 0)]]
    options = {"loss": loss, "alpha": 0.03, "class_weight": "balanced"}
    model = SparseSVC(**options, client=client).fit(parts)
    threads = partitioned.SparseSVC(**options, n_jobs=2).fit(parts)
    whole = OnOneMachine(**options, tol=1e-5).fit(X, y, weight)
    assert model.dual_gap_ <= 1e-3
    assert model.coef_.dtype == np.float32
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
    assert np.array_equal(model.coef_, threads.coef_)
    assert np.array_equal(model.intercept_, threads.intercept_)


def test_files_are_read_by_the_workers(client, tmp_path):
    X, y = _data(n=600)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    parts = partitioned.from_npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=200)
    assert len(pickle.dumps(parts)) < 2000
    model = SparseSVC(alpha=0.02, tol=1e-4, client=client).fit(parts)
    expected = OnOneMachine(alpha=0.02, tol=1e-6).fit(X, y).objective_
    assert model.objective_ == pytest.approx(expected, rel=1.1e-4)


def test_labels_computed_from_the_rows_leave_the_connection_as_it_was(client):
    rng = da.random.default_rng(0)
    X = rng.normal(size=(1200, 5), chunks=(300, 5))
    scores = X @ np.random.default_rng(0).normal(size=(5, 3)) + rng.normal(size=(1200, 3))
    SparseSVC(alpha=0.05, client=client).fit(X, scores.argmax(axis=1))
    comm = client.scheduler_comm.comm
    assert not comm.closed()
    assert client.submit(sum, [1, 2]).result(timeout=10) == 3
    assert client.scheduler_comm.comm is comm


def test_nothing_is_left_on_the_cluster_and_the_model_pickles(client):
    X, y = _data(n=500)
    arrays = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    model = SparseSVC(alpha=0.02, client=client).fit(*arrays)
    assert left_over(client) == 0
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.coef_, model.coef_)
    assert again.client is None


def test_paths_and_cross_validation_run_where_the_rows_are(client):
    X, y = _data(n=900)
    arrays = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    alphas = [0.1, 0.03, 0.01]
    path = svm_path(*arrays, alphas=alphas, tol=1e-4, client=client)
    parts = split_rows(X, y, rows=200)
    local = partitioned.svm_path(parts, alphas=alphas, tol=1e-4)
    assert path.converged
    assert np.array_equal(path.objectives, local.objectives)
    model = SparseSVCCV(alphas=alphas, cv=3, tol=1e-4, client=client).fit(*arrays)
    same = partitioned.SparseSVCCV(alphas=alphas, cv=3, tol=1e-4).fit(parts)
    assert np.array_equal(model.scores_, same.scores_)
    assert np.array_equal(model.coef_, same.coef_)
    assert np.array_equal(model.predict(arrays[0]).compute(), same.predict(X))
    assert model.score(*arrays) == pytest.approx(same.score(X, y))
    assert pickle.loads(pickle.dumps(model)).client is None


def test_persisted_data_outlive_a_fit_and_a_failed_one(client):
    X, y = _data(n=600)
    arrays = [
        each.persist() for each in (da.from_array(X, chunks=(200, -1)), da.from_array(y, 200))
    ]
    first = SparseSVC(alpha=0.02, client=client).fit(*arrays)
    broken = [(X[:50], y[:50]), (X[50:], y[50:]), (X[:, :3], y)]
    with pytest.raises(ValueError, match="different numbers of features"):
        SparseSVC(client=client).fit(broken)
    again = SparseSVC(alpha=0.02, client=client).fit(*arrays)
    assert np.array_equal(first.coef_, again.coef_)


def _objectives(what, room, **where):
    """Return a function of partitions that gives the objectives and the largest gap."""
    options = {"tol": 1e-4, **where}
    loss = "logistic" if what == "smooth" else "hinge"

    def fitted(*data):
        if what == "path":
            path = room.svm_path(*data, alphas=[0.05, 0.02, 0.01], **options)
        elif what == "cross-validation":
            path = room.SparseSVCCV(alphas=[0.05, 0.02], cv=2, **options).fit(*data).path_
        else:
            model = room.SparseSVC(loss, alpha=0.005, **options).fit(*data)
            return np.array([model.objective_]), model.dual_gap_
        return path.objectives, path.gaps.max()

    return fitted


@pytest.mark.parametrize(
    "what", ["clusters", "multipliers", "smooth", "gathered", "path", "cross-validation"]
)
def test_what_runs_survives_the_death_of_a_worker(monkeypatch, what):
    monkeypatch.setattr(
        "sparsvm.partitioned.hinge.TALL_ROWS", 1e-9 if what == "multipliers" else np.inf
    )
    if what == "gathered":
        monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 1 << 28)
    X, y = _data(n=4000)
    expected, _ = _objectives(what, partitioned)(split_rows(X, y, rows=400))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        arrays = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(0.4, os.kill, (victim, signal.SIGKILL)).start()
        found, gap = _objectives(what, sparsvm.dask, client=client)(*arrays)
        assert left_over(client) == 0
    assert gap <= 1e-4
    assert np.array_equal(found, expected)


def test_what_is_no_collection_is_refused_in_a_sentence(client):
    X, y = _data(n=50)
    with pytest.raises(ValueError, match=r"use sparsvm\.SparseSVC"):
        SparseSVC(client=client).fit(X, y)
    lazy = da.from_array(X, chunks=(25, -1))
    with pytest.raises(ValueError, match="different numbers of partitions"):
        SparseSVC(client=client).fit(lazy, da.from_array(y, chunks=10))


def test_frames_keep_the_names_of_their_columns_and_refuse_others(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = _data(n=900, d=6)
    columns = [f"gene {j}" for j in range(6)]
    table = pd.DataFrame(X, columns=columns).assign(label=np.array(["a", "b", "c"])[y])
    frame = dd.from_pandas(table, npartitions=4)
    rows, labels = frame[columns], frame["label"]
    for kind in (
        SparseSVC(alpha=0.01, client=client),
        SparseSVCCV(n_alphas=2, eps=0.1, cv=2, client=client),
    ):
        model = kind.fit(rows, labels)
        assert model.feature_names_in_.tolist() == columns
        assert model.to_local().feature_names_in_.tolist() == columns
        predicted = model.predict(rows)
        assert isinstance(predicted, da.Array)
        assert np.array_equal(predicted.compute(), model.to_local().predict(table[columns]))
        assert model.score(rows, labels) == np.mean(predicted.compute() == table["label"])
        with pytest.raises(ValueError, match="in that order"):
            model.predict(frame[columns[::-1]])
    other = [(table[columns][:300], y[:300]), (table[columns[::-1]][300:], y[300:])]
    with pytest.raises(ValueError, match="stand in another order"):
        SparseSVC(client=client).fit(other)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
@pytest.mark.parametrize("K", [2, 3])
def test_predictions_of_blocks_without_rows_are_empty(client, method, K):
    X, y = _data(n=300, K=K)
    arrays = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    model = SparseSVC("logistic", alpha=0.02, client=client).fit(*arrays)
    kept = arrays[0][:, 0] > np.where(np.arange(300) < 100, np.inf, -np.inf)  # none of the first
    expected = getattr(model.to_local(), method)(X[100:])
    found = getattr(model, method)(arrays[0][kept]).compute()
    assert found.dtype == expected.dtype
    assert found == pytest.approx(expected)


def test_the_pieces_of_a_partition_may_be_delayed_themselves(client):
    import dask

    X, y = _data(n=600)
    whole = OnOneMachine(alpha=0.02, tol=1e-6).fit(X, y)
    cuts = [slice(at, at + 200) for at in range(0, 600, 200)]
    parts = [(dask.delayed(X[cut]), dask.delayed(y[cut])) for cut in cuts[:2]]
    parts.append((client.submit(np.asarray, X[cuts[2]]), y[cuts[2]]))
    model = SparseSVC(alpha=0.02, client=client).fit(parts)
    assert model.objective_ <= whole.objective_ * (1 + 1e-3)
    with pytest.raises(ValueError, match="A partition is a tuple"):
        SparseSVC(client=client).fit([X])


def test_only_logistic_models_have_probabilities_and_all_of_them_are_lazy(client):
    X, y = _data(n=300)
    lazy, labels = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    hinge = SparseSVC(alpha=0.02, client=client).fit(lazy, labels)
    assert not hasattr(hinge, "predict_proba") and not hasattr(hinge, "predict_log_proba")
    model = SparseSVC("logistic", alpha=0.02, client=client).fit(lazy, labels)
    found = model.predict_log_proba(lazy)
    assert isinstance(found, da.Array)
    assert found.compute() == pytest.approx(model.to_local().predict_log_proba(X))


def test_clones_have_the_same_client_and_unfitted_models_say_so(client):
    for model in (
        SparseSVC(alpha=0.3, client=client),
        SparseSVCCV(n_alphas=3, client=client),
        SparseSVC(tol=0.1),
    ):
        copy = clone(model)
        assert copy.client is model.client and model.get_params() == copy.get_params()
        with pytest.raises(NotFittedError):
            copy.predict(da.zeros((4, 2)))


def test_columns_closed_clients_and_a_missing_dask_are_said_at_once(client, monkeypatch):
    X, y = _data(n=200)
    lazy, labels = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    model = SparseSVC(alpha=0.05, client=client).fit(lazy, labels)
    for other in (lazy[:, :4], lazy[:, 0]):
        with pytest.raises(ValueError, match="fitted on 15 features"):
            model.predict(other)
    with Client(client.cluster, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="client is closed"):
        SparseSVC(client=closed).fit(lazy, labels)
    monkeypatch.setitem(sys.modules, "distributed", None)
    for fit in (SparseSVC().fit, SparseSVCCV().fit, svm_path):
        with pytest.raises(ImportError, match=r"sparsvm\[dask\]"):
            fit(lazy, labels)


def test_weights_are_given_by_the_names_of_the_columns_of_a_frame(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = _data(n=400, d=6)
    table = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    frame = dd.from_pandas(table, npartitions=3)
    penalty = L1(weights={"f": 0.0, "a": 2.0})
    model = SparseSVC(penalty=penalty, alpha=0.05, client=client)
    model.fit(frame[list("abcdef")], frame["label"])
    whole = OnOneMachine(penalty=penalty, alpha=0.05, tol=1e-6).fit(table[list("abcdef")], y)
    assert "f" in model.selected_feature_names_
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
