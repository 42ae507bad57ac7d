"""Where the data are."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "SPARSVM_DATA"
_INSTEAD = (
    "Without the data, the bundled load_iris, load_wine, load_digits and load_breast_cancer of "
    "sklearn.datasets need no folder."
)


def data_file(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a data file, or say what to set when it is not there.

    Parameters
    ----------
    name : str
        The file relative to the folder of all data sets, such as ``"mnist/labels.gz"``.
    folder : path, optional
        The folder of all data sets; by default the environment variable ``SPARSVM_DATA``.
    """
    root = os.environ.get(VARIABLE) if folder is None else folder
    if not root:
        raise FileNotFoundError(
            f"The file {name!r} is not part of the package, and no folder to look for it was "
            f"given: pass folder=..., or set the environment variable {VARIABLE} to the folder "
            f"that holds the data sets. {_INSTEAD}"
        )
    path = Path(root) / name
    if not path.is_file():
        origin = f"the environment variable {VARIABLE}" if folder is None else "folder"
        raise FileNotFoundError(
            f"There is no file {name!r} in {str(root)!r}, the folder that {origin} names: put it "
            f"there, or name the folder that holds it. {_INSTEAD}"
        )
    return path
