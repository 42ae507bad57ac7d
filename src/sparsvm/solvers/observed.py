"""A solver that tells a callback how far it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers.auto import resolve
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.monitor import Callback, Listener, monitored


class Observed(Solver):
    """Any solver, observed by a callback that may end the run.

    Parameters
    ----------
    solver : str or Solver
        A name, "auto" included, or an object; for :class:`~sparsvm.ConstrainedSparseSVC` and
        :class:`~sparsvm.MaxMarginSVC` one of theirs.
    callback : callable
        Called at every report with a :class:`~sparsvm.solvers.Progress`: solver, iteration,
        seconds, objective, relative gap, non-zeros, and on demand the coefficients. Something true
        ends the run; the best certified point so far is returned, with the status "stopped".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import FISTA, Observed
    >>> X, y = load_iris(return_X_y=True)
    >>> seen = []
    >>> solver = Observed(FISTA(), lambda progress: seen.append(progress.gap))
    >>> model = SparseSVC("squared_hinge", alpha=0.1, solver=solver).fit(X, y)
    >>> bool(seen[0] > seen[-1])
    True
    """

    name: ClassVar[str] = "observed"

    def __init__(self, solver: str | Solver, callback: Callback) -> None:
        self.solver = solver
        self.callback = callback

    def unsupported(self, problem: Problem) -> str | None:
        """Say what the solver says."""
        try:
            resolve(self.solver, problem, Control())
        except ValueError as error:
            return str(error)
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve, and call back."""
        solver = resolve(self.solver, problem, control)
        return monitored(solver, problem, start, control, callback=self.callback)


def unobserved(solver: Any) -> Any:
    """Return the solver that is observed, or the one that is not."""
    return solver.solver if isinstance(solver, Observed) else solver


def listening(solver: Any, control: Control, callback: Callback | None = None) -> Control:
    """Return the control of a run that ends by itself, with the callback of an observed solver.

    ``callback`` is told where the solver is not observed.
    """
    if isinstance(solver, Observed):
        callback = solver.callback
    return replace(control, monitor=None if callback is None else Listener(callback))
