"""Sums of norms of groups: Euclidean, and the largest absolute value."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Floats, Ints
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.penalties.terms import LEAST_MOVE, NEWTON_STEPS, PenaltyTerms, euclidean


class GroupTerms(PenaltyTerms):
    r"""Mixture :math:`\rho \sum |Z_{kj}| + (1-\rho) \sum_g \|Z_g\|_p`, with p = ``group_order``."""

    def _rest(self, W: Floats) -> float:
        return float(np.sum(self.group_norms(W)))


class GroupL2Terms(GroupTerms):
    r"""The norm :math:`\sum_g \|Z_g\|_2`."""

    kind: ClassVar[str] = "l1/l2"
    group_order: ClassVar[float | None] = 2.0

    def _prox_rest(self, W: Floats, step: float) -> Floats:
        flat, weights = self._flatten(W), self._weights()
        return self._unflatten(_prox_l2(flat, weights, step, self._starts, self._sizes))

    def _segment_dual_norms(self, V: Floats) -> Floats:
        return euclidean(V, self._starts, self._sizes)


class GroupLinfTerms(GroupTerms):
    r"""The norm :math:`\sum_g \|Z_g\|_\infty`."""

    kind: ClassVar[str] = "l1/linf"
    group_order: ClassVar[float | None] = np.inf
    polyhedral: ClassVar[bool] = True

    def _segment_norms(self, flat: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(flat, self._starts))

    def _prox_rest(self, W: Floats, step: float) -> Floats:
        flat, weights = self._flatten(W), self._weights()
        return self._unflatten(_prox_linf(flat, weights, step, self._starts, self._sizes))

    def _segment_dual_norms(self, V: Floats) -> Floats:
        return np.asarray(np.add.reduceat(V, self._starts))


class GroupL2(BuiltInPenalty):
    r"""Sum of Euclidean norms of groups, :math:`\sum_g \|W_g\|_2`: selects whole groups.

    Parameters
    ----------
    <grouped>
    <weights>

    Examples
    --------
    >>> GroupL2(groups=2).resolve(d=4, n_outputs=1).value([[3.0, 4.0, 0.0, 1.0]])
    6.0
    """

    name = "l1/l2"

    def __init__(self, groups: Any = None, per_class: bool = False, weights: Any = None) -> None:
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return GroupL2Terms, 0.0


class GroupLinf(BuiltInPenalty):
    r"""Sum of largest absolute values of groups, :math:`\sum_g \|W_g\|_\infty`.

    Parameters
    ----------
    <grouped>
    <weights>

    Examples
    --------
    >>> from sparsvm.penalties import GroupLinf
    >>> GroupLinf().resolve(d=2, n_outputs=2).value([[3.0, 0.0], [-4.0, 1.0]])  # 4 + 1
    5.0
    """

    name = "l1/linf"

    def __init__(self, groups: Any = None, per_class: bool = False, weights: Any = None) -> None:
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        return GroupLinfTerms, 0.0


def _prox_l2(flat: Floats, omega: Floats, step: float, starts: Ints, sizes: Ints) -> Floats:
    """Prox of step * ||omega * u||_2 in each segment; entries with omega = 0 stay as they are."""
    penalised = omega > 0.0
    ratio = np.zeros_like(flat)
    np.divide(flat, omega, out=ratio, where=penalised)
    vanish = euclidean(ratio, starts, sizes) <= step
    weighted = flat * omega
    widest = step * np.maximum.reduceat(omega, starts) ** 2
    t = np.maximum(euclidean(weighted, starts, sizes) - widest, 0.0)
    pull = step * omega**2
    active = ~vanish
    for _ in range(NEWTON_STEPS):
        # h(t) = 1/||weighted/(t+pull)|| - 1 is concave and increasing: Newton climbs to the root.
        shifted = np.repeat(t, sizes) + pull
        quotient = np.zeros_like(flat)
        np.divide(weighted, shifted, out=quotient, where=penalised)
        norm = euclidean(quotient, starts, sizes)
        slope = np.zeros_like(flat)
        np.divide(quotient**2, shifted, out=slope, where=penalised)
        slopes = np.add.reduceat(slope, starts)
        move = np.zeros_like(t)
        np.divide(norm**2 * (norm - 1.0), slopes, out=move, where=active & (slopes > 0.0))
        t = t + np.maximum(move, 0.0)
        active &= move > LEAST_MOVE * t
        if not active.any():
            break
    spread = np.repeat(t, sizes)
    shrunk = np.zeros_like(flat)
    np.divide(flat * spread, spread + pull, out=shrunk, where=np.repeat(~vanish, sizes))
    return np.where(penalised, shrunk, flat)


def _prox_linf(flat: Floats, omega: Floats, step: float, starts: Ints, sizes: Ints) -> Floats:
    """Prox of step * max_j omega_j |u_j| in each segment: cut |u_j| at level / omega_j.

    The level solves sum_j (|u_j| - level / omega_j)_+ / omega_j = step, piecewise linear, convex
    and decreasing, so Newton from 0 reaches the root in finitely many steps.
    """
    penalised = omega > 0.0
    inverse = np.zeros_like(omega)
    np.divide(1.0, omega, out=inverse, where=penalised)
    size = np.abs(flat)
    level = np.zeros(starts.size)
    while True:
        above = penalised & (size > np.repeat(level, sizes) * inverse)
        mass = np.add.reduceat(np.where(above, size * inverse, 0.0), starts)
        rate = np.add.reduceat(np.where(above, inverse**2, 0.0), starts)
        better = np.zeros_like(level)
        np.divide(mass - step, rate, out=better, where=rate > 0.0)
        better = np.maximum(better, level)
        if np.all(better <= level):
            break
        level = better
    cut = np.where(penalised, np.repeat(level, sizes) * inverse, size)
    return np.sign(flat) * np.minimum(size, cut)
