"""The callbacks of scikit-learn 1.9 and later: a task for every report of a solver, or fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sparsvm._typing import Floats
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


def attributes(data: TrainingSet, coef: Floats, intercept: Floats) -> dict[str, Any]:
    """Return what a classifier needs for predictions."""
    return {
        "coef_": coef,
        "intercept_": intercept,
        "classes_": data.classes,
        "class_prior_": data.class_shares(),
        "n_features_in_": data.design.d,
    }


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

    def begin(self, parts: int | None = None) -> None:
        """Say that the fit begins, and of how many parts it is, where that is known."""
        if self.context is not None:
            self.context.max_subtasks = parts
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.given)

    def end(self) -> None:
        """Say that the fit is over."""
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator,
                **self.given,
                # The estimator is fitted by now.
                reconstruction_attributes=dict,
            )

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Say that a part of the fit begins, and that it ends; answers end nothing."""
        task = None
        if self.context is not None:
            task = self.context.subcontext(task_name=name)
            task.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        yield
        if task is not None:
            task.call_on_fit_task_end(estimator=self.estimator, **self.given)

    def callback(
        self, fitted: Callable[[Floats, Floats], dict[str, Any]]
    ) -> Callable[[Progress], bool] | None:
        """Return what a solver is to call, or None without callbacks.

        ``fitted`` returns the attributes of an estimator with these coefficients and intercepts.
        """
        if self.context is None:
            return None

        def report(progress: Progress) -> bool:
            def attributes() -> dict[str, Any] | None:
                point = progress.coefficients()
                return None if point is None else fitted(point[0], point[1])

            task = self.context.subcontext(task_name=f"{progress.solver} report")
            task.call_on_fit_task_begin(estimator=self.estimator, **self.given)
            return bool(
                task.call_on_fit_task_end(
                    estimator=self.estimator, **self.given, reconstruction_attributes=attributes
                )
            )

        return report
