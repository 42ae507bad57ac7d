"""How fast solvers close the duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.plots.style import COLOURS, DASHES, axes_for, tidy

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# A gap of zero has no place on a logarithmic axis; the rounding of the objective is about this.
_LEAST = 1e-16


class ConvergenceDisplay:
    """Relative duality gap against time, one line for each solver.

    Parameters
    ----------
    histories : dict of name -> (seconds, gaps)
        Two arrays for each line.
    tol : float or None, default=None
        A tolerance to mark.

    Attributes
    ----------
    ax_, figure_
        The axes and figure, after ``plot``.
    lines_ : list
        One line for each name.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.plots import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {
    ...     name: SparseSVC(solver=name, alpha=0.1, tol=1e-2).fit(X, y)
    ...     for name in ("interior_point", "fbpd")
    ... }
    >>> len(ConvergenceDisplay.from_estimators(models).lines_)
    2
    """

    def __init__(
        self, histories: Mapping[str, tuple[Floats, Floats]], *, tol: float | None = None
    ) -> None:
        self.histories = histories
        self.tol = tol

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, tol: float | None = None, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the histories of fitted estimators, by name.

        Parameters
        ----------
        estimators : dict of name -> fitted estimator
            Each with a ``result_``, as ``SparseSVC`` has.
        tol : float or None, default=None
            A tolerance to mark; by default that of the estimators if all have the same.
        ax : matplotlib axes or None, default=None
        """
        tols = {getattr(estimator, "tol", None) for estimator in estimators.values()}
        if tol is None and len(tols) == 1:
            tol = tols.pop()
        results = {name: estimator.result_ for name, estimator in estimators.items()}
        return cls.from_solutions(results, tol=tol, ax=ax)

    @classmethod
    def from_solutions(
        cls, solutions: Mapping[str, Any], *, tol: float | None = None, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the histories of solutions, by name.

        Parameters
        ----------
        solutions : dict of name -> Solution
        tol : float or None, default=None
        ax : matplotlib axes or None, default=None
        """
        return cls({name: _history(s) for name, s in solutions.items()}, tol=tol).plot(ax=ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw the gaps.

        Parameters
        ----------
        ax : matplotlib axes or None, default=None
        """
        self.figure_, self.ax_ = axes_for(ax, (7.0, 4.5))
        ax = self.ax_
        self.lines_ = []
        for rank, (name, (seconds, gaps)) in enumerate(self.histories.items()):
            kept = np.isfinite(gaps)
            self.lines_ += ax.plot(
                seconds[kept],
                np.maximum(gaps[kept], _LEAST),
                color=COLOURS[rank % len(COLOURS)],
                linestyle=DASHES[rank % len(DASHES)],
                marker=_MARKERS[rank % len(_MARKERS)],
                markevery=max(1, int(kept.sum()) // 12),
                markersize=5,
                linewidth=1.6,
                label=name,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("seconds")
        ax.set_ylabel("relative duality gap")
        tidy(ax)
        if self.tol is not None:
            ax.axhline(self.tol, color="black", linewidth=0.9, linestyle=":")
            ax.annotate(
                f"tol = {self.tol:g}",
                (0.01, self.tol),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize="small",
            )
        # Below the axes a legend covers no line, however the lines run.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
        return self


def _history(solution: Any) -> tuple[Floats, Floats]:
    """Seconds and relative gaps on the way, ended by the certified gap of the solution itself."""
    history = solution.history
    seconds = np.append(np.maximum(history.seconds, 1e-6), max(solution.seconds, 1e-6))
    return seconds, np.append(history.relative_gap, solution.relative_gap)
