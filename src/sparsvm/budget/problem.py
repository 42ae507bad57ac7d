r"""The least penalty within a hinge budget: the problem, its dual bound and its solution.

.. math::
    \min_{W, b} \; penalty(W) \quad \text{subject to} \quad
    h(W, b) = \sum_i p_i\, \mathrm{hinge}(y_i, X_i W^\top + b) \le \eta.

Every multiplier :math:`\alpha > 0` and every dual-feasible Y of the regularised problem bound it
from below: :math:`h(W, b) \ge gain(Y) - \langle -G, W\rangle` with
:math:`gain(Y) = \sum_{ik} Y_{ik} m_{ik}` and :math:`G = \tilde Y^\top X`, so that

.. math::
    penalty(W) \ge \frac{gain(Y) - \eta}{\alpha} - penalty^*(-G/\alpha)
    \qquad \text{wherever } h(W, b) \le \eta.

For a norm the best :math:`\alpha` is the dual norm of G; for the squared penalties it is the root
of a piecewise linear equation. No scaling of Y is needed, and none improves the bound.

At :math:`\eta = 0` every sample must have its margins, whatever its mass. There the problem is
judged with equal masses (:attr:`ConstrainedProblem.even`): multipliers limited by a mass of 1e-12
would prove nothing beyond their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.dual_slope import limit
from sparsvm.certificate.gap import repaired_dual
from sparsvm.losses import Hinge
from sparsvm.numerics.rounding import UNIT, UP_FACTOR
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import History

# What a budget may be exceeded by, times max(eta, mean margin): the promise of the estimator.
FEASIBILITY = 1e-9
# What the rounding of a dual value may amount to, in max(eta, mean margin), and the size of numbers
# that have no digits left to scale: near the smallest there are.
VALUE_ROUNDING, NO_DIGITS = 32.0 * UNIT, 1e-250


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on the penalty of every model within the budget.

    Attributes
    ----------
    value : float
        The bound; infinite where the dual point proves that no model meets the budget.
    alpha : float
        The multiplier behind it: the regularised problem at this alpha has the same dual point.
        Infinite where the bound is the trivial 0; at ``eta`` 0 the largest such alpha.
    gain : float
        The dual point's own bound on the mean hinge, less ``alpha`` times the penalty.
    dual : array of shape (n, K)
        The dual point, rows in the simplex of mass p_i.
    """

    value: float
    alpha: float
    gain: float
    dual: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class ConstrainedProblem:
    """Minimise the penalty subject to a weighted mean hinge of at most ``eta``.

    Attributes
    ----------
    regularised : Problem
        Data, margins and penalty; its ``alpha`` is of no consequence and it has no linear term.
    eta : float
        The budget, not negative.
    """

    regularised: Problem
    eta: float

    def __post_init__(self) -> None:
        if self.regularised.linear_term is not None:
            raise ValueError("The constrained problem has no linear term; leave it out.")
        if not isinstance(self.regularised.loss, Hinge) or not self.regularised.penalty.convex:
            raise ValueError(
                "The constrained problem is for the hinge loss with a convex penalty; got the loss "
                f"{self.regularised.loss.name!r} with the penalty "
                f"{self.regularised.penalty.kind!r}."
            )
        if not 0.0 <= self.eta < np.inf:
            raise ValueError(f"The budget must be a finite number from 0 on; got eta={self.eta!r}.")

    def at(self, alpha: float) -> Problem:
        """Return the regularised problem with this multiplier."""
        return replace(self.regularised, alpha=alpha)

    @cached_property
    def even(self) -> ConstrainedProblem:
        """The problem with equal masses where they are of no consequence, at ``eta`` 0."""
        mass = np.full(self.regularised.n, 1.0 / self.regularised.n)
        if self.eta > 0.0 or np.array_equal(mass, self.regularised.mass):
            return self
        return ConstrainedProblem(replace(self.regularised, mass=mass), 0.0)

    def weighed(self, bound: Bound) -> Bound:
        """Return a bound of ``even`` in terms of the masses of this problem.

        A common factor brings every row of the dual point under its mass; the multiplier shrinks
        with it, and what is proved stays the same.
        """
        if self.even is self:
            return bound
        entries = self._off_true_class(bound.dual)
        factor = _largest_factor(entries, self.regularised.mass)
        return Bound(
            value=bound.value,
            alpha=factor * bound.alpha,
            gain=factor * bound.gain,
            dual=self._with_true_class(factor * entries),
        )

    @cached_property
    def margins(self) -> Floats:
        """Return the margins, shape (n, K)."""
        return self.regularised.margins()

    @cached_property
    def unit(self) -> float:
        """``max(eta, mean margin)``: what a violation is measured by."""
        mass = self.regularised.mass
        return max(self.eta, float(np.sum(mass * self.margins.max(axis=1))))

    def penalty(self, W: Floats) -> float:
        """Return the penalty of W, shape (n_outputs, d)."""
        return self.regularised.penalty.value(W)

    def hinge(self, W: Floats, b: Floats) -> float:
        """Return the weighted mean hinge of (W, b)."""
        return self.hinge_of_scores(self.regularised.scores(W, b))

    def hinge_of_scores(self, scores: Floats) -> float:
        """Return the weighted mean hinge of scores of shape (n, K)."""
        problem = self.regularised
        return float(np.sum(problem.mass * problem.loss.value(scores, problem.y, self.margins)))

    def violation(self, W: Floats, b: Floats) -> float:
        """Return by how much the mean hinge exceeds the budget, 0 where it does not."""
        return max(self.hinge(W, b) - self.eta, 0.0)

    def is_met_by(self, hinge: float) -> bool:
        """Whether a mean hinge is within the budget and the violation that is promised."""
        return hinge - self.eta <= FEASIBILITY * self.unit

    def bound(self, dual: Floats | None) -> Bound:
        """Return the lower bound made from any (n, K) array, repaired into a dual point first."""
        problem = self.regularised
        if dual is not None and self.eta == 0.0:
            # Only the ray counts; on it, the largest point has the smallest rounding.
            dual = self.filled(dual)
        entries = repaired_dual(problem, dual)
        if self.eta == 0.0:
            entries *= _largest_factor(entries, problem.mass)
        signed = problem.signed_dual(entries)
        gain = float(np.sum(entries * self.margins))
        value, alpha = 0.0, np.inf
        # What the rounding of both may amount to proves nothing.
        excess = gain - self.eta - VALUE_ROUNDING * self.unit
        if excess > 0.0:
            outputs = signed[:, 1:] if problem.n_classes == 2 else signed
            sizes = np.sqrt(np.sum(outputs * outputs, axis=0))
            # |computed - exact| of a sum of n products is at most (n + 2) u |x_j|.|y_k|.
            error = np.outer(sizes * ((problem.n + 2) * UNIT), problem.column_norms)
            value, alpha = self._best_multiplier(np.abs(problem.transposed(signed)) + error, excess)
        return Bound(value=value, alpha=alpha, gain=gain, dual=self._with_true_class(entries))

    def filled(self, dual: Floats) -> Floats:
        """Return multipliers of any size scaled until one sample has all its mass off its class."""
        entries = self._off_true_class(dual)
        return self._with_true_class(entries * _largest_factor(entries, self.regularised.mass))

    def _off_true_class(self, dual: Floats) -> Floats:
        """Return a copy with zeros at the true classes and wherever an entry is no multiplier."""
        entries = np.where((dual > 0.0) & np.isfinite(dual), dual, 0.0)
        entries[np.arange(self.regularised.n), self.regularised.y] = 0.0
        return entries

    def _with_true_class(self, entries: Floats) -> Floats:
        """Give the rest of each mass to the true class, in place."""
        problem = self.regularised
        rest = problem.mass - entries.sum(axis=1)
        entries[np.arange(problem.n), problem.y] = np.maximum(rest, 0.0)
        return entries

    def _best_multiplier(self, G: Floats, excess: float) -> tuple[float, float]:
        """Maximise ``excess / alpha - penalty*(G / alpha)`` over alpha, for |G| rounded up."""
        penalty = self.regularised.penalty
        G = G * limit(self.regularised)
        if penalty.is_norm:
            norm = penalty.dual_norm(G)
            return (excess / norm, norm) if norm > 0.0 else (np.inf, 0.0)
        rho = penalty.l1_ratio
        V = (G * penalty.inverse_omega).reshape(-1)
        V = V[V > 0.0]
        if V.size == 0:
            return np.inf, 0.0
        # sum V (s V - rho)_+ = (1 - rho) excess is convex and increasing in s = 1 / alpha: Newton
        # from the right of the root, where all terms count, falls to it in finitely many steps.
        active = V
        while True:
            s = ((1.0 - rho) * excess + rho * float(active.sum())) / float(active @ active)
            fewer = V[s * V > rho]
            if fewer.size >= active.size:
                break
            active = fewer
        rest = np.maximum(s * V - rho, 0.0)
        return s * excess - float(rest @ rest) / (2.0 * (1.0 - rho)) * UP_FACTOR, 1.0 / s

    def floor(self, W: Floats, b: Floats, alpha: float) -> float:
        """Return the rounding error of the gap: that of the mean hinge, over the multiplier."""
        rounding = self.regularised.floor(W, b)
        return rounding / alpha if alpha > 0.0 else np.inf


def _largest_factor(entries: Floats, mass: Floats) -> float:
    """Return the largest factor that keeps every row within its mass; 1 for zeros."""
    totals = entries.sum(axis=1)
    filled = totals > NO_DIGITS
    return float(np.min(mass[filled] / totals[filled])) if filled.any() else 1.0


@dataclass(frozen=True, eq=False)
class ConstrainedSolution:
    """What a solver of the constrained problem returns: a point and the proof of its quality.

    Attributes
    ----------
    coef : array of shape (n_outputs, d)
    intercept : array of shape (n_outputs,)
    dual : array of shape (n, K)
        The dual point behind ``dual_objective``.
    objective : float
        The penalty of ``coef``.
    dual_objective : float
        A lower bound on the penalty of every model within the budget.
    gap, relative_gap : float
        Their difference, not below 0, and that divided by the penalty; infinite of a point that is
        not within the budget, about which the bound says nothing.
    floor : float
        Rounding error of the gap; smaller gaps mean nothing.
    hinge, eta, violation : float
        Weighted mean hinge, budget, and by how much the former exceeds the latter.
    alpha : float
        The equivalent multiplier: the same point minimises hinge + alpha penalty.
    status : {"optimal", "max_iter", "stalled", "stopped"}
        "optimal" if and only if gap and violation are as small as asked.
    n_iter : int
        Iterations; of the default, the number of regularised problems solved.
    seconds : float
    history : History
    solver : str
    """

    coef: Floats
    intercept: Floats
    dual: Floats = field(repr=False)
    objective: float
    dual_objective: float
    gap: float
    relative_gap: float
    floor: float
    hinge: float
    eta: float
    violation: float
    alpha: float
    status: str
    n_iter: int
    seconds: float
    history: History = field(repr=False)
    solver: str

    @property
    def converged(self) -> bool:
        """Whether the gap met the tolerance asked for and the point met the budget."""
        return self.status == "optimal"

    def with_alpha(self, alpha: float) -> ConstrainedSolution:
        """Return the solution with another equivalent multiplier."""
        return replace(self, alpha=alpha)

    @classmethod
    def certify(
        cls,
        problem: ConstrainedProblem,
        coef: Floats,
        intercept: Floats,
        dual: Floats | None,
        *,
        tol: float,
        n_iter: int,
        seconds: float,
        history: History,
        solver: str,
        feasible: float = FEASIBILITY,
        status_if_not: str = "max_iter",
    ) -> ConstrainedSolution:
        """Build the solution from a certificate recomputed from scratch.

        The status is "optimal" if and only if ``gap <= max(tol * penalty, floor)`` and the
        violation is at most ``feasible * max(eta, mean margin)``; otherwise ``status_if_not``.
        """
        judge = problem.even
        bound = judge.bound(dual)
        penalty, hinge = problem.penalty(coef), problem.hinge(coef, intercept)
        violation = max(hinge - problem.eta, 0.0)
        within = violation <= feasible * problem.unit
        gap = max(penalty - bound.value, 0.0) if within else np.inf
        floor = judge.floor(coef, intercept, bound.alpha)
        bound = problem.weighed(bound)
        proved = within and gap <= max(tol * penalty, floor)
        return cls(
            coef=coef,
            intercept=intercept,
            dual=bound.dual,
            objective=penalty,
            dual_objective=bound.value,
            gap=gap,
            relative_gap=gap / penalty if penalty > 0.0 else (0.0 if within else np.inf),
            floor=floor,
            hinge=hinge,
            eta=problem.eta,
            violation=violation,
            alpha=bound.alpha,
            status="optimal" if proved else status_if_not,
            n_iter=n_iter,
            seconds=seconds,
            history=history,
            solver=solver,
        )
