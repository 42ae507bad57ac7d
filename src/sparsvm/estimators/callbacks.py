"""The callbacks of scikit-learn 1.9 and later: a task for every report of the solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from sparsvm.data.training_set import TrainingSet
from sparsvm.solvers import Progress

if TYPE_CHECKING:

    class CallbackSupportMixin:
        """What scikit-learn adds: ``set_callbacks``."""

    Method = TypeVar("Method", bound=Callable[..., Any])

    def with_callbacks(method: Method) -> Method:
        """Tear the callbacks down after ``method``."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Nothing: this version of scikit-learn has no callbacks."""

        def with_callbacks(method):
            """Return the method: there is nothing to tear down."""
            return method


class FitTask:
    """The task of one ``fit``, as the callbacks of an estimator see it.

    Parameters
    ----------
    estimator : estimator
        Callbacks are those of its ``set_callbacks``, or of an estimator around it.
    **given : X, y and metadata
        What ``fit`` was given.
    """

    def __init__(self, estimator: Any, **given: Any) -> None:
        self.estimator = estimator
        self.given = given
        self.context: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, **given)

    def end(self) -> None:
        """Say that the fit is over."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator,
                **self.given,
                # The estimator is fitted by now.
                reconstruction_attributes=dict,
            )

    def callback(self, data: TrainingSet) -> Callable[[Progress], bool] | None:
        """Return what a solver is to call, or None without callbacks."""
        self.data = data
        return None if self.context is None else self._report

    def _report(self, progress: Progress) -> bool:
        task = self.context.subcontext(task_name=f"{progress.solver} report")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        return bool(
            task.call_on_fit_task_end(
                estimator=self.estimator,
                **self.given,
                reconstruction_attributes=lambda: self._model(progress),
            )
        )

    def _model(self, progress: Progress) -> dict[str, Any] | None:
        point = progress.coefficients()
        if point is None:
            return None
        return {
            "coef_": point[0],
            "intercept_": point[1],
            "classes_": self.data.classes,
            "class_prior_": self.data.class_shares(),
            "n_features_in_": self.data.design.d,
        }
