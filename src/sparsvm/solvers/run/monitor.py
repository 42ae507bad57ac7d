"""The monitor of a run: whom it tells how far it is, when it has to end, and what it keeps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.certify import certified
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.run.options import check_at_least_one, iteration_limit

Point = tuple[Floats, Floats]


# A run ends because it was asked to; what it has found is with the monitor.
Stopped = _core.Stopped


@dataclass(frozen=True)
class Progress:
    """How far a solver is, as a callback is told.

    Attributes
    ----------
    solver : str
    iteration : int
    seconds : float
        Since the run began.
    objective, gap : float
        Of the best point so far; the gap is relative to the objective, and for a problem that is
        not convex the criticality in its place. NaN before the first certificate.
    nonzeros : int
    """

    solver: str
    iteration: int
    seconds: float
    objective: float
    gap: float
    nonzeros: int
    _point: Callable[[], Point] | None = field(default=None, repr=False)

    def coefficients(self) -> Point | None:
        """Return the best coefficients so far, (n_outputs, d), and intercepts.

        Ask during the call: afterwards they may be newer ones, or None. None also before there is a
        first point.
        """
        return None if self._point is None else self._point()


Callback = Callable[[Progress], Any]


class Monitor:
    """The callback, the end and the best certified points of one run.

    Parameters
    ----------
    problem : Problem
        Points of other problems, such as tangents of this one, are not kept.
    callback : callable or None
        Called with a :class:`Progress`; a true answer ends the run.
    softly : bool
        Whether Ctrl-C ends the run instead of raising.
    """

    def __init__(
        self, problem: Problem, callback: Callback | None = None, softly: bool = False
    ) -> None:
        self.problem = problem
        self.callback = callback
        self.softly = softly
        self.began = time.perf_counter()
        self.best: Solution | None = None
        self.running: Any = None
        self.answered = False

    def tell(self, progress: Progress) -> bool:
        """Call back, unless that was answered before; True if the run is to end."""
        if self.callback is not None and not self.answered and self.callback(progress):
            self.answered = True
            _core.stop_after(0.0, self.softly)
        return bool(_core.stopping())

    def keep(self, problem: Problem, solution: Solution) -> None:
        """Remember a certified solution, if it is the best."""
        if problem is not self.problem:
            return
        best = self.best
        if best is None:
            self.best = solution
        elif problem.convex:
            self.best = best.joined(solution, 0.0)
        elif solution.objective < best.objective:
            self.best = solution

    def ended(self, tol: float) -> Solution:
        """Return the best of what was kept and of what ran at last, with the status "stopped"."""
        run = self.running
        if run is not None and run.problem is self.problem and np.isfinite(run.objective):
            history = run.history()
            at_last = (run.coef, run.intercept, run.dual, history, int(history.iteration[-1]))
            self.keep(self.problem, self._certified(*at_last, tol))
        if self.best is None:
            problem = self.problem
            zero = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)
            self.best = self._certified(*zero, None, History.empty(), 0, tol)
        seconds = time.perf_counter() - self.began
        status = "optimal" if self.best.converged or self.best.within(tol) else "stopped"
        return replace(self.best, status=status, seconds=seconds)

    def _certified(
        self,
        coef: Floats,
        intercept: Floats,
        dual: Floats | None,
        history: History,
        n_iter: int,
        tol: float,
    ) -> Solution:
        name = "zero" if self.running is None else self.running.name
        return certified(
            self.problem,
            coef,
            intercept,
            dual,
            tol=tol,
            n_iter=n_iter,
            seconds=0.0,
            history=history,
            solver=name,
            status_if_not="stopped",
        )


class Listener:
    """The callback of a run that keeps its points, and ends, by itself."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.began = time.perf_counter()
        self.running: Any = None

    def tell(self, progress: Progress) -> bool:
        """Call back; True if the run is to end."""
        return bool(self.callback(progress))


def monitored(
    solver: Any,
    problem: Problem,
    start: Start | None,
    control: Control,
    *,
    callback: Callback | None = None,
    time_limit: float | None = None,
    return_on_interrupt: bool = False,
) -> Solution:
    """Solve as ``solver.solve`` does; ended early, return the best certified point so far.

    Native loops end within a tenth of a second of the limit or of what a callback answered;
    ``return_on_interrupt`` lets Ctrl-C do the same instead of raising.
    """
    if control.monitor is not None:
        # Within another monitored run, whose limits hold.
        control.monitor.callback = callback or control.monitor.callback
        return in_slices(solver, problem, start, control)
    monitor = Monitor(problem, callback, return_on_interrupt)
    seconds = math.inf if time_limit is None else float(time_limit)
    # Within a callback, or within a solver that is not monitored, another limit may hold.
    left, softly = _core.stop_after(math.inf, False)
    _core.stop_after(min(seconds, left), return_on_interrupt)
    try:
        solution: Solution = in_slices(solver, problem, start, replace(control, monitor=monitor))
        stopped = bool(_core.stopping())
    except (Stopped, KeyboardInterrupt) as reason:
        if isinstance(reason, KeyboardInterrupt) and not return_on_interrupt:
            raise
        # The certificate is not to be cut short.
        _core.stop_after(math.inf, False)
        solution, stopped = monitor.ended(control.tol), True
    finally:
        _core.stop_after(left - (time.perf_counter() - monitor.began), softly)
    if stopped and not solution.converged:
        solution = replace(solution, status="stopped")
    return solution


def solved_within(
    solver: Any,
    problem: Problem,
    start: Start | None,
    control: Control,
    time_limit: float | None,
    on_interrupt: str,
    callback: Callback | None = None,
) -> Solution:
    """Solve, monitored only where there is a limit or a callback, or Ctrl-C is to return."""
    if time_limit is None and on_interrupt == "raise" and callback is None:
        return solver.solve(problem, start, control)  # type: ignore[no-any-return]
    on_interrupt_return = on_interrupt == "return"
    return monitored(
        solver,
        problem,
        start,
        control,
        callback=callback,
        time_limit=time_limit,
        return_on_interrupt=on_interrupt_return,
    )


def in_slices(solver: Any, problem: Problem, start: Start | None, control: Control) -> Solution:
    """Solve; a solver that has its point only at the end gets ever longer parts of its run."""
    if control.monitor is None or not solver.in_slices:
        return solver.solve(problem, start, control)  # type: ignore[no-any-return]
    check_at_least_one(solver, "max_iter")
    iterations, done, n_iter = 1, 0, 0
    limit = iteration_limit(solver.max_iter, control)
    while True:
        iterations = min(iterations, limit - done)
        solution: Solution = solver.solve(problem, start, replace(control, max_iter=iterations))
        done, n_iter = done + iterations, n_iter + solution.n_iter
        solution = replace(solution, n_iter=n_iter)
        control.monitor.keep(problem, solution)
        if solution.status != "max_iter" or done >= limit:
            return solution
        if _core.stopping():
            raise Stopped
        start = Start(solution.coef, solution.intercept, solution.dual)
        iterations *= 2
