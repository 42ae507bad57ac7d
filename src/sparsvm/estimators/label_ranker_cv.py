"""The label ranker with alpha chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed

from sparsvm._typing import Array, Floats, PenaltyName, RankingSolverName
from sparsvm.data.inputs import SEARCH, fit_context, without
from sparsvm.data.label_sets import LabelSets, read_label_sets
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from sparsvm.estimators.cv_folds import FoldResult, takes_weights
from sparsvm.estimators.cv_results import Searched
from sparsvm.estimators.cv_splits import checked_splits, default_folds
from sparsvm.estimators.label_ranker import SparseLabelRanker
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.path.grid import checked_grid, grid_below
from sparsvm.path.ranking_path import largest_ranking_alpha
from sparsvm.penalties import Penalty
from sparsvm.solvers import Solver, thread_count

if TYPE_CHECKING:
    from typing_extensions import Self

SHARED = (
    "penalty",
    "normalise",
    "threshold",
    "fit_intercept",
    "solver",
    "tol",
    "max_iter",
    "random_state",
    "verbose",
)


class SparseLabelRankerCV(Searched, CallbackSupportMixin, SparseLinearClassifier):
    """Label ranker whose alpha is chosen by cross-validation along warm-started paths.

    In every fold the models of all alphas are fitted, from the largest down, each from the one
    before, and scored on the samples left out; the one that scored best is fitted on all samples.

    Parameters
    ----------
    penalty, normalise, threshold, fit_intercept, solver, tol, max_iter, random_state, verbose
        As for :class:`~sparsvm.SparseLabelRanker`.
    alphas : array-like or None, default=None
        Strengths of the penalty to try. By default ``n_alphas`` values from the smallest at which
        all weights are zero down to ``eps`` times it.
    n_alphas : int, default=30
    eps : float, default=1e-2
    cv : None, int, splitter or iterable, default=None
        As in scikit-learn; None means five folds, stratified where `y` has one label a sample.
    scoring : None, str or callable, default=None
        A scikit-learn scorer. None means the ranking loss (negative), and accuracy where `y` has
        one label a sample.
    rule : {"best", "1se"}, default="best"
        "best" takes the highest mean score, and of equals the sparsest. "1se" takes the largest
        alpha whose mean score is within one standard error of the best.
    n_jobs : int or None, default=None
        Number of processes that share the folds.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    best_params_ : dict
        The same by name.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its place among ``alphas_``.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas that were tried, decreasing.
    scores_ : ndarray of shape (n_alphas, n_folds)
        Their scores.
    n_selected_ : ndarray of shape (n_alphas, n_folds)
        Number of features their models use.
    cv_results_ : dict
        The same as columns for ``pandas.DataFrame``, named as in
        :class:`~sklearn.model_selection.GridSearchCV`.
    n_splits_ : int
        Number of folds.
    coef_, intercept_, classes_, threshold_coef_, threshold_intercept_, multilabel_
        And ``objective_``, ``dual_gap_``, ``n_iter_``, ``result_``, ``selected_features_``: of the
        model fitted on all samples, as in :class:`~sparsvm.SparseLabelRanker`.

    Notes
    -----
    Sample weights enter the fits, the alphas and, where the scorer takes them, the scores.
    Callbacks of scikit-learn 1.9 or later are told of every fold.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sparsvm import SparseLabelRankerCV
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=30, random_state=0)
    >>> model = SparseLabelRankerCV(n_alphas=8, rule="1se").fit(X, Y)
    >>> model.scores_.shape
    (8, 5)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **without(
            SparseLabelRanker._parameter_constraints,
            *("alpha", "time_limit", "on_interrupt", "warm_start"),
        ),
        **SEARCH,
    }

    def __init__(
        self,
        penalty: PenaltyName | Penalty = "l1/l2",
        *,
        alphas: Any = None,
        n_alphas: int = 30,
        eps: float = 1e-2,
        cv: Any = None,
        scoring: Any = None,
        rule: Literal["best", "1se"] = "best",
        normalise: bool = False,
        threshold: str | float = "regression",
        fit_intercept: bool = True,
        solver: RankingSolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.normalise = normalise
        self.threshold = threshold
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose alpha by cross-validation and fit on all samples.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`SparseLabelRanker.fit <sparsvm.SparseLabelRanker.fit>`.

        Returns
        -------
        self
            The fitted estimator.
        """
        thread_count(self.n_jobs)  # refuses what is no number of them
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        with unchanged_on_error(self):
            known = read_label_sets(self, X, y, sample_weight)
            model = SparseLabelRanker(**{name: getattr(self, name) for name in SHARED})
            given = _Given(X, y, sample_weight)
            scorer = _scorer(self.scoring, known.multilabel)
            splits = self._splits(given, known, given.weight if takes_weights(scorer) else None)
            alphas = self._alphas(model, known)
            task.begin(parts=len(splits))
            jobs = [
                delayed(_fold)(model, given, train, test, alphas, scorer) for train, test in splits
            ]
            workers = None if self.n_jobs is None else min(self.n_jobs, len(jobs))
            results = iter(Parallel(n_jobs=workers, return_as="generator")(jobs))
            folds: list[FoldResult] = []
            for _ in jobs:
                with task.part("fold"):
                    folds.append(next(results))
            self._choose(alphas, folds)
            model.set_params(alpha=self.alpha_).fit(X, y, sample_weight)
            self._take_over(model)
        task.end()
        return self

    decision_function = SparseLabelRanker.decision_function
    predict = SparseLabelRanker.predict
    _n_outputs = SparseLabelRanker._n_outputs

    def _alphas(self, model: SparseLabelRanker, known: LabelSets) -> Floats:
        if self.alphas is not None:
            return checked_grid(self.alphas)
        problem = model._problem(known)
        if largest_ranking_alpha(problem) == 0.0:  # no feature helps: any alphas are as good
            return grid_below(1.0, self.n_alphas, self.eps)
        return model._grid(problem, self.n_alphas, self.eps)

    def _splits(self, given: _Given, known: LabelSets, weight: Any) -> list[tuple[Array, Array]]:
        from sklearn.model_selection import check_cv

        cv, y = self.cv, given.y
        if cv is None and not known.multilabel:
            cv = default_folds(np.asarray(y))
        rows = known.data.sample_of_row.size
        splits = check_cv(cv, y, classifier=True).split(np.zeros(rows), y)
        return checked_splits(splits, rows, None if weight is None else np.asarray(weight))

    def _choose(self, alphas: Floats, folds: list[FoldResult]) -> None:
        nothing = "The scorer returned NaN in some fold for every alpha."
        self._choose_among([{}], [alphas], [folds], nothing)
        short = sum(fold.n_short for fold in folds)
        self._warn_of_short(short, self.scores_.size, "cross-validation")


class _Given:
    """What `fit` was given, by rows."""

    def __init__(self, X: Any, y: Any, weight: Any) -> None:
        self.X, self.y, self.weight = indexable(X, y, weight)

    def rows(self, rows: Array) -> tuple[Any, Any, Any]:
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), weight


def _scorer(scoring: Any, multilabel: bool) -> Any:
    from sklearn.metrics import get_scorer, label_ranking_loss, make_scorer

    if scoring is None and multilabel:
        return make_scorer(
            label_ranking_loss, greater_is_better=False, response_method="decision_function"
        )
    return get_scorer("accuracy" if scoring is None else scoring)


def _fold(
    model: SparseLabelRanker, given: _Given, train: Array, test: Array, alphas: Floats, scorer: Any
) -> FoldResult:
    """Fit at every alpha on the training rows, each from the one before; score on the others."""
    X, y, weight = given.rows(train)
    X_test, y_test, weight_test = given.rows(test)
    options = {}
    if weight_test is not None and takes_weights(scorer):
        options = {"sample_weight": weight_test}
    model = clone(model).set_params(warm_start=True)
    scores, seconds, selected, short = [], [], [], 0
    for alpha in alphas:
        began = time.perf_counter()
        with warnings.catch_warnings():
            # Models of zeros are a part of every path; those that fall short are counted.
            warnings.simplefilter("ignore")
            model.set_params(alpha=float(alpha)).fit(X, y, weight)
        seconds.append(time.perf_counter() - began)
        short += model.result_.status != "optimal"
        selected.append(model.selected_features_)
        scores.append(float(scorer(model, X_test, y_test, **options)))
    n_selected = np.array([features.size for features in selected])
    return FoldResult(np.array(scores), n_selected, short, np.array(seconds), selected)
