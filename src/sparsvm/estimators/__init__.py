"""The estimators: they read data, build a problem, have it solved and unpack the solution."""

from sparsvm.estimators.sparse_svc import SparseSVC

__all__ = ["SparseSVC"]
