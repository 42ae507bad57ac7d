"""What the solvers share: which problems they take, and runs to finer and finer tolerances."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

from benchmark_utils.problems import Kind

FINEST = 1e-12


class Peer(BaseSolver):
    """A package that is asked for one tolerance after the other.

    Subclasses have ``kinds``, the problems they solve, and ``fit(tol)``, which returns the weights.
    """

    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(eps=1e-9, patience=4)
    kinds: ClassVar[tuple[Kind, ...]] = ()

    def skip(self, X, y, problem, alpha):
        taken = problem in self.kinds
        return not taken, None if taken else f"{self.name} does not solve this problem"

    def set_objective(self, X, y, problem, alpha):
        self.X, self.y, self.problem, self.alpha = X, y, problem, alpha
        self.C = 1.0 / (len(y) * alpha)
        self.run(1.0)  # compile what is compiled at the first call

    def get_next(self, tol):
        return min(tol, 1.0) / 10.0

    def run(self, tol):
        self.coef = np.atleast_2d(np.asarray(self.fit(max(min(tol, 0.1), FINEST))))

    def get_result(self):
        return {"coef": self.coef}
