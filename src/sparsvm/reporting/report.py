"""``report``: from a fitted model to a page."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from sparsvm.io.whole_files import replacing
from sparsvm.reporting import curves, predictions, weights, words
from sparsvm.reporting.page import render
from sparsvm.reporting.stability import stability_of
from sparsvm.reporting.subject import Subject, read_subject

# Letters: of the names of classes that are listed rather than counted, of a note, and of a
# parameter.
LONGEST_LIST, LONGEST_NOTE, LONGEST_PARAMETER = 40, 60, 300


def report(
    model: Any,
    X_test: Any = None,
    y_test: Any = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    stability: Any = None,
    title: str | None = None,
    model_file: str | os.PathLike[str] = "model.safetensors",
) -> Path:
    """Write a page about a fitted model: one HTML file that needs no network.

    It says what was fitted and what its certificate proves, how the model does on test samples
    (accuracy, confusion matrix, margins), which features it uses, strongest first and searchable,
    what other alphas would have given, with a slider, how long everything took, and how to use the
    model. It is readable on a phone, in light and dark, and without colour vision.

    Parameters
    ----------
    model : fitted estimator
        A classifier of sparsvm, a pipeline that ends in one, or a search over such. A
        :class:`~sparsvm.SparseSVCCV` adds the scores of its folds and its path. Of an
        :class:`~sparsvm.SVMPath` the last model is reported, with the slider over all of them.
    X_test, y_test : array-like of shapes (n_samples, n_features) and (n_samples,), optional
        Samples that took no part in the fit. With them the page shows accuracy and margins, and
        features are ranked by weight times standard deviation, so that units do not matter.
    path : path, default="report.html"
        Where the page goes. It is written whole or not at all.
    stability : StabilitySelection, optional
        Fitted on the same columns as the model: shows how often each feature is selected.
    title : str, optional
        The heading; by default what the model is.
    model_file : path, default="model.safetensors"
        Name of the model's file in what the page says about loading it.

    Returns
    -------
    pathlib.Path
        Where the page is.

    Notes
    -----
    Needs the extra ``report`` (plotly and Jinja2). A page takes 2 MB, most of which is plotly.js.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC, report
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(alpha=0.05).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(model, X[1::2], y[1::2], f"{folder}/report.html")
    ...     "within 0.0" in page.read_text(encoding="utf-8")
    True
    """
    if hasattr(model, "to_local"):  # of partitions or of a cluster
        model = model.to_local()
    subject = read_subject(model, X_test, y_test)
    page = render(_values(subject, stability, title, os.fspath(model_file)))
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def _values(subject: Subject, stability: Any, title: str | None, model_file: str) -> dict[str, Any]:
    stable = stability_of(subject, stability)
    model, test = subject.model, subject.test
    state, headline, text = words.certificate(model)
    features = weights.features(subject)
    features["columns"] = ["weight"] if len(subject.weights) == 1 else subject.rows
    features["binary"] = len(subject.weights) == 1
    features["negative"], features["positive"] = subject.classes[0], subject.classes[-1]
    accuracy = None if test is None else predictions.accuracy(test)
    margins = None if test is None else predictions.margins(test)
    path = curves.path_of(subject)
    timings = curves.timings(subject)
    kind = type(model).__name__
    of = words.count(len(subject.names), "feature")
    features["used"] = f"{features['n_used']} of {of}"
    features["weights"] = words.count(features["n_weights"], "non-zero weight")
    drawn = ("names", "drawn", "columns", "scaled")
    return {
        "title": title or f"{kind} for {words.count(len(subject.classes), 'class')}",
        "kind": kind,
        "fitted": words.fitted(model, features["n_used"], features["n_features"]),
        "tiles": _tiles(subject, accuracy, state, path),
        "sections": _sections(accuracy, path, stable, timings),
        "certificate": {"state": state, "headline": headline, "text": text},
        "steps": subject.steps,
        "parameters": _changed_parameters(model),
        "accuracy": accuracy,
        "confusion": None if test is None else predictions.confusion(subject, test),
        "margins": margins,
        "features": features,
        "path": path,
        "stability": stable,
        "timings": timings,
        "snippets": _snippets(subject, model_file),
        "data": {
            "features": {name: features[name] for name in drawn},
            "margins": margins,
            "path": path,
            "stability": stable,
            "history": timings.get("history"),
        },
        "date": date.today().isoformat(),
        "version": import_module("sparsvm").__version__,
        "sklearn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _tiles(subject: Subject, accuracy: Any, state: str, path: Any) -> list[dict[str, Any]]:
    model = subject.model
    tiles = []
    if accuracy is not None:
        note = f"on {words.count(subject.test.y.size, 'test sample')}"  # type: ignore[union-attr]
        tiles.append(
            {"name": "Accuracy", "value": accuracy["headline"], "note": note, "state": "main"}
        )
    if path is not None and "scores" in path:
        name = path["score_name"]
        value = path["scores"][path["chosen"]]
        shown = words.percent(value) if name == "accuracy" else f"{value:.4g}"
        note = f"{name} in {words.count(model.scores_.shape[1], 'fold')}"
        tiles.append({"name": "Cross-validation", "value": shown, "note": note, "state": "main"})
    d = words.count(len(subject.names), "feature")
    tiles.append({"name": "Features used", "value": f"{subject.used.size}", "note": f"of {d}"})
    value, note = {
        "proven": (None, "of the objective, proven"),
        "short": (None, "not solved to the tolerance"),
        "critical": ("critical", "point of a non-convex problem, proven"),
        "none": ("none", "the model does not say how it was found"),
    }[state]
    gap = getattr(model, "margin_gap_", getattr(model, "dual_gap_", np.nan))
    shown = value or words.percent(gap)
    tiles.append({"name": "Duality gap", "value": shown, "note": note, "state": state})
    names = ", ".join(subject.classes)
    note = names if len(names) <= LONGEST_LIST else f"{subject.classes[0]} to {subject.classes[-1]}"
    tiles.append(
        {"name": "Classes", "value": f"{len(subject.classes)}", "note": note[:LONGEST_NOTE]}
    )
    return tiles


def _sections(accuracy: Any, path: Any, stable: Any, timings: Any) -> list[tuple[str, str]]:
    sections = [
        ("certificate", "How sure it is", True),
        ("predictions", "Predictions", accuracy is not None),
        ("margins", "Margins", accuracy is not None),
        ("features", "Features", True),
        ("path", "Other strengths", path is not None),
        ("stability", "Stability", stable is not None),
        ("timings", "Timings", bool(timings["rows"])),
        ("reload", "Use this model", True),
    ]
    return [(anchor, name) for anchor, name, there in sections if there]


def _changed_parameters(model: Any) -> list[tuple[str, str]]:
    defaults = signature(type(model)).parameters
    shown = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        if text != repr(defaults[name].default):
            shown.append((name, _cut(text)))
    return shown


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PARAMETER else text[: LONGEST_PARAMETER - 1] + "…"


def _snippets(subject: Subject, model_file: str) -> list[dict[str, str]]:
    file = json.dumps(model_file, ensure_ascii=False)
    save = "from sparsvm import save_model\nsave_model(model, {0})"
    load = "from sparsvm import load_model\nmodel = load_model({0})\nmodel.predict(X)"
    names = "whose columns are the features above, in the order of training"
    first = "The model fits into one file, which holds numbers and names and no code:"
    if subject.steps:
        first = (
            "The classifier fits into one file, which holds numbers and names and no code; what "
            "the pipeline does before it belongs to the pipeline, and has to be kept with it:"
        )
    return [
        {"text": first, "code": save.format(file)},
        {"text": f"A colleague loads it, and predicts samples {names}:", "code": load.format(file)},
        {
            "text": "Or, without a line of Python:",
            "code": f"sparsvm predict {model_file} samples.csv --output predictions.csv",
        },
    ]
