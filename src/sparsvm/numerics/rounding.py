"""The numbers of double precision, and what proofs allow for it.

A sum of n products errs by at most about n + 2 units of its size, in whatever order it is formed.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)
# The largest relative error of one rounding.
UNIT = EPS / 2.0
# The smallest number with all its digits, and what stands for zero where something is divided by
# it.
TINY = float(np.finfo(np.float64).tiny)
NO_SIZE = 1e-300
# Roundings in the operations around a sum of products that the count of its terms leaves out.
OTHER_ROUNDINGS = 16
# Sums of many numbers of one sign, which NumPy forms pairwise, are rounded up by this: some 25
# units for a million terms.
UP_FACTOR = 1.0 + 64.0 * UNIT
# What is asked of native code at least: the rounding of an objective is larger.
SHARPEST_TOL = 1e-15
