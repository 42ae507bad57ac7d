"""HiGHS on the linear program, through SciPy."""

from typing import ClassVar

from benchmark_utils.peer import LIMIT, Peer
from benchmark_utils.problems import LINEAR
from benchmark_utils.programs import HighsProgram


class Solver(Peer):
    name = "highs"
    parameters: ClassVar = {"method": ["simplex", "ipm"]}
    kinds = LINEAR

    def prepare(self):
        method = {"simplex": "highs-ds", "ipm": "highs-ipm"}[self.method]
        self.program = HighsProgram(self.problem.on(self.X, self.y, self.alpha), self.X, method)

    def get_next(self, tol):
        return min(tol, 1e-3) / 10.0

    def fit(self, tol):
        # Finer ones it does not take, and SciPy refuses its answers to coarser ones.
        return self.program.solve(min(max(tol, 1e-10), 1e-4), LIMIT)[0]
