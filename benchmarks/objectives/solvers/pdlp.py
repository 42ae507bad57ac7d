"""PDLP, the primal-dual first-order method of OR-Tools, on the linear program."""

from typing import ClassVar

import numpy as np
from benchmark_utils.peer import LIMIT, Peer
from benchmark_utils.problems import LINEAR
from benchmark_utils.programs import HighsProgram
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    from ortools.pdlp import solvers_pb2
    from ortools.pdlp.python import pdlp


class Solver(Peer):
    name = "pdlp"
    requirements: ClassVar = ["pip::ortools"]
    kinds = LINEAR

    def prepare(self):
        problem = self.problem.on(self.X, self.y, self.alpha)
        self.program = program = HighsProgram(problem, self.X, "highs-ds")
        self.linear = pdlp.QuadraticProgram()
        self.linear.objective_vector = program.costs
        self.linear.constraint_matrix = program.matrix
        self.linear.constraint_lower_bounds = np.full(program.right.size, -np.inf)
        self.linear.constraint_upper_bounds = program.right
        self.linear.variable_lower_bounds = program.lower
        self.linear.variable_upper_bounds = np.full(program.lower.size, np.inf)

    def fit(self, tol):
        options = solvers_pb2.PrimalDualHybridGradientParams()
        options.num_threads = 1
        criteria = options.termination_criteria
        criteria.time_sec_limit = LIMIT
        criteria.simple_optimality_criteria.eps_optimal_relative = tol
        criteria.simple_optimality_criteria.eps_optimal_absolute = tol
        found = pdlp.primal_dual_hybrid_gradient(self.linear, options).primal_solution
        m = self.program.n_coef
        return self.program.point(found[:m] - found[m : 2 * m], [], self.program.no_dual())[0]
