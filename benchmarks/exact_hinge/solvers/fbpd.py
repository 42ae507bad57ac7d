"""Forward-backward primal-dual splitting of sparsvm."""

from typing import ClassVar

from benchmark_utils.criterion import Certified
from benchmark_utils.fbpd import GRID, FbpdRun
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "fbpd"
    sampling_strategy = "callback"
    stopping_criterion = Certified()
    # tau / sigma in the paper's scaling; None is the solver's own rule.
    parameters: ClassVar = {"ratio": [None, *GRID]}

    def set_objective(self, X, problem):
        self.problem = problem

    def run(self, callback):
        self.fbpd = FbpdRun(self.problem, self.ratio)
        while callback():
            self.fbpd.step(50)

    def get_result(self):
        self.fbpd.look()
        coef, intercept, dual = self.fbpd.point()
        return {"coef": coef, "intercept": intercept, "dual": dual}
