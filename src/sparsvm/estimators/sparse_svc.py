"""The regularised sparse support vector classifier."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.special import log_softmax

from sparsvm._typing import (
    Array,
    Bools,
    ClassWeight,
    LossName,
    OnInterrupt,
    PenaltyName,
    SolverName,
)
from sparsvm.certificate.finalise import finalised, tolerance
from sparsvm.certificate.least_norm import far_along, least_norm, without_minimum
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, STRENGTH, fit_context
from sparsvm.data.training_set import TrainingSet, unchanged_on_error
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, attributes, with_callbacks
from sparsvm.estimators.fit_warnings import advise, tell_never_predicted
from sparsvm.estimators.linear import highest
from sparsvm.estimators.penalised import PenalisedClassifier
from sparsvm.estimators.row_dual import RowDual
from sparsvm.losses import Logistic, Loss, as_loss
from sparsvm.path.adaptive import adapted
from sparsvm.path.svm_path import require_known
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.problem import Problem
from sparsvm.problem.recession import Recession, recession
from sparsvm.problem.solution import Solution, Start
from sparsvm.solvers import Progress, Solver, as_solver, blas_threads, resolve, solved_within
from sparsvm.solvers.run.progress import print_end

if TYPE_CHECKING:
    from typing_extensions import Self


class LogisticOnly:
    """A method that only a logistic model has, as scikit-learn's ``available_if``.

    Asking another model for it says what to do instead, which ``available_if`` cannot.
    """

    def __init__(self, method: Callable[..., Array]) -> None:
        self.method = method
        update_wrapper(cast(Any, self), method)

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        loss = estimator.loss
        if isinstance(loss, Logistic) or (isinstance(loss, str) and loss == Logistic.name):
            return MethodType(self.method, estimator)
        raise AttributeError(
            f"This {type(estimator).__name__} has no {self.method.__name__}: the scores of "
            f"loss={loss!r} are no probabilities. Use loss='logistic', or wrap the estimator in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


class SparseSVC(CallbackSupportMixin, RowDual, PenalisedClassifier):
    r"""Multiclass support vector classifier that uses few features, with a proof of optimality.

    Minimises, over one weight vector and one free intercept per class,

    .. math::

        \frac{1}{\sum_i s_i} \sum_i s_i \, \mathrm{loss}(y_i, W x_i + b)
        + \alpha \, \mathrm{penalty}(W),

    with all classes in one problem (for the hinge, that of Crammer and Singer). Two classes are
    fitted with a single weight vector. The solution carries a duality gap: an upper bound on how
    far its objective is from the optimum.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        A name or an object of :mod:`sparsvm.losses`: "hinge", "squared_hinge", "logistic",
        "ovr_squared_hinge", ``Hinge(margin=2.0)`` or ``SquaredHinge(margin=costs)`` with one row
        of costs per true class, in the order of the sorted labels of `y` (a frame with labelled
        rows and columns is aligned with them). "ramp" is a bounded
        hinge that gives up on outliers; it is not convex.
    penalty : str or Penalty, default="l1"
        A name or an object of :mod:`sparsvm.penalties`: "l1", "l2", "elasticnet", "l1/l2",
        "l1/linf", "sparse_group", or for example ``GroupL2(groups=5)``. "l0" and "capped_l1" are
        not convex: they select fewer features, and the model is a critical point (see
        :class:`~sparsvm.solvers.DCA`). A convex penalty of your own is a subclass of
        :class:`~sparsvm.penalties.Penalty`.
    alpha : float or None, default=None
        Strength of the penalty; None means 1 / (sum of the weights), the classical C = 1. At a tiny
        alpha the exact optimum may predict worse than what another library returns before it has
        converged, which is a penalty by stopping early: choose alpha by cross-validation
        (:class:`SparseSVCCV`) instead of leaving it small.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalised.
    class_weight : None, "balanced" or dict, default=None
        Factors for the weights of the samples of each class; a label that the dictionary leaves
        out has factor 1. "balanced" gives all classes the same total weight. A class whose
        total weight is 0 is left out of the model and of ``classes_``.
    solver : str or Solver, default="auto"
        A name or an object of :mod:`sparsvm.solvers`; "auto" takes the fastest exact one.
    tol : float, default=1e-3
        Relative duality gap at which to stop, never below the rounding error of the objective;
        at least 1e-6 for float32 data.
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
        Whether `fit` starts from the previous solution where classes and features are the same.
    n_jobs : int or None, default=None
        Number of BLAS threads during `fit`, nothing else: only products of large dense matrices
        gain by more, and sparse data never. None means 1, which is fastest on most problems.
    random_state : int, RandomState instance or None, default=None
        Seed of the solvers that draw random numbers.
    verbose : bool or int, default=False
        Whether to print the progress, with gaps relative to the objective as `tol` is.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, in the floating-point type of the data; ``result_.coef`` itself in float64.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts; they sum to zero for more than two classes, except with one-vs-rest.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of positive weight.
    class_prior_ : ndarray of shape (n_classes,)
        Share of the training weight of each class, which decides between equal scores.
    alpha_ : float
        Strength of the penalty that was used.
    penalty_weights_ : ndarray of shape (n_features,)
        The weights of the penalty, where they are "adaptive".
    objective_ : float
        Value of the objective at the solution.
    dual_gap_ : float
        Duality gap divided by the objective; NaN where the problem is not convex. There
        ``result_.criticality`` tells how far the model is from a critical point.
    dual_ : ndarray of shape (n_samples, n_classes)
        The dual variables behind ``dual_gap_``, in the order of the rows of X, from which the
        lower bound can be computed anew ("The certificate" in the documentation shows how). Where
        the problem is not convex they belong to its tangent problem.
    n_iter_ : int
        Iterations of the solver.
    result_ : Solution
        Everything the solver returned: objectives, status, seconds, history. Its dual variables
        belong to the distinct samples in canonical order.
    selected_features_ : ndarray
        Indices of the features that any class uses, read from ``coef_``.
    selected_feature_names_, selected_groups_ : ndarray
        Their names, and the labels of the groups with weights; ``coef_frame()`` is a table of the
        weights.
    support_ : ndarray
        Indices of the training samples on the slope of the loss, or within 0.01 of it: those that
        moving would move the model (all samples for the logistic loss). Samples that a ramp loss
        gave up are not among them.
    n_support_ : ndarray of shape (n_classes,)
        How many of them each class has.
    parameter_fraction_ : float
        (features used × support vectors) / (features × training samples).
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    Notes
    -----
    To keep the features in use in a pipeline, take :class:`~sparsvm.SparseSelector`:
    :class:`~sklearn.feature_selection.SelectFromModel` drops some of them, unless it is given
    ``threshold=1e-12`` or the penalty is the literal "l1".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> model.selected_features_
    array([2, 3])
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **PARAMETER_CONSTRAINTS,
        **STRENGTH,
    }

    def __init__(
        self,
        loss: LossName | Loss = "hinge",
        penalty: PenaltyName | Penalty = "l1",
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        on_interrupt: OnInterrupt = "raise",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.on_interrupt = on_interrupt
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, sample_margin: Any = None) -> Self:
        """Fit the model; if it fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples: an array, a scipy CSR or CSC matrix (other formats are converted), or a
            pandas or polars frame. float32 and float64 are kept, and X is not copied: do not
            change it while `fit` runs in another thread.
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that are not negative; a sample of weight 2 counts like two samples, and one
            of weight 0 not at all.
        sample_margin : array-like of shape (n_samples,), default=None
            One factor per sample, not negative, for the margin of the loss.

        Returns
        -------
        self
            The fitted estimator.
        """
        loss, penalty = as_loss(self.loss), as_penalty(self.penalty)
        if not (isinstance(self.solver, str) and self.solver == "auto"):
            as_solver(self.solver)
        threads = self._threads()
        # Scorers take what is here.
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        task.begin()
        with unchanged_on_error(self):
            data = self._read(X, y, sample_weight, sample_margin)
            with blas_threads(threads):
                problem = self._problem(data, loss, penalty)
                direction = recession(problem)
                start = self._start(problem, data)
                callback = task.callback(partial(attributes, data))
                solution = self._solve(problem, data, start, direction, callback)
            predicted = self._store(problem, data, solution)
        if self.verbose:
            print_end(solution)
        tol = tolerance(self.tol, data.dtype)
        advise(problem, solution, tol=tol, direction=direction, names=data.feature_names)
        if self.selected_features_.size:
            tell_never_predicted(self.classes_[~predicted])
        task.end()
        return self

    @LogisticOnly
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; only with the logistic loss.

        The probabilities are proportional to the exponentials of the scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1, in the order of ``classes_``.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @LogisticOnly
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of :meth:`predict_proba`, exact where that rounds to zero.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def _problem(self, data: TrainingSet, loss: Loss, penalty: Penalty) -> Problem:
        alpha = default_alpha(data.total) if self.alpha is None else float(self.alpha)
        weighted = adapted(data, loss, penalty, self.fit_intercept)
        return regularised_problem(data, loss, weighted, alpha, self.fit_intercept)

    def _resolved_problem(self, data: TrainingSet) -> Problem:
        """Return the problem of ``fit``."""
        return self._problem(data, as_loss(self.loss), as_penalty(self.penalty))

    def _convex_problem(self, data: TrainingSet) -> Problem:
        """Return the problem of ``fit``, which must be convex."""
        problem = self._resolved_problem(data)
        require_known(problem)
        return problem

    def _path_problem(self, data: TrainingSet) -> Problem:
        """Return the problem of ``fit``, which must have a path."""
        problem = self._resolved_problem(data)
        require_known(problem, convex=False)
        return problem

    def _solve(
        self,
        problem: Problem,
        data: TrainingSet,
        start: Start | None,
        direction: Recession | None = None,
        callback: Callable[[Progress], bool] | None = None,
    ) -> Solution:
        """Solve the problem and certify what the user will see: centred, in the data's type."""
        control = self._control(data.dtype)
        solver = resolve(self.solver, problem, control)
        tol = tolerance(self.tol, data.dtype)
        chosen = not (isinstance(self.solver, str) and self.solver == "auto")
        if direction is not None and without_minimum(problem, direction):
            solution = far_along(problem, direction, tol)
        else:
            if direction is None or chosen or not (direction.complete and problem.convex):
                limits = self.time_limit, self.on_interrupt
                solution = solved_within(solver, problem, start, control, *limits, callback)
            else:
                # Of objective zero, near which solvers lose all digits of a relative gap.
                solution = far_along(problem, direction, tol)
            solution = least_norm(problem, solution, direction, control.tol)
        return finalised(problem, solution, data.dtype, tol, overwrite_dual=True)

    def _store(self, problem: Problem, data: TrainingSet, solution: Solution) -> Bools:
        """Set the attributes; returns which classes are predicted for training samples."""
        self._store_solution(problem, data, solution)
        self._row_shares = data.row_shares()
        self.alpha_ = problem.alpha
        if getattr(as_penalty(self.penalty), "adaptive", False):
            self.penalty_weights_ = problem.penalty.omega
        return self._store_support(problem, data, solution)

    def _store_support(self, problem: Problem, data: TrainingSet, solution: Solution) -> Bools:
        on_slope = np.empty(problem.n, dtype=bool)
        predicted = np.zeros(data.classes.size, dtype=bool)
        for block, scores in problem.score_blocks(solution.coef, solution.intercept):
            margins = problem.margins(block)
            on_slope[block] = problem.loss.on_slope(scores, problem.y[block], margins)
            predicted[highest(scores, self.class_prior_)] = True
        # Rows without weight are sample -1 and support nothing.
        rows = np.append(on_slope, False)[data.sample_of_row]
        self.support_ = np.flatnonzero(rows)
        samples = data.sample_of_row[self.support_]
        self.n_support_ = np.bincount(data.y[samples], minlength=data.classes.size)
        n_rows = int(np.count_nonzero(data.sample_of_row >= 0))
        used = self.selected_features_.size * self.support_.size
        self.parameter_fraction_ = used / (data.design.d * n_rows)
        return predicted
