"""How the weights grow as alpha falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm.estimators.svm_path import SVMPath, svm_path
from sparsvm.numerics.sparse_format import checked_sparse
from sparsvm.plots.style import (
    COLOURS,
    DASHES,
    GREY,
    axes_for,
    names_of_features,
    spread,
    tidy,
)


class PathDisplay:
    r"""The size of each feature's weights, :math:`\|W_{\cdot j}\|_2`, against alpha.

    Parameters
    ----------
    path : SVMPath
        What :func:`sparsvm.svm_path` returned.
    feature_names : list of str or None, default=None
    alpha : float or None, default=None
        An alpha to mark, such as the one that cross-validation chose.

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    lines_ : list
        One line for each feature that is ever used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVCCV
    >>> from sparsvm.plots import PathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVCCV(penalty="l1/l2", n_alphas=10).fit(X, y)
    >>> display = PathDisplay.from_estimator(model)
    >>> len(display.lines_)
    4
    """

    def __init__(
        self, path: SVMPath, *, feature_names: Any = None, alpha: float | None = None
    ) -> None:
        self.path = path
        self.feature_names = feature_names
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        feature_names: Any = None,
        ax: Any = None,
        n_labels: int = 8,
    ) -> PathDisplay:
        """Draw the path of a fitted ``SparseSVCCV``, or follow that of another estimator.

        Parameters
        ----------
        estimator : SparseSVC or SparseSVCCV
            A fitted ``SparseSVCCV`` has its path, and X and y are not needed. Of another one the
            parameters are used. The alpha of a fitted estimator is marked.
        X, y, sample_weight
            The data; without X the estimator must have its path.
        feature_names : list of str or None, default=None
            Names of the columns; those seen in ``fit`` by default.
        ax : matplotlib axes or None, default=None
        n_labels : int, default=8
            Number of features named in the picture.
        """
        path = getattr(estimator, "path_", None)
        if path is None:
            if X is None or y is None:
                raise ValueError(
                    f"This {type(estimator).__name__} has no path_. Give X and y to follow its "
                    "path, or fit a SparseSVCCV."
                )
            path = svm_path(
                X,
                y,
                loss=estimator.loss,
                penalty=estimator.penalty,
                fit_intercept=estimator.fit_intercept,
                class_weight=estimator.class_weight,
                sample_weight=sample_weight,
                solver=estimator.solver,
                tol=estimator.tol,
            )
        names = names_of_features(estimator, path.coefs[0].shape[1], feature_names)
        display = cls(path, feature_names=names, alpha=getattr(estimator, "alpha_", None))
        return display.plot(ax=ax, n_labels=n_labels)

    def plot(self, ax: Any = None, *, n_labels: int = 8) -> PathDisplay:
        """Draw the path; the features with the largest weights at its end are named.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        n_labels : int, default=8
        """
        self.figure_, self.ax_ = axes_for(ax, (7.5, 4.5))
        ax = self.ax_
        sizes, features = _sizes(self.path)
        names = self.feature_names or [f"x{j}" for j in range(self.path.coefs[0].shape[1])]
        order = np.argsort(-sizes[-1], kind="stable")
        labelled = order[: min(n_labels, order.size)]
        self.lines_ = []
        for rank, column in enumerate(order):
            style = {"color": GREY, "linewidth": 0.7, "alpha": 0.6, "zorder": 1.5}
            if rank < labelled.size:
                turn = rank // len(COLOURS)
                style = {
                    "color": COLOURS[rank % len(COLOURS)],
                    "linestyle": DASHES[turn % len(DASHES)],
                    "linewidth": 1.8,
                    "zorder": 3.0,
                }
            self.lines_ += ax.plot(self.path.alphas, sizes[:, column], **style)
        ax.set_xscale("log")
        ax.invert_xaxis()
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("alpha (sparser to the left)")
        ax.set_ylabel(r"size of a feature's weights, $\|W_{\cdot j}\|_2$")
        tidy(ax)
        self._mark_alpha(ax)
        self._name_lines(ax, sizes[-1, labelled], [names[features[j]] for j in labelled])
        return self

    def _mark_alpha(self, ax: Any) -> None:
        if self.alpha is None:
            return
        ax.axvline(self.alpha, color="black", linewidth=1.0, linestyle=":")
        ax.annotate(
            f"chosen: {self.alpha:.2g}",
            (self.alpha, 1.0),
            xycoords=("data", "axes fraction"),
            # Above the axes, where no line can run through it.
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
        )

    def _name_lines(self, ax: Any, heights: Any, names: list[str]) -> None:
        """Write the names beside the ends of the lines, moved apart where they would overlap."""
        top = ax.get_ylim()[1]
        places = spread([float(height) / top for height in heights], 0.055)
        for rank, (name, height, place) in enumerate(zip(names, heights, places, strict=True)):
            colour = COLOURS[rank % len(COLOURS)]
            ax.annotate(
                name,
                (1.0, float(height) / top),
                xycoords="axes fraction",
                xytext=(1.04, place),
                textcoords="axes fraction",
                color=colour,
                va="center",
                fontsize="small",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7},
            )


def _sizes(path: SVMPath) -> tuple[Any, Any]:
    """Euclidean norm of every used feature's weights: (n_alphas, used), and which they are."""
    coefs = [checked_sparse(coef, "path.coefs", "Follow the path again.") for coef in path.coefs]
    features = np.unique(np.concatenate([coef.indices for coef in coefs]))
    columns = [coef[:, features].toarray() for coef in coefs]
    return np.sqrt(np.sum(np.square(columns), axis=1)), features
