"""How far any linear model is from the optimum, proven."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from sparsvm._typing import Floats, LossName, PenaltyName
from sparsvm.data.inputs import PARAMETER_CONSTRAINTS, STRENGTH, Caller
from sparsvm.data.training_set import read_training_set
from sparsvm.data.warn import warn
from sparsvm.losses import Loss, SquaredHinge, as_loss
from sparsvm.losses.base import differences
from sparsvm.numerics.sparse_format import checked_coefficients
from sparsvm.path.zero_model import zero_model
from sparsvm.penalties import L1, Penalty, as_penalty
from sparsvm.problem.build import default_alpha, regularised_problem
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start, relative
from sparsvm.solvers import blas_threads, resolve

# Where a bound within tol leaves open whether the model is, one within this share of tol is found.
_SHARPER_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class ModelCertificate:
    """What :func:`certify` proves of a model.

    Attributes
    ----------
    objective : float
        The objective at the given coefficients.
    lower_bound : float
        No model has a smaller objective than this.
    best_objective : float
        The smallest objective of a model known: the given one or the one found on the way. The
        optimum lies between ``lower_bound`` and this.
    suboptimality : float
        ``(objective - lower_bound) / |objective|``, as ``dual_gap_`` of the estimators: the given
        model is proven to be no further than that from the optimum.
    within_tol : bool
        Whether ``suboptimality`` is at most the tolerance.
    intercept : ndarray of shape (n_outputs,)
        The intercepts that were certified: those given, or the best ones for the given weights.
    dual : ndarray of shape (n_samples, n_classes)
        The dual variables behind ``lower_bound``, in the order of the rows of X; see ``dual_`` of
        :class:`~sparsvm.SparseSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = {"loss": "hinge", "penalty": "l1", "alpha": 10.0}  # where zero is optimal
    >>> proof = certify(X, y, np.zeros((3, 4)), **problem)
    >>> bool(proof.lower_bound <= proof.objective), proof.within_tol
    (True, True)
    """

    objective: float
    lower_bound: float
    best_objective: float
    suboptimality: float
    within_tol: bool
    intercept: Floats = field(repr=False)
    dual: Floats = field(repr=False)


def certify(
    X: Any,
    y: Any,
    coef: Any,
    intercept: Any = None,
    *,
    loss: LossName | Loss,
    penalty: PenaltyName | Penalty,
    alpha: float | None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    tol: float = 1e-3,
) -> ModelCertificate:
    r"""Prove how far any coefficients, ours or another library's, are from the optimum.

    The objective is that of :class:`~sparsvm.SparseSVC`, the mean loss plus alpha times the
    penalty. A lower bound on the objective of every model comes from a dual point, which is found
    here: the problem is solved to ``tol``, starting from the given model. What other packages'
    C and lambda are as alpha is in the documentation ("The problem family").

    Parameters
    ----------
    X, y, sample_weight
        As for :meth:`SparseSVC.fit <sparsvm.SparseSVC.fit>`: the data the model was trained on.
    coef : {array-like, sparse matrix} of shape (n_classes, n_features), or (1, n_features)
        Weights, one row for each class in sorted order of the labels; for two classes one row,
        whose positive scores stand for the second label, as in scikit-learn.
    intercept : float, array-like of shape (n_classes,) or (1,), or None, default=None
        Intercepts. None takes the best ones for the given weights, or zeros where
        ``fit_intercept`` is False.
    loss, penalty, alpha, fit_intercept
        The objective, as for :class:`~sparsvm.SparseSVC`. The loss and the penalty must be convex;
        other problems have no lower bound that could be computed.
    tol : float, default=1e-3
        How close the lower bound comes to the optimum, relative to the objective; where that
        leaves open whether the model is within ``tol``, ten times closer.

    Returns
    -------
    ModelCertificate
        Objective, lower bound, proven relative suboptimality, and whether it is within ``tol``.

    Warns
    -----
    ConvergenceWarning
        If the lower bound is not within ``tol`` of the optimum. It is a lower bound all the same.

    Examples
    --------
    How good is the optimum that liblinear reports? Its C multiplies the sum of the losses, here
    alpha the penalty of their mean, so that alpha = 1 / (C n). (``LinearSVC`` penalises its
    intercept, so the comparison is made without one.)

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import LinearSVC
    >>> from sparsvm import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = LinearSVC(penalty="l1", C=0.1, dual=False, fit_intercept=False, random_state=0)
    >>> model = model.fit(X, y)
    >>> proof = certify(X, y, model.coef_, loss="squared_hinge", penalty="l1",
    ...                 alpha=1 / (0.1 * len(y)), fit_intercept=False)
    >>> proof.within_tol
    True
    >>> proof.lower_bound <= proof.objective
    True

    A model that is not the optimum is told apart:

    >>> certify(X, y, 1.2 * model.coef_, loss="squared_hinge", penalty="l1",
    ...         alpha=1 / (0.1 * len(y)), fit_intercept=False).within_tol
    False
    """
    given = {"fit_intercept": fit_intercept, "tol": tol, "alpha": alpha}
    constraints = {name: {**PARAMETER_CONSTRAINTS, **STRENGTH}[name] for name in given}
    validate_parameter_constraints(constraints, given, caller_name="certify")
    loss, penalty = as_loss(loss), as_penalty(penalty)
    if not (loss.convex and penalty.convex):
        raise ValueError(
            f"certify needs a convex loss and a convex penalty, but it got the loss {loss.name!r} "
            f"with the penalty {penalty.name!r}: such a problem has no lower bound that could be "
            "computed. The criticality of our own fits is in result_.criticality."
        )
    data = read_training_set(Caller.named("certify"), X, y, sample_weight=sample_weight)
    strength = default_alpha(data.total) if alpha is None else float(alpha)
    with blas_threads(1):
        problem = regularised_problem(data, loss, penalty, strength, fit_intercept)
        if problem.columns is not None:
            raise ValueError(
                "certify does not take groups that overlap: the penalty of given coefficients "
                "would be an optimisation problem by itself. Fit a SparseSVC, whose dual_gap_ "
                "holds for such groups too."
            )
        W = _read_coef(coef, problem)
        b = _read_intercept(intercept, problem, W)
        objective = problem.objective(W, b)
        if not np.isfinite(objective):
            raise ValueError(
                f"The objective of the given coefficients overflows: the largest is "
                f"{np.abs(W).max():.3g}. Check them, or scale the features."
            )
        bound = _bounded(problem, Start(W, b), objective, float(tol))
    if not bound.within(tol):
        warn(
            f"The lower bound is only proven to be within {bound.relative_gap:.2g} of the optimum, "
            f"not within tol={tol:g}; it is a lower bound all the same. Raise tol, or scale the "
            "features.",
            ConvergenceWarning,
        )
    suboptimality = relative(max(objective - bound.dual_objective, 0.0), objective)
    return ModelCertificate(
        objective=objective,
        lower_bound=bound.dual_objective,
        best_objective=min(objective, bound.objective),
        suboptimality=suboptimality,
        within_tol=suboptimality <= tol,
        intercept=b,
        dual=data.row_shares().spread(bound.dual),
    )


def _bounded(problem: Problem, model: Start, objective: float, tol: float) -> Solution:
    """Return a solution whose bound tells whether the model is within ``tol``."""
    control = Control(tol=tol)
    # From a model that is worse than none at all the way is not shorter.
    zeros = problem.objective(np.zeros_like(model.coef), np.zeros_like(model.intercept))
    start = model if objective < zeros else None
    found = resolve("auto", problem, control).solve(problem, start, control)
    proven = objective - found.dual_objective <= tol * abs(objective)
    refuted = objective - found.objective > tol * abs(objective)
    if proven or refuted or not found.within(tol):
        return found
    control = replace(control, tol=_SHARPER_SHARE * tol)
    again = Start(found.coef, found.intercept, found.dual)
    sharper = resolve("auto", problem, control).solve(problem, again, control)
    return found.joined(sharper, tol)


def _read_coef(coef: Any, problem: Problem) -> Floats:
    expected = (problem.n_outputs, problem.d)
    if sp.issparse(coef):
        coef = checked_coefficients(coef).toarray()
    try:
        W = np.array(coef, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"coef must be an array of numbers ({error}).") from error
    if W.ndim == 1 and problem.n_outputs == 1:
        W = W[None, :]
    if W.shape != expected:
        raise ValueError(
            f"coef has shape {np.shape(coef)}, but {problem.n_classes} classes and {problem.d} "
            f"features need {expected}: "
            + (
                "two classes have one row of weights."
                if problem.n_outputs == 1
                else "one row for each class, in sorted order of the labels."
            )
        )
    if not np.isfinite(W).all():
        raise ValueError("coef contains NaN or infinite values.")
    return W


def _read_intercept(intercept: Any, problem: Problem, W: Floats) -> Floats:
    if intercept is None:
        return _best_intercept(problem, W) if problem.fit_intercept else np.zeros(len(W))
    try:
        b = np.array(intercept, dtype=np.float64)
        b = np.broadcast_to(b, len(W)).copy() if b.ndim == 0 else b
    except (TypeError, ValueError) as error:
        raise ValueError(f"intercept must hold numbers ({error}).") from error
    if b.shape != (len(W),):
        raise ValueError(
            f"intercept has shape {b.shape}, but {len(W)} rows of weights need {(len(W),)}."
        )
    if not np.isfinite(b).all():
        raise ValueError("intercept contains NaN or infinite values.")
    if b.any() and not problem.fit_intercept:
        raise ValueError(
            "fit_intercept=False means models without intercept, but the given intercept is not "
            "zero. Leave it out, or set fit_intercept=True."
        )
    return b


def _best_intercept(problem: Problem, W: Floats) -> Floats:
    """Return the intercepts of least loss for the given weights.

    With the weights fixed their scores are margins: of the intercepts alone it is the same kind
    of problem, without features.
    """
    scores = problem.scores(W, np.zeros(len(W)))
    none = replace(
        problem,
        penalty=L1().resolve(problem.d, problem.n_outputs),
        margin_scale=None,
        linear_term=None,
    )
    if problem.loss.of_differences:
        margins = problem.margins() + differences(scores, problem.y)
        return zero_model(replace(none, margin_matrix=margins)).intercept
    # One class against the rest: a squared hinge of two classes each.
    none = replace(
        none,
        n_classes=2,
        cost=np.zeros((2, 2)),
        loss=SquaredHinge(),
        penalty=L1().resolve(problem.d, 1),
    )
    pairs = [1] if problem.n_classes == 2 else range(problem.n_classes)
    intercepts = []
    for k in pairs:
        own = problem.y == k
        margins = np.zeros((problem.n, 2))
        margins[own, 0] = 1.0 - scores[own, k]
        margins[~own, 1] = 1.0 + scores[~own, k]
        one = replace(none, y=own.astype(np.int32), margin_matrix=margins)
        intercepts.append(float(zero_model(one).intercept[0]))
    return np.array(intercepts)
