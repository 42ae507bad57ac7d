"""The array types of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Features = NDArray[np.int32]
Ints = NDArray[np.intp]
Indices = NDArray[np.integer]
Bools = NDArray[np.bool_]
Array = NDArray[Any]
Counts = NDArray[np.int64]
Hashes = NDArray[np.uint64]
