"""The table of a cross-validation, and which of its rows is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from sparsvm._typing import Array, Floats
from sparsvm.data.warn import warn
from sparsvm.estimators.cv_folds import FoldResult


class Searched:
    """What estimators share that choose alpha by cross-validation."""

    rule: Any
    tol: float
    cv_results_: dict[str, Any]
    scores_: Floats
    n_selected_: Array
    alphas_: Floats
    alpha_: float
    best_index_: int
    best_score_: float
    best_params_: dict[str, Any]
    n_splits_: int

    def _choose_among(
        self,
        candidates: list[dict[str, Any]],
        grids: list[Floats],
        results: list[list[FoldResult]],
        without_scores: str,
    ) -> tuple[int, int]:
        """Set what was chosen, and return which of the candidates and of its alphas it is.

        ``without_scores`` is the error where no alpha has a score.
        """
        self.cv_results_ = table(candidates, grids, results)
        means = self.cv_results_["mean_test_score"]
        if np.all(np.isnan(means)):
            raise ValueError(without_scores)
        firsts = np.cumsum([0, *(grid.size for grid in grids)])
        # The first of equals has the largest alpha.
        best = int(np.nanargmax(means))
        candidate = int(np.searchsorted(firsts, best, side="right")) - 1
        folds = results[candidate]
        self.n_splits_ = len(folds)
        self.scores_ = stacked([[fold.scores for fold in folds]])
        self.n_selected_ = stacked([[fold.n_selected for fold in folds]])
        t = best - int(firsts[candidate])
        if self.rule == "1se":
            t = one_error_rule(self.scores_, t)
        self.best_index_ = int(firsts[candidate]) + t
        self.alphas_ = grids[candidate]
        self.alpha_ = float(self.alphas_[t])
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = {"alpha": self.alpha_, **candidates[candidate]}
        return candidate, t

    def _take_over(self, model: Any) -> None:
        """Take the fitted attributes of a model."""
        for name, value in vars(model).items():
            if name.endswith("_") and not name.startswith("_") and name != "alpha_":
                setattr(self, name, value)

    def _warn_of_short(self, short: int, count: int, what: str) -> None:
        """Warn of models that did not reach the tolerance, ``short`` of ``count``."""
        if short:
            warn(
                f"{short} of the {count} models of the {what} did not reach the tolerance "
                f"tol={self.tol:g}. Raise tol or max_iter, scale the features, or use another "
                "solver.",
                ConvergenceWarning,
            )


def table(
    candidates: list[dict[str, Any]], grids: list[Floats], results: list[list[FoldResult]]
) -> dict[str, Any]:
    """Return ``cv_results_``: columns of equal length, one row for each candidate and alpha."""
    params = [
        {"alpha": float(alpha), **candidate}
        for candidate, grid in zip(candidates, grids, strict=True)
        for alpha in grid
    ]
    columns: dict[str, Any] = {"params": params}
    for name in sorted({name for row in params for name in row}):
        column = np.array([row.get(name, np.ma.masked) for row in params], dtype=object)
        columns[f"param_{name}"] = column.astype(np.float64) if name == "alpha" else column
    scores = stacked([[fold.scores for fold in folds] for folds in results])
    used = stacked([[fold.n_selected for fold in folds] for folds in results])
    times = stacked([[fold.seconds for fold in folds] for folds in results])
    means = scores.mean(axis=1)
    for number in range(scores.shape[1]):
        columns[f"split{number}_test_score"] = scores[:, number]
    columns["mean_test_score"] = means
    columns["std_test_score"] = scores.std(axis=1)
    last = np.where(np.isnan(means), -np.inf, means)
    columns["rank_test_score"] = rankdata(-last, method="min").astype(np.int32)
    for number in range(used.shape[1]):
        columns[f"split{number}_n_selected"] = used[:, number]
    columns["mean_n_selected"] = used.mean(axis=1)
    columns["mean_fit_time"] = times.mean(axis=1)
    return columns


def stacked(values: list[list[Any]]) -> Any:
    """Return (rows, folds) from one list of folds for each candidate."""
    return np.concatenate([np.array(folds).T for folds in values])


def one_error_rule(scores: Floats, best: int) -> int:
    """Return the first (sparsest) point within one standard error of the best point's mean."""
    if scores.shape[1] < 2:
        return best
    means = scores.mean(axis=1)
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])


def warn_of_last(chosen: int, alphas: Floats) -> None:
    """Warn where the last alpha of a default grid is chosen: what follows it was not tried."""
    if chosen == alphas.size - 1 > 0:
        warn(
            f"The best alpha, {alphas[chosen]:.3g}, is the smallest one that was tried: smaller "
            "ones may be better. Lower eps; where features have different units, standardise them "
            "or give the penalty weights='scale'.",
            UserWarning,
        )
