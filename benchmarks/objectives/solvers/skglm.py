"""skglm: coordinate descent with working sets and Anderson acceleration, compiled by numba."""

from typing import ClassVar

from benchmark_utils.peer import Compiled
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from skglm import LinearSVC, SparseLogisticRegression


class Solver(Compiled):
    name = "skglm"
    requirements: ClassVar = ["pip::skglm"]
    kinds = (PROBLEMS["binary logistic, l1"], PROBLEMS["binary hinge, l2"])

    def fit(self, tol):
        if self.problem.loss == "logistic":
            model = SparseLogisticRegression(
                self.alpha, tol=tol, fit_intercept=False, max_iter=200, max_epochs=100_000
            )
        else:
            model = LinearSVC(C=self.C, tol=tol, fit_intercept=False, max_iter=200)
        return model.fit(self.X, self.y).coef_
