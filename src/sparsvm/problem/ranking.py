"""Label ranking as a problem: several labels a sample, pairs of labels that should be in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Features, Floats
from sparsvm.losses.pairwise import PairwiseSquaredHinge
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.problem import DesignLike, Problem


@dataclass(frozen=True, eq=False)
class RankingProblem(Problem):
    r"""Minimise the weighted mean of :class:`~sparsvm.losses.pairwise.PairwiseSquaredHinge`.

    A sample's ``y`` is the number of its label set, ``n_classes`` the number L of labels. Two
    labels have two rows of coefficients.

    Dual variables :math:`a_{irt} \ge 0`, one a pair, would be too many. At an optimum they are
    :math:`2 p_i c_i \max(0, 1 - \Sigma_{ir} + \Sigma_{it})` for scores :math:`\Sigma`, and every
    dual point that is the best for its sums over t and over r has this form. So a dual point is a
    score matrix of shape (n, L); the derivative of the loss that it stands for is the derivative
    there. A factor c of the dual point is :math:`c \Sigma`, with 1 - c added to the labels of Y.
    """

    @classmethod
    def of(
        cls,
        design: DesignLike,
        y: Features,
        mass: Floats,
        loss: PairwiseSquaredHinge,
        penalty: PenaltyTerms,
        alpha: float,
        fit_intercept: bool,
    ) -> RankingProblem:
        """Return the problem of samples with these label sets."""
        L = loss.sets.shape[1]
        return cls(
            design=design,
            y=y,
            mass=mass,
            cost=1.0 - np.eye(L),
            n_classes=L,
            alpha=alpha,
            loss=loss,
            penalty=penalty,
            fit_intercept=fit_intercept,
        )

    @property
    def n_outputs(self) -> int:
        """One row of coefficients a label."""
        return self.n_classes

    @property
    def one_vs_rest(self) -> bool:
        """No label of a sample has its dual variable from those of the others."""
        return True

    def _of_all_classes(self, outputs: Floats, b: Floats) -> Floats:
        return np.asarray(outputs + b)

    def _largest_margins(self) -> Floats:
        return np.ones(self.n)

    def margins(self, rows: slice = slice(None)) -> Floats:
        """Return nothing: the loss has no margins but 1."""
        return np.zeros((0, self.n_classes))

    @property
    def label_sets(self) -> PairwiseSquaredHinge:
        """The loss, which holds the sets."""
        assert isinstance(self.loss, PairwiseSquaredHinge)
        return self.loss

    @cached_property
    def rows(self) -> Any:
        """The losses of all samples in native code."""
        return _core.RankingProblem(
            **self.samples,
            alpha=1.0,
            intercept=False,
            kind="l1",
            l1_ratio=1.0,
            groups=np.arange(self.d, dtype=np.int32),
            n_groups=self.d,
            per_class=True,
            omega=np.zeros(self.d),
        )

    @property
    def samples(self) -> dict[str, Any]:
        """The arguments of native problems that are about the samples."""
        return {
            "design": self.design,
            "y": self.y,
            "sets": np.ascontiguousarray(self.label_sets.sets, dtype=np.uint8),
            "factor": self.label_sets.factor,
            "mass": self.mass,
        }

    def dual_at(self, scores: Floats) -> Floats:
        """Return the dual point that belongs to the scores: the scores."""
        return np.array(scores)

    def signed_dual(self, dual: Floats, overwrite: bool = False) -> Floats:
        """Return the derivative of the loss at the scores that stand for a dual point."""
        return np.asarray(self.rows.slopes(np.ascontiguousarray(dual))[1])

    def transposed(self, signed: Floats) -> Floats:
        r"""Return :math:`R^\top X`, shape (n_labels, d)."""
        return np.asarray(self.design.transposed(np.ascontiguousarray(signed))).T

    def with_alpha(self, alpha: float) -> RankingProblem:
        """Return the problem at another strength of the penalty."""
        other = replace(self, alpha=alpha)
        for name in ("rows", "column_norms", "column_dual_norm"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other
