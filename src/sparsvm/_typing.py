"""The types of the package: arrays, and the names that options may have."""

from __future__ import annotations

from typing import Any, Literal

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

LossName = Literal["hinge", "squared_hinge", "logistic", "ovr_squared_hinge", "ramp"]
PenaltyName = Literal[
    "l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group", "l0", "capped_l1"
]
SolverName = Literal[
    "auto",
    "interior_point",
    "sdca",
    "newton",
    "block_newton",
    "cone_program",
    "dca",
    "fbpd",
    "fista",
    "forward_backward",
    "sparsa",
    "fobos",
    "bcd",
    "cutting_plane",
]
RankingSolverName = Literal["auto", "prox_newton", "bcd", "fista", "sparsa", "forward_backward"]
BudgetSolverName = Literal["auto", "budget_search", "fbpd_epigraph", "fbpd_linear"]
HierarchicalSolverName = Literal["auto", "staged", "hsdm"]
OnInterrupt = Literal["raise", "return"]
ClassWeight = Literal["balanced"] | dict[Any, float] | None
