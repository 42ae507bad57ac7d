"""An exported model predicts in onnxruntime what it predicts here, ties included."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sparsvm import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseLabelRanker,
    SparseSelector,
    SparseSVC,
    SparseSVCCV,
    to_onnx,
)
from sparsvm.io import register_converters

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

rng = np.random.default_rng(0)
X = rng.standard_normal((45, 12))
Y = np.arange(45) % 3
X[np.arange(45), Y] += 1.5
NEW = rng.standard_normal((500, 12))
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
LABELS = [
    np.array(["a", "bb", "ünï"]),
    np.array(["a", "bb", "c"], dtype=object),
    np.array([5, -1, 3]),
    np.array([1, 2, 255], dtype=np.uint8),
    np.array([False, True, True]),
    np.array([0.0, 1.0, 2.0]),
]


def outputs(model, samples):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": samples}), strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        SparseSVC(alpha=0.05),
        SparseSVC("logistic", "l1/l2", alpha=0.02),
        SparseSVCCV(n_alphas=3, cv=3),
        ConstrainedSparseSVC(eta=0.5),
        MaxMarginSVC(),
    ],
    ids=str,
)
def test_every_estimator_scores_the_same(model, n_classes, dtype):
    rows = n_classes > Y
    model.fit(X[rows].astype(dtype), Y[rows])
    found, samples = outputs(to_onnx(model), NEW.astype(dtype)), NEW.astype(dtype)
    assert np.array_equal(found["label"], model.predict(samples))
    assert found["scores"].dtype == dtype
    close = {"rtol": TOLERANCE[dtype], "atol": 10 * TOLERANCE[dtype]}
    np.testing.assert_allclose(found["scores"], model.decision_function(samples), **close)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(samples), **close)


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_every_type_come_out(labels, n_classes):
    rows = n_classes > Y
    model = SparseSVC(alpha=0.05).fit(X[rows], labels[Y[rows]])
    found = outputs(to_onnx(model), NEW)["label"]
    assert np.array_equal(found, model.predict(NEW))
    whole = make_pipeline(StandardScaler(), model).fit(X[rows], labels[Y[rows]])
    assert np.array_equal(outputs(to_onnx(whole, np.float64), NEW)["label"], whole.predict(NEW))


@pytest.mark.parametrize("heaviest", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_scores_go_to_the_class_of_the_largest_training_weight(heaviest, dtype):
    weight = 1.0 + 3.0 * (heaviest == Y)
    model = SparseSVC(alpha=0.05).fit(X.astype(dtype), Y, sample_weight=weight)
    model.coef_ = np.tile(model.coef_[:1], (3, 1))
    model.intercept_ = np.zeros(3, dtype=dtype)
    predicted = model.predict(NEW.astype(dtype))
    assert set(predicted) == {heaviest}
    assert np.array_equal(outputs(to_onnx(model), NEW.astype(dtype))["label"], predicted)


@pytest.mark.parametrize("heaviest", [0, 1])
@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
def test_a_model_of_zeros_gives_the_class_of_the_largest_training_weight(heaviest):
    weight = 1.0 + 3.0 * (heaviest == Y)
    two = Y < 2
    for rows in (two, slice(None)):
        model = SparseSVC(alpha=50.0, fit_intercept=False).fit(X[rows], Y[rows], weight[rows])
        assert not model.coef_.any()
        assert set(outputs(to_onnx(model), NEW)["label"]) == {heaviest} == set(model.predict(NEW))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_whole_pipelines_are_exported(loss, dtype):
    steps = (StandardScaler(), SelectKBest(k=8), SparseSVC(loss, alpha=0.02))
    whole = make_pipeline(*steps).fit(X.astype(dtype), LABELS[0][Y])
    found = outputs(to_onnx(whole, dtype), NEW.astype(dtype))
    assert np.array_equal(found["label"], whole.predict(NEW.astype(dtype)))
    expected = whole.decision_function(NEW) if loss == "hinge" else whole.predict_proba(NEW)
    name = "scores" if loss == "hinge" else "probabilities"
    assert list(found) == ["label", name]
    np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)


def test_a_pipeline_of_columns_and_one_of_integers_are_exported():
    columns = make_column_transformer(
        (StandardScaler(), [0, 1, 5]), (MinMaxScaler(), [2, 3]), remainder="drop"
    )
    whole = make_pipeline(columns, SparseSVC(alpha=0.02)).fit(X, Y)
    assert np.array_equal(outputs(to_onnx(whole, np.float64), NEW)["label"], whole.predict(NEW))
    counts = rng.integers(0, 9, (45, 4)) + Y[:, None]
    alone = make_pipeline(SparseSVC(alpha=0.02)).fit(counts, Y)
    register_converters()
    made = skl2onnx.to_onnx(alone, counts.astype(np.int64), target_opset=16)
    assert np.array_equal(outputs(made, counts.astype(np.int64))["label"], alone.predict(counts))


def test_two_models_in_one_graph_keep_their_names_apart():
    models = [("a", SparseSVC("logistic", alpha=0.02)), ("b", SparseSVC("logistic", alpha=0.1))]
    vote = VotingClassifier(models, voting="soft", flatten_transform=False).fit(X, Y)
    found = outputs(to_onnx(vote), NEW.astype(np.float32))
    labels = next(iter(found.values()))
    assert np.array_equal(labels, vote.predict(NEW))


def test_the_other_precision_can_be_asked_for():
    model = SparseSVC(alpha=0.05).fit(X, Y)
    found = outputs(to_onnx(model, dtype="float32"), NEW.astype(np.float32))
    assert found["scores"].dtype == np.float32
    assert np.array_equal(found["label"], model.predict(NEW))
    with pytest.raises(ValueError, match="float32 or float64"):
        to_onnx(model, dtype=np.float16)


def test_only_the_features_in_use_are_in_the_graph_and_their_names_with_it():
    frame = pd.DataFrame(X).rename(columns="gene {}".format)
    model = SparseSVC(penalty="l1/l2", alpha=0.1).fit(frame, Y)
    made = to_onnx(model.sparsify())
    sizes = {constant.name: list(constant.dims) for constant in made.graph.initializer}
    assert sizes["scores_weights"] == [model.selected_features_.size, 3]
    assert [node.op_type for node in made.graph.node] == ["Gather", "Gemm", "ArgMax", "Gather"]
    told = {entry.key: entry.value for entry in made.metadata_props}
    assert json.loads(told["feature_names"]) == list(frame.columns)


def test_what_cannot_be_exported_is_refused_in_a_sentence(monkeypatch):
    with pytest.raises(NotFittedError):
        to_onnx(SparseSVC())
    model = SparseSVC(alpha=0.05).fit(X, Y)
    with pytest.raises(ValueError, match="which SparseLabelRanker does not"):
        to_onnx(SparseLabelRanker().fit(X, np.eye(3, dtype=int)[Y]))
    model.classes_ = np.array([1, "a", 2.0], dtype=object)
    with pytest.raises(ValueError, match="ONNX has no type for the labels 1, 'a'"):
        to_onnx(model)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'sparsvm\[onnx\]'"):
        to_onnx(SparseSVC(alpha=0.05).fit(X, Y))


def test_a_selector_in_a_pipeline_is_exported():
    selector = SparseSelector(SparseSVC("logistic", "l1/l2", alpha=0.05))
    whole = make_pipeline(StandardScaler(), selector, LogisticRegression()).fit(X, Y)
    assert 0 < whole[1].selected_features_.size < 12
    found = outputs(to_onnx(whole, np.float64), NEW)
    assert np.array_equal(next(iter(found.values())), whole.predict(NEW))
