"""Ranking labels of samples that have several."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Floats, OnInterrupt, PenaltyName, RankingSolverName
from sparsvm.certificate.finalise import finalised, inner_tolerance, tolerance
from sparsvm.data.inputs import (
    PARAMETER_CONSTRAINTS,
    STRENGTH,
    Caller,
    Within,
    fit_context,
    read_samples,
    without,
)
from sparsvm.data.label_sets import LabelSets, read_label_sets
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from sparsvm.estimators.fit_warnings import advise
from sparsvm.estimators.linear import SparseLinearClassifier, column_scores
from sparsvm.estimators.thresholds import regressed_threshold
from sparsvm.losses.pairwise import PairwiseSquaredHinge
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.parameters import LARGEST_NUMBER
from sparsvm.path.grid import checked_grid, grid_below
from sparsvm.path.points import PathPoints
from sparsvm.path.ranking_path import largest_ranking_alpha, ranking_path
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.build import column_std, default_alpha
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers import Solver, blas_threads, solved_within, thread_count
from sparsvm.solvers.ranking import RANKING, resolve_ranking
from sparsvm.solvers.run.progress import print_end

if TYPE_CHECKING:
    from typing_extensions import Self


class SparseLabelRanker(CallbackSupportMixin, SparseLinearClassifier):
    r"""Linear ranking of labels, for samples with several of them, that uses few features.

    With scores :math:`S_i = W x_i + b` of the labels and the label sets :math:`Y_i` it minimises

    .. math::

        \frac{1}{\sum_i s_i} \sum_i s_i\, c_i \sum_{r \in Y_i} \sum_{t \notin Y_i}
        \max\bigl(0, 1 - (S_{ir} - S_{it})\bigr)^2 + \alpha \, \mathrm{penalty}(W),

    so that labels of a sample score above the others. No pair of labels is ever formed: sorted
    scores give the sums in :math:`O(L \log L)` a sample. The solution carries a duality gap: an
    upper bound on how far its objective is from the optimum.

    Parameters
    ----------
    penalty : str or Penalty, default="l1/l2"
        A convex one, by name or as an object of :mod:`sparsvm.penalties`: "l1", "l2",
        "elasticnet", "l1/l2", "l1/linf", "sparse_group", or a class of your own.
    alpha : float or None, default=None
        Strength of the penalty; None means 1 / (sum of the weights).
    normalise : bool, default=False
        Whether :math:`c_i` is one over the number of pairs of sample i, so that samples
        with many labels do not count more, or 1.
    threshold : "regression" or float, default="regression"
        How label sets are made of scores. "regression" (Elisseeff and Weston): the best
        threshold of every training sample is regressed on its scores by least squares, which gives
        a threshold for every sample. A number is the threshold of all samples.
    fit_intercept : bool, default=True
        Whether to fit an intercept for each label, which is never penalised.
    solver : str or Solver, default="auto"
        "prox_newton" (the default for built-in penalties), "bcd" (block coordinate descent, the
        paper's), "fista", "sparsa", "forward_backward", or an object of :mod:`sparsvm.solvers`.
    tol : float, default=1e-3
        Relative duality gap at which to stop; at least 1e-6 for float32 data.
    max_iter : int or None, default=None
        Limit on the iterations; None is the solver's own.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best certified model so far and a
        :class:`~sklearn.exceptions.ConvergenceWarning` that names its gap. The last step of a
        solver, and reading the data, are not cut short.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does during `fit`: raise, with the estimator as it was before, or end it as
        `time_limit` does.
    warm_start : bool, default=False
        Whether `fit` starts from the previous solution where labels and features are the same.
    n_jobs : int or None, default=None
        Number of BLAS threads during `fit`. None means 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the solvers that draw random numbers.
    verbose : bool or int, default=False
        Whether to print the progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights, in the floating-point type of the data.
    intercept_ : ndarray of shape (n_labels,)
    classes_ : ndarray of shape (n_labels,)
        The numbers of the columns of the indicator matrix; the sorted labels where `y` has one
        label for each sample.
    threshold_coef_ : ndarray of shape (n_labels,)
    threshold_intercept_ : float
        The threshold of a sample is ``scores @ threshold_coef_ + threshold_intercept_``.
    alpha_ : float
        Strength of the penalty that was used.
    objective_ : float
    dual_gap_ : float
        Duality gap divided by the objective.
    n_iter_ : int
    result_ : Solution
        Everything the solver returned. Its ``dual`` are scores that stand for the dual variables
        (see :class:`~sparsvm.problem.ranking.RankingProblem`).
    selected_features_ : ndarray
        Indices of the features that any label uses.
    multilabel_ : bool
        Whether the labels were sets, or one for each sample.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    References
    ----------
    Blondel, Seki and Uehara, "Block coordinate descent algorithms for large-scale sparse multiclass
    classification", Machine Learning 93, 2013, section 4.7. Elisseeff and Weston, "A kernel method
    for multi-labelled classification", NIPS 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sparsvm import SparseLabelRanker
    >>> X, Y = make_multilabel_classification(n_samples=60, n_features=30, random_state=0)
    >>> model = SparseLabelRanker(alpha=2.0).fit(X, Y)
    >>> model.selected_features_.size
    9
    >>> model.predict(X[:2])
    array([[0, 0, 1, 0, 0],
           [0, 0, 1, 1, 1]])
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **without(PARAMETER_CONSTRAINTS, "loss", "class_weight"),
        **STRENGTH,
        "normalise": ["boolean"],
        "threshold": [
            StrOptions({"regression"}),
            Within(Real, -LARGEST_NUMBER, LARGEST_NUMBER, closed="both"),
        ],
    }

    def __init__(
        self,
        penalty: PenaltyName | Penalty = "l1/l2",
        *,
        alpha: float | None = None,
        normalise: bool = False,
        threshold: str | float = "regression",
        fit_intercept: bool = True,
        solver: RankingSolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        on_interrupt: OnInterrupt = "raise",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.normalise = normalise
        self.threshold = threshold
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.on_interrupt = on_interrupt
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; if it fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples, as for :class:`~sparsvm.SparseSVC`.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels), or (n_samples,)
            A label indicator of zeros and ones. A vector holds the one label of each sample; then
            the loss is the squared multiclass hinge, and `predict` returns labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that are not negative.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not (isinstance(self.solver, str) and self.solver == "auto"):
            RANKING.as_solver(self.solver)
        threads = thread_count(self.n_jobs)
        # Scorers take what is here.
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        task.begin()
        with unchanged_on_error(self):
            known = read_label_sets(self, X, y, sample_weight)
            dtype = known.data.dtype
            tol = tolerance(self.tol, dtype)
            with blas_threads(threads):
                problem = self._problem(known)
                control = self._control(dtype, threads)
                solver = resolve_ranking(self.solver, problem, control)
                solution = solved_within(
                    solver,
                    problem,
                    self._start(problem, known),
                    control,
                    self.time_limit,
                    self.on_interrupt,
                    task.callback(partial(self._attributes, problem, known)),
                )
                solution = finalised(problem, solution, dtype, tol)
            self._store(problem, known, solution)
        if self.verbose:
            print_end(solution)
        advise(problem, solution, tol=tol)
        task.end()
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the labels less the threshold of each sample.

        Their order ranks the labels of a sample; those above zero are predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            (n_samples,) where `y` was a vector of two labels.
        """
        check_is_fitted(self, "coef_")
        X = read_samples(self, X)
        coef, intercept = self._checked_coefficients()
        scores = column_scores(X, coef) + intercept
        if not self.multilabel_:
            return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)
        return np.asarray(
            scores - (scores @ self.threshold_coef_ + self.threshold_intercept_)[:, None]
        )

    def predict(self, X: Any) -> Array:
        """Return the label sets: the labels with scores above the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Zeros and ones. Where `y` was a vector, the labels with the highest score,
            shape (n_samples,).
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return np.asarray(scores > 0.0).astype(np.int64)
        if scores.ndim == 1:
            return np.asarray(self.classes_[(scores > 0.0).astype(np.intp)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def path(
        self,
        X: Any,
        y: Any,
        *,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        sample_weight: Any = None,
    ) -> PathPoints:
        """Solve for many alphas, from the largest to the smallest, each from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        alphas : array-like of positive numbers, optional
            By default ``n_alphas`` values from the smallest alpha at which all weights are
            zero down to ``eps`` times it, evenly spaced in the logarithm.
        n_alphas : int, default=100
        eps : float, default=1e-3

        Returns
        -------
        PathPoints
            The attributes of what :func:`sparsvm.svm_path` returns: ``alphas``, ``coefs``,
            ``intercepts``, ``gaps``, ``n_selected`` and so on; ``classes`` are the labels.
        """
        self._validate_params()
        threads = thread_count(self.n_jobs)
        with blas_threads(threads):
            caller = Caller.named("SparseLabelRanker.path")
            known = read_label_sets(caller, X, y, sample_weight)
            problem = self._problem(known)
            grid = self._grid(problem, n_alphas, eps) if alphas is None else checked_grid(alphas)
            control = self._control(known.data.dtype, threads)
            solver = resolve_ranking(self.solver, problem, control)
            tol = tolerance(self.tol, known.data.dtype)
            return ranking_path(problem, solver, control, grid, known.labels, known.data.dtype, tol)

    def _problem(self, known: LabelSets) -> RankingProblem:
        data, penalty = known.data, as_penalty(self.penalty)
        deviation = column_std(data.design, data.mass) if penalty.needs_column_std else None
        terms = penalty.resolve(data.design.d, known.labels.size, deviation, data.feature_names)
        if not terms.convex:
            raise ValueError(
                f"SparseLabelRanker needs a convex penalty; {terms.kind!r} is not. Use 'l1', "
                "'l1/l2', 'l1/linf', 'sparse_group', 'elasticnet' or 'l2'."
            )
        alpha = default_alpha(data.total) if self.alpha is None else float(self.alpha)
        loss = PairwiseSquaredHinge(known.sets, bool(self.normalise))
        return RankingProblem.of(
            data.design, data.y, data.mass, loss, terms, alpha, self.fit_intercept
        )

    @staticmethod
    def _grid(problem: RankingProblem, n_alphas: int, eps: float) -> Floats:
        """Return decreasing alphas from the smallest at which every weight is zero."""
        largest = largest_ranking_alpha(problem)
        if not np.isfinite(largest):
            raise ValueError(
                f"The penalty {problem.penalty.kind!r} leaves no weight at zero, so that "
                "there is no largest alpha to begin with. Give alphas."
            )
        if not largest > 0.0:
            raise ValueError("No feature lowers the loss: there is no path to follow.")
        return grid_below(largest, n_alphas, eps)

    def _control(self, dtype: np.dtype[Any], threads: int) -> Control:
        return Control(
            tol=inner_tolerance(self.tol, dtype),
            max_iter=self.max_iter,
            n_jobs=threads,
            random_state=self.random_state,
            verbose=bool(self.verbose),
        )

    def _start(self, problem: RankingProblem, known: LabelSets) -> Start | None:
        """Return the previous solution, where one fits the problem."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = dense_coefficients(self.coef_).astype(np.float64)
        intercept = np.asarray(self.intercept_, dtype=np.float64)
        if (
            not np.array_equal(self.classes_, known.labels)
            or coef.shape != (problem.n_outputs, problem.d)
            or not (np.isfinite(coef).all() and np.isfinite(intercept).all())
        ):
            return None
        return Start(coef, intercept if self.fit_intercept else np.zeros_like(intercept))

    def _store(self, problem: RankingProblem, known: LabelSets, solution: Solution) -> None:
        dtype = known.data.dtype
        same = solution.coef.dtype == dtype
        coef = solution.coef if same else Columns.of(solution.coef).dense(dtype)
        for name, value in self._attributes(problem, known, coef, solution.intercept).items():
            setattr(self, name, value)
        self.alpha_ = problem.alpha
        self.objective_ = float(solution.objective)
        self.dual_gap_ = float(solution.relative_gap)
        self.n_iter_ = int(solution.n_iter)
        self.result_ = solution

    def _attributes(
        self, problem: RankingProblem, known: LabelSets, coef: Floats, intercept: Floats
    ) -> dict[str, Any]:
        """What a model needs for predictions."""
        slope: Floats = np.zeros(problem.n_outputs)
        level = 0.0
        if known.multilabel and isinstance(self.threshold, str):
            scores = problem.scores(coef, intercept)
            slope, level = regressed_threshold(scores, known.sets[problem.y], problem.mass)
        elif known.multilabel:
            level = float(self.threshold)
        return {
            "coef_": coef,
            "intercept_": intercept.astype(known.data.dtype),
            "classes_": known.labels,
            "multilabel_": known.multilabel,
            "threshold_coef_": slope.astype(known.data.dtype),
            "threshold_intercept_": level,
            "n_features_in_": known.data.design.d,
        }

    def _n_outputs(self) -> int:
        return len(self.classes_)
