"""Certified sparse classifiers on a Dask cluster (``pip install "sparsvm[dask]"``)."""

from sparsvm.dask.estimator import SparseSVC

__all__ = ["SparseSVC"]
