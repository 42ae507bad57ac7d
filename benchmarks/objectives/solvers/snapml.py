"""Snap ML: parallel coordinate descent."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    import snapml


class Solver(Peer):
    name = "snapml"
    requirements: ClassVar = ["pip::snapml"]
    kinds = (PROBLEMS["binary hinge, l2"], PROBLEMS["binary logistic, l1"])

    def fit(self, tol):
        # Its loss is a sum, and regularizer multiplies the penalty.
        options = {"regularizer": len(self.y) * self.alpha, "tol": tol, "max_iter": 10_000}
        options |= {"fit_intercept": False, "n_jobs": 1}
        if self.problem.loss == "hinge":
            model = snapml.SupportVectorMachine(loss="hinge", **options)
        else:
            model = snapml.LogisticRegression(penalty="l1", dual=False, **options)
        model.fit(self.X, self.y)
        return model.coef_
