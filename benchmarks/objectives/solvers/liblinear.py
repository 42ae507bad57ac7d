"""LIBLINEAR through scikit-learn."""

from typing import ClassVar

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC


class Solver(Peer):
    name = "liblinear"
    requirements: ClassVar = ["scikit-learn"]
    options: ClassVar = {
        PROBLEMS["multiclass hinge, l2"]: {"multi_class": "crammer_singer"},
        PROBLEMS["one-vs-rest squared hinge, l1"]: {"penalty": "l1", "dual": False},
        PROBLEMS["binary hinge, l2"]: {"loss": "hinge", "dual": True},
    }
    kinds = (*options, PROBLEMS["binary logistic, l1"])
    # Rounding keeps its Crammer-Singer SVM from meeting 1e-9.
    finest = 3e-9

    def fit(self, tol):
        common = {"C": self.C, "tol": tol, "fit_intercept": False, "random_state": 0}
        if self.problem.loss == "logistic":
            model = LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=1_000, **common)
        else:
            model = LinearSVC(max_iter=1_000, **common, **self.options[self.problem])
        return model.fit(self.X, self.y).coef_
