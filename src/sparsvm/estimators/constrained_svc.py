"""The sparse support vector classifier with a hinge budget."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparsvm._typing import BudgetSolverName, ClassWeight, Floats, LossName, PenaltyName
from sparsvm.budget.problem import FEASIBILITY, ConstrainedProblem, ConstrainedSolution
from sparsvm.budget.registry import ConstrainedSolver, as_constrained_solver
from sparsvm.budget.search import BudgetSearch
from sparsvm.certificate.finalise import FLOAT32_TOL, as_type, centred, tolerance
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, Within, fit_context
from sparsvm.data.training_set import TrainingSet, unchanged_on_error
from sparsvm.data.warn import warn
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, attributes, with_callbacks
from sparsvm.estimators.fit_warnings import remedy
from sparsvm.estimators.penalised import PenalisedClassifier
from sparsvm.estimators.row_dual import RowDual
from sparsvm.losses import Hinge, Loss, as_loss
from sparsvm.parameters import LARGEST_NUMBER, quoted
from sparsvm.penalties import PENALTIES, Penalty, as_penalty
from sparsvm.penalties.base import BuiltInPenalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import blas_threads, resolve
from sparsvm.solvers.observed import Observed, listening, unobserved
from sparsvm.solvers.run.monitor import Callback, solved_within

if TYPE_CHECKING:
    from typing_extensions import Self

# Settings for the model of an alpha: attempts, the share of its tolerance that the next is asked
# for at most (half of what the last one fell short of otherwise), and the smallest tolerance.
ATTEMPTS, SHARPER_SHARE, SHARPEST_TOL = 4, 0.3, 1e-9
# Lengthenings, each twice the last, of a model that its rounding to float32 took out of the budget.
LENGTHENINGS = 6


class ConstrainedSparseSVC(CallbackSupportMixin, RowDual, PenalisedClassifier):
    r"""Multiclass support vector classifier of least penalty within a budget for the hinge loss.

    Minimises, over one weight vector and one free intercept per class,

    .. math::

        \mathrm{penalty}(W) \quad \text{subject to} \quad
        \frac{1}{\sum_i s_i} \sum_i s_i \, \mathrm{hinge}(y_i, W x_i + b) \le \eta .

    The budget :math:`\eta` is in units of the margin, so that it is easier to choose than the
    strength of a penalty: 0 asks for every margin (the sparse hard-margin SVM), and the best
    intercepts alone attain at most the mean margin. The solution carries a proof: a lower bound on
    the penalty of every model within the budget.

    Parameters
    ----------
    eta : float or None, default=None
        The budget. None takes the mean hinge of ``SparseSVC`` with the same penalty at its own
        default alpha, so that the two defaults agree.
    penalty : str or Penalty, default="l1"
        A name or an object of :mod:`sparsvm.penalties`: "l1", "l2", "elasticnet", "l1/l2",
        "l1/linf", "sparse_group", or for example ``GroupL2(groups=5)``.
    loss : str or Loss, default="hinge"
        "hinge", or a :class:`~sparsvm.losses.Hinge` with a margin or a matrix of costs.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is never penalised.
    class_weight : None, "balanced" or dict, default=None
        Factors for the weights of the samples of each class, as in ``SparseSVC``.
    solver : str or solver object, default="auto"
        "auto" or "budget_search" searches for the multiplier with exact solves of the regularised
        problem; "fbpd_epigraph" and "fbpd_linear" are the proximal algorithms that project on
        epigraphs and on linear constraints.
    tol : float, default=1e-3
        Relative gap between the penalty and its lower bound at which to stop; at least 1e-6 for
        float32 data.
    max_iter : int or None, default=None
        Limit on the iterations; for the default solver on the regularised problems solved.
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
        Intercepts; they sum to zero for more than two classes.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of positive weight.
    class_prior_ : ndarray of shape (n_classes,)
        Share of the training weight of each class, which decides between equal scores.
    eta_ : float
        The budget that was used.
    alpha_ : float
        The equivalent multiplier: ``SparseSVC(alpha=alpha_)`` attains the same mean hinge plus
        alpha times penalty (not necessarily with the same model). For the model of zeros it is
        the least alpha at which ``SparseSVC`` returns zeros.
    objective_ : float
        The penalty of the solution.
    dual_gap_ : float
        Difference between the penalty and its lower bound, divided by the penalty; infinite where
        a fit ended outside of the budget.
    n_iter_ : int
        Iterations of the solver.
    dual_ : ndarray of shape (n_samples, n_classes)
        The dual variables behind ``dual_gap_``, in the order of the rows of X.
    result_ : ConstrainedSolution
        Everything the solver returned: penalty, lower bound, mean hinge, violation of the budget
        (at most 1e-9 times the larger of eta and the mean margin; 1e-6 for float32 data), status,
        history. Its dual variables belong to the distinct samples in canonical order.
    selected_features_ : ndarray
        Indices of the features that any class uses, read from ``coef_``.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    SparseSVC : The regularised form, with a strength instead of a budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import ConstrainedSparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConstrainedSparseSVC(eta=0.15, penalty="l1/l2").fit(X, y)
    >>> model.selected_features_
    array([2, 3])
    >>> bool(model.result_.hinge <= 0.15 + 1e-9 and model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **PARAMETER_CONSTRAINTS,
        "eta": [Within(Real, 0, LARGEST_NUMBER, closed="both"), None],
    }

    def __init__(
        self,
        eta: float | None = None,
        penalty: PenaltyName | Penalty = "l1",
        *,
        loss: LossName | Loss = "hinge",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: BudgetSolverName | ConstrainedSolver | Observed = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.eta = eta
        self.penalty = penalty
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
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
            Samples, as for ``SparseSVC``.
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that are not negative.
        sample_margin : array-like of shape (n_samples,), default=None
            One factor per sample, not negative, for the margin of the loss.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Also where no model meets the budget: the message names the least mean hinge of any
            model and what proves it.
        """
        loss, penalty = _checked_loss(self.loss), _checked_penalty(self.penalty)
        as_constrained_solver(unobserved(self.solver))
        threads = self._threads()
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        task.begin()
        with unchanged_on_error(self):
            data = self._read(X, y, sample_weight, sample_margin)
            with blas_threads(threads):
                # eta=None refers to the default alpha of SparseSVC; otherwise any will do.
                alpha = default_alpha(data.total, "eta") if self.eta is None else 1.0
                problem = regularised_problem(data, loss, penalty, alpha, self.fit_intercept)
                callback = task.callback(partial(attributes, data))
                solution = self._solve(problem, data, callback)
            self._store(problem, data, solution)
        _advise(solution, tol=tolerance(self.tol, data.dtype))
        task.end()
        return self

    def _solve(
        self, regularised: Problem, data: TrainingSet, callback: Callback | None
    ) -> ConstrainedSolution:
        """Solve and certify what the user will see: centred, in the type of the data."""
        tol = tolerance(self.tol, data.dtype)
        rounded = data.dtype == np.float32
        control = listening(self.solver, self._control(data.dtype), callback)
        start = self._start(regularised, data)
        alpha = None if start is None else self.alpha_
        solver = as_constrained_solver(unobserved(self.solver))
        if self.eta is None:
            solution = _as_regularised(regularised, start, control)
            problem = ConstrainedProblem(regularised, solution.eta)
            # Where the penalty is a mere rounding of hinge + alpha penalty, only the search can
            # tell how small it may be.
            done = isinstance(solver, BudgetSearch) and solution.converged
            if done or solution.status == "stopped":
                return self._finished(problem, solution, tol, rounded)
            start = Start(solution.coef, solution.intercept, solution.dual)
            alpha = regularised.alpha
        else:
            problem = ConstrainedProblem(regularised, float(self.eta))
        reason = solver.unsupported(problem)
        if reason is not None:
            raise ValueError(f"solver={solver.name!r} cannot solve this problem: {reason}")
        if isinstance(solver, BudgetSearch):
            solution = solver.solve(problem, start, control, alpha)
        else:
            solution = solver.solve(problem, start, control)
        return self._finished(problem, solution, tol, rounded)

    def _finished(
        self, problem: ConstrainedProblem, solution: ConstrainedSolution, tol: float, rounded: bool
    ) -> ConstrainedSolution:
        coef, intercept = solution.coef, centred(problem.regularised, solution.intercept)
        if rounded:
            coef, intercept = _rounded(problem, coef, intercept, solution.alpha)
        certified = ConstrainedSolution.certify(
            problem,
            coef,
            intercept,
            solution.dual,
            tol=tol,
            feasible=FLOAT32_TOL if rounded else FEASIBILITY,
            n_iter=solution.n_iter,
            seconds=solution.seconds,
            history=solution.history,
            solver=solution.solver,
            status_if_not="stalled" if solution.converged else solution.status,
        )
        status = "stopped" if solution.status == "stopped" else certified.status
        return replace(certified, alpha=solution.alpha, status=status)

    def _store(self, problem: Problem, data: TrainingSet, solution: ConstrainedSolution) -> None:
        self._store_solution(problem, data, solution)
        self._row_shares = data.row_shares()
        self.eta_ = float(solution.eta)
        self.alpha_ = float(solution.alpha)


def _checked_loss(loss: Any) -> Loss:
    found = as_loss(loss)
    if not isinstance(found, Hinge):
        raise ValueError(
            f"ConstrainedSparseSVC bounds the hinge loss, but loss={loss!r} was given; use 'hinge' "
            "or a Hinge with a margin, or another estimator."
        )
    return found


def _checked_penalty(penalty: Any) -> Penalty:
    found = as_penalty(penalty)
    if not (found.convex and isinstance(found, BuiltInPenalty)):
        names = quoted(name for name, kind in PENALTIES.items() if kind.convex)
        raise ValueError(
            f"ConstrainedSparseSVC needs a built-in convex penalty, but penalty={penalty!r} was "
            f"given; use one of {names}."
        )
    return found


def _as_regularised(problem: Problem, start: Start | None, control: Control) -> ConstrainedSolution:
    """Solve the regularised problem, whose mean hinge is the budget it solves the other form for.

    A gap that is small against hinge + alpha penalty may be large against the penalty alone; then
    the problem is solved again, sharper.
    """
    began = time.perf_counter()
    tol, solution = control.tol, None
    callback = None if control.monitor is None else control.monitor.callback
    for attempt in range(1, ATTEMPTS + 1):
        inner = replace(control, tol=tol, max_iter=None, monitor=None)
        solver = resolve("auto", problem, inner)
        found = solved_within(solver, problem, start, inner, None, "raise", callback)
        intercept = centred(problem, found.intercept)
        hinge = ConstrainedProblem(problem, 0.0).hinge(found.coef, intercept)
        solution = ConstrainedSolution.certify(
            ConstrainedProblem(problem, hinge),
            found.coef,
            intercept,
            found.dual,
            tol=control.tol,
            n_iter=attempt,
            seconds=time.perf_counter() - began,
            history=found.history,
            solver=BudgetSearch.name,
            status_if_not="stalled",
        )
        solution = replace(solution, alpha=problem.alpha)
        if found.status == "stopped":
            # Of its own budget it may be the optimum, which nobody asked for.
            return replace(solution, status="stopped")
        if solution.converged or tol <= SHARPEST_TOL:
            break
        share = problem.alpha * solution.objective / found.objective
        tol = max(min(SHARPER_SHARE * tol, 0.5 * control.tol * share), SHARPEST_TOL)
        start = Start(found.coef, found.intercept, found.dual)
    assert solution is not None
    return solution


def _rounded(
    problem: ConstrainedProblem, coef: Floats, intercept: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Round to float32, after lengthening by what keeps the rounded model within the budget."""

    single = np.dtype(np.float32)
    plain = as_type(coef, single), as_type(intercept, single)
    violation = problem.violation(*plain)
    cost = alpha * problem.penalty(coef)
    if not violation > 0.0 or not 0.0 < cost < np.inf:
        return plain
    more = violation / cost
    for _ in range(LENGTHENINGS):
        longer = as_type((1.0 + more) * coef, single), as_type((1.0 + more) * intercept, single)
        if problem.violation(*longer) == 0.0:
            return longer
        more *= 2.0
    return plain


def _advise(solution: ConstrainedSolution, *, tol: float) -> None:
    """Warn about a fit that did not converge and about one whose every weight ends at zero."""
    if not solution.converged:
        found = (
            f"a relative gap of {solution.relative_gap:.2g} (tol={tol:g}): the penalty may be that "
            "far from the least one."
            if np.isfinite(solution.relative_gap)
            else f"a mean hinge {solution.violation:.2g} above eta={solution.eta:g}: the model is "
            "not within the budget."
        )
        warn(
            f"{solution.solver} stopped after {solution.n_iter} iterations ({solution.status}) "
            f"with {found} {remedy(solution.status)}",
            ConvergenceWarning,
        )
    if not np.any(solution.coef) and solution.status != "stopped":
        warn(
            f"Every weight is zero: intercepts alone are within the budget eta={solution.eta:.4g}. "
            "Choose a smaller eta, or scale the features where eta is None.",
            UserWarning,
        )
