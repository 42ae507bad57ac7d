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
    forms: ClassVar = {
        PROBLEMS["multinomial logistic, l1"]: ("multiclass-logistic", "l1"),
        PROBLEMS["multinomial logistic, l1/l2"]: ("multiclass-logistic", "l1l2"),
        PROBLEMS["one-vs-rest squared hinge, l1"]: ("sqhinge", "l1"),
        PROBLEMS["binary logistic, l1"]: ("logistic", "l1"),
    }
    kinds = tuple(forms)

    def fit(self, tol):
        loss, penalty = self.forms[self.problem]
        model = Classifier(
            loss=loss,
            penalty=penalty,
            # Its squared hinge has a factor of one half.
            lambda_1=0.5 * self.alpha if loss == "sqhinge" else self.alpha,
            fit_intercept=False,
            tol=tol,
            max_iter=2000,
            verbose=False,
            n_threads=1,
        )
        model.fit(self.X, self.y)
        coef = model.get_weights()
        return coef if self.problem.binary else coef.T
