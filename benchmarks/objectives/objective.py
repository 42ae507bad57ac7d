"""Relative distance from the optimum of the sparse linear classifiers that several packages fit."""

from typing import ClassVar

import numpy as np
from benchmark_utils.problems import PROBLEMS, Reference
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Mean loss + alpha * penalty, without intercepts, which packages treat differently.

    ``alpha`` is a share of the least one at which every weight is zero; with ``l2`` it is a share
    of 0.1. The measure is how far the objective is above a proven lower bound, in shares of it.
    """

    name = "Sparse linear classification"
    min_benchopt_version = "1.7"
    requirements: ClassVar = ["pip::sparsvm"]
    parameters: ClassVar = {"problem": list(PROBLEMS), "share": [0.1, 0.01]}

    def skip(self, X, y):
        binary = len(np.unique(y)) == 2
        if PROBLEMS[self.problem].binary != binary:
            return True, f"{self.problem} is for {'more than ' if binary else ''}two classes"
        return False, None

    def set_data(self, X, y):
        self.reference = Reference(X, y, PROBLEMS[self.problem], self.share)

    def get_objective(self):
        known = self.reference
        return {"X": known.X, "y": known.y, "problem": known.problem, "alpha": known.alpha}

    def evaluate_result(self, coef, seconds):
        return {
            "value": self.reference.suboptimality(coef),
            "seconds": seconds,
            "features": int(np.any(coef != 0.0, axis=0).sum()),
        }

    def get_one_result(self):
        return {"coef": self.reference.zeros(), "seconds": 0.0}
