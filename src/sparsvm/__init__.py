"""Sparse, exact, certified multiclass support vector machines."""

from sparsvm import losses, penalties, solvers
from sparsvm.estimators import SparseSVC

__version__ = "0.1.0"
__all__ = ["SparseSVC", "losses", "penalties", "solvers"]
