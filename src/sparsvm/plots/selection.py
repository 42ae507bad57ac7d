"""What accuracy costs in features."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.estimators.cv_results import one_error_rule
from sparsvm.plots.style import COLOURS, GREY, axes_for, tidy


class SelectionDisplay:
    """Mean score of a cross-validation against the mean number of features used.

    The bars are one standard error long to each side. The best point and the sparsest within one
    standard error of it (the choice of ``rule="1se"``) are marked.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    n_selected, scores : arrays of shape (n_alphas, n_folds)
        As the attributes of a fitted :class:`~sparsvm.SparseSVCCV`.
    score_name : str, default="score"

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    best_index_, one_error_index_ : int
        The two marked points.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVCCV
    >>> from sparsvm.plots import SelectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVCCV(penalty="l1/l2", n_alphas=10).fit(X, y)
    >>> display = SelectionDisplay.from_estimator(model)
    >>> bool(display.one_error_index_ <= display.best_index_)
    True
    """

    def __init__(
        self, alphas: Floats, n_selected: Any, scores: Floats, *, score_name: str = "score"
    ) -> None:
        self.alphas = alphas
        self.n_selected = n_selected
        self.scores = scores
        self.score_name = score_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> SelectionDisplay:
        """Draw the cross-validation of a fitted :class:`~sparsvm.SparseSVCCV`.

        Parameters
        ----------
        estimator : SparseSVCCV
            Fitted.
        ax : matplotlib axes or None, default=None
        """
        if not hasattr(estimator, "scores_"):
            raise ValueError(
                "SelectionDisplay shows a fitted SparseSVCCV, but this estimator "
                f"({type(estimator).__name__}) has no scores_. Fit a SparseSVCCV first."
            )
        scoring = estimator.scoring
        name = "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"
        display = cls(estimator.alphas_, estimator.n_selected_, estimator.scores_, score_name=name)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> SelectionDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        """
        self.figure_, self.ax_ = axes_for(ax, (7.0, 4.5))
        ax = self.ax_
        features, means = self.n_selected.mean(axis=1), self.scores.mean(axis=1)
        folds = self.scores.shape[1]
        errors = self.scores.std(axis=1, ddof=1 if folds > 1 else 0) / np.sqrt(folds)
        self.best_index_ = int(np.nanargmax(means))
        self.one_error_index_ = one_error_rule(self.scores, self.best_index_)
        ax.plot(features, means, color=GREY, linewidth=0.8, zorder=2)
        ax.errorbar(
            features,
            means,
            errors,
            fmt="o",
            color=COLOURS[0],
            ecolor="#a8c8dc",
            markersize=4,
            linewidth=1.2,
            zorder=3,
        )
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(left=-0.1)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        level = means[self.best_index_] - errors[self.best_index_]
        ax.axhline(level, color=GREY, linewidth=0.9, linestyle="--", zorder=1.5)
        ax.annotate(
            "best − 1 standard error",
            (0.01, level),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize="small",
            color="#5a5a5a",
        )
        for index, text, colour, marker in (
            (self.best_index_, "best", COLOURS[1], "D"),
            (self.one_error_index_, "1-SE rule", COLOURS[2], "s"),
        ):
            label = f"{text}: {features[index]:.3g} features, {means[index]:.3f}"
            ax.plot(
                features[index],
                means[index],
                marker=marker,
                markersize=10,
                markerfacecolor="none",
                markeredgewidth=2.0,
                color=colour,
                linestyle="none",
                label=label,
                zorder=4,
            )
        ax.set_xlabel("features used (mean over folds)")
        ax.set_ylabel(f"{self.score_name.replace('_', ' ')} (mean over {folds} folds ± 1 SE)")
        # Above the axes, where it hides no point.
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=2,
            frameon=False,
            fontsize="small",
            numpoints=1,
        )
        tidy(ax)
        return self
