"""Loaders of the data sets of the papers and the benchmarks, from a folder of the user's.

No data come with the package: say where they are with the argument ``folder`` or the environment
variable ``SPARSVM_DATA``. ``sklearn.datasets`` bundles small ones (iris, wine, digits,
breast_cancer) that need no folder.
"""

from sparsvm.datasets.documents import load_amazon, load_banking77, load_news20_libsvm
from sparsvm.datasets.folder import VARIABLE, data_file
from sparsvm.datasets.images_and_genes import load_coil20, load_microarray
from sparsvm.datasets.loaders import (
    load_20newsgroups,
    load_arcene,
    load_leukemia,
    load_mnist,
)
from sparsvm.datasets.scattering import scattering
from sparsvm.datasets.two_class import load_dexter, load_dorothea, load_madelon, load_uci

__all__ = [
    "VARIABLE",
    "data_file",
    "load_20newsgroups",
    "load_amazon",
    "load_arcene",
    "load_banking77",
    "load_coil20",
    "load_dexter",
    "load_dorothea",
    "load_leukemia",
    "load_madelon",
    "load_microarray",
    "load_mnist",
    "load_news20_libsvm",
    "load_uci",
    "scattering",
]
