"""The regularised sparse support vector classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from sparsvm.estimators.advice import advise
from sparsvm.estimators.inputs import LARGEST
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.presenting import inner_tolerance, presented, tolerance
from sparsvm.estimators.training import TrainingSet, read_training_set, unchanged_on_error
from sparsvm.losses import Hinge, Logistic, Loss, as_loss
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem import Control, Problem, Solution, Start, column_std
from sparsvm.solvers import as_solver, blas_threads, resolve


def _is_logistic(estimator: Any) -> bool:
    """Whether scores are logarithms of odds, so that there are probabilities."""
    loss = estimator.loss
    return isinstance(loss, Logistic) or (isinstance(loss, str) and loss == Logistic.name)


class SparseSVC(SparseLinearClassifier):
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
        of costs per true class, in the order of the sorted labels of `y`. "ramp" is a bounded
        hinge that gives up on outliers; it is not convex.
    penalty : str or Penalty, default="l1"
        A name or an object of :mod:`sparsvm.penalties`: "l1", "l2", "elasticnet", "l1/l2",
        "l1/linf", "sparse_group", or for example ``GroupL2(groups=5)``. "l0" and "capped_l1" are
        not convex: they select fewer features, and the model is a critical point (see
        :class:`~sparsvm.solvers.DCA`).
    alpha : float or None, default=None
        Strength of the penalty; None means 1 / (sum of the weights), the classical C = 1.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalised.
    class_weight : None, "balanced" or dict, default=None
        Factors for the weights of the samples of each class; a label that the dictionary leaves
        out has factor 1. "balanced" gives all classes the same total weight. A class whose
        total weight is 0 is left out of the model and of ``classes_``.
    solver : str or Solver, default="auto"
        A name or an object of :mod:`sparsvm.solvers`; "auto" takes the fastest exact one.
    tol : float, default=1e-4
        Relative duality gap at which to stop, never below the rounding error of the objective;
        at least 1e-6 for float32 data.
    max_iter : int or None, default=None
        Limit on the iterations; None is the solver's own.
    warm_start : bool, default=False
        Whether `fit` starts from the previous solution where classes and features are the same.
    n_jobs : int or None, default=None
        Number of BLAS threads during `fit`. None means 1, which is fastest on most problems.
    random_state : int, RandomState instance or None, default=None
        Seed of the solvers that draw random numbers.
    verbose : bool or int, default=False
        Whether to print the progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, in the floating-point type of the data.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts; they sum to zero for more than two classes, except with one-vs-rest.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of positive weight.
    alpha_ : float
        Strength of the penalty that was used.
    objective_ : float
        Value of the objective at the solution.
    dual_gap_ : float
        Duality gap divided by the objective; NaN where the problem is not convex. There
        ``result_.criticality`` tells how far the model is from a critical point.
    n_iter_ : int
        Iterations of the solver.
    result_ : Solution
        Everything the solver returned: objectives, status, seconds, history. Its dual variables
        belong to the distinct samples in canonical order.
    selected_features_ : ndarray
        Indices of the features that any class uses, read from ``coef_``.
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
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had names that are all strings.

    Notes
    -----
    With :class:`~sklearn.feature_selection.SelectFromModel` give ``threshold=1e-12``: only for
    the literal ``penalty="l1"`` does it keep every feature in use by itself; for other penalties
    it would take the mean weight as threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> model.selected_features_
    array([2, 3])
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        # Names and objects are checked by as_loss, as_penalty and as_solver, which list the names.
        "loss": "no_validation",
        "penalty": "no_validation",
        "alpha": [Interval(Real, 1 / LARGEST, LARGEST, closed="both"), None],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "solver": "no_validation",
        "tol": [Interval(Real, 0, np.inf, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        loss: str | Loss = "hinge",
        penalty: str | Penalty = "l1",
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        class_weight: str | dict[Any, float] | None = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
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
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sample_margin: Any = None
    ) -> SparseSVC:
        """Fit the model; if it fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples: an array, a scipy CSR or CSC matrix (other formats are converted), or a
            pandas or polars frame. float32 and float64 are kept, and X is not copied.
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
        threads = _threads(self.n_jobs)
        with unchanged_on_error(self):
            data = read_training_set(
                self,
                X,
                y,
                sample_weight=sample_weight,
                sample_margin=sample_margin,
                class_weight=self.class_weight,
            )
            with blas_threads(threads):
                problem = self._problem(data, loss, penalty)
                solution = self._solve(problem, data)
            self._store(problem, data, solution)
        advise(problem, solution, tol=tolerance(self.tol, data.dtype))
        return self

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
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

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> npt.NDArray[Any]:
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
        n_classes = data.classes.size
        n_outputs = 1 if n_classes == 2 else n_classes
        mass = data.mass
        cost = loss.cost_matrix(data.n_labels)[np.ix_(data.label_numbers, data.label_numbers)]
        _require_margin(loss, cost, data.margin_scale)
        deviation = None
        if penalty.needs_column_std:
            deviation = column_std(data.design, mass)
        return Problem(
            design=data.design,
            y=data.y,
            mass=mass,
            cost=cost,
            margin_scale=data.margin_scale,
            n_classes=n_classes,
            alpha=_default_alpha(data.weight) if self.alpha is None else float(self.alpha),
            loss=loss,
            penalty=penalty.resolve(data.design.d, n_outputs, deviation),
            fit_intercept=self.fit_intercept,
        )

    def _solve(self, problem: Problem, data: TrainingSet) -> Solution:
        """Solve the problem and certify what the user will see: centred, in the data's type."""
        control = Control(
            tol=inner_tolerance(self.tol, data.dtype),
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=bool(self.verbose),
        )
        solver = resolve(self.solver, problem, control)
        solution = solver.solve(problem, self._start(problem, data), control)
        return presented(problem, solution, data.dtype, tolerance(self.tol, data.dtype))

    def _start(self, problem: Problem, data: TrainingSet) -> Start | None:
        """Return the previous solution as a starting point, where one fits the problem."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else np.asarray(self.coef_)
        intercept = np.asarray(self.intercept_, dtype=np.float64)
        if (
            not np.array_equal(self.classes_, data.classes)
            or coef.shape != (problem.n_outputs, problem.d)
            or intercept.shape != (problem.n_outputs,)
            or not (np.isfinite(coef).all() and np.isfinite(intercept).all())
        ):
            return None
        # Smooth losses have a dual wherever they have coefficients: their derivative there.
        dual = self.result_.dual if isinstance(problem.loss, Hinge) else None
        return Start(
            coef=coef.astype(np.float64),
            intercept=intercept if self.fit_intercept else np.zeros_like(intercept),
            dual=_rescaled(dual, problem.mass, problem.n_classes),
        )

    def _store(self, problem: Problem, data: TrainingSet, solution: Solution) -> None:
        self.classes_ = data.classes
        self.coef_ = solution.coef.astype(data.dtype)
        self.intercept_ = solution.intercept.astype(data.dtype)
        self.alpha_ = problem.alpha
        self.objective_ = float(solution.objective)
        self.dual_gap_ = float(solution.relative_gap)
        self.n_iter_ = int(solution.n_iter)
        self.result_ = solution
        self._store_support(problem, data, solution)

    def _store_support(self, problem: Problem, data: TrainingSet, solution: Solution) -> None:
        scores = problem.scores(solution.coef, solution.intercept)
        on_slope = problem.loss.on_slope(scores, problem.y, problem.margins())
        # Rows without weight are sample -1 and support nothing.
        rows = np.append(on_slope, False)[data.sample_of_row]
        self.support_ = np.flatnonzero(rows)
        samples = data.sample_of_row[self.support_]
        self.n_support_ = np.bincount(data.y[samples], minlength=data.classes.size)
        n_rows = int(np.count_nonzero(data.sample_of_row >= 0))
        used = self.selected_features_.size * self.support_.size
        self.parameter_fraction_ = used / (problem.d * n_rows)


def _default_alpha(weight: npt.NDArray[np.float64]) -> float:
    total = float(weight.sum())
    if not 1.0 / LARGEST <= total <= LARGEST:
        raise ValueError(
            f"The weights sum to {total:g}, so that alpha=None would mean alpha={1.0 / total:g}. "
            "Give alpha, or multiply the weights by a constant."
        )
    return 1.0 / total


def _require_margin(
    loss: Loss, cost: npt.NDArray[np.float64], margin_scale: npt.NDArray[np.float64] | None
) -> None:
    """Refuse margins that would leave nothing to learn, and sample margins without effect."""
    if margin_scale is not None and not loss.uses_margin:
        raise ValueError(
            f"sample_margin was given, but the loss {loss.name!r} has no margin. Leave it out, or "
            "use loss='squared_hinge'."
        )
    if isinstance(loss, Logistic):
        if margin_scale is not None and not cost.any():
            raise ValueError(
                "sample_margin multiplies the margin of the loss, which is 0 for loss='logistic'. "
                "Use Logistic(margin=1.0), or leave sample_margin out."
            )
        return
    if not cost.any() or (margin_scale is not None and not margin_scale.any()):
        raise ValueError(
            "Every margin is zero, so that a model of zeros has no loss and nothing is learned. "
            "Give the loss or sample_margin a positive margin."
        )


def _rescaled(
    dual: npt.NDArray[np.float64] | None, mass: npt.NDArray[np.float64], n_classes: int
) -> npt.NDArray[np.float64] | None:
    """Give the rows of an earlier dual point the masses of the present samples."""
    if dual is None or dual.shape != (mass.size, n_classes):
        return None
    return np.asarray(dual * (mass / dual.sum(axis=1))[:, None])


def _threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None for one thread or -1 for all processors.")
    return int(joblib.effective_n_jobs(n_jobs))
