"""Which stages of ``solver="auto"`` run, which decide, and what becomes of a problem without one.

Run ``python benchmarks/ablation.py --seed S --seconds T [--linear-terms]``. The problems are those
of stress.py, each solved to 1e-6 as ``solver="auto"`` does. The table counts, for every stage of a
chain, how often it ran and how often the tolerance was met by it. Every problem that a second or
later stage had to decide is then solved once more without that stage: a stage without which no
problem fails is one to delete. results/ablation.md holds what this and a build with counters in
every other special case have found.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time
import warnings
from collections import Counter

import stress

from sparsvm.problem.solution import Control, Solution
from sparsvm.solvers import Chain, resolve


def stages(solution: Solution) -> list[str]:
    """Return the names of the solvers that ran, the deciding one last."""
    return solution.solver.split(" → ")


def solve(case: stress.Case, without: str | None = None) -> tuple[Solution, float]:
    """Solve as "auto" does, or with one stage left out; also return the processor seconds."""
    control = Control(tol=stress.TOL)
    solver = resolve("auto", case.problem, control)
    if without is not None and isinstance(solver, Chain):
        solver = Chain(tuple(s for s in solver.stages if s.solver.name != without))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solver.solve(case.problem, None, control)
    return solution, time.process_time() - began


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=400_000, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no fit after so many")
    parser.add_argument("--linear-terms", action="store_true", help="with linear terms")
    options = parser.parse_args(arguments)
    end, seed = time.monotonic() + options.seconds, options.seed
    ran, decided, needed = Counter(), Counter(), Counter()
    while time.monotonic() < end:
        case = stress.draw(seed, options.linear_terms)
        solution, seconds = solve(case)
        names = stages(solution)
        ran.update(names)
        if solution.converged:
            decided[names[-1]] += 1
            if len(names) > 1:
                other, longer = solve(case, without=names[-1])
                needed[names[-1]] += not other.converged
                print(
                    f"{case} | {solution.solver}, {seconds:.2f} s | without {names[-1]}: "
                    f"{other.solver}, {other.status}, {longer:.2f} s",
                    flush=True,
                )
        seed += 1
    print(f"\n{seed - options.seed} problems (seeds {options.seed} to {seed - 1})\n")
    print("| stage | ran | decided | of these not solved without it |\n| --- | --- | --- | --- |")
    for name, count in ran.most_common():
        print(f"| {name} | {count} | {decided[name]} | {needed[name]} |")


if __name__ == "__main__":
    main()
