"""Which features are selected from most resamples."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.plots.style import COLOURS, DASHES, GREY, axes_for, names_of_features, spread, tidy


class StabilityDisplay:
    """The share of the resamples that select each feature, against alpha.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    probabilities : array of shape (n_alphas, n_features)
        As the attribute ``path_probabilities_`` of a fitted :class:`~sparsvm.StabilitySelection`.
    threshold : float
        The share above which features are stable.
    feature_names : list of str or None, default=None

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    lines_ : list
        One line for each feature that is ever selected.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import StabilitySelection
    >>> from sparsvm.plots import StabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> stable = StabilitySelection(n_resamples=5, n_alphas=5, random_state=0).fit(X, y)
    >>> display = StabilityDisplay.from_estimator(stable)
    >>> display.ax_.get_ylabel()
    'share of the resamples that select a feature'
    """

    def __init__(
        self,
        alphas: Floats,
        probabilities: Floats,
        *,
        threshold: float,
        feature_names: Any = None,
    ) -> None:
        self.alphas = alphas
        self.probabilities = probabilities
        self.threshold = threshold
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Any = None, n_labels: int = 12
    ) -> StabilityDisplay:
        """Draw the paths of a fitted :class:`~sparsvm.StabilitySelection`.

        Parameters
        ----------
        estimator : StabilitySelection
            Fitted.
        feature_names : list of str or None, default=None
            Names of the columns; those seen in ``fit`` by default.
        ax : matplotlib axes or None, default=None
        n_labels : int, default=12
            Number of stable features named in the picture.
        """
        if not hasattr(estimator, "path_probabilities_"):
            raise ValueError(
                "StabilityDisplay shows a fitted StabilitySelection, but this "
                f"{type(estimator).__name__} has no path_probabilities_. Fit one first."
            )
        names = names_of_features(estimator, estimator.n_features_in_, feature_names)
        display = cls(
            estimator.alphas_,
            estimator.path_probabilities_,
            threshold=estimator.threshold,
            feature_names=names,
        )
        return display.plot(ax=ax, n_labels=n_labels)

    def plot(self, ax: Any = None, *, n_labels: int = 12) -> StabilityDisplay:
        """Draw the paths; stable features are coloured, and those selected most often named.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        n_labels : int, default=12
        """
        self.figure_, self.ax_ = axes_for(ax, (7.5, 4.5))
        ax = self.ax_
        last = self.probabilities[-1]
        names = self.feature_names or [f"x{j}" for j in range(last.size)]
        # Of equally many resamples the feature that is selected at larger alphas comes first.
        order = np.lexsort((-self.probabilities.sum(axis=0), -last))
        order = order[last[order] > 0.0]
        stable = order[last[order] >= self.threshold]
        self.lines_ = []
        for rank, feature in enumerate(order):
            style: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "alpha": 0.6, "zorder": 1.5}
            if rank < stable.size:
                style = {
                    "color": COLOURS[rank % len(COLOURS)],
                    "linestyle": DASHES[rank // len(COLOURS) % len(DASHES)],
                    "linewidth": 1.8,
                    "zorder": 3.0,
                }
            self.lines_ += ax.plot(self.alphas, self.probabilities[:, feature], **style)
        ax.axhline(self.threshold, color="black", linewidth=1.0, linestyle=":")
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")  # of a short axis they would overlap
        ax.invert_xaxis()
        ax.set_ylim(0.0, 1.04)
        ax.set_xlabel("alpha (sparser to the left)")
        ax.set_ylabel("share of the resamples that select a feature")
        tidy(ax)
        named = stable[:n_labels]
        places = spread([float(last[feature]) / 1.04 for feature in named], 0.055)
        for rank, (feature, place) in enumerate(zip(named, places, strict=True)):
            colour = COLOURS[rank % len(COLOURS)]
            ax.annotate(
                names[feature],
                (1.0, float(last[feature]) / 1.04),
                xycoords="axes fraction",
                xytext=(1.04, place),
                textcoords="axes fraction",
                color=colour,
                va="center",
                fontsize="small",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7},
            )
        return self
