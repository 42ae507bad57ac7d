"""What a hierarchical solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.hierarchical.bounds import (
    Proof,
    difference_norms,
    least_hinge_bound,
    least_norm_bound,
    sample_hinges,
)
from sparsvm.numerics.rounding import EPS
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import History

# The bound on the hinge speaks of all models up to this multiple of the returned norm.
REACH = 1e3
# Attempts to lengthen a rounded classifier until it separates; each leaves only second-order terms.
LENGTHENINGS = 5


@dataclass(frozen=True, eq=False)
class HierarchicalSolution:
    """A classifier with the proofs of both stages.

    Attributes
    ----------
    coef : array of shape (n_outputs, d)
    intercept : array of shape (n_outputs,)
    proof : Proof
        The multipliers behind the bounds; its ``dual`` has rows summing to the masses.
    hinge : float
        Weighted mean of the hinge.
    hinge_bound : float
        No model of max ||w_r - w_t|| up to ``reach`` has a smaller weighted mean.
    reach : float
        1000 times ``norm``.
    hinge_gap : float
        ``hinge - hinge_bound``, not below 0.
    floor : float
        Rounding error of the hinge; a gap below it means nothing.
    norm : float
        max ||w_r - w_t||, the inverse of the smallest margin.
    norm_bound : float
        No model of least hinge has a smaller one.
    norm_gap : float
        ``(norm - norm_bound) / norm``, not below 0; 0 where ``norm`` is 0.
    separable : bool
        Whether the least hinge is zero.
    status : {"optimal", "max_iter", "stalled", "settled", "stopped"}
        "settled" if a solver without a proof stopped by its own rule.
    n_iter : int
    seconds : float
    solver : str
    history : History
        Iteration, seconds, hinge (as ``objective``) and largest norm (as ``gap``) of an iterative
        solver.
    resolution : float
        How exactly the hinge of a single sample is known: 0 where the solver is exact, or where
        that is not known.
    """

    coef: Floats
    intercept: Floats
    proof: Proof = field(repr=False)
    hinge: float
    hinge_bound: float
    reach: float
    hinge_gap: float
    floor: float
    norm: float
    norm_bound: float
    norm_gap: float
    separable: bool
    status: str
    n_iter: int
    seconds: float
    solver: str
    history: History = field(repr=False)
    resolution: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether both gaps met the tolerance."""
        return self.status == "optimal"

    @property
    def relative_hinge_gap(self) -> float:
        """``hinge_gap / hinge``; 0 where the gap is within rounding."""
        return 0.0 if self.hinge_gap <= self.floor else self.hinge_gap / self.hinge

    @classmethod
    def certify(
        cls,
        problem: Problem,
        coef: Floats,
        intercept: Floats,
        proof: Proof,
        *,
        tol: float,
        n_iter: int,
        seconds: float,
        solver: str,
        history: History | None = None,
        best_hinge: float = np.inf,
        precision: float = EPS,
        status_if_not: str = "stalled",
        resolution: float = 0.0,
    ) -> HierarchicalSolution:
        """Compute values and bounds of a model from scratch.

        The status is "optimal" if and only if the gap of the hinge is at most
        ``max(tol * hinge, floor)`` and that of the norm at most ``tol``. `best_hinge` may be the
        hinge of another model; that of this one is used otherwise. `precision` is the rounding
        unit of the coefficients.
        """
        hinge = float(np.sum(problem.mass * sample_hinges(problem, coef, intercept)))
        norm = float(difference_norms(coef, problem.n_classes).max())
        reach = REACH * norm
        bound = least_hinge_bound(problem, proof.dual, reach)
        norm_bound = least_norm_bound(problem, proof, min(hinge, best_hinge))
        gap = max(hinge - bound, 0.0)
        norm_gap = max(1.0 - norm_bound / norm, 0.0) if norm > 0.0 else 0.0
        floor = problem.floor(coef, intercept) * (precision / EPS)
        proved = gap <= max(tol * hinge, floor) and norm_gap <= tol
        return cls(
            coef=coef,
            intercept=intercept,
            proof=proof,
            hinge=hinge,
            hinge_bound=bound,
            reach=reach,
            hinge_gap=gap,
            floor=floor,
            norm=norm,
            norm_bound=norm_bound,
            norm_gap=norm_gap,
            separable=min(hinge, best_hinge) == 0.0,
            status="optimal" if proved else status_if_not,
            n_iter=n_iter,
            seconds=seconds,
            solver=solver,
            history=History.empty() if history is None else history,
            resolution=resolution,
        )

    def rounded(self, problem: Problem, dtype: np.dtype[Any], tol: float) -> HierarchicalSolution:
        """Return the solution with coefficients of another type, certified as they are.

        A separating classifier is lengthened by what rounding takes from its margins.
        """
        coef, intercept, factor = self.coef, self.intercept, 1.0
        for _ in range(LENGTHENINGS):
            coef = (factor * self.coef).astype(dtype).astype(np.float64)
            intercept = (factor * self.intercept).astype(dtype).astype(np.float64)
            missing = float(sample_hinges(problem, coef, intercept).max())
            if not self.separable or missing == 0.0 or missing > 0.5:
                break
            factor *= 1.0 + 2.0 * missing
        return HierarchicalSolution.certify(
            problem,
            coef,
            intercept,
            self.proof,
            tol=tol,
            n_iter=self.n_iter,
            seconds=self.seconds,
            solver=self.solver,
            history=self.history,
            best_hinge=self.hinge,
            precision=float(np.finfo(dtype).eps),
            status_if_not="stalled" if self.converged else self.status,
            resolution=self.resolution,
        )
