"""Cross-validation over partitions: folds are masks of rows, which stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from sparsvm._typing import Array, ClassWeight, Floats, LossName, PenaltyName, SolverName
from sparsvm.data.inputs import fit_context, without
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.estimators.cv import SparseSVCCV as CVOnOneMachine
from sparsvm.estimators.cv_folds import FoldResult, without_features
from sparsvm.estimators.cv_results import Searched
from sparsvm.estimators.linear import SparseLinearClassifier, column_scores, highest
from sparsvm.estimators.sparse_svc import SparseSVC as OnOneMachine
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.losses import Loss, as_loss
from sparsvm.partitioned.engine import Engine, Threads
from sparsvm.partitioned.parts import as_parts
from sparsvm.partitioned.path import as_path, follow
from sparsvm.partitioned.prepare import Prepared
from sparsvm.partitioned.survey import Population, folds_of, read
from sparsvm.path.grid import checked_grid, grid_below
from sparsvm.path.points import PathPoints
from sparsvm.path.svm_path import NoPath
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.solution import Start
from sparsvm.solvers import Solver, blas_threads, thread_count

if TYPE_CHECKING:
    from typing_extensions import Self

# As in scikit-learn.
FOLDS = 5
# Times an alpha at which the model of all rows has no features: that of a fold has none there.
ALPHA_FACTOR = 1e3


class SparseSVCCV(Searched, SparseLinearClassifier):
    """Sparse classifier on data larger than memory whose alpha is chosen by cross-validation.

    In every fold the whole path of alphas is followed (see
    :func:`~sparsvm.partitioned.svm_path`) and each of its models, all of them certified, is scored
    on the rows left out. The model is that of the chosen alpha on the path of all rows. Rows are
    never copied or moved: a fold is a mask.

    Parameters
    ----------
    loss, penalty, fit_intercept, class_weight, solver, tol, max_iter, n_jobs, random_state, verbose
        As for :class:`sparsvm.partitioned.SparseSVC`; ``max_iter`` limits the passes of each alpha.
    alphas, n_alphas, eps, max_features, rule
        As for :class:`sparsvm.SparseSVCCV`; the grid has 20 values by default.
    cv : int or None, default=None
        Number of folds, 5 by default. The fold of a row is its rank among the rows of its class in
        its partition, plus the number of the partition, modulo the number of folds: the same from
        run to run, and stratified in every partition.

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_index_, alphas_, scores_, n_selected_, path_, \
cv_results_, n_splits_
        As for :class:`sparsvm.SparseSVCCV`; scores are (weighted) accuracies.
    coef_, intercept_, classes_, class_prior_, objective_, dual_gap_, n_features_in_
        And ``selected_features_``: of the model at ``alpha_``, certified over all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import SparseSVCCV, split_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVCCV(penalty="l1/l2", n_alphas=8, rule="1se").fit(split_rows(X, y, rows=40))
    >>> model.scores_.shape
    (8, 5)
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **without(CVOnOneMachine._parameter_constraints, "param_grid", "scoring", "refit"),
        "cv": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        loss: LossName | Loss = "hinge",
        penalty: PenaltyName | Penalty = "l1",
        *,
        alphas: Any = None,
        n_alphas: int = 20,
        eps: float = 1e-3,
        max_features: int | None = None,
        cv: int | None = None,
        rule: Literal["best", "1se"] = "best",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.max_features = max_features
        self.cv = cv
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_margin: Any = None
    ) -> Self:
        """Choose alpha by cross-validation; if it fails, the estimator stays as it was.

        Parameters
        ----------
        X, y, sample_weight, sample_margin
            As for :meth:`sparsvm.partitioned.SparseSVC.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        parts = as_parts(X, y, sample_weight, sample_margin)
        engine = Threads(thread_count(self.n_jobs))
        try:
            return self._fit_parts(engine, parts)
        finally:
            engine.close()

    # As in SparseSVC: the descriptors themselves, which hide them unless the loss is logistic.
    predict_proba = vars(OnOneMachine)["predict_proba"]
    predict_log_proba = vars(OnOneMachine)["predict_log_proba"]

    def to_local(self) -> OnOneMachine:
        """Return an ordinary :class:`sparsvm.SparseSVC` with the chosen alpha and its model."""
        return self.path_[int(self.best_index_)]

    def _fit_parts(self, engine: Engine, parts: Sequence[Any]) -> Self:
        grid = None if self.alphas is None else checked_grid(self.alphas)
        count = FOLDS if self.cv is None else int(self.cv)
        with unchanged_on_error(self), blas_threads(1):
            prepared = Prepared(engine, parts, self, folds=count)
            everyone = prepared.population
            most = self.max_features
            try:
                points = follow(prepared, everyone, grid, self.n_alphas, self.eps, most)
            except NoPath:
                # Where no feature helps, all alphas are as good.
                points = follow(prepared, everyone, grid_below(1.0, self.n_alphas, self.eps))
            first = Start(points.coefs[0].toarray().astype(np.float64), points.intercepts[0])
            zeros = without_features(points.coefs, prepared.problem(everyone, 1.0))
            results = [
                self._fold(prepared, fold, points.alphas, first, zeros) for fold in range(count)
            ]
            self._choose(as_path(points, self._model(), everyone), results)
            everyone.name_features(self)
            self._take_over(self.to_local())
        short = sum(result.n_short for result in results)
        short += sum(status != "optimal" for status in points.statuses)
        count = (len(results) + 1) * len(points)
        self._warn_of_short(short, count, "paths")
        return self

    def _model(self) -> OnOneMachine:
        return OnOneMachine(
            as_loss(self.loss),
            as_penalty(self.penalty),
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )

    def _fold(
        self, prepared: Prepared, fold: int, grid: Floats, start: Start, zeros: int
    ) -> FoldResult:
        """Follow the path without a fold and score its points on that fold, in one pass.

        At the first ``zeros`` alphas the model of all rows has no features, and so has that of the
        fold, whose alpha_max may be larger: one far above it stands for them.
        """
        population = prepared.left_out(fold)
        where = np.arange(grid.size)
        if zeros:
            grid = np.append(ALPHA_FACTOR * grid[0], grid[zeros:])
            where = np.maximum(where - zeros + 1, 0)
        points = follow(prepared, population, grid, start=start)
        engine = prepared.engine
        test = engine.broadcast(_Test(population, points))
        handles = [engine.submit(_right, part, at, test) for at, part in enumerate(prepared.parts)]
        right, total = np.sum([np.append(r, t) for r, t in engine.gather(handles)], axis=0), 0.0
        engine.release([test, *handles])
        right, total = right[:-1], float(right[-1])
        selected = [np.unique(coef.indices).astype(np.intp) for coef in points.coefs]
        return FoldResult(
            right[where] / total if total > 0.0 else np.full(where.size, np.nan),
            points.n_selected[where],
            sum(status != "optimal" for status in points.statuses),
            points.seconds[where],
            [selected[t] for t in where],
        )

    def _choose(self, path: SVMPath, results: list[FoldResult]) -> None:
        self.path_ = path
        nothing = "Some fold has no rows of positive weight. Choose a smaller cv."
        self._choose_among([{}], [path.alphas], [results], nothing)


class _Test(NamedTuple):
    """What is scored: the models of a path on the fold that its population leaves out."""

    population: Population
    points: PathPoints


def _right(part: Any, number: int, test: _Test) -> tuple[Floats, float]:
    """Return the weight of the rows that each model predicts rightly, and of all."""
    population, points = test
    rows = read(part, number)
    if rows.X.shape[0] == 0:
        return np.zeros(len(points)), 0.0
    chosen = folds_of(rows.y, number, population.folds) == population.left_out
    chosen &= rows.sample_weight > 0.0
    at = np.flatnonzero(chosen)
    X, y, weight = rows.X[at], rows.y[at], rows.sample_weight[at]
    right = np.empty(len(points))
    for t, coef in enumerate(points.coefs):
        right[t] = np.sum(weight[_predicted(X, coef, points.intercepts[t], population) == y])
    return right, float(weight.sum())


def _predicted(X: Any, coef: Any, intercept: Floats, population: Population) -> Array:
    scores = column_scores(X, coef) + intercept
    classes = population.classes
    return classes[highest(scores if classes.size > 2 else scores[:, 0], population.priors)]
