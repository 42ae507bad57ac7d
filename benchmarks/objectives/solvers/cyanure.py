"""cyanure: accelerated and quasi-Newton stochastic methods."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from cyanure.estimators import Classifier


class Solver(Peer):
    name = "cyanure"
    requirements: ClassVar = ["pip::cyanure"]
    penalties: ClassVar = {
        PROBLEMS["multinomial logistic, l1"]: "l1",
        PROBLEMS["multinomial logistic, l1/l2"]: "l1l2",
        PROBLEMS["binary logistic, l1"]: "l1",
    }
    kinds = tuple(penalties)

    def fit(self, tol):
        model = Classifier(
            loss="logistic" if self.problem.binary else "multiclass-logistic",
            penalty=self.penalties[self.problem],
            lambda_1=self.alpha,
            fit_intercept=False,
            tol=tol,
            max_iter=2000,
            verbose=False,
        )
        model.fit(self.X, self.y)
        coef = model.get_weights()
        return coef if self.problem.binary else coef.T
