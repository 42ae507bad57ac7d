"""Gaussian classes that differ in a few of many correlated features."""

from typing import ClassVar

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "Simulated"
    parameters: ClassVar = {
        "n_samples, n_features, n_classes": [
            *((80, 300, 4), (200, 2000, 5), (2000, 200, 5)),
            *((100, 300, 2), (300, 1000, 2)),
        ]
    }

    def get_data(self):
        rng = np.random.default_rng(0)
        y = np.arange(self.n_samples) % self.n_classes
        means = np.zeros((self.n_classes, self.n_features))
        means[:, :10] = 1.2 * rng.standard_normal((self.n_classes, 10))
        common = rng.standard_normal((self.n_samples, 1))
        X = means[y] + 0.5 * common + rng.standard_normal((self.n_samples, self.n_features))
        return {"X": X - X.mean(axis=0), "y": y}
