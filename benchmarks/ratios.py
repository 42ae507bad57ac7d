"""How much longer the baselines take than our solvers, to the same certified gap.

Run ``python benchmarks/ratios.py [--problems leukemia_l1 mnist ...] [--quick] [--halving]
[--without-zero-columns] [--output FILE]`` with SPARSVM_DATA set. It prints a Markdown table, one
line a problem:

- ours: the median over several calls of the case's solver (one call where it takes more than
  three seconds), certificate included, on a problem made afresh; loading data is not timed. The
  gap to certify is 1e-6 or stands in the name;
- HiGHS (the better of simplex and interior point) or Clarabel, default settings; writing down
  their program and certifying their answer are not timed;
- FBPD, the best of tau/sigma = 1e-2 ... 1e2 (in the paper's scaling) and its own rule, its
  certificates not timed. Each of the six runs until it is done, or as long as the first one that
  was, or to the limit; "its gap" is then the smallest of them. With ``--halving``, a fifth of the
  work, all start, the better half goes on from 5 % of the limit and the best from 15 %: which can
  drop the one that would have been first, so that ratios after ">" may be too high.

Everything runs on one thread and is measured in seconds of processor time, which on an idle
machine is what the clock on the wall shows and on a busy one is still right. A baseline still
running at the ratio asked for, times our time, is stopped there: "> seconds".
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import math
import multiprocessing
import signal
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from exact_hinge.cases import CASES, make_problem
from exact_hinge.fbpd import GRID, FbpdRun
from objectives.benchmark_utils.programs import programs_for
from threadpoolctl import threadpool_limits

from sparsvm.certificate.certify import certify
from sparsvm.problem.solution import Control
from sparsvm.solvers import resolve

# Limits lie a little beyond the ratio asked for, so that a baseline at the ratio is seen to end.
BEYOND = 1.02
clock = time.process_time


@dataclass(frozen=True)
class Outcome:
    """``seconds`` taken, or spent without end when not ``done``."""

    name: str
    seconds: float
    done: bool
    gap: float = math.nan


def ours(case, repetitions):
    """Return the median seconds of our solver and its last solution."""
    times = []
    while len(times) <= repetitions:
        problem = case.problem()
        control = Control(tol=case.tol)
        began = clock()
        solution = resolve(case.solver, problem, control).solve(problem, None, control)
        times.append(clock() - began)
        if times[0] > 3.0:
            return times[0], solution
    # The first call also loads libraries.
    return statistics.median(times[1:]), solution


def exact_baseline(case, limit):
    """Return the best outcome of the programs that count as the case's baseline."""
    X, _ = case.arrays()
    problem = case.problem()
    best = None
    for name, make in programs_for(problem, X, case.baseline):
        bound = limit if best is None or not best.done else min(limit, best.seconds)
        outcome = in_child(name, make, problem, bound)
        if best is None or outcome.done:
            best = outcome
    return best


def in_child(name, make, problem, limit):
    """Solve in a forked process, which a timer ends after ``limit`` seconds of processor time."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_solve_and_send, args=(make, problem, limit, sender))
    child.start()
    sender.close()
    try:
        seconds, gap = receiver.recv()
    except EOFError:
        child.join()
        if child.exitcode != -signal.SIGPROF:
            raise RuntimeError(f"{name} ended with exit code {child.exitcode}.") from None
        return Outcome(name, limit, done=False)
    child.join()
    return Outcome(name, seconds, done=True, gap=gap)


def _solve_and_send(make, problem, limit, sender):
    program = make()
    signal.setitimer(signal.ITIMER_PROF, limit)
    began = clock()
    point = program.solve()
    seconds = clock() - began
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    sender.send((seconds, certify(problem, *point).relative_gap))


def fbpd_baseline(case, limit, without_zeros, halving):
    """Return the outcome of the best step sizes."""
    X, y = case.arrays()
    # Blocks of consecutive features would be others without some of them.
    if without_zeros and getattr(case.penalty, "groups", None) is None:
        X = X[:, np.flatnonzero(np.asarray(abs(X).sum(axis=0)).ravel() > 0.0)]
    problem = make_problem(X, y, case.penalty, case.lam)
    runs = [FbpdRun(problem, ratio, clock) for ratio in (None, *GRID)]
    # Those that lead go on first: once one of them is done, the others need not run longer.
    every = len(runs)
    rounds = ((0.05, 3), (0.15, 1), (1.0, 1)) if halving else ((0.05, every), (1.0, every))
    for share, keep in rounds:
        for run in runs:
            run.advance(share * limit, case.tol)
            if run.reached(case.tol):
                limit = min(limit, run.seconds)
        runs.sort(key=lambda run: (not run.reached(case.tol), run.gap, run.seconds))
        if halving and runs[0].reached(case.tol):
            break
        del runs[keep:]
    finished = [run for run in runs if run.reached(case.tol)]
    if finished:
        best = min(finished, key=lambda run: run.seconds)
        return Outcome(_fbpd_name(best), best.seconds, done=True, gap=best.gap)
    return Outcome(_fbpd_name(runs[0]), limit, done=False, gap=runs[0].gap)


def _fbpd_name(run):
    return "own rule" if run.ratio is None else f"τ/σ {run.ratio:g}"


HEAD = (
    "| problem, λ | ours (s) | gap | non-zeros | exact baseline | (s) | ratio | goal | "
    "FBPD | (s) | its gap | ratio | goal |"
)


def line(case, repetitions, cap, without_zeros, halving):
    """Measure one case and return its line of the table."""
    seconds, solution = ours(case, repetitions)
    name, lam = case.name.rsplit("_", 1)
    cells = [
        f"{name}, {lam}",
        f"{seconds:.4f}",
        f"{solution.relative_gap:.1e}" + ("" if solution.converged else " (not reached)"),
        f"{np.count_nonzero(solution.coef)}",
    ]
    if case.baseline is None:
        cells += "––––"
    else:
        outcome = exact_baseline(case, min(cap, BEYOND * case.ratio * seconds))
        cells += [outcome.name, *_comparison(outcome, seconds, case.ratio)]
    if case.fbpd_ratio is None:
        return _row([*cells, *"–––––"])
    limit = min(cap, BEYOND * case.fbpd_ratio * seconds)
    outcome = fbpd_baseline(case, limit, without_zeros, halving)
    time_taken, *rest = _comparison(outcome, seconds, case.fbpd_ratio)
    return _row([*cells, outcome.name, time_taken, f"{outcome.gap:.0e}", *rest])


def _comparison(outcome, seconds, goal):
    """Return the cells time, ratio, goal."""
    sign = "" if outcome.done else "> "
    ratio = outcome.seconds / seconds
    met = "✓" if ratio >= goal else "✗" if outcome.done else "?"
    return [f"{sign}{outcome.seconds:.3g}", f"{sign}{ratio:.0f}", f"≥ {goal:g} {met}"]


def _row(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--problems",
        nargs="+",
        metavar="NAME",
        help="beginnings of names; all but simulated_ and many_ (samples) by default. Names: "
        + ", ".join(CASES),
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the first lambda of each problem, baselines stopped after 2 s (goals then show ?)",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=math.inf,
        help="stop every baseline after so many seconds (goals beyond then show ?)",
    )
    parser.add_argument("--repetitions", type=int, default=9, help="calls of our solver, at most")
    parser.add_argument(
        "--without-zero-columns",
        action="store_true",
        help="let FBPD work on X without its zero columns, unless features form blocks",
    )
    parser.add_argument(
        "--halving",
        action="store_true",
        help="drop step sizes of FBPD on the way: faster, but the best may be among them",
    )
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    lines = [HEAD, _row(["---"] * (HEAD.count("|") - 1))]
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for case in selected(options.problems, options.quick):
            cap = 2.0 if options.quick else options.limit
            zeros, halving = options.without_zero_columns, options.halving
            lines.append(line(case, options.repetitions, cap, zeros, halving))
            print(lines[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n")


def selected(beginnings, quick):
    """Return the cases whose names begin so; with ``quick`` one lambda of each."""
    others = ("simulated", "many")
    beginnings = beginnings or [name for name in CASES if not name.startswith(others)]
    cases = [case for name, case in CASES.items() if name.startswith(tuple(beginnings))]
    if not cases:
        sys.exit(f"No problem begins with {' or '.join(beginnings)}: there are {', '.join(CASES)}.")
    if quick:
        cases = list({case.name.rsplit("_", 1)[0]: case for case in reversed(cases)}.values())[::-1]
    return cases


if __name__ == "__main__":
    main()
