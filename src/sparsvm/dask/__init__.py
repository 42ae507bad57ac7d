"""Certified sparse classifiers on a Dask cluster (``pip install "sparsvm[dask]"``)."""

from sparsvm.dask.cv import SparseSVCCV
from sparsvm.dask.estimator import SparseSVC
from sparsvm.dask.path import svm_path

__all__ = ["SparseSVC", "SparseSVCCV", "svm_path"]
