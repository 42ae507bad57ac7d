"""This package; the time includes the certificate."""

from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS

from sparsvm import SparseSVC


class Solver(Peer):
    name = "sparsvm"
    kinds = tuple(PROBLEMS.values())

    def fit(self, tol):
        kind = self.problem
        model = SparseSVC(kind.loss, kind.penalty, alpha=self.alpha, tol=tol, fit_intercept=False)
        return model.fit(self.X, self.y).coef_
