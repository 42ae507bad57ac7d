"""Fits on data larger than memory: the same model and certificate, from partitions of the rows."""

from sparsvm.partitioned.estimator import SparseSVC
from sparsvm.partitioned.parts import from_npy, from_npz, from_parquet, from_svmlight, split_rows

__all__ = ["SparseSVC", "from_npy", "from_npz", "from_parquet", "from_svmlight", "split_rows"]
