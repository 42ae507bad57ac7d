"""The array types of the package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Features = NDArray[np.int32]
Ints = NDArray[np.intp]
