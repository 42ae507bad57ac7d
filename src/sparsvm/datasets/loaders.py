"""One loader a data set, each returning scikit-learn's ``Bunch`` or the pair (X, y).

All take the same arguments: ``folder`` (by default the environment variable ``SPARSVM_DATA``),
``subset`` ("train", "test" or "all", training samples first) and ``return_X_y``.
"""

from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np

from sparsvm.datasets.folder import data_file
from sparsvm.parameters import quoted

Folder = str | os.PathLike[str] | None
SUBSETS = {"train": ("train",), "test": ("test",), "all": ("train", "test")}


def load_leukemia(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load Golub's leukemia: 38 + 34 patients, 7129 gene expressions, classes ALL-B, ALL-T, AML.

    Parameters
    ----------
    folder : path, optional
        Holds ``golub_leukemia3/golub3.npz``; by default the environment variable SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
        The published split.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (float64, as measured, not standardised), ``target`` (names of the classes),
        ``feature_names`` (genes), ``target_names``.
    """
    parts = _parts(subset)
    with np.load(data_file("golub_leukemia3/golub3.npz", folder)) as file:
        X = np.vstack([file[f"X_{part}"] for part in parts]).astype(np.float64)
        y = np.concatenate([file[f"y_{part}"] for part in parts])
        genes = file["genes"]
    return _bunch(X, y, return_X_y, feature_names=genes, target_names=np.unique(y))


def load_mnist(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load MNIST: 60000 + 10000 images of digits, 28 × 28 = 784 pixels.

    Parameters
    ----------
    folder : path, optional
        Holds ``mnist/train-images-idx3-ubyte.gz`` and so on; by default the environment variable
        SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (uint8 from 0 to 255, an eighth of the memory of floats), ``target`` (int64).
    """
    stems = {"train": "train", "test": "t10k"}
    parts = [stems[part] for part in _parts(subset)]
    X = np.concatenate([_idx(f"mnist/{part}-images-idx3-ubyte.gz", folder) for part in parts])
    y = np.concatenate([_idx(f"mnist/{part}-labels-idx1-ubyte.gz", folder) for part in parts])
    return _bunch(X.reshape(y.size, -1), y.astype(np.int64), return_X_y, target_names=np.arange(10))


def load_20newsgroups(
    folder: Folder = None,
    *,
    subset: str = "train",
    min_df: int = 2,
    return_X_y: bool = False,
) -> Any:
    r"""Load the 20 newsgroups, split by date: 11314 + 7532 documents as sparse tf-idf.

    The counts are those of ``CountVectorizer()`` with its default tokens on the training text
    (130107 words). Words in fewer than ``min_df`` training documents are dropped, then term
    :math:`j` of document :math:`i` is
    :math:`c_{ij} (1 + \ln\frac{1 + n}{1 + n_j})`, and rows are scaled to Euclidean norm 1, as
    ``TfidfTransformer()`` does; n and the document counts :math:`n_j` are of the training set.

    Parameters
    ----------
    folder : path, optional
        Holds ``20newsgroups/20news_counts.npz``; by default the environment variable
        SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
    min_df : int, default=2
        2 leaves 56436 words, 5 leaves 25941.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64), ``target`` (0 to 19), ``target_names``.
    """
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    parts = _parts(subset)
    with np.load(data_file("20newsgroups/20news_counts.npz", folder)) as file:
        counts = {
            part: sp.csr_matrix(
                tuple(file[f"{part}_{name}"] for name in ("data", "indices", "indptr")),
                shape=(file[f"y_{part}"].size, int(file["n_features"])),
                dtype=np.float64,
            )
            for part in ("train", "test")
        }
        y = np.concatenate([file[f"y_{part}"] for part in parts])
        names = file["target_names"]
    kept = np.flatnonzero(counts["train"].getnnz(axis=0) >= min_df)
    weighting = TfidfTransformer().fit(counts["train"][:, kept])
    X = sp.vstack([weighting.transform(counts[part][:, kept]) for part in parts], format="csr")
    # Choosing columns leaves rows unsorted, which every fit would sort on a copy of its own.
    X.sort_indices()
    return _bunch(X, y, return_X_y, target_names=names)


def load_arcene(folder: Folder = None, *, subset: str = "train", return_X_y: bool = False) -> Any:
    """Load Arcene: 100 + 100 mass spectra, 10000 features, cancer (1) or not (-1).

    Parameters
    ----------
    folder : path, optional
        Holds ``arcene/arcene_train.data`` and so on; by default the environment variable
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
    stems = {"train": "arcene/arcene_train", "test": "arcene/arcene_valid"}
    paths = [stems[part] for part in _parts(subset)]
    X = np.vstack([np.loadtxt(data_file(f"{path}.data", folder)) for path in paths])
    labels = [np.loadtxt(data_file(f"{path}.labels", folder)) for path in paths]
    y = np.concatenate(labels).astype(np.int64)
    return _bunch(X, y, return_X_y, target_names=np.unique(y))


def _parts(subset: str) -> tuple[str, ...]:
    if subset not in SUBSETS:
        raise ValueError(f"subset must be one of {quoted(SUBSETS)}, but {subset!r} was given.")
    return SUBSETS[subset]


def _bunch(X: Any, y: Any, return_X_y: bool, **more: Any) -> Any:
    if return_X_y:
        return X, y
    from sklearn.utils import Bunch

    return Bunch(data=X, target=y, **more)


def _idx(name: str, folder: Folder) -> Any:
    """Read the idx format: two zeros, type 8 (bytes), number of sizes, the sizes, the values."""
    path = data_file(name, folder)
    with gzip.open(path) as file:
        content = file.read()
    if content[:3] != b"\0\0\x08":
        raise ValueError(
            f"{str(path)!r} does not hold bytes in the idx format: it begins with "
            f"{content[:3]!r} instead of {bytes([0, 0, 8])!r}. Fetch the file again."
        )
    n_sizes = content[3]
    sizes = np.frombuffer(content, dtype=">i4", count=n_sizes, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_sizes).reshape(sizes)
