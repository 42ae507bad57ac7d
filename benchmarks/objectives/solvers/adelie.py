"""adelie: block coordinate descent for groups."""

from typing import ClassVar

import numpy as np
from benchmark_utils.peer import Peer
from benchmark_utils.problems import PROBLEMS
from benchopt import safe_import_context

with safe_import_context() as import_ctx:
    import adelie


class Solver(Peer):
    name = "adelie"
    requirements: ClassVar = ["pip::adelie"]
    kinds = (PROBLEMS["multinomial logistic, l1/l2"], PROBLEMS["binary logistic, l1"])

    def fit(self, tol):
        X = np.asfortranarray(self.X.toarray() if hasattr(self.X, "toarray") else self.X)
        options = {"intercept": False, "progress_bar": False, "early_exit": False}
        options |= {"tol": tol, "irls_tol": tol}
        if self.problem.binary:
            family, strength = adelie.glm.binomial(self.y.astype(float)), self.alpha
        else:
            K = self.y.max() + 1
            family = adelie.glm.multinomial(np.eye(K)[self.y])
            # Its loss is divided by the number of classes, its groups weigh the root of it.
            strength = self.alpha / K / np.sqrt(K)
        state = adelie.grpnet(X, family, lmda_path=[strength], **options)
        weights = np.asarray(state.betas[-1].todense()).ravel()
        return weights if self.problem.binary else weights.reshape(-1, self.y.max() + 1).T
