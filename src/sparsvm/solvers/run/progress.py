"""Progress of a running solver: lines on the screen, and reports to its monitor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsvm.problem.solution import Control, Solution, relative
from sparsvm.solvers.run.monitor import Listener, Monitor, Point, Progress

Callback = Callable[..., bool]
# Seconds between lines, so that printing costs nothing.
PRINT_EVERY = 0.2


class Report:
    """Prints one line a report where that is asked for, and tells the monitor.

    Called with iteration, seconds, objective, gap and non-zeros, and, where it is known, a function
    that returns the point; the answer is whether to end. The gap is printed relative to the
    objective, as ``tol`` is.
    """

    def __init__(
        self, name: str, verbose: bool, monitor: Monitor | Listener | None, pause: float
    ) -> None:
        self.pause = pause
        self.name = name
        self.verbose = verbose
        self.monitor = monitor
        self.printed = float("-inf")

    def __call__(
        self,
        iteration: int,
        seconds: float,
        objective: float,
        gap: float,
        nonzeros: int,
        point: Callable[[], Point] | None = None,
    ) -> bool:
        share = relative(gap, objective)
        now = time.perf_counter()
        if self.verbose and now >= self.printed + self.pause:
            self.printed = now
            print(
                f"{self.name}: iteration {iteration:>6d}  {seconds:8.2f} s  "
                f"objective {objective:.8g}  relative gap {share:.2e}  non-zeros {nonzeros}",
                flush=True,
            )
        if self.monitor is None:
            return False
        since = now - self.monitor.began
        return self.monitor.tell(
            Progress(self.name, iteration, since, objective, share, nonzeros, point)
        )

    def runs(self, method: Any) -> None:
        """Say that ``method`` holds the best points from now on."""
        if self.monitor is not None:
            self.monitor.running = method


def progress(name: str, control: Control, pause: float = PRINT_EVERY) -> Report | None:
    """Return what a solver is to call at every report; None where nobody wants to know.

    ``pause`` are the least seconds between lines.
    """
    if not control.verbose and control.monitor is None:
        return None
    return Report(name, control.verbose, control.monitor, pause)


def print_end(solution: Solution) -> None:
    """Print what came of a run: the last report may be older than the pause between lines."""
    print(
        f"{solution.solver}: {solution.status} after {solution.n_iter} iterations, "
        f"{solution.seconds:.2f} s  objective {solution.objective:.8g}  "
        f"relative gap {solution.relative_gap:.2e}  non-zeros {np.count_nonzero(solution.coef)}",
        flush=True,
    )
