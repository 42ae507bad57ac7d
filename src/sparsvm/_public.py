"""The names that ``sparsvm`` offers, loaded when the first of them is used."""

from sparsvm import losses, penalties, prox, solvers
from sparsvm.estimators import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseLabelRanker,
    SparseSVC,
)
from sparsvm.estimators.certify import ModelCertificate, certify
from sparsvm.estimators.cv import SparseSVCCV
from sparsvm.estimators.label_ranker_cv import SparseLabelRankerCV
from sparsvm.estimators.selector import SparseSelector
from sparsvm.estimators.stability import StabilitySelection
from sparsvm.estimators.svm_path import SVMPath, svm_path
from sparsvm.io import load_model, save_model, to_onnx
from sparsvm.path.svm_path import alpha_max
from sparsvm.reporting import report

__all__ = [
    "ConstrainedSparseSVC",
    "MaxMarginSVC",
    "ModelCertificate",
    "SVMPath",
    "SparseLabelRanker",
    "SparseLabelRankerCV",
    "SparseSVC",
    "SparseSVCCV",
    "SparseSelector",
    "StabilitySelection",
    "alpha_max",
    "certify",
    "load_model",
    "losses",
    "penalties",
    "prox",
    "report",
    "save_model",
    "solvers",
    "svm_path",
    "to_onnx",
]
