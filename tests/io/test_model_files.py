"""A model that was saved and loaded is the same model, and the file is one that others can read."""

import json
import os
import stat
import struct
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from sparsvm import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseLabelRanker,
    SparseSVC,
    SparseSVCCV,
    SVMPath,
    load_model,
    save_model,
)
from sparsvm.io import read_metadata
from sparsvm.losses import Hinge, Logistic, Ramp
from sparsvm.parameters import _same
from sparsvm.penalties import L1, GroupL2, Penalty, SparseGroup
from sparsvm.solvers import DCA, SDCA, Chain, InteriorPoint, Stage

GOLDEN = Path(__file__).parent / "golden"
rng = np.random.default_rng(0)
X = rng.standard_normal((45, 12))
Y3 = np.arange(45) % 3
X[np.arange(45), Y3] += 1.5
NEW = rng.standard_normal((200, 12))

MODELS = [
    SparseSVC(alpha=0.03),
    SparseSVC("logistic", GroupL2(groups=[[0, 1], [2, 3, 4]], weights="scale"), alpha=0.02),
    SparseSVC(Ramp(mu=0.5), "capped_l1", alpha=0.02, solver=DCA(starts=2)),
    SparseSVCCV(n_alphas=4, cv=3, param_grid={"penalty__weights": [None, "scale"]}),
    ConstrainedSparseSVC(eta=0.4, penalty=SparseGroup(0.3, groups=4)),
    MaxMarginSVC(),
]


def saved_and_loaded(model, folder):
    save_model(model, folder / "model.safetensors")
    return load_model(folder / "model.safetensors")


def equal(a, b):
    """Whether two values of attributes are the same, arrays with their types and bits."""
    if sp.issparse(a):
        parts = [(getattr(m, p)) for p in ("data", "indices", "indptr") for m in (a, b)]
        return type(a) is type(b) and all(map(equal, parts[::2], parts[1::2]))
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return b.dtype == object and [*map(type, a), *a] == [*map(type, b), *b]
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, SVMPath):
        return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, BaseEstimator):
        return repr(a) == repr(b)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and _same(a, b)


def assert_same_model(model, same, samples=NEW):
    assert type(same) is type(model)
    for name, value in model.get_params(deep=False).items():
        assert _same(same.get_params(deep=False)[name], value), name
    attributes = {n: v for n, v in vars(model).items() if n[0] != "_" and n.endswith("_")}
    assert {n for n in vars(same) if n.endswith("_") and n[0] != "_"} == set(attributes)
    for name, value in attributes.items():
        if name != "result_":
            assert equal(value, getattr(same, name)), name
    scores = model.decision_function(samples)
    assert same.decision_function(samples).tobytes() == scores.tobytes()
    assert equal(same.predict(samples), model.predict(samples))
    one = samples[:1]
    assert same.decision_function(one).tobytes() == model.decision_function(one).tobytes()
    assert same.result_.status == model.result_.status
    assert same.result_.coef is same.coef_


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_estimator_predicts_the_same_bits_after_a_round_trip(
    model, n_classes, dtype, tmp_path
):
    rows = n_classes > Y3
    model.fit(X[rows].astype(dtype), Y3[rows])
    assert_same_model(model, saved_and_loaded(model, tmp_path), NEW.astype(dtype))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["short", "much longer", "ünïcode ✓"]),
        np.array(["a", "b", "c"], dtype="<U7"),
        np.array(["a", "b", "c"], dtype=object),
        np.array([-3, 0, 2**40]),
        np.array([1, 2, 200], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0]),
        np.array([False, True, True]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type_come_back(labels, tmp_path):
    model = SparseSVC(alpha=0.03).fit(X, labels[Y3])
    same = saved_and_loaded(model, tmp_path)
    assert_same_model(model, same)
    assert same.predict(NEW).dtype == model.predict(NEW).dtype


def test_feature_names_and_parameters_by_name_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=[f"gene {j} é" for j in range(12)])
    weights = pd.Series(1.0 + np.arange(12.0), index=frame.columns)
    model = SparseSVC(penalty=L1(weights=weights), class_weight={"0": 2.0}, alpha=0.01)
    model.fit(frame, Y3.astype(str))
    same = saved_and_loaded(model, tmp_path)
    assert list(same.feature_names_in_) == list(frame.columns)
    assert same.class_weight == {"0": 2.0}
    assert np.array_equal(same.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        same.predict(frame[frame.columns[::-1]])
    # The labelled series is a dictionary now, which means the same.
    assert same.penalty.weights == weights.to_dict()
    again = same.fit(frame, Y3.astype(str))
    assert np.array_equal(again.coef_, model.coef_)


def test_sparse_coefficients_stay_sparse_and_dense_ones_dense(tmp_path):
    model = SparseSVC(alpha=0.05).fit(X, Y3)
    assert isinstance(saved_and_loaded(model, tmp_path).coef_, np.ndarray)
    model.sparsify()
    assert_same_model(model, saved_and_loaded(model, tmp_path))
    model.coef_ = np.asfortranarray(model.coef_.toarray())
    model._keep_in_result()
    model.coef_[0, 0] = -0.0
    same = saved_and_loaded(model, tmp_path)
    assert_same_model(model, same)
    assert same.coef_.flags.f_contiguous  # in the same order products round the same way


@pytest.mark.parametrize(
    "params",
    [
        {"loss": Hinge(margin=np.array([[0, 1, 2], [1, 0, 1], [1, 1, 0.5]]))},
        {"loss": Logistic(margin=0.5), "solver": "fista", "tol": 1e-2},
        {"penalty": GroupL2(groups=["b", "a", "b"] * 4, weights=("scale", {0: 0.0}))},
        {"solver": SDCA(sweeps=3), "random_state": 3, "n_jobs": 1},
        {"solver": Chain((Stage(SDCA(), 1e-2), Stage(InteriorPoint())))},
        {"alpha": np.float32(0.25), "max_iter": np.int64(50)},
    ],
    ids=str,
)
def test_parameters_of_every_kind_come_back(params, tmp_path):
    model = SparseSVC(alpha=0.03).fit(X, Y3).set_params(**params)
    assert_same_model(model, saved_and_loaded(model, tmp_path))


class OwnPenalty(Penalty):
    def value(self, W):
        return float(np.abs(W).sum())

    def prox(self, W, step):
        return np.sign(W) * np.maximum(np.abs(W) - step, 0.0)

    def dual_norm(self, G):
        return float(np.abs(G).max())


def test_what_files_cannot_hold_is_told_when_fitting_again(tmp_path):
    model = SparseSVC(penalty=OwnPenalty(), alpha=0.05).fit(X, Y3)
    same = saved_and_loaded(model, tmp_path)
    assert np.array_equal(same.predict(NEW), model.predict(NEW))
    assert "not saved: OwnPenalty()" in repr(same)
    with pytest.raises(ValueError, match=r"<not saved: OwnPenalty\(\)> is not a penalty"):
        same.fit(X, Y3)
    chosen = SparseSVCCV(cv=StratifiedKFold(3), n_alphas=3).fit(X, Y3)
    assert "StratifiedKFold" in repr(saved_and_loaded(chosen, tmp_path).cv)


@pytest.mark.parametrize("threshold", ["regression", 0.25])
def test_a_label_ranker_comes_back(threshold, tmp_path):
    sets = (rng.random((45, 4)) < 0.4).astype(int)
    for labels in (sets, Y3):
        model = SparseLabelRanker(alpha=0.02, threshold=threshold).fit(X, labels)
        same = saved_and_loaded(model, tmp_path)
        assert same.decision_function(NEW).tobytes() == model.decision_function(NEW).tobytes()
        assert np.array_equal(same.predict(NEW), model.predict(NEW))
    same.threshold_coef_ = same.threshold_coef_[:1]
    with pytest.raises(ValueError, match="threshold of the label ranker is none"):
        save_model(same, tmp_path / "other")


def test_the_certificate_comes_back(tmp_path):
    model = SparseSVC(alpha=0.03).fit(X, Y3)
    same = saved_and_loaded(model, tmp_path)
    for name in ("objective", "dual_objective", "gap", "floor", "n_iter", "seconds", "solver"):
        assert getattr(same.result_, name) == getattr(model.result_, name)
    assert np.isnan(same.result_.criticality)
    with pytest.raises(AttributeError, match="dropped"):
        same.dual_  # noqa: B018


def test_the_package_safetensors_reads_the_file(tmp_path):
    model = SparseSVC(alpha=0.05).fit(pd.DataFrame(X).rename(columns="f{}".format), Y3)
    save_model(model, tmp_path / "model.safetensors")
    arrays = load_file(tmp_path / "model.safetensors")
    parts = [arrays[f"coef_.{part}"] for part in ("data", "indices", "indptr")]
    assert np.array_equal(sp.csr_array(tuple(parts), shape=(3, 12)).toarray(), model.coef_)
    assert np.array_equal(arrays["intercept_"], model.intercept_)
    told = read_metadata(tmp_path / "model.safetensors")
    assert (told["class"], told["format_version"]) == ("SparseSVC", "1")
    assert told["classes"]["labels"]["values"] == [0, 1, 2]
    assert told["feature_names"]["labels"]["values"][:2] == ["f0", "f1"]
    assert told["certificate"]["result"]["values"]["gap"] == model.result_.gap


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_files_of_every_format_version_load_and_predict_what_they_did(path):
    told = json.loads(path.with_suffix(".json").read_text())
    model = load_model(path)
    samples = np.array(told["samples"], dtype=model.coef_.dtype)
    assert repr(model) == told["repr"]
    assert model.predict(samples).tolist() == told["predictions"]
    np.testing.assert_allclose(model.decision_function(samples), told["scores"], rtol=1e-6)
    assert model.selected_features_.tolist() == told["selected"]
    load_file(path)


def test_there_is_a_golden_file_of_every_version():
    versions = {path.stem.split("_")[0] for path in GOLDEN.glob("*.safetensors")}
    assert versions == {"v1"}


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    first, second = SparseSVC(alpha=0.05).fit(X, Y3), SparseSVC(alpha=0.2).fit(X, Y3)
    save_model(first, path)
    expected = 0o666 & ~_umask()
    assert stat.S_IMODE(path.stat().st_mode) == expected

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(second, path)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert load_model(path).alpha == 0.05


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    save_model(SparseSVC(alpha=0.05).fit(X, Y3), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load_model(tmp_path / "target").alpha == 0.05


def test_what_cannot_be_saved_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="LogisticRegression was given"):
        save_model(LogisticRegression().fit(X, Y3), path)
    with pytest.raises(NotFittedError):
        save_model(SparseSVC(), path)
    model = SparseSVC(alpha=0.05).fit(X, Y3)
    model.coef_ = model.coef_ * np.nan
    with pytest.raises(ValueError, match="cannot be saved: coef_ contains NaN"):
        save_model(model, path)
    named = SparseSVC(alpha=0.05).fit(pd.DataFrame(X).rename(columns="f\0{}".format), Y3)
    with pytest.raises(ValueError, match="NUL"):
        save_model(named, path)
    odd = SparseSVC(alpha=0.05).fit(X, Y3)
    odd.feature_names_in_ = np.array([f"f\ud800{j}" for j in range(12)], dtype=object)
    with pytest.raises(ValueError, match="no valid Unicode"):
        save_model(odd, path)
    dates = SparseSVC(alpha=0.05).fit(X, Y3)
    dates.classes_ = np.array(["2020", "2021", "2022"], dtype="datetime64[Y]")
    with pytest.raises(ValueError, match=r"labels of type datetime64\[Y\]"):
        save_model(dates, path)
    assert os.listdir(tmp_path) == []


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.safetensors")
