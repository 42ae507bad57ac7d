"""Regularisation paths: models for many alphas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from sparsvm._typing import Array, ClassWeight, Floats, LossName, PenaltyName, SolverName
from sparsvm.certificate.finalise import tolerance
from sparsvm.data.training_set import TrainingSet
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.losses import Loss, as_loss
from sparsvm.path.points import Kept, PathPoints
from sparsvm.path.svm_path import first_steps, follow, read_problem
from sparsvm.penalties import Penalty, as_penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Solution
from sparsvm.solvers import Solver

# Alphas that far apart, relatively, are the same: one may have been printed and read again.
_SAME_ALPHA = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class SVMPath(PathPoints):
    """Models for a decreasing sequence of alphas, as :func:`svm_path` returns them.

    ``path[t]`` is the fitted :class:`~sparsvm.SparseSVC` of point t, ``path[a:b]`` a part of the
    path, ``len(path)`` the number of points.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Decreasing.
    coefs : list of n_alphas CSR matrices of shape (n_outputs, n_features)
        Weights, with exact zeros left out; n_outputs is 1 for two classes.
    intercepts : ndarray of shape (n_alphas, n_outputs)
    objectives : ndarray of shape (n_alphas,)
    gaps : ndarray of shape (n_alphas,)
        Certified duality gaps, relative to the objectives; where the problem is not convex, how
        far the points are from critical instead.
    nonzeros : ndarray of shape (n_alphas,)
        Non-zero weights.
    n_selected : ndarray of shape (n_alphas,)
        Features that any class uses.
    seconds : ndarray of shape (n_alphas,)
        Time taken by each point.
    statuses : list of str
        "optimal" where the gap met the tolerance.
    classes : ndarray
        Labels, one for each row of the weights (two for a single row).
    model : SparseSVC
        The estimator whose models these are, not fitted.
    class_prior : ndarray of shape (n_classes,)
        Share of the training weight of each class, which decides between equal scores.
    feature_names : ndarray of n_features str, or None
        Names of the columns, where X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(X, y, penalty="l1/l2", alphas=[0.5, 0.1, 0.05])
    >>> path.at(0.05).selected_features_
    array([2, 3])
    >>> path.score(X, y).round(2)
    array([0.67, 0.95, 0.96])
    >>> path[1:].alphas
    array([0.1 , 0.05])
    """

    model: SparseSVC
    class_prior: Floats
    feature_names: Array | None

    @classmethod
    def of(cls, points: PathPoints, model: SparseSVC, data: TrainingSet) -> SVMPath:
        """Return points of a training set as models of an estimator."""
        values = {field.name: getattr(points, field.name) for field in fields(PathPoints)}
        return cls(
            **values, model=model, class_prior=data.class_shares(), feature_names=data.feature_names
        )

    def at(self, alpha: float) -> SparseSVC:
        """Return the fitted model at an alpha of the path, the nearest one between two of them.

        Parameters
        ----------
        alpha : float
            Within the range of ``alphas``. The model's ``alpha_`` says which of them it is; only
            there the model is optimal.

        Returns
        -------
        SparseSVC
            Fitted; it can do whatever a fitted one can but for ``dual_`` and ``result_``, which a
            path does not keep.
        """
        low, high = self.alphas[-1], self.alphas[0]
        if not low * (1.0 - _SAME_ALPHA) <= alpha <= high * (1.0 + _SAME_ALPHA):
            raise ValueError(
                f"The path runs from alpha={high:g} to alpha={low:g}, but its model at "
                f"alpha={alpha!r} was asked for. Follow the path for alphas that reach there."
            )
        return self._fitted(int(np.argmin(np.abs(np.log(self.alphas / alpha)))))

    @overload
    def __getitem__(self, points: slice) -> SVMPath: ...
    @overload
    def __getitem__(self, points: int) -> SparseSVC: ...
    def __getitem__(self, points: int | slice) -> SVMPath | SparseSVC:
        if isinstance(points, slice):
            return self.part(points)
        return self._fitted(range(len(self))[points])

    def __iter__(self) -> Iterator[SparseSVC]:
        return (self._fitted(t) for t in range(len(self)))

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_alphas, n_samples, n_classes), or (n_alphas, n_samples) for two classes
        """
        return np.array([model.decision_function(X) for model in self])

    def predict(self, X: Any) -> Array:
        """Return the labels that every model predicts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_alphas, n_samples)
        """
        return np.array([model.predict(X) for model in self])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Return the accuracy of every model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        ndarray of shape (n_alphas,)
        """
        return np.array([model.score(X, y, sample_weight) for model in self])

    def _fitted(self, t: int) -> SparseSVC:
        alpha = float(self.alphas[t])
        model: SparseSVC = clone(self.model).set_params(alpha=alpha)
        model.classes_, model.class_prior_ = self.classes, self.class_prior
        model.coef_ = self.coefs[t].toarray()
        model.intercept_ = self.intercepts[t].copy()
        model.alpha_ = alpha
        model.objective_, model.dual_gap_ = float(self.objectives[t]), float(self.gaps[t])
        if not (as_loss(model.loss).convex and as_penalty(model.penalty).convex):
            model.dual_gap_ = float("nan")
        model.n_features_in_ = self.coefs[t].shape[1]
        if self.feature_names is not None:
            model.feature_names_in_ = self.feature_names
        return model


def svm_path(
    X: Any,
    y: Any,
    *,
    loss: LossName | Loss = "hinge",
    penalty: PenaltyName | Penalty = "l1",
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    max_features: int | None = None,
    fit_intercept: bool = True,
    class_weight: ClassWeight = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
    solver: SolverName | Solver = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> SVMPath:
    """Solve for many alphas, from the largest to the smallest, each from the one before.

    Every point carries its own duality gap, computed on all the data. A point is solved on the
    features that matter there: those of the point before and those whose dual norm comes close to
    its limit; all features are then priced and what was missed is added.

    Where loss or penalty is not convex (ramp, l0, capped l1), every point is a critical point: the
    better one of two descents (:class:`~sparsvm.solvers.DCA`), from the point before and from the
    path of the convex problem nearby.

    Parameters
    ----------
    X, y, loss, penalty, fit_intercept, class_weight, sample_weight, sample_margin
        As for :class:`~sparsvm.SparseSVC` and its ``fit``.
    alphas : array-like of positive numbers, optional
        The strengths of the penalty, in any order; all of them are solved. By default
        ``n_alphas`` values, evenly spaced in the logarithm, from a proven upper bound on
        :func:`alpha_max` (for the hinge at most 5 % above it) down to ``eps`` times it. The last
        are left out where nothing changes any more: below a point that is proven optimal for all
        the others, or that has a thousandth of the loss of the first, and, with a warning, where
        a model that is not convex has no minimiser. With ``penalty="l2"``, which
        has no ``alpha_max``, they begin where the samples' scores first differ by a margin.
    n_alphas : int, default=100
    eps : float, default=1e-3
    max_features : int or None, default=None
        Stop before the first model that uses more features than that.
    solver, tol, max_iter, n_jobs, random_state, verbose
        As for :class:`~sparsvm.SparseSVC`.

    Returns
    -------
    SVMPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(X, y, penalty="l1/l2", n_alphas=5)
    >>> path.n_selected
    array([0, 1, 2, 4, 4])
    >>> bool(path.gaps.max() <= 1e-3)
    True
    >>> int(svm_path(X, y, penalty="l1/l2", max_features=2).n_selected.max())
    2
    """
    model = SparseSVC(
        loss,
        penalty,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
    model._threads()  # refuses what is no number of them
    data, problem = read_problem(
        X,
        y,
        loss,
        penalty,
        fit_intercept,
        class_weight,
        sample_weight,
        sample_margin,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        verbose=verbose,
        convex=False,
    )
    points = path_points(
        model, data, problem, alphas, n_alphas, eps, max_features=checked_limit(max_features)
    )
    return SVMPath.of(points, model, data)


def path_points(
    model: SparseSVC,
    data: TrainingSet,
    problem: Problem,
    alphas: ArrayLike | None,
    n_alphas: int = 1,
    eps: float = 0.5,
    *,
    max_features: int | None = None,
    seen: Callable[[Kept, Solution | None], None] | None = None,
) -> PathPoints:
    """Follow the path of a model; a grid of its own (``alphas=None``) ends where all is flat."""
    control = model._control(data.dtype)
    steps, grid = first_steps(problem, model.solver, control, alphas, n_alphas, eps)
    tol = tolerance(model.tol, data.dtype)
    points = follow(
        data,
        steps,
        grid,
        tol,
        to_the_end=alphas is not None,
        max_features=max_features,
        seen=seen,
    )
    if not len(points):
        raise ValueError(
            f"max_features={max_features}, but the model at the largest alpha, {grid[0]:g}, uses "
            "more features already. Raise max_features, give larger alphas, or use a penalty that "
            "selects features."
        )
    return points


def checked_limit(max_features: Any) -> int | None:
    """Return a limit on the number of features; a sentence for what is none."""
    if max_features is None:
        return None
    whole = isinstance(max_features, Integral) and not isinstance(max_features, bool)
    if not whole or max_features < 1:
        raise ValueError(f"max_features must be a positive integer or None; got {max_features!r}.")
    return int(max_features)
