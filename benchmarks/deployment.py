"""Sizes of model files beside joblib's, and the time of one prediction here and in onnxruntime.

Run ``python benchmarks/deployment.py``. It fits a model on each data set (those of SPARSVM_DATA
where they are there) and prints two Markdown tables. Times are of the processor, on one thread, the
median of many single calls, of which ours and onnxruntime's alternate.
"""

from __future__ import annotations

import one_thread  # noqa: F401  isort: skip

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression

from sparsvm import SparseSVC, load_model, save_model, to_onnx
from sparsvm.datasets import VARIABLE, load_leukemia, load_mnist

CALLS = 500


def cases() -> Iterator[tuple[str, Any, Any, SparseSVC]]:
    """Yield name, standardised samples, labels and a model that is not fitted yet."""

    def case(name: str, X: Any, y: Any, alpha: float) -> tuple[str, Any, Any, SparseSVC]:
        X = np.asarray(X, dtype=np.float64)
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        return name, X, y, SparseSVC(penalty="l1/l2", alpha=alpha)

    yield case("wine", *load_wine(return_X_y=True), 0.05)
    yield case("digits", *load_digits(return_X_y=True), 0.01)
    if VARIABLE in os.environ:
        yield case("leukemia", *load_leukemia(return_X_y=True), 0.1)
        X, y = load_mnist(return_X_y=True)
        yield case("mnist", X[:3000], y[:3000], 0.02)


def sizes(model: Any, X: Any, y: Any, folder: Path) -> list[int]:
    """Return bytes: our file, joblib's (as fitted, sparsified), ONNX, a dense peer by joblib."""
    paths = [folder / name for name in ("ours", "joblib", "sparsified", "peer")]
    save_model(model, paths[0])
    assert np.array_equal(load_model(paths[0]).predict(X), model.predict(X))
    joblib.dump(model, paths[1])
    joblib.dump(load_model(paths[0]).sparsify(), paths[2])
    joblib.dump(LogisticRegression(max_iter=20).fit(X, y), paths[3])
    files = [path.stat().st_size for path in paths]
    return [*files[:3], len(to_onnx(model).SerializeToString()), files[3]]


def microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Return the median processor time of each call, the calls alternating."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(CALLS):
        for call, taken in zip(calls, times, strict=True):
            began = time.process_time_ns()
            call()
            taken.append((time.process_time_ns() - began) / 1e3)
    return [statistics.median(taken) for taken in times]


def main() -> None:
    """Print the tables."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    table, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, X, y, model in cases():
            model.fit(X, y)
            K, d = len(model.classes_), X.shape[1]
            about = f"{name} | {d} × {K} | {model.selected_features_.size}"
            found = sizes(model, X, y, Path(folder))
            table.append(f"| {about} | " + " | ".join(f"{size:,}" for size in found) + " |")
            graph = to_onnx(model).SerializeToString()
            session = onnxruntime.InferenceSession(graph, options)
            one, thousand = X[:1], np.resize(X, (1000, d))
            pair = [
                lambda X=one, model=model: model.predict(X),
                lambda X=one, session=session: session.run(["label"], {"X": X}),
                lambda X=thousand, model=model: model.predict(X),
                lambda X=thousand, session=session: session.run(["label"], {"X": X}),
            ]
            ours, theirs, many, many_theirs = microseconds(*pair)
            times.append(
                f"| {about} | {ours:.0f} | {theirs:.0f} | {many / 1000:.2f} | "
                f"{many_theirs / 1000:.2f} |"
            )
    print(
        "| data | features × classes | in use | `save_model` | joblib | ",
        end="",
    )
    print("joblib, `sparsify()` | ONNX | joblib, `LogisticRegression` |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(table))
    print("\n| data | features × classes | in use | `predict`, one sample | onnxruntime | ", end="")
    print("`predict`, per sample of 1000 | onnxruntime |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(times))


if __name__ == "__main__":
    main()
