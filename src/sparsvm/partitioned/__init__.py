"""Fits on data larger than memory: the same model and certificate, from partitions of the rows."""

from sparsvm.partitioned.cv import SparseSVCCV
from sparsvm.partitioned.estimator import SparseSVC
from sparsvm.partitioned.parts import from_npy, from_npz, from_parquet, from_svmlight, split_rows
from sparsvm.partitioned.path import svm_path

__all__ = [
    "SparseSVC",
    "SparseSVCCV",
    "from_npy",
    "from_npz",
    "from_parquet",
    "from_svmlight",
    "split_rows",
    "svm_path",
]
