"""Clarabel on the second-order cone program."""

from benchmark_utils.programs import ClarabelProgram
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "clarabel"
    sampling_strategy = "run_once"

    def skip(self, X, problem):
        conic = problem.penalty.kind == "l1/l2"
        return not conic, None if conic else "the problem has no groups in the Euclidean norm"

    def set_objective(self, X, problem):
        self.program = ClarabelProgram(problem, X)

    def run(self, _):
        self.point = self.program.solve()

    def get_result(self):
        coef, intercept, dual = self.point
        return {"coef": coef, "intercept": intercept, "dual": dual}
