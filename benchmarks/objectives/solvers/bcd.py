"""Block coordinate descent of Blondel et al., ours, in C++."""

from benchmark_utils.peer import LIMIT, Peer
from benchmark_utils.problems import PROBLEMS

from sparsvm import SparseSVC


class Solver(Peer):
    name = "bcd"
    kinds = tuple(kind for kind in PROBLEMS.values() if kind.loss != "hinge")

    def fit(self, tol):
        kind, options = self.problem, {"fit_intercept": False, "time_limit": LIMIT}
        model = SparseSVC(
            kind.loss, kind.penalty, alpha=self.alpha, tol=tol, solver="bcd", **options
        )
        return model.fit(self.X, self.y).coef_
