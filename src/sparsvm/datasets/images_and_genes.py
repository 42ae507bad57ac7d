"""Dense data without a published split: gene expressions of few samples, and images of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm.datasets.folder import data_file
from sparsvm.datasets.loaders import Folder, _bunch
from sparsvm.parameters import quoted

_MICROARRAYS = ("nci60", "lymphoma", "su", "christensen")


def load_microarray(name: str, folder: Folder = None, *, return_X_y: bool = False) -> Any:
    """Load gene expressions (christensen: DNA methylation) of tumours or tissues.

    Parameters
    ----------
    name : {"nci60", "lymphoma", "su", "christensen"}
        64 × 6830 with 14 classes, five of them of one sample; 62 × 4026 with 3 classes;
        102 × 5565 with 4 classes; 217 × 1413 with 3 classes.
    folder : path, optional
        Holds ``microarray/nci60.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (float64, not standardised), ``target`` (text labels), ``target_names``.
    """
    if name not in _MICROARRAYS:
        raise ValueError(f"name must be one of {quoted(_MICROARRAYS)}, but is {name!r}.")
    return _archive(f"microarray/{name}.npz", folder, return_X_y)


def load_coil20(folder: Folder = None, *, return_X_y: bool = False) -> Any:
    """Load COIL-20: 20 objects from 72 sides each, 1440 images of 32 × 32 = 1024 pixels.

    Parameters
    ----------
    folder : path, optional
        Holds ``coil20/coil20.npz``; by default the environment variable SPARSVM_DATA.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (float64, from 0 to 1), ``target`` (int64, 1 to 20), ``target_names``.
    """
    return _archive("coil20/coil20.npz", folder, return_X_y)


def _archive(name: str, folder: Folder, return_X_y: bool) -> Any:
    with np.load(data_file(name, folder)) as file:
        X, y = file["X"].astype(np.float64), file["y"]
    return _bunch(X, y, return_X_y, target_names=np.unique(y))
