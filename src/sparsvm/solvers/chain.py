"""Solvers one after the other: each goes on from where the one before it stopped."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsvm import _core
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt, Control, History, Solution, Start
from sparsvm.solvers.base import Solver, settled
from sparsvm.solvers.run.monitor import in_slices as run_stage


class Stage(NamedTuple):
    """One link of a chain: ``solver`` works until the relative gap is at most ``until``.

    With ``until=0`` it works until the tolerance of the whole chain. ``limit`` takes the place of
    its own limit of iterations. With ``cold`` it is passed over where there is a start with its
    dual; with ``enter`` where the relative gap so far is larger.

    Examples
    --------
    >>> from sparsvm.solvers import SDCA, Stage
    >>> Stage(SDCA(), until=1e-2).until
    0.01
    """

    solver: Solver
    until: float = 0.0
    limit: int | None = None
    cold: bool = False
    enter: float = math.inf


class Chain(Solver):
    """Run the stages in order until the tolerance is certified.

    A stage that reaches its own ``until`` hands over; so does one that stalls or exhausts its own
    iteration limit. A limit that the caller gave ends the chain: it was asked for. The best point
    and the best bound are handed on, and returned, unless a stage has met the tolerance by itself;
    coefficients whose rounding alone hides the gap are not handed on.

    Parameters
    ----------
    stages : sequence of Stage
        At least one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.solvers import SDCA, Chain, InteriorPoint, Stage
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Chain((Stage(SDCA(), until=1e-2), Stage(InteriorPoint())))
    >>> model = SparseSVC(alpha=0.1, tol=1e-6, solver=solver).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-6)
    True
    """

    name = "auto"

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages

    def unsupported(self, problem: Problem) -> str | None:
        reasons = (stage.solver.unsupported(problem) for stage in self.stages)
        return next((reason for reason in reasons if reason is not None), None)

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Solve to ``control.tol``; ``control.max_iter`` limits each stage."""
        began = time.perf_counter()
        best: Solution | None = None
        runs: list[tuple[float, Solution]] = []
        for stage in self.stages_from(start):
            entered = time.perf_counter() - began
            if best is not None and best.relative_gap > stage.enter:
                continue
            limit = stage.limit if control.max_iter is None else control.max_iter
            ended = run_stage(
                stage.solver,
                problem,
                start,
                replace(control, tol=max(control.tol, stage.until), max_iter=limit),
            )
            runs.append((entered, ended))
            if control.monitor is not None:
                control.monitor.keep(problem, ended)
            if best is None or settled(problem, ended, control.tol):
                best = ended
            else:
                # A larger floor may hide a gap that is larger still.
                candidates = (best.joined(ended, control.tol), best, ended)
                best = min(candidates, key=lambda solution: solution.gap + solution.floor)
            if settled(problem, best, control.tol):
                break
            if control.max_iter is not None and ended.status == "max_iter":
                break
            if _core.stopping():
                break
            # From coefficients dominated by rounding no other solver comes back either.
            start = None
            if not best.within(control.tol):
                start = Start(best.coef, best.intercept, best.dual)
        assert best is not None
        return _joined(best, runs, control.tol, time.perf_counter() - began)

    def stages_from(self, start: Start | None) -> tuple[Stage, ...]:
        """Return the stages that run from a start: the last one always does."""
        warm = start is not None and start.dual is not None
        return tuple(s for s in self.stages if not (warm and s.cold)) or self.stages[-1:]

    def attempt(self, problem: Problem, start: Start | None, control: Control) -> Attempt | None:
        """Ask the first stage, where that is the one to finish."""
        first = self.stages_from(start)[0]
        return first.solver.attempt(problem, start, control) if first.until == 0.0 else None


def _joined(
    best: Solution, runs: list[tuple[float, Solution]], tol: float, seconds: float
) -> Solution:
    """Return ``best`` with the names, iterations and histories of all the stages that ran."""
    # The last stage may have met a tolerance of its own that is not the chain's.
    short = "max_iter" if runs[-1][1].status == "max_iter" else "stalled"
    return replace(
        best,
        status="optimal" if best.within(tol) else short,
        n_iter=sum(run.n_iter for _, run in runs),
        seconds=seconds,
        history=_concatenated(runs),
        solver=" → ".join(run.solver for _, run in runs),
    )


def _concatenated(runs: list[tuple[float, Solution]]) -> History:
    iterations = np.cumsum([0, *(run.n_iter for _, run in runs[:-1])])
    parts = [run.history for _, run in runs]
    shifted = [part.iteration + first for part, first in zip(parts, iterations, strict=True)]
    elapsed = [part.seconds + entered for part, (entered, _) in zip(parts, runs, strict=True)]
    return History(
        iteration=np.concatenate(shifted),
        seconds=np.concatenate(elapsed),
        objective=np.concatenate([part.objective for part in parts]),
        gap=np.concatenate([part.gap for part in parts]),
        nonzeros=np.concatenate([part.nonzeros for part in parts]),
    )
