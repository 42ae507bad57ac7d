"""ReHLine: dual coordinate descent for piecewise linear-quadratic losses with l2."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from rehline import plqERM_Ridge


class Solver(Peer):
    name = "rehline"
    requirements: ClassVar = ["pip::rehline"]
    kinds = (PROBLEMS["binary hinge, l2"],)

    def fit(self, tol):
        X = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        model = plqERM_Ridge(loss={"name": "svm"}, C=self.C, tol=tol, max_iter=10_000, verbose=0)
        model.fit(X=X, y=2.0 * self.y - 1.0)
        return model.coef_
