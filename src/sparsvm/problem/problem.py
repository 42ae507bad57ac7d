"""The problem to solve.

This module is the only place that knows the scaling conventions: the loss is a weighted mean with
masses ``p_i = s_i / sum(s)``, ``alpha`` multiplies the penalty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from sparsvm._typing import Features, Floats, Labels
from sparsvm.losses import Loss, SmoothLoss
from sparsvm.numerics.columns import Columns, columns_in_use, few
from sparsvm.numerics.rounding import EPS
from sparsvm.numerics.rows import row_blocks, row_max, row_sum
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.latent import folded, unfolded

# Settings.
# The rounding error of an objective, relative to the size of what it is computed from.
ROUNDING = 16.0 * EPS
# Features for an entry of a block of scores: every block reads a place per feature.
FEATURES_OF_ENTRY = 4


class DesignLike(Protocol):
    """What a problem asks of its design matrix (see :func:`sparsvm.data.design.make_design`)."""

    @property
    def is_sparse(self) -> bool:
        """Whether only non-zeros are stored."""

    def scores(self, W: Floats, /) -> Floats:
        """X W for W of shape (d, K)."""

    def scores_subset(self, features: Features, W: Floats, /) -> Floats:
        """X[:, features] W for W of shape (m, K)."""

    def scores_range(self, first: int, last: int, features: Features, W: Floats, /) -> Floats:
        """X[first:last, features] W for increasing features and W of shape (m, K)."""

    def transposed(self, Y: Floats, /) -> Floats:
        """X' Y for Y of shape (n, K)."""

    def abs_scores(self, w: Floats, /) -> Floats:
        """|X| w for w of shape (d,)."""

    def largest_weights(self, w: Floats, /) -> Floats:
        """For every sample the largest w >= 0 of the features that it has."""

    def column_norms(self) -> Floats:
        """Euclidean norm of each column."""

    def column_stats(self, mass: Floats, /) -> Any:
        """Mean, variance (weighted by mass), Euclidean norm, largest absolute value."""

    def gather_columns(self, features: Features, /) -> Floats:
        """Columns of X, shape (n, m)."""


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Minimise the weighted mean loss plus ``alpha`` times the penalty.

    .. math::
        \min_{W, b} \; \sum_i p_i\, \ell(y_i, X_i W^\top + b)
        + \alpha\, \bigl(penalty(W) - \langle V, W \rangle\bigr)

    Attributes
    ----------
    design : Design
        n samples in d features.
    y : int32 array of shape (n,)
        Class numbers 0 ... n_classes - 1.
    mass : array of shape (n,)
        Positive weights of the samples, summing to 1.
    cost : array of shape (K, K)
        Margin between the true class (row) and another (column); zero diagonal.
    margin_scale : None or array of shape (n,)
        Factor of each sample's margins.
    n_classes : int
    alpha : float
    loss : Loss
    penalty : PenaltyTerms
    fit_intercept : bool
    linear_term : None or array of shape (n_outputs, d)
        V, as left by linearising the concave part of a non-convex penalty.
    margin_matrix : None or array of shape (n, K)
        The margins themselves, in place of ``cost`` and ``margin_scale``: of either sign, zero at
        each sample's class. Linearising a ramp loss leaves such margins
        (:mod:`sparsvm.problem.linearise`).
    offset : float
        A constant added to the objective and to its lower bound, so that tolerances relative to
        the objective mean what they mean for the problem this one was derived from.
    columns : None or int32 array of shape (d,)
        Where groups overlap, the user's feature of which each column is a copy
        (:mod:`sparsvm.problem.latent`).

    Notes
    -----
    With two classes there is one row of coefficients and the scores are ``(0, w x + b)``.
    """

    design: DesignLike
    y: Labels
    mass: Floats
    cost: Floats
    n_classes: int
    alpha: float
    loss: Loss
    penalty: PenaltyTerms
    fit_intercept: bool = True
    margin_scale: Floats | None = None
    linear_term: Floats | None = None
    margin_matrix: Floats | None = None
    offset: float = 0.0
    columns: Features | None = None

    def __post_init__(self) -> None:
        K, n = self.n_classes, self.y.size
        if self.mass.shape != (n,):
            raise ValueError(f"There are {n} labels but {self.mass.size} sample masses.")
        if self.cost.shape != (K, K):
            raise ValueError(f"The cost matrix has shape {self.cost.shape} for {K} classes.")
        if self.margin_scale is not None and self.margin_scale.shape != (n,):
            raise ValueError(f"There are {n} labels but {self.margin_scale.size} sample margins.")
        if self.margin_matrix is not None and self.margin_matrix.shape != (n, K):
            raise ValueError(
                f"The margins have shape {self.margin_matrix.shape} for {n} samples and {K} "
                "classes."
            )
        if self.penalty.n_outputs != self.n_outputs:
            raise ValueError(
                f"The penalty was resolved for {self.penalty.n_outputs} outputs but {K} classes "
                f"have {self.n_outputs}."
            )
        if self.linear_term is not None and self.linear_term.shape != (self.n_outputs, self.d):
            raise ValueError(
                f"The linear term has shape {self.linear_term.shape} but the coefficients have "
                f"shape {(self.n_outputs, self.d)}."
            )
        if self.linear_term is not None and np.any(self.linear_term[:, self.penalty.free] != 0.0):
            raise ValueError(
                "The linear term must be zero on unpenalised features; there it could not be "
                "outweighed."
            )

    @property
    def convex(self) -> bool:
        """Whether loss and penalty are both convex."""
        return self.loss.convex and self.penalty.convex

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.y.size)

    @property
    def d(self) -> int:
        """Number of features."""
        return self.penalty.d

    @property
    def n_outputs(self) -> int:
        """Rows of coefficients: 1 for two classes, otherwise one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    def margins(self, rows: slice = slice(None)) -> Floats:
        """Return ``margin_scale[i] * cost[y_i, k]`` or ``margin_matrix``, shape (n, K).

        Of all samples, or of a slice of them.
        """
        if self.margin_matrix is not None:
            return self.margin_matrix[rows].copy()
        margins = self.cost[self.y[rows]]
        if self.margin_scale is not None:
            margins *= self.margin_scale[rows, None]
        return margins

    def _largest_margins(self) -> Floats:
        """Return the largest absolute margin of each sample."""
        if self.margin_matrix is not None:
            return row_max(np.abs(self.margin_matrix))
        largest = row_max(np.abs(self.cost))[self.y]
        return largest if self.margin_scale is None else largest * np.abs(self.margin_scale)

    def _losses(self, scores: Floats, block: slice) -> Floats:
        """Return the losses of a block of samples."""
        losses = np.empty(len(scores))
        for rows in row_blocks(len(scores), self.n_classes):
            of = slice(block.start + rows.start, block.start + rows.stop)
            losses[rows] = self.loss.value(scores[rows], self.y[of], self.margins(of))
        return losses

    def margin_value(self, entries: Floats) -> float:
        r"""Return :math:`\sum_{ik} F_{ik} m_{ik}` of dual entries."""
        return sum(
            float(np.sum(entries[rows] * self.margins(rows)))
            for rows in row_blocks(self.n, self.n_classes)
        )

    def scores(self, W: Floats | Columns, b: Floats) -> Floats:
        """Return the scores of all classes, shape (n, K); class 0 of two is pinned to zero."""
        return self._scores_of(self.few_columns(W), b)

    def _scores_of(self, columns: Floats | Columns, b: Floats) -> Floats:
        if isinstance(columns, Columns):
            rows = np.ascontiguousarray(columns.values.T, dtype=np.float64)
            outputs = self.design.scores_subset(columns.used, rows)
        else:
            outputs = self.design.scores(np.ascontiguousarray(columns.T, dtype=np.float64))
        return self._of_all_classes(outputs, b)

    def _of_all_classes(self, outputs: Floats, b: Floats) -> Floats:
        outputs += b
        if self.n_classes > 2:
            return np.asarray(outputs)
        return np.hstack([np.zeros_like(outputs), outputs])

    def score_blocks(self, W: Floats | Columns, b: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of samples with their scores; of dense data all at once."""
        return self._score_blocks_of(self.few_columns(W), b)

    def _score_blocks_of(
        self, columns: Floats | Columns, b: Floats
    ) -> Iterator[tuple[slice, Floats]]:
        if not self.design.is_sparse:
            yield slice(0, self.n), self._scores_of(columns, b)
            return
        if not isinstance(columns, Columns):
            columns = Columns.all_of(columns)
        rows = np.ascontiguousarray(columns.values.T, dtype=np.float64)
        for block in row_blocks(self.n, self.n_classes, self.d // FEATURES_OF_ENTRY):
            outputs = self.design.scores_range(block.start, block.stop, columns.used, rows)
            yield block, self._of_all_classes(outputs, b)

    def few_columns(self, W: Floats | Columns) -> Floats | Columns:
        """Return the columns of W in use if they are few of many, otherwise W itself."""
        if isinstance(W, Columns):
            return W
        used = columns_in_use(W)
        return Columns(used.astype(np.int32), W[:, used], self.d) if few(used.size, self.d) else W

    def _penalty_value(self, W: Floats | Columns) -> float:
        columns = W if isinstance(W, Columns) else Columns.all_of(W)
        terms = self.penalty
        if not terms.by_features:
            return terms.value_at(columns.used, columns.values)
        return sum(
            terms.value_at(columns.used[block], columns.values[:, block])
            for block in row_blocks(columns.used.size, self.n_outputs)
        )

    def transposed(self, signed: Floats) -> Floats:
        r"""Return :math:`G = \tilde Y^\top X`, shape (n_outputs, d), for an (n, K) matrix."""
        outputs = signed[:, 1:] if self.n_classes == 2 else signed
        return np.asarray(self.design.transposed(np.ascontiguousarray(outputs))).T

    @property
    def one_vs_rest(self) -> bool:
        """Whether each class has a term of its own: one-vs-rest with more than two classes."""
        return self.n_classes > 2 and not self.loss.of_differences

    @property
    def n_blocks(self) -> int:
        """How many diagonal blocks the Hessian of the loss has: outputs that share no term."""
        return self.n_outputs if self.n_classes > 2 and not self.loss.of_differences else 1

    def signed_dual(self, dual: Floats, overwrite: bool = False) -> Floats:
        r"""Return :math:`\tilde Y`, the derivative of the loss that ``dual`` stands for.

        For losses of score differences :math:`\tilde Y_{ik} = Y_{ik} - p_i [k = y_i]` in exact row
        balance: the true class gets minus the sum of the others, whatever ``dual`` holds there.
        For one-vs-rest with more than two classes, the true class gets the opposite sign.
        """
        signed = (np.asarray if overwrite else np.array)(dual, dtype=np.float64)
        rows = np.arange(self.n)
        if self.one_vs_rest:
            signed[rows, self.y] *= -1.0
            return signed
        signed[rows, self.y] = 0.0
        signed[rows, self.y] = -row_sum(signed)
        return signed

    def objective(self, W: Floats | Columns, b: Floats) -> float:
        """Return the objective at coefficients W (n_outputs, d) and intercepts b (n_outputs,)."""
        losses = np.empty(self.n)
        columns = self.few_columns(W)
        for block, scores in self._score_blocks_of(columns, b):
            losses[block] = self._losses(scores, block)
        return self._total(losses, columns)

    def objective_at(self, scores: Floats, W: Floats | Columns) -> float:
        """Return the objective at W where the scores are already known."""
        return self._total(self._losses(scores, slice(0, self.n)), self.few_columns(W))

    def _total(self, losses: Floats, used: Floats | Columns) -> float:
        total = float(np.sum(self.mass * losses))
        total += self.alpha * self._penalty_value(used)
        total += self.offset
        if self.linear_term is None:
            return total
        if isinstance(used, Columns):
            return total - self.alpha * float(np.sum(self.linear_term[:, used.used] * used.values))
        return total - self.alpha * float(np.sum(np.ascontiguousarray(self.linear_term * used)))

    def floor(self, W: Floats | Columns, b: Floats, scores: Floats | None = None) -> float:
        r"""Return the rounding error of the objective.

        For the hinge, 16 eps times the weighted mean of :math:`z_i = \max_k |m_{ik}| +
        2\sum_j |x_{ij}| \max_k |W_{kj}| + 2 \max_k |b_k|`, the size of what a loss is computed
        from. A smooth loss multiplies that error by its slope and adds the rounding of its own
        value: 16 eps times the weighted mean of :math:`\ell_i + z_i \sum_k |F_{ik}|/p_i`, with
        the dual entries F of the scores (``scores`` saves their computation). An offset adds
        its own, and so do a linear term and the penalty that it may cancel.
        """
        if isinstance(W, Columns):
            largest = W.largest()
        else:
            largest = np.maximum(W.max(axis=0, initial=0.0), -W.min(axis=0, initial=0.0))
        sizes = 2.0 * np.asarray(self.design.abs_scores(largest))
        sizes += 2.0 * float(np.max(np.abs(b), initial=0.0))
        sizes += self._largest_margins()
        if isinstance(self.loss, SmoothLoss):
            scores = self.scores(W, b) if scores is None else scores
            at = (scores, self.y, self.margins())
            sizes *= row_sum(self.loss.dual_entries(*at))
            sizes += self.loss.value(*at)
        sizes += abs(self.offset)
        total = float(np.sum(self.mass * sizes))
        if self.linear_term is not None:
            columns = W if isinstance(W, Columns) else Columns.all_of(W)
            linear = float(np.sum(np.abs(self.linear_term[:, columns.used] * columns.values)))
            total += self.alpha * (self._penalty_value(columns) + linear)
        return ROUNDING * total

    def dual_at(self, scores: Floats) -> Floats:
        """Return the dual point that belongs to the scores, for smooth losses; not yet feasible.

        The derivatives of the loss, as described in :class:`~sparsvm.problem.solution.Solution`.
        """
        if not isinstance(self.loss, SmoothLoss):
            raise ValueError(f"The loss {self.loss.name!r} has no derivative to make a dual from.")
        return self.mass[:, None] * self.loss.dual_entries(scores, self.y, self.margins())

    def folded(self, coef: Floats) -> Floats:
        """Return coefficients of the user's features: where groups overlap, sums of parts."""
        return coef if self.columns is None else folded(coef, self.columns)

    def unfolded(self, coef: Floats) -> Floats:
        """Return coefficients of this problem from those of the user's features."""
        return coef if self.columns is None else unfolded(coef, self.columns)

    def with_alpha(self, alpha: float) -> Problem:
        """Return the problem at another strength, without checking it again.

        What has been measured of the columns goes along.
        """
        other = object.__new__(Problem)
        other.__dict__.update(self.__dict__, alpha=alpha)
        return other

    @cached_property
    def column_norms(self) -> Floats:
        """Euclidean norm of each column, for the rounding error of products."""
        return np.asarray(self.design.column_norms(), dtype=np.float64)

    @cached_property
    def column_dual_norm(self) -> float:
        """Dual norm of the column norms, the same in all outputs."""
        norms = np.broadcast_to(self.column_norms, (self.n_outputs, self.d))
        return self.penalty.dual_norm(norms)
