"""The face of a penalty at a point: where it is smooth, and its derivatives there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsvm._typing import Bools, Floats, Ints
from sparsvm.penalties.terms import PenaltyTerms

# Coefficients within this share of the largest of their group are tied to it: the prox cuts them
# all at one level.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Face:
    r"""The coefficients that move on the face of a penalty at W, shape (n_outputs, d).

    :math:`W = basis \circ z_{variable}`: a coefficient moves alone, or with those that share the
    largest absolute value of its group, or not at all (variable -1).
    """

    terms: PenaltyTerms
    W: Floats
    group: Ints
    norms: Floats
    variable: Ints
    basis: Floats
    size: int

    @classmethod
    def at(cls, terms: PenaltyTerms, group: Ints, W: Floats) -> Face:
        """Return the face at W; ``group`` are the numbers of :func:`group_numbers`."""
        free = np.broadcast_to(terms.omega == 0.0, W.shape)
        norms = np.ones_like(W)
        tied = np.zeros(W.shape, dtype=bool)
        if terms.separable:
            moving = (W != 0.0) if terms.l1_ratio > 0.0 else np.ones(W.shape, dtype=bool)
        else:
            norms = np.asarray(terms.spread(terms.group_norms(W).reshape(-1)))
            moving = norms > 0.0
            if terms.l1_ratio > 0.0:
                moving = moving & (W != 0.0)
            if terms.group_order == np.inf:
                tied = moving & ~free & (np.abs(W * terms.omega) >= (1.0 - TIE) * norms)
        moving = moving | free
        variable = np.full(W.shape, -1, dtype=np.int64)
        alone = moving & ~tied
        n_alone = int(np.count_nonzero(alone))
        variable[alone] = np.arange(n_alone)
        size, basis = n_alone, moving.astype(np.float64)
        if tied.any():
            present, number = np.unique(group[tied], return_inverse=True)
            variable[tied] = n_alone + number.reshape(-1)
            size += present.size
            basis[tied] = (np.sign(W) / np.where(free, 1.0, terms.omega))[tied]
        return cls(terms, W, group, norms, variable, basis, size)

    def spread(self, z: Floats) -> Floats:
        """Return the change of W that a change z of the variables makes."""
        return np.asarray(self.basis * np.append(z, 0.0)[self.variable])

    def gathered(self, G: Floats) -> Floats:
        """Return the derivative in the variables of what has derivative G in W."""
        moving = self.variable >= 0
        weights = (self.basis * G)[moving]
        return np.asarray(np.bincount(self.variable[moving], weights, self.size), dtype=np.float64)

    def squared(self, H: Floats) -> Floats:
        """Return the diagonal in the variables of a matrix with diagonal H in W."""
        moving = self.variable >= 0
        weights = (self.basis**2 * H)[moving]
        return np.asarray(np.bincount(self.variable[moving], weights, self.size), dtype=np.float64)

    def slope(self) -> Floats:
        """Return the derivative of the penalty on the face."""
        terms, omega, rho = self.terms, self.terms.omega, self.terms.l1_ratio
        total = rho * omega * np.sign(self.W)
        if rho == 1.0:
            return np.asarray(total)
        if terms.separable:
            return np.asarray(total + (1.0 - rho) * omega**2 * self.W)
        if terms.group_order == 2.0:
            return np.asarray(total + (1.0 - rho) * omega**2 * self.W / self._safe_norms)
        ties = self._tied_at_top()
        number = np.bincount(self.group[ties], minlength=int(self.group.max(initial=0)) + 1)
        share = np.where(ties, 1.0 / np.maximum(number[self.group], 1), 0.0)
        return np.asarray(total + (1.0 - rho) * omega * np.sign(self.W) * share)

    def curved(self, D: Floats) -> Floats:
        """Return the product of the penalty's second derivative on the face with D."""
        terms, omega, rest = self.terms, self.terms.omega, 1.0 - self.terms.l1_ratio
        if rest == 0.0 or terms.group_order == np.inf:
            return np.zeros_like(D)
        if terms.separable:
            return np.asarray(rest * omega**2 * D)
        along = omega**2 * self.W
        sums = np.bincount(self.group.reshape(-1), (along * D).reshape(-1))[self.group]
        return np.asarray(
            rest * (omega**2 * D - along * sums / self._safe_norms**2) / self._safe_norms
        )

    def curvature(self) -> Floats:
        """Return the diagonal of that second derivative."""
        terms, omega, rest = self.terms, self.terms.omega, 1.0 - self.terms.l1_ratio
        if rest == 0.0 or terms.group_order == np.inf:
            return np.zeros_like(self.W)
        if terms.separable:
            return np.broadcast_to(rest * omega**2, self.W.shape)
        norms = self._safe_norms
        share = np.clip((omega * self.W / norms) ** 2, 0.0, 1.0)
        return np.asarray(rest * omega**2 * (1.0 - share) / norms)

    def landed(self, new: Floats) -> Floats:
        """Return the point with zeros for what crossed a kink on the way from W to it."""
        terms = self.terms
        penalised = np.broadcast_to(terms.omega > 0.0, new.shape)
        if terms.l1_ratio > 0.0:
            new = np.where(penalised & (new * self.W < 0.0), 0.0, new)
        if not terms.separable:
            inner = np.where(penalised, new * self.W * terms.omega**2, 0.0)
            sums = np.bincount(self.group.reshape(-1), inner.reshape(-1))[self.group]
            new = np.where(penalised & (sums <= 0.0), 0.0, new)
            if terms.group_order == np.inf:
                new = self._below_top(new, penalised)
        return np.asarray(new)

    def _below_top(self, new: Floats, penalised: Bools) -> Floats:
        """Tie what has grown beyond those that share the largest absolute value of its group."""
        ties = self._tied_at_top() & penalised
        top = np.full(int(self.group.max(initial=0)) + 1, np.inf)
        top[self.group[ties]] = np.abs(new * self.terms.omega)[ties]
        omega = np.where(penalised, self.terms.omega, 1.0)
        most = np.where(penalised, top[self.group], np.inf) / omega
        return np.asarray(np.clip(new, -most, most))

    @property
    def _safe_norms(self) -> Floats:
        return np.where(self.norms > 0.0, self.norms, 1.0)

    def _tied_at_top(self) -> Bools:
        size = np.abs(self.W * self.terms.omega)
        return np.asarray((self.norms > 0.0) & (size >= (1.0 - TIE) * self.norms))


def group_numbers(terms: PenaltyTerms) -> Ints:
    """Return the number of the group of every coefficient, shape (n_outputs, d)."""
    shape = (terms.n_outputs, terms.d)
    if terms.separable:
        return np.arange(terms.n_outputs * terms.d).reshape(shape)
    if terms.per_class:
        return np.asarray(
            np.arange(shape[0])[:, None] * terms.n_groups + terms.groups, dtype=np.int64
        )
    return np.asarray(np.broadcast_to(terms.groups, shape), dtype=np.int64)


def scaled_prox(terms: PenaltyTerms, V: Floats, alpha: float, metric: Floats) -> Floats:
    r"""Return :math:`\arg\min_U \frac12 \sum M (U - V)^2 + \alpha\, penalty(U)`.

    ``metric`` has the shape of V, and one value in all coefficients of the features of a group
    unless the penalty is separable.
    """
    if terms.separable:
        level = alpha * terms.l1_ratio * terms.omega / metric
        U = np.sign(V) * np.maximum(np.abs(V) - level, 0.0)
        if terms.is_norm:
            return np.asarray(U)
        return np.asarray(U / (1.0 + alpha * (1.0 - terms.l1_ratio) * terms.omega**2 / metric))
    return replace(terms, omega=terms.omega * alpha / metric[0]).prox(V, 1.0)
