r"""What the loss contributes to the dual objective along a ray of dual points.

For dual entries F (see :class:`~sparsvm.problem.solution.Solution`) the loss contributes
:math:`\gamma(c) = -\sum_i p_i\, \ell^*_i(c F_i / p_i)` at the point c F, concave in c:

============== ===========================================================================
loss           :math:`\gamma(c)`, with :math:`g = \sum F_{ik} m_{ik}`
============== ===========================================================================
hinge          :math:`c\,g`, rows of c F within their masses
squared_hinge  :math:`c\,g - c^2 \sum F_{ik}^2 / (4 p_i)`
logistic       :math:`c\,g - \sum_i p_i \bigl[\sum_k c a_{ik} \log c a_{ik} + (1 - c A_i)
               \log(1 - c A_i)\bigr]`, :math:`a_i = F_i / p_i`, :math:`A_i = \sum_k a_{ik}`
ovr_sq. hinge  as squared_hinge
============== ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import xlog1py, xlogy

from sparsvm._typing import Floats
from sparsvm.problem.problem import Problem

# A concave function is flat at its maximum: an error of 1e-7 in c costs about 1e-14 of it.
FLAT_STEP = 1e-7
# No c is told apart from its neighbours closer than this.
LEAST_STEP = 1e-15
# Steps, an end only: halvings alone take some 60.
MOST_STEPS = 100


class Gain(Protocol):
    """The function gamma of one ray."""

    limit: float
    """Largest c at which the point is feasible for the loss."""

    def value(self, c: float) -> float:
        """Return gamma(c)."""

    def derivatives(self, c: float) -> tuple[float, float]:
        """Return the first and second derivative at c."""

    def peak(self) -> float:
        """Return the c in [0, limit] at which gamma is largest."""


class LinearGain:
    """The hinge: the entries already fit under the masses, so c goes up to 1."""

    limit = 1.0

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def value(self, c: float) -> float:
        return c * self.slope

    def derivatives(self, c: float) -> tuple[float, float]:
        return self.slope, 0.0

    def peak(self) -> float:
        return 1.0


class QuadraticGain:
    """The squared losses: no limit but the parabola's own."""

    limit = np.inf

    def __init__(self, slope: float, square: float) -> None:
        self.slope = slope
        self.square = square

    def value(self, c: float) -> float:
        return c * self.slope - c * c * self.square

    def derivatives(self, c: float) -> tuple[float, float]:
        return self.slope - 2.0 * c * self.square, -2.0 * self.square

    def peak(self) -> float:
        return self.slope / (2.0 * self.square) if self.square > 0.0 else 0.0


class EntropyGain:
    """The logistic loss: only the row sums A_i and two constants enter at each c."""

    limit = 1.0

    def __init__(self, entries: Floats, margins: Floats, mass: Floats) -> None:
        shares = entries / mass[:, None]
        self.mass = mass
        self.rows = np.minimum(shares.sum(axis=1), 1.0)
        self.total = float(np.sum(mass * self.rows))
        terms = entries * margins - mass[:, None] * xlogy(shares, shares)
        self.slope = float(np.sum(terms))

    def value(self, c: float) -> float:
        rest = xlog1py(1.0 - c * self.rows, -c * self.rows)
        return c * self.slope - float(xlogy(c, c)) * self.total - float(np.sum(self.mass * rest))

    def derivatives(self, c: float) -> tuple[float, float]:
        with np.errstate(divide="ignore"):
            logs = xlog1py(self.rows, -c * self.rows)
            curved = self.rows**2 / (1.0 - c * self.rows)
        first = self.slope - self.total * float(np.log(c)) + float(np.sum(self.mass * logs))
        return first, -self.total / c - float(np.sum(self.mass * curved))

    def peak(self) -> float:
        return maximise(self.derivatives, self.limit) if self.total > 0.0 else 0.0


def gain_of(problem: Problem, entries: Floats) -> Gain:
    """Return gamma for the ray through ``entries``."""
    name = problem.loss.name
    if name == "hinge":
        return LinearGain(problem.margin_value(entries))
    if name == "logistic":
        return EntropyGain(entries, problem.margins(), problem.mass)
    square = np.sum(np.sum(entries * entries, axis=1) / (4.0 * problem.mass))
    return QuadraticGain(float(np.sum(entries * problem.margins())), float(square))


def maximise(derivatives: Callable[[float], tuple[float, float]], limit: float) -> float:
    """Return the c in [0, limit] that maximises a concave function, by Newton steps from 1."""
    low, high, c = 0.0, limit, 1.0
    for _ in range(MOST_STEPS):
        first, second = derivatives(c)
        if first >= 0.0:
            low = c
        else:
            high = c
        # The curvature of an entropy changes in proportion to the distance from the ends: a Newton
        # step is short if it is so by that measure. From a row that fills its mass to rounding it
        # had a length of 4e-15, though the maximum was at 0.99.
        short = max(FLAT_STEP * min(c, limit - c), LEAST_STEP * c)
        if low == limit or high - low <= short:
            break
        top = c - first / second if second < 0.0 and np.isfinite(first) else np.nan
        if abs(top - c) <= short:
            break
        c = top if low < top < high else (0.5 * (low + high) if np.isfinite(high) else 2.0 * c)
    return c
