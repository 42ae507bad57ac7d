"""Two-class data sets for feature selection: six from UCI, Dexter, Dorothea and Madelon."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm.datasets.folder import data_file
from sparsvm.datasets.loaders import Folder, _bunch, _parts
from sparsvm.parameters import quoted

# File, position of the label, first feature.
_UCI: dict[str, tuple[str, int, int]] = {
    "pima": ("pima-indians-diabetes.csv", -1, 0),
    "bupa": ("bupa.data", -1, 0),
    "ionosphere": ("ionosphere.csv", -1, 0),
    "sonar": ("sonar.csv", -1, 0),
    # An identifier comes first; the third column is the time until the outcome, which gives it
    # away.
    "wpbc": ("wpbc.data", 1, 3),
    "wdbc": ("wdbc.data", 1, 2),
}


def load_uci(name: str, folder: Folder = None, *, return_X_y: bool = False) -> Any:
    """Load one of the small two-class sets of the UCI repository.

    Parameters
    ----------
    name : {"pima", "bupa", "ionosphere", "sonar", "wpbc", "wdbc"}
        768 × 8, 345 × 6, 351 × 34, 208 × 60, 194 × 32 (without the four samples of wpbc that
        lack a value, and without its time until the outcome) and 569 × 30.
    folder : path, optional
        Holds ``uci/sonar.csv`` and so on; by default the environment variable SPARSVM_DATA.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (float64, not scaled), ``target`` (text labels as in the file), ``target_names``.
    """
    if name not in _UCI:
        raise ValueError(f"name must be one of {quoted(_UCI)}, but is {name!r}.")
    file, label, first = _UCI[name]
    lines = data_file(f"uci/{file}", folder).read_text().split()
    rows = [line.split(",") for line in lines if "?" not in line]
    y = np.array([row[label] for row in rows])
    features = [row[first:label] if label < 0 else row[first:] for row in rows]
    return _bunch(np.array(features, dtype=np.float64), y, return_X_y, target_names=np.unique(y))


def load_dexter(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load Dexter: 300 + 300 documents, 20000 features, sparse: corporate acquisitions or not.

    Parameters
    ----------
    folder : path, optional
        Holds ``dexter/dexter_train_X.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
        "test" is what its challenge called the validation set.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64, integers from 0 to 999), ``target`` (int64, -1 or 1).
    """
    return _challenge("dexter", folder, subset, return_X_y)


def load_dorothea(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load Dorothea: 800 + 350 compounds, 100000 binary features, sparse; active (1) or not (-1).

    Parameters
    ----------
    folder : path, optional
        Holds ``dorothea/dorothea_train_X.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
        "test" is what its challenge called the validation set.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64, 0 or 1), ``target`` (int64, -1 or 1).
    """
    return _challenge("dorothea", folder, subset, return_X_y)


def load_madelon(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load Madelon: 2000 + 600 generated samples, 500 features, 480 of them noise.

    The classes are clusters on the corners of a cube in five dimensions, far from linearly
    separable; 15 more features are combinations of those five.

    Parameters
    ----------
    folder : path, optional
        Holds ``madelon/madelon_train.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
        "test" is what its challenge called the validation set.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (float64, integers from 0 to 999), ``target`` (int64, -1 or 1).
    """
    names = {"train": "train", "test": "valid"}
    X, y = [], []
    for part in _parts(subset):
        with np.load(data_file(f"madelon/madelon_{names[part]}.npz", folder)) as file:
            X.append(file["X"])
            y.append(file["y"])
    labels = np.concatenate(y).astype(np.int64)
    data = np.vstack(X).astype(np.float64)
    return _bunch(data, labels, return_X_y, target_names=np.unique(labels))


def _challenge(name: str, folder: Folder, subset: str, return_X_y: bool) -> Any:
    import scipy.sparse as sp

    names = {"train": "train", "test": "valid"}
    stems = [f"{name}/{name}_{names[part]}" for part in _parts(subset)]
    parts = [sp.load_npz(data_file(f"{stem}_X.npz", folder)) for stem in stems]
    y = np.concatenate([np.load(data_file(f"{stem}_y.npy", folder)) for stem in stems])
    X = sp.csr_matrix(sp.vstack(parts), dtype=np.float64)
    return _bunch(X, y.astype(np.int64), return_X_y, target_names=np.unique(y))
