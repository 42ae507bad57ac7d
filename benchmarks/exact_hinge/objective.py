"""Certified relative gap of the sparse multiclass hinge problem."""

from typing import ClassVar

import numpy as np
from benchmark_utils.cases import make_problem
from benchopt import BaseObjective

from sparsvm.certificate.certify import certify


class Objective(BaseObjective):
    """Mean multiclass hinge + alpha * penalty, alpha = 1 / (n lambda); the gap is the measure.

    A solver returns coefficients, intercepts and any dual point it has; the certificate makes the
    dual feasible and bounds the distance to the optimum, with no reference solution.
    """

    name = "Exact sparse multiclass hinge"
    min_benchopt_version = "1.7"
    requirements: ClassVar = ["pip::sparsvm", "pip::clarabel"]

    def set_data(self, X, y, penalty, lam):
        self.X = X
        self.problem = make_problem(X, y, penalty, lam)

    def get_objective(self):
        return {"X": self.X, "problem": self.problem}

    def evaluate_result(self, coef, intercept, dual):
        proof = certify(self.problem, coef, intercept, dual)
        return {
            "value": proof.relative_gap,
            "objective": proof.objective,
            "nonzeros": int((coef != 0.0).sum()),
        }

    def get_one_result(self):
        shape = (self.problem.n_outputs, self.problem.d)
        return {"coef": np.zeros(shape), "intercept": np.zeros(shape[0]), "dual": None}
