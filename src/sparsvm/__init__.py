"""Sparse, exact, certified multiclass support vector machines."""

from sparsvm import losses, penalties, solvers
from sparsvm.estimators import ConstrainedSparseSVC, SparseSVC

__version__ = "0.1.0"
__all__ = ["ConstrainedSparseSVC", "SparseSVC", "losses", "penalties", "solvers"]
