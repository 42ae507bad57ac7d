"""The classifier over partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sparsvm._typing import ClassWeight, Floats, LossName, PenaltyName, SolverName
from sparsvm.certificate.finalise import tolerance
from sparsvm.data.inputs import fit_context
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.data.warn import warn
from sparsvm.estimators.fit_warnings import remedy
from sparsvm.estimators.sparse_svc import SparseSVC as OnOneMachine
from sparsvm.losses import Loss
from sparsvm.partitioned.engine import Engine, Threads
from sparsvm.partitioned.fitted import Fitted
from sparsvm.partitioned.parts import as_parts
from sparsvm.partitioned.prepare import Prepared
from sparsvm.partitioned.survey import Population
from sparsvm.penalties import Penalty
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Start
from sparsvm.solvers import Solver, blas_threads

# What to do where the driver's memory does not hold the clusters that decide.
FULL_MEMORY = "More samples decide than the driver may hold: raise tol or alpha."


class SparseSVC(OnOneMachine):
    """Sparse support vector classifier on data larger than memory, with the same certificate.

    The objective, its parameters and the attributes after ``fit`` are those of
    :class:`sparsvm.SparseSVC`; ``objective_`` and ``dual_gap_`` are over *all* the data. The rows
    come in partitions, of which one per thread is in memory at a time. Rows of 256 MB in all are
    solved in memory; else a fit passes over them a few times (``result_.rounds``). For the hinge
    with few coefficients beside the rows these are Newton steps on an augmented Lagrangian; else it
    solves the problem on weighted means of similar samples, which is a lower bound on the whole,
    and divides those clusters whose samples have different worst classes, until the bound is within
    ``tol`` of the objective.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        Any convex loss. Smooth ones are fitted by proximal Newton steps, whose first and second
        derivatives are summed over the partitions.
    penalty, alpha, fit_intercept, class_weight, solver, tol, random_state, verbose
        As for :class:`sparsvm.SparseSVC`; ``solver`` solves the problems in memory.
    max_iter : int or None, default=None
        Limit on the passes over the data; None is 300.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best certified model so far and a warning. A pass
        that has begun is not cut short.
    warm_start : bool, default=False
        Whether `fit` starts from the previous solution where classes and features are the same.
    n_jobs : int or None, default=None
        Partitions worked on at the same time, each in a thread; None means 1.

    Attributes
    ----------
    result_ : Fitted
        Objective, bound and the passes. There are no dual variables: they stay with the rows.

    See Also
    --------
    sparsvm.partitioned.from_npy, from_npz, from_svmlight, from_parquet : partitions of files.
    sparsvm.dask.SparseSVC : the same on a Dask cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm.partitioned import SparseSVC, split_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(split_rows(X, y, rows=40))
    >>> model.selected_features_
    array([2, 3])
    >>> bool(model.dual_gap_ <= 1e-3)
    True
    """

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
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            loss,
            penalty,
            alpha=alpha,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_margin: Any = None
    ) -> SparseSVC:
        """Fit the model; if it fails or is interrupted, the estimator stays as it was.

        Parameters
        ----------
        X : list of partitions, or an array or CSR matrix
            A partition is a tuple ``(X, y)``, ``(X, y, sample_weight)`` or ``(X, y,
            sample_weight, sample_margin)``, or a function without arguments that reads one.
            An array, which may be memory-mapped, is divided into partitions of 64 MB.
        y, sample_weight, sample_margin : array-like of shape (n_samples,), optional
            For an array.

        Returns
        -------
        self
            The fitted estimator.
        """
        parts = as_parts(X, y, sample_weight, sample_margin)
        engine = Threads(self._threads())
        try:
            return self._fit_parts(engine, parts)
        finally:
            engine.close()

    def to_local(self) -> OnOneMachine:
        """Return an ordinary :class:`sparsvm.SparseSVC` with the same model and certificate.

        What knows that class, such as ``save_model`` and ``report``, takes this one through it.
        """
        names = set(OnOneMachine().get_params(deep=False))
        given = {k: v for k, v in self.get_params(deep=False).items() if k in names}
        local = OnOneMachine(**given)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in ("client_", "result_"):
                setattr(local, name, value)
        if hasattr(self, "result_"):
            local.result_ = self.result_.solution(len(self.classes_))
        return local

    def _fit_parts(self, engine: Engine, parts: Sequence[Any]) -> SparseSVC:
        """Fit to handles of partitions."""
        with unchanged_on_error(self), blas_threads(1):
            prepared = Prepared(engine, parts, self)
            population = prepared.population
            first = prepared.problem(population, self.alpha)
            start = self._known_start(population) or prepared.sample_solution(first)
            fitted = prepared.fits(population, first).fit(
                first.alpha, prepared.control, start, prepared.limits, prepared.progress
            )
            self._store_fitted(population, first, fitted)
        tol = tolerance(self.tol, population.dtype)
        if not fitted.converged and fitted.relative_gap > tol:
            what = FULL_MEMORY if fitted.status == "full" else remedy(fitted.status)
            warn(
                f"The fit stopped after {len(fitted.rounds)} passes ({fitted.status}) with a "
                f"relative duality gap of {fitted.relative_gap:.2g}, above tol={tol:g}: the "
                f"objective may be that far from the optimum. {what}",
                ConvergenceWarning,
            )
        return self

    def _known_start(self, population: Population) -> Start | None:
        outputs = 1 if population.classes.size == 2 else population.classes.size
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else np.asarray(self.coef_)
        same = np.array_equal(self.classes_, population.classes)
        if not same or coef.shape != (outputs, population.d):
            return None
        intercept = np.asarray(self.intercept_, dtype=np.float64)
        return Start(coef.astype(np.float64), intercept * float(self.fit_intercept))

    def _store_fitted(self, population: Population, first: Problem, fitted: Fitted) -> None:
        for name in ("support_", "n_support_", "parameter_fraction_", "_row_shares"):
            self.__dict__.pop(name, None)
        population.name_features(self)
        self.classes_ = population.classes
        self.class_prior_: Floats = population.priors
        self.coef_ = fitted.coef.astype(population.dtype)
        self.intercept_ = fitted.intercept.astype(population.dtype)
        self.alpha_ = first.alpha
        self.objective_ = fitted.objective
        self.dual_gap_ = fitted.relative_gap
        self.n_iter_ = len(fitted.rounds)
        self.result_ = fitted
