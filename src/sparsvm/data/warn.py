"""Warnings that point at the line of the user, whatever lies between it and the package."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

# Frames of these folders are passed over: fit is wrapped by scikit-learn, more often since 1.9.
_INSIDE = tuple(
    str(folder) + os.sep for folder in (Path(__file__).parents[1], Path(sklearn.__file__).parent)
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, at the first line outside the package and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_code.co_filename.startswith(_INSIDE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
