"""``predict``, ``inspect``, ``report`` and ``export``: commands that take a model file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparsvm.cli import options as opt
from sparsvm.cli.columns import Wanted
from sparsvm.cli.facts import features_of, model_facts, model_lines
from sparsvm.cli.failure import Failure
from sparsvm.cli.output import (
    note,
    require_writable,
    show_table,
    tell,
    warnings_told,
    write_rows,
)
from sparsvm.cli.reading import read_table
from sparsvm.cli.table import Table

# Features that inspect lists.
LIST_LENGTH = 20
# Classes whose weights it shows.
CLASSES = 10


def predict(
    model_file: opt.ModelFile,
    data: opt.Data,
    output: opt.TableOutput = "-",
    target: opt.Target = None,
    scores: Annotated[
        bool,
        opt.output_option("--scores", help="Add the scores of the classes."),
    ] = False,
    drop: opt.Drop = None,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> int:
    """Predict the classes of samples.

    Columns are matched by name, and those that the model does not know are ignored. With --target
    the predictions are compared with the labels.

    sparsvm predict model.safetensors new_genes.csv --output predictions.csv
    """
    require_writable(output, table=True)
    model = _loaded(model_file)
    table = _samples(model, data, target, drop, format)
    with warnings_told():
        labels = model.predict(table.X).tolist()
        columns = [labels]
        header = ["prediction"]
        if scores:
            values, names = _scores(model, table)
            columns += [column.tolist() for column in values]
            header += names
    accuracy = None
    if target is not None and table.y is not None:
        accuracy = sum(a == b for a, b in zip(labels, table.y.tolist(), strict=True)) / len(labels)
    if as_json:
        facts = {"predictions": labels, "accuracy": accuracy}
        facts |= dict(zip(header[1:], columns[1:], strict=True))
        tell(facts, True, [])
        if output == "-":
            return 0
    write_rows(output, header, zip(*columns, strict=True))
    if accuracy is not None and not as_json:
        note(f"{100 * accuracy:.1f} % of {len(labels)} samples are classified correctly")
    return 0


def _scores(model: Any, table: Table) -> tuple[Any, list[str]]:
    """Return a row of probabilities, or of scores, for each class, and the names of the rows."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(table.X).T, [f"probability {k}" for k in model.classes_]
    values = model.decision_function(table.X)
    if values.ndim == 1:
        return values[None, :], [f"score {model.classes_[1]}"]
    return values.T, [f"score {label}" for label in model.classes_]


def inspect(model_file: opt.ModelFile, as_json: opt.Json = False) -> int:
    """Show what a model file holds: what was fitted, what is proven, which features it uses.

    sparsvm inspect model.safetensors
    """
    model = _loaded(model_file)
    facts, found = model_facts(model), features_of(model)
    labels = [str(label) for label in model.classes_]
    columns = labels[1:] if len(model.coef_.shape) and model.coef_.shape[0] == 1 else labels
    if as_json:
        facts["weights"] = {
            row["feature"]: dict(zip(columns, row["weights"], strict=True)) for row in found
        }
        facts["intercepts"] = model.intercept_
        tell(facts, True, [])
        return 0
    tell({}, False, model_lines(model, facts))
    if found:
        print()
        rows = [
            [row["feature"], *(f"{w:+.4g}" if w else "0" for w in row["weights"][:CLASSES])]
            for row in found[:LIST_LENGTH]
        ]
        show_table(["feature", *columns[:CLASSES]], rows)
    if len(found) > LIST_LENGTH:
        print(f"... and {len(found) - LIST_LENGTH} more; --json has them all.")
    return 0


def report(
    model_file: opt.ModelFile,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Samples to test the model on.")
    ] = None,
    target: opt.Target = None,
    output: Annotated[
        str,
        opt.output_option("--output", "-o", metavar="FILE", help="Where it goes."),
    ] = "report.html",
    title: Annotated[str | None, opt.output_option(help="The heading.")] = None,
    drop: opt.Drop = None,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> int:
    """Write a report about a model, an HTML page that needs no network.

    sparsvm report model.safetensors test.csv --target class --output report.html
    """
    require_writable(output)
    model = _loaded(model_file)
    table = None
    if data is not None:
        table = _samples(model, data, target, drop, format)
        if table.y is None:
            raise Failure("Name the column of the labels of DATA with --target.")
    from sparsvm.reporting import report as write

    with warnings_told():
        X, y = (None, None) if table is None else (table.X, table.y)
        write(model, X, y, output, title=title, model_file=model_file)
    tell({"files": [output]}, as_json, [("report", output)])
    return 0


def export(
    model_file: opt.ModelFile,
    output: Annotated[str, typer.Argument(metavar="FILE", help="Where the ONNX model goes.")],
    float32: Annotated[bool, opt.output_option("--float32", help="Single precision.")] = False,
    as_json: opt.Json = False,
) -> int:
    """Export a model to ONNX, for programs without Python.

    sparsvm export model.safetensors model.onnx
    """
    require_writable(output)
    model = _loaded(model_file)
    from sparsvm.io import to_onnx
    from sparsvm.io.whole_files import replacing

    content = to_onnx(model, "float32" if float32 else None).SerializeToString()
    with replacing(output) as temporary:
        temporary.write_bytes(content)
    tell({"files": [output], "bytes": len(content)}, as_json, [("ONNX", output)])
    return 0


def _loaded(path: str) -> Any:
    from sparsvm.io import load_model

    try:
        model = load_model(path)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise Failure(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
    if not hasattr(model, "coef_") or not hasattr(model, "classes_"):
        raise Failure(f"{path} holds a {type(model).__name__}, which is no classifier.")
    return model


def _samples(
    model: Any, data: str, target: str | None, drop: list[str] | None, format: str | None
) -> Table:
    """Read samples with the columns of the model, in its order."""
    names = getattr(model, "feature_names_in_", None)
    features = None if names is None else names.tolist()
    wanted = Wanted(target, False, tuple(drop or ()), features, int(model.n_features_in_))
    table = read_table(data, wanted, format)
    if table.X.shape[1] != model.n_features_in_:
        raise Failure(
            f"{table.source} has {table.X.shape[1]} features, but the model was fitted on "
            f"{model.n_features_in_}."
        )
    return table
