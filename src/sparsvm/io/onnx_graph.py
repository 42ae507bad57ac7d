"""A linear classifier as the nodes of an ONNX graph, whoever puts them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsvm._typing import Array
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.numerics.sparse_format import dense_coefficients


@dataclass
class Graph:
    """Nodes in the order in which they run, and the constants they use.

    Attributes
    ----------
    nodes : list of (operator, names of inputs, name of the output, attributes)
    constants : dict of name to array
    """

    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        self.nodes.append((operator, inputs, output, attributes))
        return output

    def constant(self, name: str, values: Any) -> str:
        """Add a constant and return its name."""
        self.constants[name] = np.asarray(values)
        return name


def has_probabilities(model: SparseLinearClassifier) -> bool:
    """Whether the scores of a model have probabilities."""
    return hasattr(model, "predict_proba")


def label_array(classes: Array) -> Array:
    """Return the labels in a type that ONNX has: text, int64, bool or double."""
    plain = classes.tolist()
    if all(isinstance(label, str) for label in plain):
        return np.array(plain, dtype=object)
    if classes.dtype.kind in "iu" and max(plain) < 2**63:
        return classes.astype(np.int64)
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    raise ValueError(
        f"ONNX has no type for the labels {plain[0]!r}, {plain[1]!r}, ... of type {classes.dtype}. "
        "Fit with labels that are all strings or all integers."
    )


def classifier_graph(
    model: SparseLinearClassifier, dtype: Any, samples: str, label: str, scores: str
) -> Graph:
    """Return the graph of a fitted model.

    ::

        samples -> Gather (features in use) -> Gemm -> scores -> ArgMax -> Gather (labels) -> label

    Classes are put in decreasing order of their training weight before ArgMax, which takes the
    first of equals. With two classes there is one score, whose sign decides.

    Parameters
    ----------
    model : fitted classifier
    dtype : float32 or float64
        Type of the samples and of the computation.
    samples, label, scores : str
        Names of input and outputs; all names in between begin with that of the scores.
    """
    graph = Graph()
    coef, intercept = model._checked_coefficients()
    coef = dense_coefficients(coef)
    used = model.selected_features_
    if not used.size:
        used = np.zeros(1, dtype=np.intp)  # no product is empty
    intercept = np.broadcast_to(intercept, (coef.shape[0],))
    two = len(model.classes_) == 2
    gathered = graph.add(
        "Gather",
        [samples, graph.constant(f"{scores}_features", used.astype(np.int64))],
        f"{scores}_used",
        axis=1,
    )
    weights = graph.constant(f"{scores}_weights", np.ascontiguousarray(coef[:, used].T, dtype))
    offset = graph.constant(f"{scores}_intercept", intercept.astype(dtype))
    column = f"{scores}_column" if two else scores
    graph.add("Gemm", [gathered, weights, offset], column)
    if two:
        shape = graph.constant(f"{scores}_shape", np.array([-1], dtype=np.int64))
        graph.add("Reshape", [column, shape], scores)
    _add_label(graph, model, dtype, label, scores)
    return graph


def _add_label(
    graph: Graph, model: SparseLinearClassifier, dtype: Any, label: str, scores: str
) -> None:
    labels, prior = label_array(model.classes_), model._prior()
    order = np.arange(labels.size) if prior is None else np.argsort(-prior, kind="stable")
    number = f"{scores}_number"
    if labels.size == 2:
        # As in predict: equal scores go to the class that comes first in the order.
        zero = graph.constant(f"{scores}_zero", np.zeros((), dtype))
        compare = "GreaterOrEqual" if order[0] == 1 else "Greater"
        second = graph.add(compare, [scores, zero], f"{scores}_second")
        graph.add("Cast", [second], number, to=_INT64)
    else:
        ordered = scores
        if not np.array_equal(order, np.arange(order.size)):
            labels = labels[order]
            places = graph.constant(f"{scores}_order", order.astype(np.int64))
            ordered = graph.add("Gather", [scores, places], f"{scores}_ordered", axis=1)
        graph.add("ArgMax", [ordered], number, axis=1, keepdims=0)
    graph.add("Gather", [graph.constant(f"{scores}_labels", labels), number], label, axis=0)


def add_probabilities(
    graph: Graph, model: SparseLinearClassifier, scores: str, probabilities: str
) -> None:
    """Append the probabilities of the classes of a logistic model to its graph."""
    both = scores
    if len(model.classes_) == 2:
        column = f"{scores}_column"
        none = graph.add("Sub", [column, column], f"{scores}_first")
        both = graph.add("Concat", [none, column], f"{scores}_both", axis=1)
    graph.add("Softmax", [both], probabilities, axis=1)


# onnx.TensorProto.INT64, known without importing onnx.
_INT64 = 7
