"""Fitted models as ONNX, alone or at the end of a scikit-learn pipeline."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.selector import SparseSelector
from sparsvm.estimators.stability import StabilitySelection
from sparsvm.io.onnx_graph import (
    Graph,
    add_probabilities,
    classifier_graph,
    has_probabilities,
    label_array,
)
from sparsvm.io.tables import ESTIMATORS

# The first version with all operators as they are used here, and what goes with it: files that
# older runtimes read too.
OPSET, IR_VERSION = 16, 8


def to_onnx(est: Any, dtype: Any = None) -> Any:
    """Return a fitted classifier, or a pipeline that holds one, as an ONNX model.

    The graph gathers the features in use, multiplies them by their weights, and takes the label of
    the highest score. Equal scores go to the class of the largest training weight, as in
    ``predict``; what differs from ``predict`` is at most the rounding of the sums.

    Parameters
    ----------
    est : estimator
        A fitted classifier of sparsvm; or anything that skl2onnx converts, such as a pipeline,
        whose steps may be classifiers of sparsvm (needs the package skl2onnx).
    dtype : float32 or float64, default=None
        Type of the samples that the graph takes. None is that of the coefficients, and float32 for
        a pipeline.

    Returns
    -------
    onnx.ModelProto
        Its input is "X"; its outputs are "label" and "scores" (as ``decision_function``), and
        "probabilities" for the logistic loss. In a pipeline the second output is "probabilities"
        or "scores".

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC, to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> (labels,) = session.run(["label"], {"X": X})
    >>> bool(np.array_equal(labels, model.predict(X)))
    True
    """
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    check_is_fitted(est)
    if not isinstance(est, SparseLinearClassifier):
        return _pipeline(est, np.dtype(np.float32 if dtype is None else dtype))
    if not _predicts_one_label(type(est)):
        raise ValueError(
            f"to_onnx exports classifiers that predict the label of the highest score, which "
            f"{type(est).__name__} does not."
        )
    check_is_fitted(est, "coef_")
    onnx = _imported("onnx")
    kind = np.dtype(_float_type(est) if dtype is None else dtype)
    graph = classifier_graph(est, kind, "X", "label", "scores")
    outputs = [
        ("label", label_array(est.classes_).dtype, ["n"]),
        ("scores", kind, ["n"] if len(est.classes_) == 2 else ["n", len(est.classes_)]),
    ]
    if has_probabilities(est):
        add_probabilities(graph, est, "scores", "probabilities")
        outputs.append(("probabilities", kind, ["n", len(est.classes_)]))
    return _model(onnx, est, graph, kind, outputs)


def register_converters() -> None:
    """Teach skl2onnx the classifiers of sparsvm, so that its own functions convert them.

    :func:`to_onnx` does it by itself. Once it is done, ``skl2onnx.to_onnx(pipeline, X)`` works too.
    """
    skl2onnx = _imported("skl2onnx")
    for name, kind in ESTIMATORS.items():
        if _predicts_one_label(kind):
            skl2onnx.update_registered_converter(
                kind, f"Sparsvm{name}", _infer_shapes, _convert, parser=_parse
            )
    for kind in (SparseSelector, StabilitySelection):
        skl2onnx.update_registered_converter(
            kind, f"Sparsvm{kind.__name__}", _infer_selection, _convert_selection
        )


def _predicts_one_label(kind: type[Any]) -> bool:
    """Whether a class predicts the label of the highest score, and nothing else."""
    plain = issubclass(kind, SparseLinearClassifier)
    return plain and kind.predict is SparseLinearClassifier.predict


def _float_type(model: SparseLinearClassifier) -> Any:
    return np.float32 if model.coef_.dtype == np.float32 else np.float64


def _imported(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"to_onnx needs the package {name}. Install it with pip install 'sparsvm[onnx]'."
        ) from error


def _model(onnx: Any, est: Any, graph: Graph, kind: Any, outputs: list[Any]) -> Any:
    helper = onnx.helper

    def described(name: str, dtype: Any, shape: list[Any]) -> Any:
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, code, shape)

    made = helper.make_graph(
        [helper.make_node(op, ins, [out], **more) for op, ins, out, more in graph.nodes],
        type(est).__name__,
        [described("X", kind, ["n", est.n_features_in_])],
        [described(*output) for output in outputs],
        [onnx.numpy_helper.from_array(values, name) for name, values in graph.constants.items()],
    )
    model = helper.make_model(
        made,
        producer_name="sparsvm",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    told = {"class": type(est).__name__, "classes": json.dumps(est.classes_.tolist())}
    if hasattr(est, "feature_names_in_"):
        told["feature_names"] = json.dumps(list(est.feature_names_in_))
    helper.set_model_props(model, told)
    onnx.checker.check_model(model)
    return model


def _pipeline(est: Any, kind: Any) -> Any:
    skl2onnx = _imported("skl2onnx")
    register_converters()
    types = _imported("skl2onnx.common.data_types")
    tensor = types.FloatTensorType if kind == np.float32 else types.DoubleTensorType
    last = est.steps[-1][1] if hasattr(est, "steps") else est
    # Arrays of probabilities, not a dictionary for every sample, which float64 has not either.
    plain = is_classifier(last) and not isinstance(last, SparseLinearClassifier)
    return skl2onnx.convert_sklearn(
        est,
        initial_types=[("X", tensor([None, est.n_features_in_]))],
        target_opset=OPSET,
        options={id(last): {"zipmap": False}} if plain else None,
    )


# ---------------------------------------------------------------------- what skl2onnx calls


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    types = _imported("skl2onnx.common.data_types")
    operator = scope.declare_local_operator(f"Sparsvm{type(model).__name__}", model)
    operator.inputs = inputs
    labels = {"O": types.StringTensorType, "b": types.BooleanTensorType}
    labels |= {"i": types.Int64TensorType, "f": types.DoubleTensorType}
    kind = labels[label_array(model.classes_).dtype.kind]
    scores = "probabilities" if has_probabilities(model) else "scores"
    operator.outputs.append(scope.declare_local_variable("label", kind()))
    operator.outputs.append(
        scope.declare_local_variable(scores, types.guess_tensor_type(inputs[0].type))
    )
    return operator.outputs


def _infer_shapes(operator: Any) -> None:
    model = operator.raw_operator
    n, K = operator.inputs[0].get_first_dimension(), len(model.classes_)
    operator.outputs[0].type.shape = [n]
    operator.outputs[1].type.shape = [n, K] if K > 2 or has_probabilities(model) else [n]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    onnx, types = _imported("onnx"), _imported("skl2onnx.common.data_types")
    model, source = operator.raw_operator, operator.inputs[0]
    label, last = (output.full_name for output in operator.outputs)
    double = isinstance(source.type, types.DoubleTensorType)
    kind = np.dtype(np.float64 if double else np.float32)
    samples = source.full_name
    if not isinstance(source.type, (types.DoubleTensorType, types.FloatTensorType)):
        samples = scope.get_unique_variable_name("samples")
        _add_node(scope, container, "Cast", [source.full_name], samples, to=onnx.TensorProto.FLOAT)
    probabilities = has_probabilities(model)
    scores = scope.get_unique_variable_name("scores") if probabilities else last
    graph = classifier_graph(model, kind, samples, label, scores)
    if probabilities:
        add_probabilities(graph, model, scores, last)
    for name, values in graph.constants.items():
        code = onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
        content: Any = values.ravel()
        if values.dtype == object:
            content = [text.encode() for text in content]
        container.add_initializer(name, code, list(values.shape), content)
    for node, inputs, output, attributes in graph.nodes:
        _add_node(scope, container, node, inputs, output, **attributes)


def _infer_selection(operator: Any) -> None:
    n, source = operator.inputs[0].get_first_dimension(), operator.inputs[0].type
    operator.outputs[0].type = type(source)([n, operator.raw_operator.selected_features_.size])


def _convert_selection(scope: Any, operator: Any, container: Any) -> None:
    onnx = _imported("onnx")
    kept = operator.raw_operator.selected_features_.astype(np.int64)
    name = scope.get_unique_variable_name("selected")
    container.add_initializer(name, onnx.TensorProto.INT64, [kept.size], kept)
    inputs, output = [operator.inputs[0].full_name, name], operator.outputs[0].full_name
    _add_node(scope, container, "Gather", inputs, output, axis=1)


def _add_node(
    scope: Any, container: Any, kind: str, inputs: list[str], output: str, **attributes: Any
) -> None:
    onnx = _imported("onnx")
    version = onnx.defs.get_schema(kind, container.target_opset, "").since_version
    name = scope.get_unique_operator_name(kind)
    container.add_node(kind, inputs, [output], op_version=version, name=name, **attributes)
