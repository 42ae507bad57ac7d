"""A penalty resolved for given data: value, prox, dual norm and conjugate, in NumPy.

The l1 norm stands here, because others reduce to it where their groups are single coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm._typing import Array, Features, Floats, Indices, Ints
from sparsvm.numerics.columns import few
from sparsvm.numerics.rounding import EPS

# Settings.
# Up to so many weights the calls of NumPy take longer than what they compute.
FEW_WEIGHTS = 2**14
# Squares of entries in this range neither underflow nor overflow when summed.
SAFE_TO_SQUARE = (1e-140, 1e140)
# The scalar Newton iterations converge monotonically, in about ten steps; this only ends them.
NEWTON_STEPS = 100
# A step of a root beyond this share of it is more than rounding.
LEAST_MOVE = 4.0 * EPS


@dataclass(frozen=True, eq=False)
class PenaltyTerms:
    r"""A penalty with its groups and weights spelled out for d features.

    The penalty is ``base(omega * W)`` for coefficients ``W`` of shape (n_outputs, d), the weights
    ``omega`` multiplying the columns. With :math:`Z = \omega \circ W` and groups g (of features in
    all outputs when ``per_class`` is false, of features in one output when it is true) the convex
    ones are

    .. math:: base(Z) = \rho \sum |Z_{kj}| + (1-\rho)\, R(Z),

    where R is half the squared Euclidean norm, or the sum of norms of the groups. A subclass is
    one kind of penalty: it says what R is, and has the traits below. Whoever needs to know
    something of a penalty asks for a trait, never for the kind.

    Attributes
    ----------
    kind : str
        The name of the kind, in messages and for the core.
    convex, is_norm : bool
        A (weighted) norm has a dual norm; the others a conjugate.
    built_in : bool
        Whether the core knows it; a user's own penalty is known by its methods only.
    only_prox : bool
        Whether all that is known of it are its values, its dual norm or conjugate and its prox.
    separable : bool
        Whether it is a sum over single coefficients, so that ``groups`` do not matter.
    quadratic : bool
        Whether it is half the squared Euclidean norm.
    polyhedral : bool
        Whether it is piecewise linear.
    group_order : float or None
        The p of the norms :math:`\|Z_g\|_p` of groups that it adds up; None where it does not.
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
        The parameter of the penalties that are not convex; NaN for the others.
    """

    kind: ClassVar[str]
    convex: ClassVar[bool] = True
    built_in: ClassVar[bool] = True
    only_prox: ClassVar[bool] = False
    is_norm: ClassVar[bool] = True
    separable: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    polyhedral: ClassVar[bool] = False
    group_order: ClassVar[float | None] = None

    l1_ratio: float
    groups: Features
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
    def by_features(self) -> bool:
        """Whether the penalty is a sum over single features."""
        return self.separable or self.n_groups == self.d

    @property
    def is_l1(self) -> bool:
        """Whether the penalty is a (weighted) l1 norm."""
        return self.is_norm and self.separable

    @property
    def is_group_norm(self) -> bool:
        """Whether the penalty is the sum of norms of groups, and nothing else."""
        return self.group_order is not None and self.l1_ratio == 0.0

    @property
    def ceiling(self) -> float:
        """The most that one group can cost."""
        return float("inf")

    @cached_property
    def free(self) -> Ints:
        """Indices of the unpenalised features (omega = 0)."""
        return np.flatnonzero(self.omega == 0.0)

    @cached_property
    def inverse_omega(self) -> Floats:
        """1 / omega, and 0 for unpenalised features, which leaves them out of dual norms."""
        inverse = np.zeros_like(self.omega)
        np.divide(1.0, self.omega, out=inverse, where=self.omega > 0.0)
        return inverse

    def restricted_to(self, features: Indices) -> PenaltyTerms:
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

    def native_arguments(self) -> dict[str, Any]:
        """Return what the core is told of the penalty."""
        return {
            "kind": self.kind,
            "l1_ratio": self.l1_ratio,
            "groups": self.groups,
            "n_groups": self.n_groups,
            "per_class": self.per_class,
            "omega": self.omega,
        }

    def as_l1(self) -> L1Terms:
        """Return the l1 norm with the same weights."""
        return L1Terms(
            l1_ratio=1.0,
            groups=self.groups,
            n_groups=self.n_groups,
            per_class=self.per_class,
            omega=self.omega,
            n_outputs=self.n_outputs,
        )

    # ------------------------------------------------------------------ segments
    # Group operations run on a flat vector in which each group is one contiguous segment.

    @cached_property
    def _order(self) -> Ints | None:
        """Features sorted by group, or None when they already are."""
        if np.all(self.groups[1:] >= self.groups[:-1]):
            return None
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def _sizes(self) -> Ints:
        """Number of entries of each segment."""
        counts = np.bincount(self.groups, minlength=self.n_groups)
        if self.per_class:
            return np.tile(counts, self.n_outputs)
        return counts * self.n_outputs

    @cached_property
    def _starts(self) -> Ints:
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

        The norm of order ``group_order``, Euclidean where there is none. Shape (n_groups,), or
        (n_outputs, n_groups) when per_class.
        """
        norms = self._segment_norms(np.abs(self._flatten(W * self.omega)))
        return norms.reshape(self.n_outputs, self.n_groups) if self.per_class else norms

    def _segment_norms(self, flat: Floats) -> Floats:
        """Return the norm of each segment of absolute values."""
        return euclidean(flat, self._starts, self._sizes)

    def value(self, W: Floats) -> float:
        """Return the penalty of W, shape (n_outputs, d)."""
        W = np.asarray(W, dtype=np.float64)
        support = np.flatnonzero(W.any(axis=0))
        if support.size == 0:
            return 0.0
        if few(support.size, self.d):
            # Zero columns add nothing to any kind; most coefficients are zero, most of the time.
            return self.restricted_to(support).value(W[:, support])
        return self._value(W)

    def _value(self, W: Floats) -> float:
        total = 0.0
        if self.l1_ratio > 0.0:
            Z = np.ascontiguousarray(W * self.omega).reshape(-1)
            total += self.l1_ratio * float(np.sum(np.abs(Z)))
        if self.l1_ratio < 1.0:
            total += (1.0 - self.l1_ratio) * self._rest(W)
        return total

    def _rest(self, W: Floats) -> float:
        """Return R(omega * W)."""
        raise NotImplementedError

    def value_at(self, features: Indices, values: Floats) -> float:
        """Return the penalty of weights (n_outputs, m) of these features, all others being zero."""
        if not self.convex or values.size > FEW_WEIGHTS:
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
        r"""Return the g of :math:`penalty = g - h` with g and h convex; the penalty if convex."""
        return self

    def concave_slope(self, W: Floats) -> tuple[Floats, float]:
        r"""Return a subgradient V at W of the h of ``convex_part``, and the tangent's constant.

        That constant is :math:`h(W) - \langle V, W\rangle`.
        """
        return np.zeros((self.n_outputs, self.d)), 0.0

    def off_kinks(self, W: Floats) -> bool | None:
        """Whether the h of ``convex_part`` is linear around W; None if not piecewise linear."""
        return True

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
        return U if rest == 0.0 else self._prox_rest(U, rest)

    def _prox_rest(self, W: Floats, step: float) -> Floats:
        """Return the prox of step R(omega * .) at W."""
        raise NotImplementedError

    # ------------------------------------------------------------------ dual side

    def group_dual_norms(self, G: Floats) -> Floats:
        r"""Return the dual norm of each group of ``G / omega``, flat.

        A group is a coefficient where the penalty is separable. Unpenalised features are left out.
        """
        self._require_norm()
        V = self._flatten(np.abs(G) * self.inverse_omega)
        return V if V.size == 0 else self._segment_dual_norms(V)

    def _segment_dual_norms(self, V: Floats) -> Floats:
        """Return the dual norm of each segment of absolute values."""
        raise NotImplementedError

    def spread(self, per_group: Array) -> Array:
        """Give every coefficient the value of its group, in the order of ``group_dual_norms``."""
        sizes = 1 if self.separable else self._sizes
        return np.asarray(self._unflatten(np.repeat(per_group, sizes)))

    def dual_norm(self, G: Floats) -> float:
        """Return the dual norm of G, shape (n_outputs, d): the largest over the groups."""
        return float(np.max(self.group_dual_norms(G), initial=0.0))

    def dual_norm_within(self, G: Floats, error: Floats) -> float:
        """Return a bound on the dual norm of all that is within ``error`` of G."""
        return self.dual_norm(np.abs(G) + error)

    def conjugate(self, G: Floats) -> float:
        r"""Return the convex conjugate at G, unpenalised features left out.

        For a norm 0 where the dual norm is at most 1, and infinite elsewhere.
        """
        self._require_convex("conjugate")
        return 0.0 if self.dual_norm(G) <= 1.0 else float("inf")

    def _require_norm(self) -> None:
        if not self.is_norm:
            raise ValueError(
                f"The penalty {self.kind!r} is not a norm and has no dual norm; use conjugate."
            )

    def _require_convex(self, what: str) -> None:
        if not self.convex:
            raise ValueError(f"The penalty {self.kind!r} is not convex and has no {what} here.")


class L1Terms(PenaltyTerms):
    r"""The norm :math:`\sum |Z_{kj}|`."""

    kind: ClassVar[str] = "l1"
    separable: ClassVar[bool] = True
    polyhedral: ClassVar[bool] = True

    def _segment_dual_norms(self, V: Floats) -> Floats:
        return V


def euclidean(flat: Floats, starts: Ints, sizes: Ints) -> Floats:
    """Euclidean norm of each segment.

    Only where the largest square would leave the range of doubles is every segment scaled first;
    segments 1e150 times smaller than the largest entry may come out as 0.
    """
    if flat.size == 0:
        return np.zeros(0)
    largest = float(np.max(np.abs(flat)))
    if SAFE_TO_SQUARE[0] < largest < SAFE_TO_SQUARE[1] or largest == 0.0:
        return np.asarray(np.sqrt(np.add.reduceat(flat * flat, starts)))
    peaks = np.maximum.reduceat(np.abs(flat), starts)
    scale = np.where(peaks > 0.0, peaks, 1.0)
    scaled = flat / np.repeat(scale, sizes)
    return np.asarray(scale * np.sqrt(np.add.reduceat(scaled * scaled, starts)))
