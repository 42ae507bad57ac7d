"""A penalty resolved for given data: value, prox, dual norm and conjugate, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsvm import _core
from sparsvm._typing import Floats

NORMS = ("l1", "l1/l2", "l1/linf", "sparse_group")
CONVEX_KINDS = (*NORMS, "l2", "elasticnet")
# Up to so many weights the calls of NumPy take longer than what they compute.
FEW = 2**14


@dataclass(frozen=True, eq=False)
class PenaltyTerms:
    r"""A penalty with its groups and weights spelled out for d features.

    The penalty is ``base(omega * W)`` for coefficients ``W`` of shape (n_outputs, d), the weights
    ``omega`` multiplying the columns. With :math:`Z = \omega \circ W` and groups g (of features in
    all outputs when ``per_class`` is false, of features in one output when it is true):

    ============== ====================================================================
    kind           base(Z)
    ============== ====================================================================
    l1             :math:`\sum |Z_{kj}|`
    l2             :math:`\frac12 \sum Z_{kj}^2`
    elasticnet     :math:`\rho \sum |Z_{kj}| + \frac{1-\rho}2 \sum Z_{kj}^2`
    l1/l2          :math:`\sum_g \|Z_g\|_2`
    l1/linf        :math:`\sum_g \|Z_g\|_\infty`
    sparse_group   :math:`\rho \sum |Z_{kj}| + (1-\rho) \sum_g \|Z_g\|_2`
    l0             :math:`\sum_g 1 - \exp(-a \|Z_g\|_2)`, not convex
    capped_l1      :math:`\sum_g \min(a, \|Z_g\|_2)`, not convex
    ============== ====================================================================

    Attributes
    ----------
    kind : str
    l1_ratio : float
        :math:`\rho`; 1 for l1, 0 for l2 and the pure group norms.
    groups : int32 array of shape (d,)
        Group number of each feature, 0 ... n_groups - 1, none of them empty.
    n_groups : int
    per_class : bool
    omega : float array of shape (d,)
        Not negative; 0 leaves a feature unpenalised.
    n_outputs : int
        Rows of W: 1 for two classes, otherwise the number of classes.
    shape : float
        The parameter a of l0 and capped_l1; NaN for the others.
    """

    kind: str
    l1_ratio: float
    groups: NDArray[np.int32]
    n_groups: int
    per_class: bool
    omega: Floats
    n_outputs: int
    shape: float = float("nan")

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.omega.size)

    @property
    def is_norm(self) -> bool:
        """Whether the penalty is a (weighted) norm, so that its dual is a dual-norm bound."""
        return self.kind in NORMS

    @property
    def by_features(self) -> bool:
        """Whether the penalty is a sum over single features."""
        return self.n_groups == self.d or self.kind in ("l1", "l2", "elasticnet")

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex."""
        return self.kind in CONVEX_KINDS

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Indices of the unpenalised features (omega = 0)."""
        return np.flatnonzero(self.omega == 0.0)

    @cached_property
    def inverse_omega(self) -> Floats:
        """1 / omega, and 0 for unpenalised features, which leaves them out of dual norms."""
        inverse = np.zeros_like(self.omega)
        np.divide(1.0, self.omega, out=inverse, where=self.omega > 0.0)
        return inverse

    def restricted_to(self, features: NDArray[np.integer]) -> PenaltyTerms:
        """Return the penalty of weights that are zero off the given features."""
        if self.n_groups == self.d:
            present, groups = features, np.arange(features.size)
        else:
            present, groups = np.unique(self.groups[features], return_inverse=True)
        return replace(
            self,
            groups=groups.reshape(-1).astype(np.int32),
            n_groups=int(present.size),
            omega=self.omega[features],
        )

    # ------------------------------------------------------------------ segments
    # Group operations run on a flat vector in which each group is one contiguous segment.

    @cached_property
    def _order(self) -> NDArray[np.intp] | None:
        """Features sorted by group, or None when they already are."""
        if np.all(self.groups[1:] >= self.groups[:-1]):
            return None
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def _sizes(self) -> NDArray[np.intp]:
        """Number of entries of each segment."""
        counts = np.bincount(self.groups, minlength=self.n_groups)
        if self.per_class:
            return np.tile(counts, self.n_outputs)
        return counts * self.n_outputs

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.intp)

    @cached_property
    def largest_group(self) -> int:
        """Number of coefficients in the largest group (of one output when per_class)."""
        # Not by the sizes of all groups in all outputs, which may be as many as coefficients.
        features = int(np.bincount(self.groups).max(initial=0))
        return max(features * (1 if self.per_class else self.n_outputs), 1)

    def _flatten(self, matrix: Floats) -> Floats:
        if self.per_class:
            return (matrix if self._order is None else matrix[:, self._order]).reshape(-1)
        columns = matrix.T
        return (columns if self._order is None else columns[self._order]).reshape(-1)

    def _unflatten(self, flat: Floats) -> Floats:
        shape = (self.n_outputs, self.d) if self.per_class else (self.d, self.n_outputs)
        matrix = flat.reshape(shape)
        if self._order is not None:
            scattered = np.empty_like(matrix)
            if self.per_class:
                scattered[:, self._order] = matrix
            else:
                scattered[self._order] = matrix
            matrix = scattered
        return matrix if self.per_class else np.ascontiguousarray(matrix.T)

    def _weights(self) -> Floats:
        return self._flatten(np.broadcast_to(self.omega, (self.n_outputs, self.d)))

    # ------------------------------------------------------------------ primal side

    def group_norms(self, W: Floats) -> Floats:
        """Return the norm of each group of ``omega * W``.

        The largest absolute value for l1/linf, the Euclidean norm otherwise. Shape (n_groups,),
        or (n_outputs, n_groups) when per_class.
        """
        flat = np.abs(self._flatten(W * self.omega))
        if self.kind == "l1/linf":
            norms = np.maximum.reduceat(flat, self._starts)
        else:
            norms = _euclidean(flat, self._starts, self._sizes)
        return norms.reshape(self.n_outputs, self.n_groups) if self.per_class else norms

    def value(self, W: Floats) -> float:
        """Return the penalty of W, shape (n_outputs, d)."""
        W = np.asarray(W, dtype=np.float64)
        support = np.flatnonzero(W.any(axis=0))
        if support.size == 0:
            return 0.0
        if 4 * support.size < self.d:
            # Zero columns add nothing to any kind; most coefficients are zero, most of the time.
            return self.restricted_to(support).value(W[:, support])
        if self.kind == "l0":
            return float(np.sum(-np.expm1(-self.shape * self.group_norms(W))))
        if self.kind == "capped_l1":
            return float(np.sum(np.minimum(self.shape, self.group_norms(W))))
        Z = np.ascontiguousarray(W * self.omega).reshape(-1)
        total = 0.0
        if self.l1_ratio > 0.0:
            total += self.l1_ratio * float(np.sum(np.abs(Z)))
        if self.l1_ratio < 1.0:
            if self.kind in ("l2", "elasticnet"):
                rest = 0.5 * float(np.sum(Z * Z))
            else:
                rest = float(np.sum(self.group_norms(W)))
            total += (1.0 - self.l1_ratio) * rest
        return total

    def value_at(self, features: NDArray[np.integer], values: Floats) -> float:
        """Return the penalty of weights (n_outputs, m) of these features, all others being zero."""
        if not self.convex or values.size > FEW:
            return self.restricted_to(features).value(values)
        return float(
            _core.penalty_value(
                values.T,
                self.groups[features],
                self.omega[features],
                kind=self.kind,
                l1_ratio=self.l1_ratio,
                per_class=self.per_class,
            )
        )

    def convex_part(self) -> PenaltyTerms:
        r"""Return the g of :math:`penalty = g - h` with g and h convex; the penalty if convex.

        For l0 :math:`a \sum_g \|Z_g\|_2`, for capped_l1 :math:`\sum_g \|Z_g\|_2`: l1 where
        every group is one coefficient, otherwise l1/l2.
        """
        return self if self.convex else self._convex_part

    @cached_property
    def _convex_part(self) -> PenaltyTerms:
        single = self.n_groups == self.d and (self.per_class or self.n_outputs == 1)
        return replace(
            self,
            kind="l1" if single else "l1/l2",
            l1_ratio=1.0 if single else 0.0,
            omega=self.omega * (self.shape if self.kind == "l0" else 1.0),
            shape=float("nan"),
        )

    def concave_slope(self, W: Floats) -> tuple[Floats, float]:
        r"""Return a subgradient V at W of the h of ``convex_part``, and the tangent's constant.

        That constant is :math:`h(W) - \langle V, W\rangle`.

        With :math:`t = \|Z_g\|_2` the value of h is :math:`at - 1 + e^{-at}` and its slope
        :math:`a(1 - e^{-at})` for l0; :math:`\max(0, t - a)` and 1 for capped_l1 where
        :math:`t \ge a`, otherwise 0.
        """
        if not np.any(W):
            return np.zeros((self.n_outputs, self.d)), 0.0
        norms = self.group_norms(W).reshape(-1)
        if self.kind == "l0":
            decay = np.expm1(-self.shape * norms)
            values, slopes = self.shape * norms + decay, -self.shape * decay
        else:
            values = np.maximum(norms - self.shape, 0.0)
            slopes = (norms >= self.shape).astype(np.float64)
        factors = np.divide(slopes, norms, out=np.zeros_like(norms), where=norms > 0.0)
        flat = self._flatten(W * self.omega**2) * np.repeat(factors, self._sizes)
        return self._unflatten(flat), float(np.sum(values - slopes * norms))

    def prox(self, W: Floats, step: float) -> Floats:
        r"""Return :math:`\arg\min_U \frac12\|U - W\|^2 + step \cdot penalty(U)`.

        Soft thresholding by ``step rho omega`` comes first (it commutes with what follows), then
        shrinking for the squared part, or for each group the root of a scalar equation, found by
        a monotone Newton iteration: for the Euclidean norm the t of
        :math:`\sum_j \omega_j^2 W_j^2 / (t + step\,\omega_j^2)^2 = 1`, for the largest absolute
        value the level of the weighted l1-ball projection (Moreau).
        """
        self._require_convex("prox")
        W = np.asarray(W, dtype=np.float64)
        threshold = step * self.l1_ratio * self.omega
        U = np.sign(W) * np.maximum(np.abs(W) - threshold, 0.0)
        rest = step * (1.0 - self.l1_ratio)
        if self.kind == "l1" or rest == 0.0:
            return U
        if self.kind in ("l2", "elasticnet"):
            return np.asarray(U / (1.0 + rest * self.omega**2))
        flat, weights = self._flatten(U), self._weights()
        kernel = _prox_linf if self.kind == "l1/linf" else _prox_l2
        return self._unflatten(kernel(flat, weights, rest, self._starts, self._sizes))

    # ------------------------------------------------------------------ dual side

    def group_dual_norms(self, G: Floats) -> Floats:
        r"""Return the dual norm of each group of ``G / omega``, flat.

        Largest absolute value for l1, Euclidean for l1/l2, sum of absolute values for l1/linf;
        for sparse_group the root c of :math:`\|(|V| - \rho c)_+\|_2 = (1 - \rho) c`.
        Unpenalised features are left out.
        """
        self._require_norm("dual norm")
        V = self._flatten(np.abs(G) * self.inverse_omega)
        if self.kind == "l1" or V.size == 0:
            return V
        if self.kind == "l1/l2":
            return _euclidean(V, self._starts, self._sizes)
        if self.kind == "l1/linf":
            return np.asarray(np.add.reduceat(V, self._starts))
        return _sparse_group_roots(V, self.l1_ratio, self._starts, self._sizes)

    def spread(self, per_group: NDArray[Any]) -> NDArray[Any]:
        """Give every coefficient the value of its group, in the order of ``group_dual_norms``."""
        sizes = 1 if self.kind == "l1" else self._sizes
        return np.asarray(self._unflatten(np.repeat(per_group, sizes)))

    def dual_norm(self, G: Floats) -> float:
        """Return the dual norm of G, shape (n_outputs, d): the largest over the groups."""
        self._require_norm("dual norm")
        if self.kind != "sparse_group":
            return float(np.max(self.group_dual_norms(G), initial=0.0))
        V = self._flatten(np.abs(G) * self.inverse_omega)
        # max|V| <= root <= ||V||_2 in each group, so only groups whose Euclidean norm exceeds
        # the largest entry of all can hold the maximum: usually a handful.
        upper = _euclidean(V, self._starts, self._sizes)
        keep = upper >= V.max(initial=0.0)
        sizes = self._sizes[keep]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        kept = V[np.repeat(keep, self._sizes)]
        return float(np.max(_sparse_group_roots(kept, self.l1_ratio, starts, sizes), initial=0.0))

    def conjugate(self, G: Floats) -> float:
        r"""Return the convex conjugate at G, unpenalised features left out.

        With :math:`V = G/\omega`: :math:`\frac12\|V\|^2` for l2,
        :math:`\sum (|V|-\rho)_+^2 / (2(1-\rho))` for elasticnet; for the norms 0 where the dual
        norm is at most 1 and infinite elsewhere.
        """
        self._require_convex("conjugate")
        if self.is_norm:
            return 0.0 if self.dual_norm(G) <= 1.0 else float("inf")
        V = np.abs(G) * self.inverse_omega
        excess = np.maximum(V - self.l1_ratio, 0.0).reshape(-1)
        return float(np.sum(excess * excess)) / (2.0 * (1.0 - self.l1_ratio))

    def _require_norm(self, what: str) -> None:
        if not self.is_norm:
            raise ValueError(
                f"The penalty {self.kind!r} is not a norm and has no {what}; the norms are "
                f"{', '.join(NORMS)}."
            )

    def _require_convex(self, what: str) -> None:
        if not self.convex:
            raise ValueError(f"The penalty {self.kind!r} is not convex and has no {what} here.")


def _euclidean(flat: Floats, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
    """Euclidean norm of each segment.

    Only where the largest square would leave the range of doubles is every segment scaled first;
    segments 1e150 times smaller than the largest entry may come out as 0.
    """
    if flat.size == 0:
        return np.zeros(0)
    largest = float(np.max(np.abs(flat)))
    if 1e-140 < largest < 1e140 or largest == 0.0:
        return np.asarray(np.sqrt(np.add.reduceat(flat * flat, starts)))
    peaks = np.maximum.reduceat(np.abs(flat), starts)
    scale = np.where(peaks > 0.0, peaks, 1.0)
    scaled = flat / np.repeat(scale, sizes)
    return np.asarray(scale * np.sqrt(np.add.reduceat(scaled * scaled, starts)))


def _prox_l2(
    flat: Floats, omega: Floats, step: float, starts: NDArray[np.intp], sizes: NDArray[np.intp]
) -> Floats:
    """Prox of step * ||omega * u||_2 in each segment; entries with omega = 0 stay as they are."""
    penalised = omega > 0.0
    ratio = np.zeros_like(flat)
    np.divide(flat, omega, out=ratio, where=penalised)
    vanish = _euclidean(ratio, starts, sizes) <= step
    weighted = flat * omega
    widest = step * np.maximum.reduceat(omega, starts) ** 2
    t = np.maximum(_euclidean(weighted, starts, sizes) - widest, 0.0)
    pull = step * omega**2
    active = ~vanish
    for _ in range(100):
        # h(t) = 1/||weighted/(t+pull)|| - 1 is concave and increasing: Newton climbs to the root.
        shifted = np.repeat(t, sizes) + pull
        quotient = np.zeros_like(flat)
        np.divide(weighted, shifted, out=quotient, where=penalised)
        norm = _euclidean(quotient, starts, sizes)
        slope = np.zeros_like(flat)
        np.divide(quotient**2, shifted, out=slope, where=penalised)
        slopes = np.add.reduceat(slope, starts)
        move = np.zeros_like(t)
        np.divide(norm**2 * (norm - 1.0), slopes, out=move, where=active & (slopes > 0.0))
        t = t + np.maximum(move, 0.0)
        active &= move > 4.0 * np.finfo(float).eps * t
        if not active.any():
            break
    spread = np.repeat(t, sizes)
    shrunk = np.zeros_like(flat)
    np.divide(flat * spread, spread + pull, out=shrunk, where=np.repeat(~vanish, sizes))
    return np.where(penalised, shrunk, flat)


def _prox_linf(
    flat: Floats, omega: Floats, step: float, starts: NDArray[np.intp], sizes: NDArray[np.intp]
) -> Floats:
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


def _sparse_group_roots(
    V: Floats, rho: float, starts: NDArray[np.intp], sizes: NDArray[np.intp]
) -> Floats:
    """Root c of ||(V - rho c)_+||_2 = (1 - rho) c in each segment of V >= 0.

    The difference of the two sides is convex and decreasing in c, so Newton from a lower bound
    climbs monotonically to the root.
    """
    if V.size == 0:
        return np.zeros(0)
    c = np.maximum.reduceat(V, starts)
    for _ in range(100):
        soft = np.maximum(V - np.repeat(rho * c, sizes), 0.0)
        norm = _euclidean(soft, starts, sizes)
        rate = np.full_like(c, 1.0 - rho)
        total = np.add.reduceat(soft, starts)
        rate += rho * np.divide(total, norm, out=np.zeros_like(norm), where=norm > 0.0)
        move = (norm - (1.0 - rho) * c) / rate
        c = c + np.maximum(move, 0.0)
        if np.all(move <= 2.0 * np.finfo(float).eps * c):
            break
    return c
