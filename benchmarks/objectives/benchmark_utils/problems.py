"""The objectives, and proven lower bounds on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsvm import SparseSVC, alpha_max
from sparsvm.data.design import make_design
from sparsvm.losses import as_loss
from sparsvm.penalties import as_penalty
from sparsvm.problem.problem import Problem

# Relative gap of the reference: a thousandth of the finest distance that is asked for.
REFERENCE_TOL = 1e-9


@dataclass(frozen=True)
class Kind:
    """One objective: loss and penalty by their names in sparsvm, and the number of classes."""

    loss: str
    penalty: str
    binary: bool = False

    def on(self, X, y, alpha):
        """Return the problem without intercepts, as the solvers of sparsvm see it."""
        loss, K = as_loss(self.loss), int(y.max()) + 1
        return Problem(
            design=make_design(X),
            y=y.astype(np.int32),
            mass=np.full(len(y), 1.0 / len(y)),
            cost=loss.cost_matrix(K),
            n_classes=K,
            alpha=alpha,
            loss=loss,
            penalty=as_penalty(self.penalty).resolve(X.shape[1], 1 if K == 2 else K, None),
            fit_intercept=False,
        )


PROBLEMS = {
    "multiclass hinge, l2": Kind("hinge", "l2"),
    "multiclass hinge, l1": Kind("hinge", "l1"),
    "multiclass hinge, l1/l2": Kind("hinge", "l1/l2"),
    "multiclass hinge, l1/linf": Kind("hinge", "l1/linf"),
    "multiclass squared hinge, l1/l2": Kind("squared_hinge", "l1/l2"),
    "multinomial logistic, l1": Kind("logistic", "l1"),
    "multinomial logistic, l1/l2": Kind("logistic", "l1/l2"),
    "one-vs-rest squared hinge, l1": Kind("ovr_squared_hinge", "l1"),
    "binary hinge, l1": Kind("hinge", "l1", binary=True),
    "binary hinge, l2": Kind("hinge", "l2", binary=True),
    "binary logistic, l1": Kind("logistic", "l1", binary=True),
}
# Those that are linear programs.
LINEAR = tuple(
    kind for kind in PROBLEMS.values() if kind.loss == "hinge" and kind.penalty in ("l1", "l1/linf")
)


class Reference:
    """A problem on data, its strength, and the lower bound of a fit to a gap of 1e-9."""

    def __init__(self, X, y, kind, share):
        self.X, self.problem = X, kind
        self.classes, self.y = np.unique(y, return_inverse=True)
        parts = {"loss": kind.loss, "penalty": kind.penalty, "fit_intercept": False}
        largest = 0.1 if kind.penalty == "l2" else alpha_max(X, self.y, **parts)
        self.alpha = share * largest
        model = SparseSVC(alpha=self.alpha, tol=REFERENCE_TOL, **parts).fit(X, self.y)
        self.bound = model.objective_ * (1.0 - model.dual_gap_)
        self.loss = as_loss(kind.loss)
        self.penalty = as_penalty(kind.penalty).resolve(X.shape[1], len(self.zeros()))

    def zeros(self):
        """Weights of the model that says nothing: one row for two classes."""
        rows = 1 if len(self.classes) == 2 else len(self.classes)
        return np.zeros((rows, self.X.shape[1]))

    def suboptimality(self, coef):
        """Return the objective less the lower bound, divided by the bound."""
        scores = np.asarray(self.X @ coef.T)
        if len(self.classes) == 2:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        margins = self.loss.cost_matrix(len(self.classes))[self.y]
        losses = self.loss.value(scores, self.y, margins)
        value = float(np.mean(losses)) + self.alpha * self.penalty.value(coef)
        return value / self.bound - 1.0
