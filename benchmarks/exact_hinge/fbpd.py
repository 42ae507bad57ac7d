"""FBPD in slices, so that only its iterations are timed and never its certificates."""

from __future__ import annotations

import time

import numpy as np

from sparsvm.solvers.papers.fbpd import FBPD, _certify
from sparsvm.solvers.run.incumbent import Incumbent

# tau / sigma in the scaling of the paper, whose objective is penalty + lambda * sum of hinges.
GRID = (1e-2, 1e-1, 1e0, 1e1, 1e2)


def own_ratio(problem, ratio):
    """Return tau / sigma for mean hinge + alpha penalty, given that of the paper's scaling.

    Our dual is alpha times the paper's, so tau is 1/alpha times and sigma alpha times the paper's.
    None stays None: FBPD's own rule.
    """
    return None if ratio is None else ratio / problem.alpha**2


class FbpdRun:
    """An FBPD that can be continued: ``seconds`` of iterating so far and the certified ``gap``."""

    def __init__(self, problem, ratio, clock=time.process_time):
        self.clock = clock
        self.ratio = ratio
        self.method = FBPD(ratio=own_ratio(problem, ratio))._method(problem)
        self.watch = Incumbent(problem, None, anyway=False)
        self.done, self.window, self.seconds = 0, 0, 0.0
        self.look()

    @property
    def gap(self):
        return max(self.watch.objective - self.watch.bound, 0.0) / abs(self.watch.objective)

    def reached(self, tol):
        return self.watch.within(tol)

    def point(self):
        return self.watch.coef, self.watch.intercept, self.watch.dual

    def step(self, count):
        """Iterate without looking at the certificate."""
        if self.done > 2 * self.window:
            # As FBPD itself does: means over the last half to two thirds of the iterates.
            self.window = self.done
            self.method.forget()
        began = self.clock()
        self.done += self.method.run(count, -1.0)
        self.seconds += self.clock() - began

    def look(self):
        """Certify the iterate and the mean of the iterates."""
        _certify(self.watch, self.done, self.method, means=True)

    def advance(self, until, tol):
        """Iterate until ``seconds`` passes ``until`` or the certificate meets ``tol``."""
        while self.seconds < until and not self.reached(tol):
            count = max(50, self.done // 8)
            if self.done:
                left = (until - self.seconds) * self.done / self.seconds
                count = min(count, int(np.ceil(left)))
            self.step(count)
            self.look()
