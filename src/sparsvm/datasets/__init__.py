"""Loaders of the data sets of the papers, from a folder of the user's.

No data come with the package: say where they are with the argument ``folder`` or the environment
variable ``SPARSVM_DATA``. ``sklearn.datasets`` bundles small ones (iris, wine, digits,
breast_cancer) that need no folder.
"""

from sparsvm.datasets.folder import VARIABLE, data_file
from sparsvm.datasets.loaders import (
    load_20newsgroups,
    load_arcene,
    load_leukemia,
    load_mnist,
)
from sparsvm.datasets.two_class import load_dexter, load_dorothea, load_uci

__all__ = [
    "VARIABLE",
    "data_file",
    "load_20newsgroups",
    "load_arcene",
    "load_dexter",
    "load_dorothea",
    "load_leukemia",
    "load_mnist",
    "load_uci",
]
