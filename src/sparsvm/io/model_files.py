"""Fitted models in one file each, which runs no code when it is read."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sparsvm.io.decoding import Decoder
from sparsvm.io.encoding import Encoder
from sparsvm.io.layout import SafeFile, packed, strict_json
from sparsvm.io.tables import ESTIMATORS
from sparsvm.io.whole_files import replacing

FORMAT, FORMAT_VERSION = "sparsvm", 1
# Digits that the number of a version may have.
MOST_DIGITS = 9
# Attributes with an entry of their own in the metadata, by its name.
_LIFTED = {
    "classes": "classes_",
    "feature_names": "feature_names_in_",
    "certificate": "result_",
}
_TEXTS = {"format", "format_version", "sparsvm_version", "class", "sha256"}


def save_model(est: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file that any machine can read without running code.

    The file has the safetensors layout, so that the package ``safetensors`` reads it too: a header
    with class, parameters, classes, feature names and certificate, then the arrays, sparse where
    that is smaller. :func:`load_model` gives a model with the same predictions to the last bit.
    The file appears whole or not at all.

    What only tells how the model was found is left out, as by ``sparsify``: the dual variables and
    the history of ``result_``. A parameter that is no number, text, array or object of sparsvm (a
    splitter, a callable, a penalty of your own) is kept as its text only; predictions do not need
    it, and fitting again asks for it.

    Parameters
    ----------
    est : estimator
        A fitted estimator of sparsvm.
    path : path-like
        Where to write; an existing file is replaced.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.safetensors")
    ...     save_model(model, path)
    ...     same = load_model(path)
    >>> same
    SparseSVC(alpha=0.05, penalty='l1/l2')
    >>> bool((same.decision_function(X) == model.decision_function(X)).all())
    True
    """
    if hasattr(est, "to_local"):  # of partitions or of a cluster: an ordinary one holds the model
        est = est.to_local()
    if ESTIMATORS.get(type(est).__name__) is not type(est):
        raise ValueError(
            f"save_model writes {', '.join(ESTIMATORS)}, but a {type(est).__name__} was given. "
            "For other estimators use joblib, or skops where files may come from others."
        )
    check_is_fitted(est)
    encoder = Encoder()
    try:
        entry = encoder.estimator(est)
    except ValueError as error:
        raise ValueError(f"This {type(est).__name__} cannot be saved: {error}") from error
    lifted = {
        name: json.dumps(entry["attributes"].pop(attribute), allow_nan=False)
        for name, attribute in _LIFTED.items()
        if attribute in entry["attributes"]
    }
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "sparsvm_version": _version(),
        "class": entry["class"],
        "parameters": json.dumps(entry["parameters"], allow_nan=False),
        **lifted,
        "attributes": json.dumps(entry["attributes"], allow_nan=False),
    }
    _write(path, packed(encoder.arrays, metadata))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save_model` wrote.

    Nothing in the file is run: classes come from a closed list, everything else is numbers and
    strings, and sizes, ranges, overlaps, sparse indices and the checksum are verified before the
    model is put together.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    ValueError
        If the file is not whole, was changed, or is none of sparsvm's.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.safetensors")
    ...     save_model(SparseSVC(alpha=0.1).fit(X, y), path)
    ...     model = load_model(path)
    >>> model.predict(X[:2])
    array([0, 0])
    """
    try:
        with open(path, "rb") as file:
            content = SafeFile(file)
        entry = _entry(content.metadata)
        decoder = Decoder(content)
        est = decoder.estimator(entry)
        if "n_features_in_" not in vars(est):
            raise ValueError("the model in it is not fitted")
        unknown = sorted(content.names() - decoder.used)
        if unknown:
            raise ValueError(f"nothing refers to its array {unknown[0]!r}")
        return est
    except RecursionError as error:
        raise ValueError(_refusal(path, "its metadata are nested too deeply")) from error
    except ValueError as error:
        raise ValueError(_refusal(path, str(error))) from error


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what the header of a model file says, without building the model.

    Parameters
    ----------
    path : path-like
        A file that :func:`save_model` wrote.

    Returns
    -------
    dict
        "format_version", "sparsvm_version", "class", "parameters", "attributes" and, where the
        model has them, "classes", "feature_names" and "certificate", as JSON values.
    """
    try:
        with open(path, "rb") as file:
            metadata = SafeFile(file).metadata
        _require_known(metadata)
        return {
            name: text if name in _TEXTS else strict_json(text, name)
            for name, text in metadata.items()
        }
    except ValueError as error:
        raise ValueError(_refusal(path, str(error))) from error


def _refusal(path: Any, reason: str) -> str:
    return f"{os.fspath(path)!r} cannot be loaded as a model: {reason.rstrip('.')}."


def _require_known(metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ValueError("it is not a model file of sparsvm")
    told = metadata.get("format_version", "")
    if not (told.isascii() and told.isdecimal() and 0 < len(told) <= MOST_DIGITS):
        raise ValueError(f"its format version is {told!r}")
    if int(told) != FORMAT_VERSION:
        raise ValueError(
            f"it has format version {told}, but this sparsvm reads version {FORMAT_VERSION}; "
            "install a later sparsvm"
        )


def _entry(metadata: dict[str, str]) -> dict[str, Any]:
    """Return class, parameters and attributes from the metadata."""
    _require_known(metadata)
    missing = {"class", "parameters", "attributes"} - set(metadata)
    if missing:
        raise ValueError(f"its metadata lack {sorted(missing)[0]!r}")
    attributes = strict_json(metadata["attributes"], "attributes")
    if not isinstance(attributes, dict):
        raise ValueError("its attributes are not given by name")
    for name, attribute in _LIFTED.items():
        if name in metadata:
            if attribute in attributes:
                raise ValueError(f"it has {attribute} twice")
            attributes[attribute] = strict_json(metadata[name], name)
    parameters = strict_json(metadata["parameters"], "parameters")
    return {"class": metadata["class"], "parameters": parameters, "attributes": attributes}


def _version() -> str:
    try:
        return version("sparsvm")
    except PackageNotFoundError:  # imported from the sources
        return "unknown"


def _write(path: str | os.PathLike[str], pieces: list[Any]) -> None:
    with replacing(path) as temporary, open(temporary, "xb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
