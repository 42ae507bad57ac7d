"""Decision boundaries and margins in two dimensions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from sparsvm._typing import Floats
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.plots.style import COLOURS, DASHES, axes_for, names_of_features, tidy

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# A sample counts as inside a margin if it falls short of it by more than this.
_SHORTFALL = 1e-6


class MarginDisplay:
    r"""Samples, decision boundaries and margins of a linear classifier of two features.

    For each pair of classes the boundary :math:`(w_r - w_t)^\top x + b_r - b_t = 0` is a full
    line and the two margins, where that difference is :math:`\pm 1`, are dashed ones. Samples
    that are misclassified or inside a margin have a dark rim.

    Parameters
    ----------
    coef : array of shape (K, 2)
        One row of weights per class.
    intercept : array of shape (K,)
    X : array of shape (n, 2)
    codes : int array of shape (n,)
        Class numbers of the samples.
    class_names, feature_names : lists of str

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    inside_ : bool array of shape (n,)
        The samples that are misclassified or inside a margin.
    smallest_margin_ : float
        The least :math:`1 / \|w_r - w_t\|`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import MaxMarginSVC
    >>> from sparsvm.plots import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginSVC().fit(X[:, [1, 3]], y)
    >>> display = MarginDisplay.from_estimator(model, X[:, [1, 3]], y)
    >>> bool(display.inside_.sum() == model.n_margin_errors_)
    True
    """

    def __init__(
        self,
        coef: Floats,
        intercept: Floats,
        X: Floats,
        codes: Any,
        *,
        class_names: list[str],
        feature_names: list[str],
    ) -> None:
        self.coef = coef
        self.intercept = intercept
        self.X = X
        self.codes = codes
        self.class_names = class_names
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature_names: Any = None,
        class_names: Any = None,
        ax: Any = None,
    ) -> MarginDisplay:
        """Draw a fitted linear classifier of two features with its samples.

        Parameters
        ----------
        estimator : MaxMarginSVC, SparseSVC or another with ``coef_``, ``intercept_``, ``classes_``
            Fitted.
        X : array-like of shape (n, 2)
            Samples to show.
        y : array-like of shape (n,)
            Their labels, from ``classes_``.
        feature_names : list of str or None, default=None
            Names of the axes; by default those seen in ``fit``.
        class_names : list of str or None, default=None
            Names of the classes, in the order of ``classes_``; by default the labels.
        ax : matplotlib axes or None, default=None
        """
        check_is_fitted(estimator, "coef_")
        coef = np.asarray(dense_coefficients(estimator.coef_), dtype=np.float64)
        if coef.shape[1] != 2:
            raise ValueError(
                f"MarginDisplay shows models of two features, but this one has {coef.shape[1]}. "
                "Fit a model on the two columns to be shown."
            )
        names = names_of_features(estimator, 2, feature_names)
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != 2:
            raise ValueError(f"X must have two columns, but it has {X.shape[1]}.")
        classes = np.asarray(estimator.classes_)
        labels = classes if class_names is None else class_names
        if len(labels) != classes.size:
            raise ValueError(f"There are {len(labels)} names for {classes.size} classes.")
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"X has {X.shape[0]} rows, but y has shape {y.shape}.")
        unknown = ~np.isin(y, classes)
        if unknown.any():
            raise ValueError(f"y has the label {y[unknown][0]!r}, which the model does not know.")
        intercept = np.broadcast_to(np.asarray(estimator.intercept_, float), coef.shape[:1])
        if classes.size == 2:
            coef = np.vstack([np.zeros((1, 2)), coef])
            intercept = np.concatenate([[0.0], intercept])
        display = cls(
            coef,
            intercept,
            X,
            np.searchsorted(classes, y),
            class_names=[str(name) for name in labels],
            feature_names=names,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> MarginDisplay:
        """Draw boundaries, margins and samples.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        """
        self.figure_, self.ax_ = axes_for(ax, (5.5, 4.5))
        ax = self.ax_
        self.inside_ = self._hinges() > _SHORTFALL
        self._limits(ax)
        shortest = np.inf
        for number, (r, t) in enumerate(combinations(range(len(self.coef)), 2)):
            weights = self.coef[r] - self.coef[t]
            norm = float(np.linalg.norm(weights))
            if norm == 0.0:
                continue
            shortest = min(shortest, 1.0 / norm)
            offset = float(self.intercept[r] - self.intercept[t])
            colour = COLOURS[(number + 3) % len(COLOURS)]
            for level in (0.0, 1.0, -1.0):
                self._line(ax, weights, offset - level, colour, dashed=level != 0.0)
            label = f"{self.class_names[r]} | {self.class_names[t]}: {1.0 / norm:.3g}"
            ax.plot([], [], color=colour, linewidth=1.5, label=label)
        self.smallest_margin_ = shortest
        for k, name in enumerate(self.class_names):
            rows = self.codes == k
            ax.scatter(
                *self.X[rows].T,
                s=26,
                marker=MARKERS[k % len(MARKERS)],
                color=COLOURS[k % len(COLOURS)],
                edgecolors=np.where(self.inside_[rows], "black", "white"),
                linewidths=np.where(self.inside_[rows], 1.3, 0.5),
                zorder=3,
            )
            # A mark of its own in the legend, whose rim does not depend on the first sample.
            marker, colour = MARKERS[k % len(MARKERS)], COLOURS[k % len(COLOURS)]
            ax.plot([], [], marker=marker, color=colour, markersize=5, linestyle="", label=name)
        ax.set_xlabel(self.feature_names[0])
        ax.set_ylabel(self.feature_names[1])
        # Lines and samples leave no corner free, so the legend goes below.
        ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.13),
            fontsize="x-small",
            frameon=False,
            ncols=2,
            title="margins of the pairs, and classes",
            title_fontsize="x-small",
        )
        tidy(ax)
        return self

    def _hinges(self) -> Floats:
        scores = self.X @ self.coef.T + self.intercept
        rows = np.arange(len(self.X))
        lifted = 1.0 + scores - scores[rows, self.codes][:, None]
        lifted[rows, self.codes] = 0.0
        return np.asarray(lifted.max(axis=1))

    def _limits(self, ax: Any) -> None:
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        room = 0.08 * np.where(high > low, high - low, 1.0)
        ax.set_xlim(low[0] - room[0], high[0] + room[0])
        ax.set_ylim(low[1] - room[1], high[1] + room[1])

    def _line(self, ax: Any, weights: Floats, offset: float, colour: str, *, dashed: bool) -> None:
        """Draw where ``weights x + offset`` is zero."""
        foot = -offset * weights / (weights @ weights)
        ax.axline(
            foot,
            foot + np.array([-weights[1], weights[0]]) / np.linalg.norm(weights),
            color=colour,
            linewidth=0.9 if dashed else 1.5,
            linestyle=DASHES[1] if dashed else DASHES[0],
            zorder=2,
        )
