"""HiGHS on the linear program, through scipy."""

from typing import ClassVar

from benchmark_utils.programs import HighsProgram
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "highs"
    sampling_strategy = "run_once"
    parameters: ClassVar = {"method": ["highs-ds", "highs-ipm"]}

    def skip(self, X, problem):
        linear = problem.penalty.kind in ("l1", "l1/linf")
        return not linear, None if linear else "the problem is not linear"

    def set_objective(self, X, problem):
        self.program = HighsProgram(problem, X, self.method)

    def run(self, _):
        self.point = self.program.solve()

    def get_result(self):
        coef, intercept, dual = self.point
        return {"coef": coef, "intercept": intercept, "dual": dual}
