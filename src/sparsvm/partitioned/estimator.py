"""The classifier over partitions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sparsvm._typing import Floats
from sparsvm.certificate.finalise import inner_tolerance, tolerance
from sparsvm.data.inputs import fit_context
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.estimators.fit_warnings import remedy
from sparsvm.estimators.sparse_svc import SparseSVC as OnOneMachine
from sparsvm.losses import Hinge, as_loss
from sparsvm.partitioned.engine import Engine, Threads
from sparsvm.partitioned.fitted import Fitted, Round
from sparsvm.partitioned.hinge import fit_hinge
from sparsvm.partitioned.parts import Rows, as_part, split_rows
from sparsvm.partitioned.smooth import fit_smooth
from sparsvm.partitioned.survey import Population, Survey, column_std, moments, survey
from sparsvm.penalties import as_penalty
from sparsvm.problem.build import default_alpha, problem_on, require_margin
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import blas_threads, resolve

# Rows of the sample that the fit starts from, and the relative gap to which it is solved.
SAMPLE_ROWS, SAMPLE_TOL = 20_000, 1e-2


class SparseSVC(OnOneMachine):
    """Sparse support vector classifier on data larger than memory, with the same certificate.

    The objective, its parameters and the attributes after ``fit`` are those of
    :class:`sparsvm.SparseSVC`; ``objective_`` and ``dual_gap_`` are over *all* the data. The rows
    come in partitions, of which one per thread is in memory at a time. A fit passes over them a
    few times (``result_.rounds``). For the hinge it solves the problem on weighted means of similar
    samples, which is a lower bound on the whole, and divides those clusters whose samples have
    different worst classes, until the bound is within ``tol`` of the objective.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        Any convex loss. Smooth ones are fitted by proximal Newton steps, whose first and second
        derivatives are summed over the partitions.
    penalty, alpha, fit_intercept, class_weight, solver, tol, random_state, verbose
        As for :class:`sparsvm.SparseSVC`; ``solver`` solves the problems in memory.
    max_iter : int or None, default=None
        Limit on the passes over the data; None is 100.
    warm_start : bool, default=False
        Whether `fit` starts from the previous solution where classes and features are the same.
    n_jobs : int or None, default=None
        Partitions worked on at the same time, each in a thread; None means 1.

    Attributes
    ----------
    result_ : Fitted
        Objective, bound and the passes. There are no dual variables: they belong to clusters.

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
        parts: Sequence[Any]
        if y is not None:
            parts = split_rows(X, y, sample_weight, sample_margin)
        else:
            if not isinstance(X, (list, tuple)):
                raise ValueError(
                    f"Without y, X must be a list of partitions such as (X, y); got {type(X)}."
                )
            parts = [as_part(part) for part in X]
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
        loss, penalty = as_loss(self.loss), as_penalty(self.penalty)
        if not (loss.convex and penalty.convex):
            raise ValueError(
                f"Fits over partitions are for convex problems; got the loss {loss.name!r} with "
                f"the penalty {penalty.name!r}. Use sparsvm.SparseSVC on data that fit in memory."
            )
        with unchanged_on_error(self), blas_threads(1):
            population, sample = self._surveyed(engine, parts)
            first = self._first_problem(engine, parts, population, sample)
            control = Control(
                tol=inner_tolerance(self.tol, population.dtype),
                max_iter=self.max_iter,
                random_state=self.random_state,
            )
            start = self._known_start(population) or self._sample_solution(first)
            fit = fit_hinge if isinstance(loss, Hinge) else fit_smooth
            fitted = fit(
                engine,
                parts,
                population,
                first,
                control,
                start,
                _report if self.verbose else None,
                **({"solver": self.solver} if isinstance(loss, Hinge) else {}),
            )
            self._store_fitted(population, first, fitted)
        tol = tolerance(self.tol, population.dtype)
        if not fitted.converged and fitted.relative_gap > tol:
            warnings.warn(
                f"The fit stopped after {len(fitted.rounds)} passes ({fitted.status}) with a "
                f"relative duality gap of {fitted.relative_gap:.2g}, above tol={tol:g}: the "
                f"objective may be that far from the optimum. {remedy(fitted.status)}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _surveyed(self, engine: Engine, parts: Sequence[Any]) -> tuple[Population, list[Rows]]:
        # The same bits from run to run without a seed, too.
        seed = 0 if self.random_state is None else self.random_state
        seed = int(check_random_state(seed).randint(2**31 - 1))
        most = -(-SAMPLE_ROWS // max(1, len(parts)))
        surveys: list[Survey] = engine.gather(
            [engine.submit(survey, part, at, most, seed) for at, part in enumerate(parts)]
        )
        population = Population.of(surveys, self.class_weight)
        return population, [each.sample for each in surveys if each.n > 0]

    def _first_problem(
        self, engine: Engine, parts: Sequence[Any], population: Population, samples: list[Rows]
    ) -> Problem:
        """Return the problem on the sample, with loss, penalty and alpha of the whole."""
        loss, penalty = as_loss(self.loss), as_penalty(self.penalty)
        deviation = None
        if penalty.needs_column_std:
            known = engine.broadcast(population)
            handles = [engine.submit(moments, part, at, known) for at, part in enumerate(parts)]
            deviation = column_std(engine.gather(handles), population.n)
        encoded = [population.encoded(sample) for sample in samples]
        encoded = [each for each in encoded if each[1].size > 0]
        K = population.classes.size
        alpha = default_alpha(population.total) if self.alpha is None else float(self.alpha)
        blocks = [each[0] for each in encoded]
        X = sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)
        margins = [each[3] for each in encoded if each[3] is not None]
        cost = loss.cost_matrix(K, population.classes)
        margin = np.concatenate(margins) if margins else None
        require_margin(loss, cost, margin)
        mass = np.concatenate([each[2] for each in encoded])
        return problem_on(
            X,
            np.concatenate([each[1] for each in encoded]),
            mass / mass.sum(),
            margin,
            loss=loss,
            cost=cost,
            penalty=penalty.resolve(population.d, 1 if K == 2 else K, deviation),
            alpha=alpha,
            fit_intercept=self.fit_intercept,
        )

    def _sample_solution(self, first: Problem) -> Start:
        control = Control(tol=SAMPLE_TOL, random_state=self.random_state)
        solution = resolve(self.solver, first, control).solve(first, None, control)
        return Start(solution.coef, solution.intercept)

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
        self.n_features_in_ = population.d
        self.classes_ = population.classes
        self.class_prior_: Floats = population.priors
        self.coef_ = fitted.coef.astype(population.dtype)
        self.intercept_ = fitted.intercept.astype(population.dtype)
        self.alpha_ = first.alpha
        self.objective_ = fitted.objective
        self.dual_gap_ = fitted.relative_gap
        self.n_iter_ = len(fitted.rounds)
        self.result_ = fitted


def _report(now: Round) -> None:
    gap = (now.objective - now.bound) / abs(now.objective) if now.objective else 0.0
    shown = f"gap {gap:.2e}" if np.isfinite(gap) else "no bound yet"
    print(
        f"{time.strftime('%H:%M:%S')} objective {now.objective:.6g}, {shown}, "
        f"{now.size} on the driver, {now.seconds:.1f} s",
        flush=True,
    )
