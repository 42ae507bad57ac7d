"""celer: dual extrapolation and working sets."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from celer import LogisticRegression


class Solver(Peer):
    name = "celer"
    requirements: ClassVar = ["pip::celer"]
    kinds = (PROBLEMS["binary logistic, l1"],)

    def fit(self, tol):
        model = LogisticRegression(C=self.C, tol=tol, max_iter=200, fit_intercept=False)
        return model.fit(self.X, self.y).coef_
