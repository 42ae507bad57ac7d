"""How much longer other libraries take than block_newton on smooth losses.

``python benchmarks/smooth/ratios.py [--cases news20_s_1e-3 ...] [--lightning PYTHON]
[--cyanure PYTHON] [--output FILE]`` with SPARSVM_DATA set prints a Markdown table. A peer runs in
the interpreter that is given for it (LIBLINEAR, as LinearSVC, in this one); one without is left
out. Relative suboptimality against the best value known, no intercepts, one thread, processor time
taken inside the processes. Both sides are timed from the call with the data at hand to the first
look at which the objective was at most the target: a peer is looked at once an epoch (or once a
run, where it has no callback), ours when it records its history, once an epoch. A peer still
running at the ratio asked for times our time is stopped there and counts as that much slower.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import one_thread  # noqa: F401

# isort: split

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp

from sparsvm.data.design import make_design
from sparsvm.datasets import load_20newsgroups, load_mnist
from sparsvm.losses import as_loss
from sparsvm.penalties import L1, GroupL2
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import BlockNewton

TARGETS = (1e-3, 1e-6)
BEYOND = 1.02


@dataclass(frozen=True)
class Case:
    """A problem, the peer and how much slower it should be at each target."""

    data: str
    loss: str
    penalty: str
    alpha: float
    peer: str
    goals: tuple[float, float]


CASES = {
    "news20_s_1e-3": Case("news20", "squared_hinge", "l1/l2", 1e-3, "lightning", (40, 40)),
    "news20_s_1e-4": Case("news20", "squared_hinge", "l1/l2", 1e-4, "lightning", (40, 40)),
    "mnist_s_1e-3": Case("mnist", "squared_hinge", "l1/l2", 1e-3, "lightning", (10, 10)),
    "news20_lg_1e-4": Case("news20", "logistic", "l1/l2", 1e-4, "cyanure", (5, 8)),
    "mnist_lg_1e-4": Case("mnist", "logistic", "l1/l2", 1e-4, "cyanure", (1.5, 2)),
    "news20_ovr_l1_1e-3": Case("news20", "ovr_squared_hinge", "l1", 1e-3, "liblinear", (3, 3)),
    "news20_ovr_l1_1e-4": Case("news20", "ovr_squared_hinge", "l1", 1e-4, "liblinear", (3, 3)),
}


@cache
def load(data):
    """X (CSR tf-idf, or dense pixels divided by 255) and class numbers."""
    if data == "news20":
        X, y = load_20newsgroups(return_X_y=True)
        return sp.csr_matrix(X), np.asarray(y, dtype=np.int32)
    X, y = load_mnist(return_X_y=True)
    return X / 255.0, np.asarray(y, dtype=np.int32)


def make_problem(case):
    """The case without intercepts, made afresh."""
    X, y = load(case.data)
    n_classes, loss = int(y.max()) + 1, as_loss(case.loss)
    penalty = L1() if case.penalty == "l1" else GroupL2()
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(y.size, 1.0 / y.size),
        cost=loss.cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=case.alpha,
        loss=loss,
        penalty=penalty.resolve(X.shape[1], n_classes, None),
        fit_intercept=False,
    )


def ours(case):
    """Return our solution to a gap of 1e-7, and our seconds to each target."""
    full = BlockNewton().solve(make_problem(case), None, Control(tol=1e-7))
    seconds = []
    for target in TARGETS:
        steps = int(full.history.iteration[_first(full.history, target, full.objective)]) + 1
        problem = make_problem(case)
        began, clock = time.process_time(), time.perf_counter()
        solution = BlockNewton().solve(problem, None, Control(tol=1e-15, max_iter=steps))
        spent, elapsed = time.process_time() - began, time.perf_counter() - clock
        first = _first(solution.history, target, full.objective)
        # The history has the time of day, of which other programs may have had a part.
        seconds.append(spent * float(solution.history.seconds[first]) / elapsed)
    return full, seconds


def _first(history, target, best):
    """The first record within the target of the best value."""
    return int(np.flatnonzero(history.objective <= (1.0 + target) * best)[0])


def store(case, folder):
    """Write the data where the peer will read them."""
    path = Path(folder) / f"{case.data}.npz"
    X, y = load(case.data)
    if sp.issparse(X):
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    else:
        parts = {"dense": X}
    if not path.exists():
        np.savez(path, y=y, **parts)
    return path


def limit_of(case, seconds):
    """Where a peer is stopped."""
    return BEYOND * max(g * s for g, s in zip(case.goals, seconds, strict=True))


def against(case, python, path, objective, seconds):
    """Run the peer until each target or its limit; return its record."""
    targets = [str((1.0 + target) * objective) for target in TARGETS]
    limit = limit_of(case, seconds)
    command = [python, str(Path(__file__).with_name("peer.py")), case.peer, str(path)]
    done = subprocess.run(
        [*command, str(case.alpha), str(limit), *targets],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def lines(name, case, python, folder):
    """Measure a case; one line of the table a target."""
    full, seconds = ours(case)
    record = against(case, python, store(case, folder), full.objective, seconds)
    for k, target in enumerate(TARGETS):
        reached = record["reached"][k]
        # A peer without callbacks may run far past the limit; only the limit is proven.
        limit = limit_of(case, seconds)
        time_taken = min(record["spent"], limit) if reached is None else reached
        ratio, sign = time_taken / seconds[k], "> " if reached is None else ""
        met = "✓" if ratio >= case.goals[k] else "?" if reached is None else "✗"
        yield (
            f"| {name} | {target:g} | {seconds[k]:.2f} | {case.peer} | {sign}{time_taken:.3g} | "
            f"{record['last'] / full.objective - 1.0:.0e} | {sign}{ratio:.1f} | "
            f"≥ {case.goals[k]:g} {met} |"
        )


HEAD = (
    "| problem | suboptimality | ours (s) | peer | (s) | it ended at | ratio | goal |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--lightning", help="an interpreter with sklearn-contrib-lightning")
    parser.add_argument("--cyanure", help="an interpreter with cyanure")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    interpreters = {
        "lightning": options.lightning,
        "cyanure": options.cyanure,
        "liblinear": sys.executable,
    }
    table = [HEAD]
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases:
            python = interpreters[CASES[name].peer]
            if python is None:
                print(f"{name}: no interpreter given for {CASES[name].peer}", file=sys.stderr)
                continue
            for line in lines(name, CASES[name], python, folder):
                table.append(line)
                print(line, flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
