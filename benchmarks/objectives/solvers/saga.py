"""scikit-learn's stochastic average gradient."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from sklearn.linear_model import LogisticRegression


class Solver(Peer):
    name = "saga"
    requirements: ClassVar = ["scikit-learn"]
    kinds = (PROBLEMS["multinomial logistic, l1"], PROBLEMS["binary logistic, l1"])

    def fit(self, tol):
        model = LogisticRegression(
            l1_ratio=1.0,
            solver="saga",
            C=self.C,
            tol=tol,
            fit_intercept=False,
            max_iter=1000,
            random_state=0,
        )
        return model.fit(self.X, self.y).coef_
