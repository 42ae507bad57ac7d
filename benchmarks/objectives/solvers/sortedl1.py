"""sortedl1: SLOPE, whose penalty with equal weights is l1."""

from typing import ClassVar

import numpy as np
from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from sortedl1 import Slope


class Solver(Peer):
    name = "sortedl1"
    requirements: ClassVar = ["pip::sortedl1"]
    kinds = (PROBLEMS["binary logistic, l1"],)

    def fit(self, tol):
        model = Slope(
            loss="logistic",
            lam=np.ones(self.X.shape[1]),
            alpha=self.alpha,
            fit_intercept=False,
            centering="none",
            scaling="none",
            tol=tol,
            max_iter=10_000,
        )
        model.fit(self.X, self.y)
        return np.asarray(model.coef_).reshape(1, -1)
