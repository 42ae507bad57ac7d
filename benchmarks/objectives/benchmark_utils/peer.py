"""What the solvers share: which problems they take, and runs to finer and finer tolerances."""

from __future__ import annotations

import os
import time
import warnings
from typing import ClassVar

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

from benchmark_utils.problems import Kind

FINEST = 1e-12
# Seconds of the clock after which those that can be told so give up on one run.
LIMIT = 40.0
# A package whose last run took more seconds of the processor is asked for no finer tolerance.
BUDGET = float(os.environ.get("BENCH_BUDGET", "5"))
# A package is asked for no finer tolerance once it is this near to the optimum.
NEAR = 1e-7


class Progress(SufficientProgressCriterion):
    """Stop near the optimum, after a run above the budget, or when nothing is gained any more."""

    def check_convergence(self, objective_list):
        last = objective_list[-1]
        if last[self.key_to_monitor_] <= NEAR or last["objective_seconds"] > BUDGET:
            return True, 1.0
        return super().check_convergence(objective_list)


class Peer(BaseSolver):
    """A package that is asked for one tolerance after the other.

    Subclasses have ``kinds``, the problems they solve, and ``fit(tol)``, which returns the weights.
    The seconds are of the processor, so that other work on the machine does not count.
    """

    sampling_strategy = "tolerance"
    stopping_criterion = Progress(eps=1e-9, patience=4)
    kinds: ClassVar[tuple[Kind, ...]] = ()
    finest = FINEST

    def skip(self, X, y, problem, alpha):
        taken = problem in self.kinds
        return not taken, None if taken else f"{self.name} does not solve this problem"

    def set_objective(self, X, y, problem, alpha):
        self.X, self.y, self.problem, self.alpha = X, y, problem, alpha
        self.C = 1.0 / (len(y) * alpha)
        self.prepare()

    def prepare(self):
        """Write down what the package is given; not timed."""

    def get_next(self, tol):
        return min(tol, 1.0) / 10.0

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # iterations that end before a tolerance is met
            began = time.process_time()
            coef = self.fit(max(min(tol, 0.1), self.finest))
            self.seconds = time.process_time() - began
        self.coef = np.atleast_2d(np.asarray(coef))

    def get_result(self):
        return {"coef": self.coef, "seconds": self.seconds}


class Compiled(Peer):
    """A package that compiles at its first call, which is not timed."""

    def prepare(self):
        self.run(1.0)
