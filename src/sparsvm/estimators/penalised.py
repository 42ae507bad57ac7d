"""What the regularised and the constrained classifier share: from parameters to a problem."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sparsvm._typing import Floats
from sparsvm.data.inputs import Within
from sparsvm.data.training_set import TrainingSet, read_training_set
from sparsvm.estimators.finalise import inner_tolerance
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.losses import Hinge, Logistic, Loss
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.parameters import LARGEST
from sparsvm.penalties import Penalty
from sparsvm.problem.problem import Problem, column_std
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

    _shared_constraints: ClassVar[dict[str, list[Any] | str]] = {
        # Names and objects are checked by as_loss, as_penalty and so on, which list the names.
        "loss": "no_validation",
        "penalty": "no_validation",
        "solver": "no_validation",
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Within(Real, 0, np.inf, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

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

    def _store_solution(self, data: TrainingSet, solution: Any) -> None:
        self.classes_ = data.classes
        # Shared: of many features and classes a second matrix takes as much as half of the data.
        same = solution.coef.dtype == data.dtype
        self.coef_ = solution.coef if same else Columns.of(solution.coef).dense(data.dtype)
        self.intercept_ = solution.intercept.astype(data.dtype)
        self.objective_ = float(solution.objective)
        self.dual_gap_ = float(solution.relative_gap)
        self.n_iter_ = int(solution.n_iter)
        self.result_ = solution


def regularised_problem(
    data: TrainingSet, loss: Loss, penalty: Penalty, alpha: float, fit_intercept: bool
) -> Problem:
    """Return the problem of a training set."""
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
        alpha=alpha,
        loss=loss,
        penalty=penalty.resolve(data.design.d, n_outputs, deviation),
        fit_intercept=fit_intercept,
    )


def default_alpha(total: float, parameter: str = "alpha") -> float:
    """Return 1 / (sum of the weights), which ``parameter=None`` stands for."""
    if not 1.0 / LARGEST <= total <= LARGEST:
        raise ValueError(
            f"The weights sum to {total:g}, so that {parameter}=None would mean "
            f"alpha=1/{total:g}. Give {parameter}, or multiply the weights by a constant."
        )
    return 1.0 / total


def _require_margin(loss: Loss, cost: Floats, margin_scale: Floats | None) -> None:
    """Refuse margins that leave nothing to learn or overflow, and sample margins without effect."""
    if margin_scale is not None and not loss.uses_margin:
        raise ValueError(
            f"sample_margin was given, but the loss {loss.name!r} has no margin. Leave it out, or "
            "use loss='squared_hinge'."
        )
    factor = 1.0 if margin_scale is None else float(margin_scale.max())
    largest = float(cost.max()) * factor
    if loss.uses_margin and largest > LARGEST:
        raise ValueError(
            f"The largest margin is {largest:.3g}, but beyond {LARGEST:g} its products may "
            "overflow. Divide all margins by a constant."
        )
    if isinstance(loss, Logistic):
        if margin_scale is not None and not cost.any():
            raise ValueError(
                "sample_margin multiplies the margin of the loss, which is 0 for loss='logistic'. "
                "Use Logistic(margin=1.0), or leave sample_margin out."
            )
        return
    if largest == 0.0:
        raise ValueError(
            "Every margin is zero, so that a model of zeros has no loss and nothing is learned. "
            "Give the loss or sample_margin a positive margin."
        )
    if largest < 1.0 / LARGEST:
        raise ValueError(
            f"The largest margin is {largest:.3g}, but below {1.0 / LARGEST:g} losses may vanish "
            "in rounding. Multiply all margins by a constant."
        )
