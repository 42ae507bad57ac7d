"""When a solver is done: its certified relative gap is small enough."""

from __future__ import annotations

import math

from benchopt.stopping_criterion import StoppingCriterion

TOL = 1e-6


class Certified(StoppingCriterion):
    """Stop once the certified relative gap is at most ``tol``."""

    def __init__(self, tol=TOL, strategy=None, key_to_monitor="value", minimize=True):
        self.tol = tol
        super().__init__(
            tol=tol, strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize
        )

    def check_convergence(self, objective_list):
        gap = objective_list[-1][self.key_to_monitor_]
        if gap <= self.tol:
            return True, 1.0
        return False, max(0.0, math.log(min(gap, 1.0)) / math.log(self.tol))
