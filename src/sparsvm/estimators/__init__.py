"""The estimators: they read data, build a problem, have it solved and unpack the solution."""

from sparsvm.estimators.constrained_svc import ConstrainedSparseSVC
from sparsvm.estimators.label_ranker import SparseLabelRanker
from sparsvm.estimators.max_margin_svc import MaxMarginSVC
from sparsvm.estimators.sparse_svc import SparseSVC

__all__ = ["ConstrainedSparseSVC", "MaxMarginSVC", "SparseLabelRanker", "SparseSVC"]
