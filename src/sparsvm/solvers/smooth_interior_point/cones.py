r"""Norms as cones, for the interior point of smooth losses: bounds, multipliers, scaling, steps.

A group of coordinates w has a bound t of cost a, :math:`\|w\|_\infty \le t` or
:math:`\|w\|_2 \le t`. With z the multipliers of w, a step dw of the coordinates changes them to
:math:`z + dz = force + (D - r r^\top) dw`, the bound having been eliminated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsvm._typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class Cones:
    """Groups of coordinates with a bound each; groups are contiguous in ``members``.

    Attributes
    ----------
    members : coordinates, group by group
    starts : where each group begins
    groups : the group of each member
    weight : a of each group
    """

    members: Ints
    starts: Ints
    groups: Ints
    weight: Floats

    @classmethod
    def of(cls, coordinates: Ints, labels: Ints, weight: float) -> Cones:
        """Group the coordinates by their labels."""
        order = np.argsort(labels, kind="stable")
        _, starts, groups = np.unique(labels[order], return_index=True, return_inverse=True)
        return cls(
            coordinates[order],
            starts.astype(np.intp),
            groups.reshape(-1).astype(np.intp),
            np.full(starts.size, weight),
        )

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.starts.size)

    def sums(self, values: Floats) -> Floats:
        """Sum over the members of every group."""
        return np.add.reduceat(values, self.starts) if self.size else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Curvature:
    r"""The matrix D - r r' of every group.

    Attributes
    ----------
    cones : Cones
    diagonal, ray : arrays of the members
    rest : array of the groups
        :math:`1 - r^\top D^{-1} r`.
    """

    cones: Cones
    diagonal: Floats
    ray: Floats
    rest: Floats


class BoxCones:
    """The polyhedral part: |w_c| <= t_g, with multipliers u of t - w and v of t + w.

    The slacks are kept, not computed from t and w: near the solution these agree to all digits.
    """

    def __init__(self, cones: Cones, complementarity: float) -> None:
        self.cones = cones
        counts = np.bincount(cones.groups, minlength=cones.size)
        self.u = (cones.weight / (2.0 * counts))[cones.groups]
        self.v = self.u.copy()
        self.t = 2.0 * counts * complementarity / cones.weight
        self.below = self.t[cones.groups]
        self.above = self.below.copy()
        self.du = self.dv = self.dbelow = self.dabove = np.zeros_like(self.u)

    @property
    def degree(self) -> int:
        """Number of complementary pairs."""
        return 2 * self.u.size

    def complementarity(self) -> float:
        """Return the sum of the products of slacks and multipliers."""
        return float(self.u @ self.below + self.v @ self.above)

    def prepare(self) -> None:
        """Compute the curvature that the cones leave on the coordinates."""
        self.d1, self.d2 = self.u / self.below, self.v / self.above
        self.total = self.cones.sums(self.d1 + self.d2)
        self.cross = self.d1 - self.d2

    def curvature(self) -> Curvature:
        """Return D and r, with what D leaves of r computed without cancellation."""
        both = self.d1 + self.d2
        own = 4.0 * self.d1 * self.d2 / both
        if self.cones.size == own.size:
            return Curvature(self.cones, own, np.zeros_like(own), np.ones_like(own))
        ray = self.cross / np.sqrt(self.total)[self.cones.groups]
        return Curvature(self.cones, both, ray, self.cones.sums(own) / self.total)

    def force(self, tau: float, second: bool) -> Floats:
        """Return the part of the next multipliers u - v that does not depend on the step."""
        self.e1, self.e2 = tau / self.below - self.u, tau / self.above - self.v
        if second:
            self.e1 -= self.du * self.dbelow / self.below
            self.e2 -= self.dv * self.dabove / self.above
        residual = self.cones.weight - self.cones.sums(self.u + self.v)
        self.lift = (self.cones.sums(self.e1 + self.e2) - residual) / self.total
        return self.u - self.v + self.e1 - self.e2 - self.cross * self.lift[self.cones.groups]

    def recover(self, dw: Floats) -> None:
        """Complete the direction with that of the coordinates."""
        groups = self.cones.groups
        self.dt = self.lift + self.cones.sums(self.cross * dw) / self.total
        self.dbelow, self.dabove = self.dt[groups] - dw, self.dt[groups] + dw
        self.du = self.e1 - self.d1 * self.dbelow
        self.dv = self.e2 - self.d2 * self.dabove

    def longest(self) -> tuple[float, float]:
        """Return the steps at which slacks and multipliers leave the cones."""
        primal = min(longest_ratio(self.below, self.dbelow), longest_ratio(self.above, self.dabove))
        return primal, min(longest_ratio(self.u, self.du), longest_ratio(self.v, self.dv))

    def after(self, step: float) -> float:
        """Return the complementarity after a step."""
        return float(
            (self.u + step * self.du) @ (self.below + step * self.dbelow)
            + (self.v + step * self.dv) @ (self.above + step * self.dabove)
        )

    def barrier(self, step: float, tau: float) -> float:
        """Return the cost of the bounds and the barrier after a step."""
        below, above = self.below + step * self.dbelow, self.above + step * self.dabove
        if min(below.min(initial=1.0), above.min(initial=1.0)) <= 0.0:
            return np.inf
        logs = float(np.log(below).sum() + np.log(above).sum())
        return float(self.cones.weight @ (self.t + step * self.dt)) - tau * logs

    def advance(self, step: float) -> None:
        """Move everything along the direction."""
        self.t = self.t + step * self.dt
        self.below, self.above = self.below + step * self.dbelow, self.above + step * self.dabove
        self.u, self.v = self.u + step * self.du, self.v + step * self.dv


class RoundCones:
    """The Euclidean part: ||w_g|| <= t_g, with multipliers (a_g, -z_g)."""

    def __init__(self, cones: Cones, complementarity: float) -> None:
        self.cones = cones
        self.t = complementarity / cones.weight
        self.w = np.zeros(cones.members.size)
        self.z = np.zeros(cones.members.size)
        self.dw = self.dz = np.zeros_like(self.w)
        self.dt = np.zeros_like(self.t)

    @property
    def degree(self) -> int:
        """Number of complementary pairs."""
        return self.cones.size

    def _det(self, head: Floats, tail: Floats) -> Floats:
        length = np.sqrt(self.cones.sums(tail * tail))
        return np.asarray((head - length) * (head + length))

    def complementarity(self) -> float:
        return float(self.cones.weight @ self.t - self.z @ self.w)

    def prepare(self) -> None:
        groups, a = self.cones.groups, self.cones.weight
        self.det = self._det(self.t, self.w)
        rest = self._det(a, self.z)
        root, rest_root = np.sqrt(self.det), np.sqrt(rest)
        # The scaling point of (t, w) and (a, -z), normalised: (s + J y) / 2 gamma.
        inner = (self.t * a - self.cones.sums(self.w * self.z)) / (root * rest_root)
        gamma = np.sqrt(0.5 * (1.0 + inner))
        self.w0 = (self.t / root + a / rest_root) / (2.0 * gamma)
        scaled = self.w / root[groups] + self.z / rest_root[groups]
        self.w1 = scaled / (2.0 * gamma)[groups]
        self.stiffness = rest_root / root
        self.bend = 2.0 * self.w0**2 - 1.0

    def curvature(self) -> Curvature:
        """Return D and r, with what D leaves of r computed without cancellation."""
        groups = self.cones.groups
        ray = self.w1 * np.sqrt(2.0 * self.stiffness / self.bend)[groups]
        return Curvature(self.cones, self.stiffness[groups], ray, 1.0 / self.bend)

    def force(self, tau: float, second: bool) -> Floats:
        groups = self.cones.groups
        # tau times the inverse of (t, w), less the multipliers.
        self.r0 = tau * self.t / self.det - self.cones.weight
        r1 = -tau * self.w / self.det[groups] + self.z
        if second:
            head, tail = self._second_order()
            self.r0 -= head
            r1 -= tail
        self.h01 = -2.0 * (self.stiffness * self.w0)[groups] * self.w1
        self.h00 = self.stiffness * self.bend
        self.next_force = self.z - (r1 - self.h01 * (self.r0 / self.h00)[groups])
        return np.asarray(self.next_force)

    def _scaled(self, head: Floats, tail: Floats, sign: float) -> tuple[Floats, Floats]:
        """Apply the scaling matrix W (sign 1) or its inverse (sign -1) to every cone."""
        groups = self.cones.groups
        along = self.cones.sums(self.w1 * tail)
        factor = self.stiffness ** (-0.5 * sign)
        inner = sign * head + along / (1.0 + self.w0)
        return (
            np.asarray(factor * (self.w0 * head + sign * along)),
            np.asarray(factor[groups] * (tail + inner[groups] * self.w1)),
        )

    def _second_order(self) -> tuple[Floats, Floats]:
        """Return what the products of the last direction add to the complementarity."""
        groups, sums = self.cones.groups, self.cones.sums
        s0, s1 = self._scaled(self.dt, self.dw, -1.0)
        y0, y1 = self._scaled(np.zeros(self.cones.size), -self.dz, 1.0)
        c0, c1 = s0 * y0 + sums(s1 * y1), s0[groups] * y1 + y0[groups] * s1
        l0, l1 = self._scaled(self.cones.weight, -self.z, 1.0)
        x0 = (l0 * c0 - sums(l1 * c1)) / (l0 * l0 - sums(l1 * l1))
        return self._scaled(x0, (c1 - x0[groups] * l1) / l0[groups], -1.0)

    def recover(self, dw: Floats) -> None:
        groups = self.cones.groups
        self.dw = dw
        self.dt = (self.r0 - self.cones.sums(self.h01 * dw)) / self.h00
        bent = self.curvature()
        self.dz = self.next_force - self.z + bent.diagonal * dw
        self.dz -= bent.ray * self.cones.sums(bent.ray * dw)[groups]

    def longest(self) -> tuple[float, float]:
        return (
            _cone_ratio(self.cones, self.t, self.dt, self.w, self.dw),
            _cone_ratio(self.cones, self.cones.weight, np.zeros(self.cones.size), self.z, self.dz),
        )

    def after(self, step: float) -> float:
        t, w, z = self.t + step * self.dt, self.w + step * self.dw, self.z + step * self.dz
        return float(self.cones.weight @ t - z @ w)

    def barrier(self, step: float, tau: float) -> float:
        t = self.t + step * self.dt
        det = self._det(t, self.w + step * self.dw)
        if t.min(initial=1.0) <= 0.0 or det.min(initial=1.0) <= 0.0:
            return np.inf
        return float(self.cones.weight @ t - 0.5 * tau * np.log(det).sum())

    def advance(self, step: float) -> None:
        self.w = self.w + step * self.dw
        self.t = self.t + step * self.dt
        self.z = self.z + step * self.dz


def longest_ratio(x: Floats, dx: Floats) -> float:
    falling = dx < 0.0
    return float(np.min(-x[falling] / dx[falling], initial=np.inf))


def _cone_ratio(cones: Cones, t: Floats, dt: Floats, w: Floats, dw: Floats) -> float:
    """Return the first step at which a second-order cone is left: the root of a quadratic."""
    if cones.size == 0:
        return float("inf")
    a = dt * dt - cones.sums(dw * dw)
    b = t * dt - cones.sums(w * dw)
    length = np.sqrt(cones.sums(w * w))
    c = (t - length) * (t + length)
    inside = np.sqrt(np.maximum(b * b - a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # The smallest positive root of a x^2 + 2 b x + c, c > 0, without cancellation.
        root = np.where(b < 0.0, c / (-b + inside), np.where(a < 0.0, (-b - inside) / a, np.inf))
    root = np.where((b < 0.0) & (a > 0.0) & (b * b < a * c), np.inf, root)
    return float(np.min(root, initial=np.inf))
