"""The classifier of largest smallest margin among those of least hinge."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from sparsvm._typing import Bools, ClassWeight, Floats, HierarchicalSolverName
from sparsvm.data.inputs import Within, fit_context
from sparsvm.data.training_set import TrainingSet, read_training_set, unchanged_on_error
from sparsvm.data.warn import warn
from sparsvm.estimators.callbacks import CallbackSupportMixin, FitTask, attributes, with_callbacks
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.hierarchical import HSDM, HierarchicalSolution, Staged, as_hierarchical_solver
from sparsvm.hierarchical.bounds import difference_norms, sample_hinges
from sparsvm.losses import Hinge
from sparsvm.penalties import L2
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import blas_threads
from sparsvm.solvers.observed import Observed, listening, unobserved

if TYPE_CHECKING:
    from typing_extensions import Self

# float32 coefficients attain margins to about this share of themselves.
_FLOAT32_TOL = 1e-4
# A sample counts as inside its margin if it falls short by more than this, or by more than the
# rounding of the coefficients makes of it.
_SHORTFALL = 1e-7
_ROUNDINGS = 16.0


class MaxMarginSVC(CallbackSupportMixin, SparseLinearClassifier):
    r"""Classifier of largest smallest margin among all of least hinge loss; nothing to tune.

    Among all linear classifiers with the least total hinge loss

    .. math::

        \sum_i s_i \max\bigl(0, \max_{k \ne y_i}
        (1 + (w_k - w_{y_i})^\top x_i + b_k - b_{y_i})\bigr)

    it is the one that minimises :math:`\max_{r<t} \|w_r - w_t\|`, so that the smallest of the
    pairwise margins :math:`1 / \|w_r - w_t\|` is as large as it can be. For two classes that can
    be separated this is the optimal separating hyperplane. Where more than two classes leave
    several such classifiers, it is the one of least :math:`\sum_{r<t} \|w_r - w_t\|^2` with
    :math:`\sum_k w_k = 0`, :math:`\sum_k b_k = 0` and the shortest intercepts. Both stages carry
    a proof: a lower bound on the hinge, and one on :math:`\max \|w_r - w_t\|`.

    Parameters
    ----------
    class_weight : None, "balanced" or dict, default=None
        Factors for the weights of the samples of each class; a label that the dictionary leaves
        out has factor 1. "balanced" gives all classes the same total weight. A class whose
        total weight is 0 is left out of the model and of ``classes_``.
    solver : {"auto", "staged", "hsdm"} or object, default="auto"
        "auto" is "staged", which solves the two stages exactly, one after the other. "hsdm" is
        the hybrid steepest descent method, as a reference: it approaches the same margin, to a
        relative 1e-3 or so on small problems with features of order 1, without a proof and with
        another tie-break; ``result_.status`` is "settled" where it stopped by its own rule.
        ``sparsvm.hierarchical.HSDM`` takes its options.
    tol : float, default=1e-6
        Largest relative gap that counts as converged, in both stages. The exact solver usually
        leaves gaps near 1e-13 whatever the tolerance; for float32 data it is not below 1e-4.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights; for two classes the difference :math:`w_1 - w_0`.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Labels in sorted order.
    class_prior_ : ndarray of shape (n_classes,)
        Share of the training weight of each class, which decides between equal scores.
    pairwise_margins_ : ndarray of shape (n_classes, n_classes)
        :math:`1 / \|w_r - w_t\|`; infinite on the diagonal, and where the two are equal.
    smallest_margin_ : float
        The smallest of them.
    hinge_loss_ : float
        Total hinge loss, the samples counting by their weights.
    n_margin_errors_ : int
        Number of training samples (rows of positive weight) that are misclassified or inside a
        margin.
    separable_ : bool
        Whether the least hinge loss is zero.
    hinge_gap_ : float
        Relative distance of ``hinge_loss_`` to the least possible, at most; 0 within rounding.
    margin_gap_ : float
        No classifier of least hinge has a smallest margin above
        ``smallest_margin_ / (1 - margin_gap_)``.
    n_iter_ : int
        Iterations of the solver, over all stages.
    result_ : HierarchicalSolution
        Bounds, multipliers, status, seconds, and the history of "hsdm". What concerns samples is
        in the canonical order of the distinct ones, and means are weighted ones.
    selected_features_ : ndarray
        Indices of the features that any class uses, read from ``coef_``.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    SparseSVC : Trades the hinge against a penalty; for data too large for this one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import MaxMarginSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginSVC().fit(X, y)
    >>> model.separable_, model.n_margin_errors_
    (False, 3)
    >>> round(model.smallest_margin_, 4)
    0.0459
    >>> bool(model.margin_gap_ < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
        # Checked by as_hierarchical_solver, which lists the names.
        "solver": "no_validation",
        "tol": [Within(Real, 0, np.inf, closed="left")],
    }

    def __init__(
        self,
        *,
        class_weight: ClassWeight = None,
        solver: HierarchicalSolverName | Staged | HSDM | Observed = "auto",
        tol: float = 1e-6,
    ) -> None:
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; if it fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples: an array, a scipy CSR or CSC matrix (other formats are converted), or a
            pandas or polars frame. float32 and float64 are kept.
        y : array-like of shape (n_samples,)
            Labels of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that are not negative; a sample of weight 2 counts like two samples, and one
            of weight 0 not at all.

        Returns
        -------
        self
            The fitted estimator.
        """
        solver = as_hierarchical_solver(unobserved(self.solver))
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        task = FitTask(self, X=X, y=y, metadata=metadata)
        task.begin()
        with unchanged_on_error(self):
            data = read_training_set(
                self, X, y, sample_weight=sample_weight, class_weight=self.class_weight
            )
            problem = _problem(data)
            tol = float(self.tol)
            if data.dtype == np.float32:
                tol = max(tol, _FLOAT32_TOL)
            with blas_threads(1):
                callback = task.callback(partial(attributes, data))
                control = listening(self.solver, Control(tol=tol), callback)
                solution = solver.solve(problem, control)
                if data.dtype == np.float32:
                    solution = solution.rounded(problem, np.dtype(np.float32), tol)
            self._store(problem, data, solution)
        _advise(solution, tol)
        task.end()
        return self

    def _store(self, problem: Problem, data: TrainingSet, solution: HierarchicalSolution) -> None:
        self.classes_ = data.classes
        self.class_prior_ = data.class_shares()
        self.coef_ = solution.coef.astype(data.dtype)
        self.intercept_ = solution.intercept.astype(data.dtype)
        norms = difference_norms(solution.coef, problem.n_classes)
        self.pairwise_margins_ = _inverse(norms)
        self.smallest_margin_ = float(self.pairwise_margins_.min())
        self.hinge_loss_ = solution.hinge * data.total
        inside = _inside(problem, solution, float(np.finfo(data.dtype).eps))
        self.n_margin_errors_ = int(inside[data.sample_of_row[data.sample_of_row >= 0]].sum())
        self.separable_ = solution.separable
        self.hinge_gap_ = solution.relative_hinge_gap
        self.margin_gap_ = solution.norm_gap
        self.n_iter_ = solution.n_iter
        self.result_ = solution


def _problem(data: TrainingSet) -> Problem:
    K = data.classes.size
    return Problem(
        design=data.design,
        y=data.y,
        mass=data.mass,
        cost=Hinge().cost_matrix(K),
        n_classes=K,
        alpha=1.0,
        loss=Hinge(),
        penalty=L2().resolve(data.design.d, 1 if K == 2 else K, None),
    )


def _inverse(norms: Floats) -> Floats:
    margins = np.full_like(norms, np.inf)
    np.divide(1.0, norms, out=margins, where=norms > 0.0)
    return margins


def _inside(problem: Problem, solution: HierarchicalSolution, precision: float) -> Bools:
    """Tell the samples that fall short of a margin by more than rounding.

    What an iterative solver leaves of a margin that is met must not count either.
    """
    coef, intercept = solution.coef, solution.intercept
    largest = np.ascontiguousarray(np.max(np.abs(coef), axis=0, initial=0.0))
    sizes = np.asarray(problem.design.abs_scores(largest)) + np.abs(intercept).max() + 1.0
    hinges = sample_hinges(problem, coef, intercept)
    least = max(_SHORTFALL, 2.0 * solution.resolution)
    return np.asarray(hinges > np.maximum(least, _ROUNDINGS * precision * sizes))


def _advise(solution: HierarchicalSolution, tol: float) -> None:
    if solution.status == "stopped":
        warn(
            f"{solution.solver} was stopped by its callback after {solution.n_iter} iterations, "
            f"with a relative gap of {solution.relative_hinge_gap:.2g} in the hinge loss and of "
            f"{solution.norm_gap:.2g} in the smallest margin: the model is what it had found so "
            "far.",
            ConvergenceWarning,
        )
        return
    done = solution.converged or solution.status == "settled"
    if not done and solution.norm > 0.0 and solution.norm_bound == 0.0:
        warn(
            f"{solution.solver} stopped after {solution.n_iter} iterations ({solution.status}) "
            f"with a relative gap of {solution.relative_hinge_gap:.2g} in the hinge loss; that no "
            "margin is larger is not proved. Raise its max_iter, or use solver='staged', which "
            "proves both.",
            ConvergenceWarning,
        )
    elif not done:
        warn(
            f"{solution.solver} stopped after {solution.n_iter} iterations ({solution.status}) "
            f"with a relative gap of {solution.relative_hinge_gap:.2g} in the hinge loss and of "
            f"{solution.norm_gap:.2g} in the smallest margin, above tol={tol:g}: either may be "
            "that far from its optimum. Scale the features, pass float64 data, or raise tol.",
            ConvergenceWarning,
        )
    if not np.any(solution.coef):
        warn(
            "Every weight is zero: no linear classifier has a smaller hinge loss than one that "
            "always predicts the same class. Add features that tell the classes apart.",
            UserWarning,
        )
