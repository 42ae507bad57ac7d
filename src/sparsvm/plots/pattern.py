"""Which class uses which feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Array, Ints
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.penalties import as_penalty
from sparsvm.plots.style import PALE_GREY, axes_for, names_of_features


class SparsityPatternDisplay:
    """The weights of the features in use, one row for each class; exact zeros are grey.

    Parameters
    ----------
    coef : array or sparse matrix of shape (n_outputs, n_features)
    classes : array
        One label for each row, or two for a single row.
    groups : array of shape (n_features,) or None, default=None
        Group of each feature; the features are then put in order of their groups, with lines
        between the groups.
    feature_names : list of str or None, default=None

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    features_ : ndarray
        The features shown, from left to right.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.plots import SparsityPatternDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1", alpha=0.05).fit(X, y)
    >>> SparsityPatternDisplay.from_estimator(model).features_
    array([2, 3])
    """

    def __init__(
        self, coef: Any, classes: Any, *, groups: Any = None, feature_names: Any = None
    ) -> None:
        self.coef = coef
        self.classes = classes
        self.groups = groups
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, ax: Any = None, max_features: int = 200
    ) -> SparsityPatternDisplay:
        """Draw the weights of a fitted classifier.

        Parameters
        ----------
        estimator : fitted linear classifier
            The groups of its penalty, where it has any, are marked.
        feature_names : list of str or None, default=None
        ax : matplotlib axes or None, default=None
        max_features : int, default=200
            At most this many features are shown, those with the largest weights.
        """
        n_features = estimator.coef_.shape[1]
        groups = None
        if hasattr(estimator, "penalty"):
            penalty = as_penalty(
                getattr(estimator, "best_params_", {}).get("penalty", estimator.penalty)
            )
            overlapping = hasattr(estimator, "latent_coef_")
            if getattr(penalty, "groups", None) is not None and not overlapping:
                n_outputs = 1 if len(estimator.classes_) == 2 else len(estimator.classes_)
                names = getattr(estimator, "feature_names_in_", None)
                spelt_out = penalty.resolve(n_features, n_outputs, np.ones(n_features), names)
                groups = spelt_out.groups
        display = cls(
            estimator.coef_,
            estimator.classes_,
            groups=groups,
            feature_names=names_of_features(estimator, n_features, feature_names),
        )
        return display.plot(ax=ax, max_features=max_features)

    def plot(self, ax: Any = None, *, max_features: int = 200) -> SparsityPatternDisplay:
        """Draw the pattern.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        max_features : int, default=200
        """
        coef = dense_coefficients(self.coef)
        self.features_ = self._shown(coef, max_features)
        shown = coef[:, self.features_]
        names = self.feature_names or [f"x{j}" for j in range(coef.shape[1])]
        labels = [names[j] for j in self.features_]
        width = float(np.clip(2.6 + 0.28 * self.features_.size, 5.5, 14.0))
        # The colour bar needs 1.4 inches to be read, a vertical label 0.085 for each letter.
        height = max(1.4, 0.4 * shown.shape[0]) + 0.5 + 0.085 * max(map(len, labels), default=0)
        self.figure_, self.ax_ = axes_for(ax, (width, height))
        ax = self.ax_
        if self.features_.size == 0:
            ax.set_axis_off()
            ax.text(0.5, 0.5, "no feature is in use", ha="center", transform=ax.transAxes)
            return self
        # Square roots keep small weights visible; the zeros are masked, hence grey.
        largest = float(np.abs(shown).max(initial=0.0)) or 1.0
        roots = np.sign(shown) * np.sqrt(np.abs(shown) / largest)
        image = ax.imshow(
            np.ma.masked_where(shown == 0.0, roots),
            cmap="RdBu_r",
            vmin=-1.0,
            vmax=1.0,
            aspect="auto",
            interpolation="nearest",
        )
        ax.set_facecolor(PALE_GREY)
        self._label_axes(ax, labels, coef.shape[1])
        self._separate(ax, shown.shape)
        bar = self.figure_.colorbar(image, ax=ax, pad=0.02, fraction=0.04, ticks=[-1, 0, 1])
        bar.ax.set_yticklabels([f"−{largest:.2g}", "0", f"{largest:.2g}"], fontsize="small")
        bar.set_label("weight (root scale)", fontsize="small")
        return self

    def _shown(self, coef: Array, limit: int) -> Ints:
        """The used features with the largest weights, in the order of groups, then of columns."""
        sizes = np.abs(coef).max(axis=0, initial=0.0)
        used = np.flatnonzero(sizes)
        if used.size > limit:
            used = np.sort(used[np.argsort(-sizes[used], kind="stable")[:limit]])
        if self.groups is None:
            return used
        order = np.argsort(np.asarray(self.groups)[used], kind="stable")
        return np.asarray(used[order])

    def _label_axes(self, ax: Any, labels: list[str], n_features: int) -> None:
        count = self.features_.size
        # About four labels to the inch can be read; beyond that every second, third, … is shown.
        room = 4.0 * ax.get_position().width * self.figure_.get_size_inches()[0]
        every = max(1, int(np.ceil(count / max(room, 1.0))))
        ticks = np.arange(0, count, every)
        ax.set_xticks(ticks, [labels[t] for t in ticks], rotation=90, fontsize="small")
        rows = [str(label) for label in self.classes]
        if len(rows) == 2:
            rows = [f"{rows[1]} against {rows[0]}"]
        ax.set_yticks(range(len(rows)), rows)
        ax.tick_params(length=0)
        note = "" if every == 1 else f" (every {_ordinal(every)} is named)"
        ax.set_title(
            f"{count} of {n_features} features in use{note}", fontsize="medium", loc="left"
        )

    def _separate(self, ax: Any, shape: tuple[int, ...]) -> None:
        """White lines between the cells, and dark ones between the groups."""
        rows, columns = shape
        ax.hlines(np.arange(0.5, rows - 0.5), -0.5, columns - 0.5, color="white", linewidth=1.2)
        if columns <= 80:
            ax.vlines(np.arange(0.5, columns - 0.5), -0.5, rows - 0.5, color="white", linewidth=0.8)
        if self.groups is None or columns == 0:
            return
        groups = np.asarray(self.groups)[self.features_]
        borders = np.flatnonzero(groups[1:] != groups[:-1]) + 0.5
        ax.vlines(borders, -0.5, rows - 0.5, color="#333333", linewidth=1.1)


def _ordinal(number: int) -> str:
    ending = {2: "nd", 3: "rd"}.get(number % 10, "th") if number not in (12, 13) else "th"
    return f"{number}{ending}"
