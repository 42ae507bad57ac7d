"""The solvers of sparsvm."""

from typing import ClassVar

from benchmark_utils.criterion import Certified
from benchopt import BaseSolver

from sparsvm.problem.solution import Control
from sparsvm.solvers import as_solver


class Solver(BaseSolver):
    name = "sparsvm"
    parameters: ClassVar = {"solver": ["interior_point", "sdca", "newton"]}
    sampling_strategy = "tolerance"
    stopping_criterion = Certified()

    def set_objective(self, X, problem):
        self.problem = problem

    def warm_up(self):
        self.run_once(1.0)

    def get_next(self, tol):
        return min(1.0, tol) / 10.0

    def run(self, tol):
        control = Control(tol=min(tol, 1.0))
        self.solution = as_solver(self.solver).solve(self.problem, None, control)

    def get_result(self):
        solution = self.solution
        return {
            "coef": solution.coef,
            "intercept": solution.intercept,
            "dual": solution.dual,
        }
