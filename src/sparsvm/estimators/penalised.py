"""What the regularised and the constrained classifier share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm.certificate.finalise import inner_tolerance
from sparsvm.data.training_set import TrainingSet, read_training_set
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.losses import Hinge
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Start
from sparsvm.solvers import thread_count


class PenalisedClassifier(SparseLinearClassifier):
    """A classifier with a loss, a penalty and a solver."""

    fit_intercept: bool
    class_weight: Any
    tol: float
    max_iter: int | None
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    verbose: bool | int
    result_: Any

    def _read(self, X: Any, y: Any, sample_weight: Any, sample_margin: Any) -> TrainingSet:
        return read_training_set(
            self,
            X,
            y,
            sample_weight=sample_weight,
            sample_margin=sample_margin,
            class_weight=self.class_weight,
        )

    def _threads(self) -> int:
        """Return the number of BLAS threads that ``n_jobs`` means."""
        return thread_count(self.n_jobs)

    def _control(self, dtype: np.dtype[Any]) -> Control:
        return Control(
            tol=inner_tolerance(self.tol, dtype),
            max_iter=self.max_iter,
            n_jobs=self._threads(),
            random_state=self.random_state,
            verbose=bool(self.verbose),
        )

    def _start(self, problem: Problem, data: TrainingSet) -> Start | None:
        """Return the previous solution as a starting point, where one fits the problem."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = dense_coefficients(self.coef_)
        if coef.shape[1] == data.design.d:
            coef = problem.unfolded(coef)
        intercept = np.asarray(self.intercept_, dtype=np.float64)
        if (
            not np.array_equal(self.classes_, data.classes)
            or coef.shape != (problem.n_outputs, problem.d)
            or intercept.shape != (problem.n_outputs,)
            or not (np.isfinite(coef).all() and np.isfinite(intercept).all())
        ):
            return None
        # Smooth losses have a dual wherever they have coefficients: their derivative there.
        known = getattr(self, "result_", None)
        dual = known.dual if known is not None and isinstance(problem.loss, Hinge) else None
        start = Start(
            coef=coef.astype(np.float64),
            intercept=intercept if self.fit_intercept else np.zeros_like(intercept),
            dual=dual,
        )
        return start.with_masses(problem.mass)

    def _store_solution(self, problem: Problem, data: TrainingSet, solution: Any) -> None:
        self.__dict__.pop("latent_coef_", None)
        if problem.columns is not None:
            self.latent_coef_ = sp.csr_matrix(solution.coef)
            solution = replace(solution, coef=problem.folded(solution.coef))
        self.classes_ = data.classes
        self.class_prior_ = data.class_shares()
        # Shared: of many features and classes a second matrix takes as much as half of the data.
        same = solution.coef.dtype == data.dtype
        self.coef_ = solution.coef if same else Columns.of(solution.coef).dense(data.dtype)
        self.intercept_ = solution.intercept.astype(data.dtype)
        self.objective_ = float(solution.objective)
        self.dual_gap_ = float(solution.relative_gap)
        self.n_iter_ = int(solution.n_iter)
        self.result_ = solution
