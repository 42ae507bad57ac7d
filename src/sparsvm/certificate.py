r"""The duality gap of a hinge problem, from any dual guess.

For the hinge loss the dual of the :class:`~sparsvm.problem.Problem` is

.. math::
    \max_Y \; \sum_{ik} Y_{ik} m_{ik} - \alpha\, penalty^*(tilt - G/\alpha), \qquad
    G_{kj} = \sum_i \tilde Y_{ik} x_{ij},

over rows :math:`Y_i` in the simplex of mass :math:`p_i`, with :math:`\tilde Y_{ik} = Y_{ik}` off
the true class and minus the sum of those on it, subject to :math:`\sum_i \tilde Y_{ik} = 0` where
there is an intercept and :math:`\sum_i x_{ij} \tilde Y_{ik} = 0` for unpenalised features.

Any dual guess is repaired into a feasible point: :mod:`sparsvm.balance` restores the equalities by
multiplying the off-true entries ("flows"); one factor brings every row back under its mass, and
one more factor in [0, 1] satisfies the penalty's constraint. The rest of each mass goes to the
true class, whose margin is 0. Scaling all flows by one factor keeps the equalities.
"""

from __future__ import annotations

import numpy as np

from sparsvm.balance import balance
from sparsvm.losses import Floats, Hinge
from sparsvm.problem import Certificate, Problem

UNIT = float(np.finfo(np.float64).eps) / 2.0


def certify(problem: Problem, W: Floats, b: Floats, dual: Floats | None) -> Certificate:
    """Return the certificate of (W, b), with the lower bound made from ``dual``."""
    if not isinstance(problem.loss, Hinge) or not problem.penalty.convex:
        raise ValueError(
            f"A duality gap exists for the hinge loss with a convex penalty; got the loss "
            f"{problem.loss.name!r} with the penalty {problem.penalty.kind!r}."
        )
    W = np.asarray(W, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    flows = repaired_flows(problem, dual)
    scale, bound = best_scale(problem, flows)
    if not bound > zero_flow_bound(problem):
        scale, bound = 0.0, zero_flow_bound(problem)
    objective = problem.objective(W, b)
    gap = max(objective - bound, 0.0)
    relative = gap / abs(objective) if objective != 0.0 else (0.0 if gap == 0.0 else np.inf)
    return Certificate(
        objective=objective,
        dual_objective=bound,
        gap=gap,
        relative_gap=relative,
        floor=problem.floor(W, b),
        dual=_with_true_class(problem, scale * flows),
    )


def repaired_flows(problem: Problem, dual: Floats | None) -> Floats:
    """Return off-true entries that balance and fit under the masses, zero on the true class."""
    n, K = problem.n, problem.n_classes
    if dual is None:
        return np.zeros((n, K))
    flows = np.array(dual, dtype=np.float64)
    if flows.shape != (n, K):
        raise ValueError(
            f"The dual has shape {flows.shape} but there are {n} samples and {K} classes."
        )
    flows[np.arange(n), problem.y] = 0.0
    flows[~(flows > 0.0) | ~np.isfinite(flows)] = 0.0
    flows *= _fitting(flows, problem.mass)[:, None]
    if problem.fit_intercept or problem.penalty.free.size:
        flows = _balanced_within_masses(problem, flows)
    return flows


def _balanced_within_masses(problem: Problem, flows: Floats) -> Floats:
    """Balance, and scale by the one factor that brings every row under its mass.

    Where that factor is far from 1 (a sample of tiny mass in a class whose flows were far from
    balanced holds all others back), cutting single rows and balancing again does better.
    """
    margins = problem.margins()
    best, best_gain = np.zeros_like(flows), 0.0
    for _ in range(30):
        flows = balance(problem, flows)
        factors = _fitting(flows, problem.mass)
        smallest = float(factors.min())
        gain = smallest * float(np.sum(flows * margins))
        worth_it = gain > (1.0 + 1e-9 if smallest > 0.99 else 1.01) * best_gain
        if gain > best_gain:
            best, best_gain = smallest * flows, gain
        if smallest > 1.0 - 1e-8 or not worth_it:
            break
        # Balancing gives about half of a cut back, hence the square.
        flows = flows * factors[:, None] ** 2
    return best


def _fitting(flows: Floats, mass: Floats) -> Floats:
    """For each row the largest factor up to 1 that keeps its sum within its mass."""
    totals = flows.sum(axis=1)
    factors: Floats = np.ones_like(totals)
    np.divide(mass, totals, out=factors, where=totals > mass)
    return factors


def best_scale(problem: Problem, flows: Floats) -> tuple[float, float]:
    """Return the factor c in [0, 1] of the flows, and the dual value at c times the flows."""
    signed = problem.signed_dual(flows)
    gain = float(np.sum(flows * problem.margins()))
    G = problem.transposed(signed) / problem.alpha
    outputs = signed[:, 1:] if problem.n_classes == 2 else signed
    # |computed - exact| of a sum of n products is at most (n + 2) u |x_j|.|y_k|.
    sizes = np.sqrt(np.sum(outputs * outputs, axis=0))
    error = np.outer(sizes * ((problem.n + 2) * UNIT / problem.alpha), problem.column_norms)
    if problem.penalty.is_norm:
        scale = _norm_scale(problem, G, error)
        return scale, (-np.inf if scale < 0.0 else scale * gain)
    return _conjugate_scale(problem, G, error, gain)


def zero_flow_bound(problem: Problem) -> float:
    """Return the dual value with all mass on the true classes: 0 without a tilt."""
    if problem.tilt is None:
        return 0.0
    if problem.penalty.is_norm:
        return 0.0 if problem.penalty.dual_norm(problem.tilt) <= _limit(problem) else -np.inf
    return -problem.alpha * problem.penalty.conjugate(problem.tilt)


def _limit(problem: Problem) -> float:
    """One plus the rounding error of a computed dual norm."""
    return 1.0 + (problem.penalty.largest_group + 16) * UNIT


def _norm_scale(problem: Problem, G: Floats, error: Floats) -> float:
    """Return the largest factor c with dual norm of ``tilt - c G`` at most 1, or -1 if none.

    Without a tilt the error of G is added, which rounds the dual norm up. A tilt often sits on
    the boundary (a coefficient beyond the cap of capped l1 has slope exactly 1), where rounding up
    would forbid every c > 0; there a violation within the error of G is let pass, as for the
    equalities, since it moves the bound by less than the floor.
    """
    penalty = problem.penalty
    if problem.tilt is None:
        norm = penalty.dual_norm(np.abs(G) + error) * _limit(problem)
        return 1.0 if norm <= 1.0 else 1.0 / norm
    tilt = problem.tilt

    def excess(c: float) -> float:
        reduced = np.maximum(np.abs(tilt - c * G) - c * error, 0.0)
        return penalty.dual_norm(reduced) - _limit(problem)

    low, high = 0.0, 1.0
    at_low, at_high = excess(low), excess(high)
    if at_low > 0.0:
        return -1.0
    if at_high <= 0.0:
        return 1.0
    # The dual norm is convex in c, so the chord's root is feasible; halving guards progress.
    for _ in range(60):
        middle = low + (high - low) * at_low / (at_low - at_high) if at_low < 0.0 else low
        if (at_chord := excess(middle)) <= 0.0:
            low, at_low = middle, at_chord
        middle = 0.5 * (low + high)
        at_middle = excess(middle)
        if at_middle <= 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        if high - low <= 1e-14 * high:
            break
    return low


def _conjugate_scale(
    problem: Problem, G: Floats, error: Floats, gain: float
) -> tuple[float, float]:
    """Return the factor c in [0, 1] that maximises ``c gain - alpha conjugate(tilt - c G)``.

    The function is concave with a piecewise quadratic second term, so a safeguarded Newton search
    on its derivative is exact for l2 and takes a few steps for the elastic net.
    """
    penalty, alpha, rho = problem.penalty, problem.alpha, problem.penalty.l1_ratio
    slope = -G * penalty.inverse_omega
    offset = None if problem.tilt is None else problem.tilt * penalty.inverse_omega

    def point(c: float) -> Floats:
        return c * slope if offset is None else offset + c * slope

    def newton(c: float) -> tuple[float, float]:
        """Derivative at c, and where the parabola through it has its top."""
        V = point(c)
        excess = V - np.clip(V, -rho, rho)
        first = gain - alpha * float(np.vdot(excess, slope)) / (1.0 - rho)
        active = np.where(excess != 0.0, slope, 0.0)
        second = alpha * float(np.vdot(active, active)) / (1.0 - rho)
        return first, c + first / second if second > 0.0 else np.copysign(np.inf, first)

    low, high, c = 0.0, 1.0, 1.0
    for _ in range(60):
        first, top = newton(c)
        if first >= 0.0:
            low = c
        else:
            high = c
        # The value is flat at its maximum: an error of 1e-7 in c costs about 1e-14 of it.
        if low == 1.0 or high - low <= 1e-7 * high or abs(top - c) <= 1e-7 * c:
            break
        c = top if low < top < high else 0.5 * (low + high)
    rounded = (np.abs(point(c)) * penalty.omega + c * error) * _limit(problem)
    return c, c * gain - alpha * penalty.conjugate(rounded) * (1.0 + 64.0 * UNIT)


def _with_true_class(problem: Problem, flows: Floats) -> Floats:
    """Give the rest of each mass to the true class."""
    rest = np.maximum(problem.mass - flows.sum(axis=1), 0.0)
    flows[np.arange(problem.n), problem.y] = rest
    return flows
