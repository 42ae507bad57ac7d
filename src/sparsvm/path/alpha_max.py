r"""The smallest alpha at which every penalised weight is zero."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.data.warn import warn
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import EPS
from sparsvm.path.continuation import Continuation
from sparsvm.path.zero_model import ZeroModel, on_face, zero_model
from sparsvm.problem.linearise import tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.restriction import group_strength
from sparsvm.problem.solution import Control, History, Solution
from sparsvm.solvers import InteriorPoint, Solver

# Settings.
# What a grid needs to know of its upper end: less than the distance of two points.
GRID_PRECISION = 0.05
# The part of the tolerance that fits aim at: the certificate of either side may lose some.
_AIM = 0.1
_ROUNDS = 60
# Rough fits. They begin at this share of the upper bound; where zero is optimal the next share is
# as large, and after so many smaller and smaller, in case alpha_max is zero. (The first bound was
# 1 to 3.3 times alpha_max; a fit at 0.7 alpha_max takes hardly longer than one at 0.9.)
_SHARE, _LEAST_SHARE, _FALLS, _SMALLER = 0.7, 0.1, 3, 0.1
_ROUGH_GAP, _ROUGH_ROUNDS = 1e-2, 24
# A fit tells something where its gap is this share of what its weights gain at that alpha.
_TELLING = 0.1
# The share of the face's middle in a dual point that is moved onto the face: the gap of its fit,
# within these. A rough dual has zeros where the face may need entries.
_MIX = (1e-9, 1e-2)
# An alpha_max below this share of an ordinary point's dual norm is zero but for rounding.
_NOTHING = 1e-7
# A loss below this share of that of zero scores is none: the precision of the zero model.
_NO_LOSS = 1e-12
# The rounding of a dual norm, in norms of the columns.
_SUM_ROUNDING = 64.0 * EPS
# Relative gaps asked of the solver on the way, from the first to the smallest it can give.
_FIRST_GAP, _LAST_GAP = 1e-6, 1e-11
# What the gap may be of a gain without hiding a hundredth of the next step, and the fall of the gap
# where nothing was gained.
_HIDDEN_SHARE, _GAP_FACTOR = 0.01, 1e-2
# The relative gap promised for the model of zeros.
_ZERO_GAP = 1e-10


@dataclass(frozen=True, eq=False)
class LargestAlpha:
    """alpha_max with its proofs.

    Attributes
    ----------
    value : float
        An upper bound on alpha_max: at this alpha ``dual`` proves zero weights optimal.
    lower : float
        A lower bound: below it some non-zero weights are better than zero.
    zero : ZeroModel
        The optimum with zero weights.
    dual : array of shape (n, K)
    """

    value: float
    lower: float
    zero: ZeroModel
    dual: Floats

    def solution(self, problem: Problem) -> Solution:
        """Return the zero model as the solution of ``problem``, whose alpha is at least value."""
        return certified(
            problem,
            self.zero.coef,
            self.zero.intercept,
            self.dual,
            tol=_ZERO_GAP,
            n_iter=0,
            seconds=0.0,
            history=History.empty(),
            solver="alpha_max",
        )


def largest_alpha(problem: Problem, tol: float = 1e-6) -> LargestAlpha:
    r"""Return the smallest alpha for which zero penalised weights are optimal.

    It is the largest ratio of what weights gain to what they cost,

    .. math:: alpha_{max} = \max_{W, b} \frac{h_0 - loss(W, b)}{penalty(W)},

    a concave function over a convex one. From an alpha below it, the optimal W has a ratio that is
    larger than alpha (Dinkelbach), so solving at that ratio next climbs to the maximum; each ratio
    is a lower bound. The dual solutions, moved onto the optimal face of the zero model, give upper
    bounds: the dual norm of their correlations with the features.

    Parameters
    ----------
    problem : Problem
    tol : float, default=1e-6
        The relative distance of the two bounds. From some per cent on, rough fits suffice.
    """
    # A constant plays no part, but would hide that nothing is left of the loss.
    problem = replace(problem, offset=0.0)
    terms, zero = problem.penalty, zero_model(problem)
    if not terms.is_norm and terms.l1_ratio == 0.0:
        return LargestAlpha(np.inf, np.inf, zero, zero.dual)
    factor, part = _near_zero(problem)
    if isinstance(problem.loss, SmoothLoss):
        found = _of_derivative(part, zero)
    else:
        found = _Bracket(part, zero).close(tol)
    return replace(found, value=found.value / factor, lower=found.lower / factor)


def quick_bound(problem: Problem) -> LargestAlpha:
    """Return an upper bound on alpha_max, from one dual point of the zero model's face."""
    if isinstance(problem.loss, SmoothLoss):
        return largest_alpha(problem)
    zero = zero_model(problem)
    if not problem.penalty.is_norm and problem.penalty.l1_ratio == 0.0:
        return LargestAlpha(np.inf, np.inf, zero, zero.dual)
    factor, part = _near_zero(problem)
    bracket = _Bracket(part, zero)
    return LargestAlpha(bracket.upper / factor, 0.0, zero, bracket.dual)


def _near_zero(problem: Problem) -> tuple[float, Problem]:
    """Near zero the elastic net is its l1 part, at alpha times the factor returned."""
    terms = problem.penalty
    if terms.is_norm:
        return 1.0, problem
    return terms.l1_ratio, replace(problem, penalty=terms.as_l1())


def _of_derivative(problem: Problem, zero: ZeroModel) -> LargestAlpha:
    """Of a smooth loss there is one derivative at zero weights: its dual norm is alpha_max."""
    problem = problem.with_alpha(1.0)
    value = float(group_strength(problem, zero.dual).max(initial=0.0))
    rounding = _SUM_ROUNDING * problem.column_dual_norm
    size = float(np.sqrt(np.sum(zero.dual**2)))
    if _no_loss(problem, zero) or value <= rounding * size:
        value = 0.0
    return LargestAlpha(value, value, zero, zero.dual)


def _no_loss(problem: Problem, zero: ZeroModel) -> bool:
    """Whether the free coefficients alone bring the loss to zero."""
    nothing = np.zeros((problem.n, problem.n_classes))
    losses = problem.loss.value(nothing, problem.y, problem.margins())
    return zero.value <= _NO_LOSS * float(np.sum(problem.mass * losses))


class _Bracket:
    """Lower and upper bound on alpha_max, brought together."""

    def __init__(self, problem: Problem, zero: ZeroModel) -> None:
        self.problem = problem.with_alpha(1.0)
        self.zero = zero
        self.lower, self.upper = 0.0, np.inf
        self.dual = zero.dual
        self.lower_from(zero.dual)
        self._gain = 0.0  # of the last fit, relative to the loss of zero weights
        # An alpha_max so far below the dual norm of an ordinary point is zero but for rounding.
        rounding = _SUM_ROUNDING * self.problem.column_dual_norm
        self._noise = max(rounding, _NOTHING * min(self.upper, self.problem.column_dual_norm))

    def lower_from(self, dual: Floats) -> None:
        """Bring the upper bound down with a dual point, where it can be moved onto the face."""
        point = on_face(self.problem, self.zero, dual)
        if point is None:
            return
        bound = float(group_strength(self.problem, point).max(initial=0.0))
        if bound < self.upper:
            self.upper, self.dual = bound, point

    def close(self, tol: float) -> LargestAlpha:
        """Bring the bounds together: by rough fits to some per cent, by exact ones to ``tol``."""
        if _no_loss(self.problem, self.zero):
            return LargestAlpha(0.0, 0.0, self.zero, self.dual)
        self._narrow(max(tol, GRID_PRECISION))
        if not self._within(tol):
            self._close(_AIM * tol)
        if self.upper <= self._noise:
            return LargestAlpha(0.0, 0.0, self.zero, self.dual)
        if not self._within(tol):
            warn(
                f"alpha_max is known only to lie between {self.lower:.9g} and {self.upper:.9g}; "
                "the upper bound is returned. Scale the features.",
                ConvergenceWarning,
            )
        return LargestAlpha(self.upper, self.lower, self.zero, self.dual)

    def _steps(self, solver: str | Solver) -> Continuation:
        steps = Continuation(self.problem, solver, Control())
        steps.begin_at_zero(LargestAlpha(self.upper, 0.0, self.zero, self.dual))
        return steps

    def _narrow(self, precision: float) -> None:
        """Fit roughly, from above: the first weights that are not zero tell both sides."""
        steps, tol, falls = self._steps("auto"), _ROUGH_GAP, 0
        alpha = _SHARE * self.upper
        for _ in range(_ROUGH_ROUNDS):
            if self._within(precision):
                break
            ratio = self._fit(steps, alpha, tol)
            if ratio > alpha:
                alpha, tol = ratio, min(tol, _TELLING * self._gain)
            elif self.lower == 0.0:
                falls += 1
                share = _SHARE - _SMALLER * max(0, falls - _FALLS)
                alpha = max(_LEAST_SHARE, share) * min(alpha, self.upper)
            else:
                tol *= _TELLING

    def _close(self, precision: float) -> None:
        steps, tol = self._steps(InteriorPoint()), _FIRST_GAP
        alpha = self.lower if self.lower > 0.0 else _SHARE * self.upper
        for _ in range(_ROUNDS):
            ratio = self._fit(steps, alpha, tol)
            if self._within(precision):
                break
            if ratio > alpha:
                alpha, tol = (
                    ratio,
                    float(np.clip(_HIDDEN_SHARE * self._gain, _LAST_GAP, _FIRST_GAP)),
                )
            elif self.lower == 0.0:
                alpha = _LEAST_SHARE * min(alpha, self.upper)
            elif tol > _LAST_GAP:
                tol = max(_LAST_GAP, _GAP_FACTOR * tol)
            else:
                # At alpha_max itself rounding may keep the dual from its ball. Just above it zero
                # weights are the solution, and the dual is inside.
                above = self.lower * (1.0 + 0.5 * precision)
                self._fit(self._steps(InteriorPoint()), above, tol)
                break

    def _fit(self, steps: Continuation, alpha: float, tol: float) -> float:
        """Return what the weights at ``alpha`` gain over what they cost; note both bounds."""
        solution = steps.solve(alpha, tol)
        penalty = self.problem.penalty.value(solution.coef)
        self._gain = max(0.0, 1.0 - solution.objective / self.zero.value)
        lost = solution.objective - alpha * penalty
        ratio = (self.zero.value - lost) / penalty if penalty > 0.0 else 0.0
        self.lower = max(self.lower, ratio)
        share = float(np.clip(solution.relative_gap, *_MIX))
        if share <= _FIRST_GAP:
            # Where columns differ by six orders of magnitude, even 1e-9 of another point counts.
            self.lower_from(solution.dual)
        self.lower_from((1.0 - share) * solution.dual + share * self.zero.dual)
        return ratio

    def _within(self, precision: float) -> bool:
        return self.upper - self.lower <= precision * self.upper or self.upper <= self._noise


def zero_bound(problem: Problem, solution: Solution) -> float | None:
    """Bound alpha_max from above by the dual point of a fit that came out zero.

    Where the problem is not convex, the tangent problem at zero stands for it: from the bound on,
    zero is a critical point.

    With W = 0 the dual value Σ Y_ik m_ik does not depend on alpha, so a dual point that proves
    zero optimal at one alpha proves it at every alpha for which it stays feasible: wherever the
    dual norm of XᵀỸ is at most alpha. That costs one product and is exact to the fit's own gap.

    Returns
    -------
    float or None
        The bound; None where no alpha would give a non-zero model.
    """
    if not problem.convex:
        touching = tangent(problem, solution.coef, solution.intercept)
        bound = zero_bound(touching.problem, solution)
        return None if bound is None else bound / touching.scale
    terms = problem.penalty
    correlations = problem.transposed(problem.signed_dual(solution.dual))
    if terms.is_norm:
        norm = terms.dual_norm(correlations)
    else:
        # Near zero the elastic net is its l1 part; a pure l2 penalty never gives zero weights.
        largest = float(np.abs(correlations * terms.inverse_omega).max(initial=0.0))
        norm = largest / terms.l1_ratio if terms.l1_ratio > 0 else 0.0
    bound = min(float(norm), problem.alpha)
    return bound if bound > 0.0 else None
