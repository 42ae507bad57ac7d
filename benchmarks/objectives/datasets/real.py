"""Sets that scikit-learn bundles, and sets of the folder that SPARSVM_DATA names."""

from typing import ClassVar

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from sparsvm.datasets import load_20newsgroups, load_leukemia, load_microarray

LOADERS = {
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "leukemia": lambda: load_leukemia(return_X_y=True),
    "su": lambda: load_microarray("su", return_X_y=True),
}


class Dataset(BaseDataset):
    name = "Real"
    parameters: ClassVar = {"data": [*LOADERS, "news20"]}

    def get_data(self):
        if self.data == "news20":
            X, y = load_20newsgroups(return_X_y=True)
            kept = np.sort(np.random.default_rng(0).permutation(len(y))[:1000])
            X = X[kept]
            return {"X": X[:, X.getnnz(axis=0) > 0], "y": y[kept]}
        X, y = LOADERS[self.data]()
        X = np.asarray(X, dtype=float)
        return {"X": StandardScaler().fit_transform(X[:, X.std(axis=0) > 0.0]), "y": y}
