"""Random hinge problems with everything that has broken solvers before, one upon the other.

Run ``python benchmarks/stress.py --seed S --seconds T``. Seeds S, S + 1, ... each give one problem:
two to fifty classes, dense or CSR, with families of the tests' ``problems.py`` stacked (duplicates,
constant columns, classes of one sample, columns over twelve orders, weights over twelve orders,
unpenalised features, margins, ...), every convex penalty and alphas from twice to 1e-7 of the
size at which coefficients appear. Each is solved with ``solver="auto"`` to 1e-6. A line is printed
for a fit that stalls, warns, takes long, or whose proof does not stand: small ones are proven once
more in the naive way, and their lower bounds are held against what HiGHS or Clarabel find. The last
lines are totals. ``--one SEED`` shows one problem and how each solver fared; ``--linear-terms``
adds the linear terms that only linearised non-convex penalties have. ``--smooth`` draws problems of
the smooth losses instead, solved to 1e-4: columns of one scale or over four orders, independent or
correlated, and alphas down to 1e-6 of the size at which coefficients appear. With ``--log FILE`` a
search that was ended goes on from there, and the totals are those of all its seeds.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import hinge_cases
import problems
from reference import oracles
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution
from sparsvm.solvers import resolve

TOL, TOL_SMOOTH = 1e-6, 1e-4
SLOW = 5.0  # seconds of the processor
SHARES = (-7.0, 0.3)  # powers of ten of alpha
# Products of samples, classes and coefficients up to which a proof is done again, and up to which
# the problem is also given to an oracle, which writes it out densely.
NAIVE, ORACLE = 30_000, 100_000


def random_labels(draw):
    """Labels that have nothing to do with the data."""
    draw.X[:] = draw.rng.standard_normal(draw.X.shape)


def odd_columns(draw):
    """A few columns a million times smaller or larger than the others."""
    for j in draw.rng.integers(0, draw.X.shape[1], 3):
        draw.X[:, j] *= draw.rng.choice([1e-6, 1e6])


OTHERS = (problems.plain, problems.linear_terms)
FAMILIES = (*(f for f in problems.FAMILIES if f not in OTHERS), random_labels, odd_columns)
SHAPES = (problems.separable, random_labels, problems.ties)  # of the data before anything else


@dataclass
class Case:
    """A drawn problem and what was stacked on it."""

    seed: int
    problem: Problem
    families: list[str]

    def __str__(self):
        problem, terms = self.problem, self.problem.penalty
        groups = "" if terms.n_groups == terms.d and not terms.per_class else f"/{terms.n_groups}"
        each = "/per_class" if terms.per_class else ""
        return (
            f"seed {self.seed}: {problem.n} x {problem.d}, K = {problem.n_classes}, "
            f"{terms.kind}{groups}{each}, alpha = {problem.alpha:.2g}, {' '.join(self.families)}"
        )


def draw(seed: int, linear_terms: bool = False) -> Case:
    """Draw the problem of a seed."""
    rng = np.random.default_rng([seed, 41])
    n_classes = int(rng.choice([2, rng.integers(3, 10), rng.integers(10, 51)], p=[0.3, 0.4, 0.3]))
    n = n_classes + int(10.0 ** rng.uniform(0.5, 2.3))
    d = int(3 + 10.0 ** rng.uniform(0.0, 2.3))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d)) + rng.standard_normal((n_classes, d))[y]
    drawn = problems.Draw(rng, X, y, n_classes, np.ones(n))
    share = rng.choice([0.1, 0.3])
    chosen = [family for family in FAMILIES if rng.random() < share]
    chosen = [chosen[i] for i in rng.permutation(len(chosen))]
    chosen.sort(key=lambda family: family not in SHAPES)
    chosen += [problems.linear_terms] * linear_terms
    for family in chosen:
        family(drawn)
    penalty = problems.draw_penalty(str(rng.choice(problems.PENALTIES)), drawn)
    problem = problems.finish(drawn, penalty, Hinge(margin=drawn.margin), SHARES)
    return Case(seed, problem, [family.__name__ for family in chosen])


def draw_smooth(seed: int) -> Case:
    """Draw the problem of a seed, with a smooth loss."""
    rng = np.random.default_rng([seed, 43])
    n_classes = int(rng.choice([2, rng.integers(3, 11)], p=[0.3, 0.7]))
    n = 2 * n_classes + int(10.0 ** rng.uniform(1.0, 2.3))
    d = int(10.0 ** rng.uniform(0.5, 2.5))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d))
    families = []
    if rng.random() < 0.5:
        families.append("informative")
        X += rng.uniform(0.2, 2.0) * rng.standard_normal((n_classes, d))[y]
    if rng.random() < 0.3:
        families.append("correlated")
        X += 2.0 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    if rng.random() < 0.4:
        families.append("unscaled")
        X *= 10.0 ** rng.uniform(-2.0, 2.0, d)
    if rng.random() < 0.2:
        families.append("with zeros")
        X *= rng.random((n, d)) < 0.3
    weights = rng.uniform(0.1, 3.0, n) if rng.random() < 0.3 else np.ones(n)
    drawn = problems.Draw(rng, X, y, n_classes, weights)
    penalty = problems.draw_penalty(str(rng.choice(problems.PENALTIES)), drawn)
    loss = rng.choice([SquaredHinge, Logistic, OvrSquaredHinge])()
    problem = problems.finish(drawn, penalty, loss, (-6.0, 0.0))
    return Case(seed, problem, [loss.name, *families])


@dataclass
class Fit:
    """What came of one problem."""

    case: Case
    solution: Solution
    seconds: float
    warnings: list[str]
    wrong: list[str] = field(default_factory=list)


def fit(case: Case) -> Fit:
    """Solve the problem as ``solver="auto"`` does, and judge the answer."""
    control = Control(tol=TOL_SMOOTH if case.problem.loss.smooth else TOL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        solver = resolve("auto", case.problem, control)
        solution = solver.solve(case.problem, None, control)
        seconds = time.process_time() - began
    return judged(Fit(case, solution, seconds, [str(warning.message) for warning in caught]))


def judged(found: Fit) -> Fit:
    """Note what is wrong."""
    solution = found.solution
    found.wrong = list(found.warnings)
    if not solution.converged:
        found.wrong.append(f"{solution.status} at a relative gap of {solution.relative_gap:.2g}")
    elif contradiction := contradicted(found.case.problem, solution):
        found.wrong.append(contradiction)
    if found.seconds > SLOW:
        found.wrong.append("slow")
    return found


def contradicted(problem: Problem, solution: Solution) -> str | None:
    """Say how the proof fails: by loops over its terms, or by a better point of another solver."""
    size = problem.n * problem.n_outputs * problem.d
    if size > NAIVE or problem.loss.smooth:
        return None
    try:
        hinge_cases.assert_proven(problem, solution, TOL)
    except AssertionError as error:
        return f"not proven: {' '.join(str(error).split())[:200]}"
    if size * problem.n_classes > ORACLE:
        return None
    try:
        other = oracles.solve(problem)
    except RuntimeError:
        return None  # no answer is no contradiction
    # Not what the oracle claims but what its point is worth.
    value = oracles.objective(problem, other.coef, other.intercept)
    if value < solution.dual_objective - solution.floor - 1e-12 * abs(value):
        return f"a point of {value:.10g} lies below the bound of {solution.dual_objective:.10g}"
    return None


def report(found: Fit) -> str:
    """One line."""
    return (
        f"{found.case} | {found.solution.solver}, {found.seconds:.1f} s, objective "
        f"{found.solution.objective:.3g} | {'; '.join(found.wrong)}"
    )


def show(case: Case) -> None:
    """Print a problem, and what every solver of its chain did to it."""
    found = fit(case)
    problem, history = found.case.problem, found.solution.history
    columns = np.asarray(problem.column_norms)
    print(report(found))
    for name, values in (
        ("norms of columns", columns),
        ("penalty weights", problem.penalty.omega),
        ("masses", problem.mass),
    ):
        print(f"{name}: {values.min():.2g} to {values.max():.2g}")
    print(f"floor {found.solution.floor:.2g}, gap {found.solution.gap:.2g}")
    for row in zip(history.iteration, history.seconds, history.objective, history.gap, strict=True):
        print("{:6d} {:8.2f} s  objective {:.9g}  gap {:.3g}".format(*row))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no fit after so many")
    parser.add_argument("--count", type=int, help="end after so many seeds, too")
    parser.add_argument("--log", type=Path, help="append seconds and outcomes; go on from its end")
    parser.add_argument("--one", type=int, metavar="SEED", help="show this problem only")
    parser.add_argument("--linear-terms", action="store_true", help="with linear terms")
    parser.add_argument("--smooth", action="store_true", help="smooth losses")
    options = parser.parse_args(arguments)

    def drawn(seed: int) -> Case:
        return draw_smooth(seed) if options.smooth else draw(seed, options.linear_terms)

    if options.one is not None:
        show(drawn(options.one))
        return
    end = time.monotonic() + options.seconds
    # Seed, seconds, whether it stalled, whether it warned, whether anything was wrong.
    rows = _logged(options.log, options.seed)
    last = np.inf if options.count is None else options.seed + options.count
    seed = max((row[0] + 1 for row in rows), default=options.seed)
    while time.monotonic() < end and seed < last:
        found = fit(drawn(seed))
        stalled = not found.solution.converged
        rows.append((seed, found.seconds, stalled, bool(found.warnings), bool(found.wrong)))
        if found.wrong:
            print(report(found), flush=True)
        if options.log is not None:
            with options.log.open("a") as file:
                file.write(" ".join(f"{float(x):g}" for x in rows[-1][1:]).join((f"{seed} ", "\n")))
        seed += 1
    if not rows:
        return
    seconds, slowest = max((row[1], row[0]) for row in rows)
    stalls, warned, wrong = (sum(row[column] for row in rows) for column in (2, 3, 4))
    print(
        f"{len(rows)} fits (seeds {options.seed} to {seed - 1}): {stalls:g} stalls, "
        f"{warned:g} with warnings, {wrong:g} with anything wrong; "
        f"{sum(row[1] for row in rows):.0f} s in all, slowest {seconds:.1f} s (seed {slowest})"
    )


def _logged(log: Path | None, first: int) -> list[tuple[int, float, float, float, float]]:
    """Return the rows of an earlier run from ``first`` on."""
    if log is None or not log.exists():
        return []
    rows = [line.split() for line in log.read_text().splitlines()]
    read = [(int(row[0]), *(float(x) for x in row[1:5])) for row in rows]
    return [row for row in read if row[0] >= first]


if __name__ == "__main__":
    main()
