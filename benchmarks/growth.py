"""How the time of the interior point grows with the number of features.

Run ``python benchmarks/growth.py`` with SPARSVM_DATA set. The problem is leukemia (38 samples, 3
classes, its first 7125 genes in blocks of 5, standardised) with lambda = 0.1. More columns are
blocks of genes outside the support, each multiplied by a factor between -0.95 and 0.95: their
dual norms only shrink, so the optimum and its support stay what they were: that the optimal value
does within the gaps is checked, as a solution within 1e-6 may have a coefficient more. For each
penalty it prints the median processor time for each d, and the exponent e of the fit
time ~ d^e, over all sizes and over the larger half, where fixed costs weigh less.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import statistics
import time

import numpy as np
from exact_hinge.cases import load, make_problem
from threadpoolctl import threadpool_limits

from sparsvm.penalties import L1, GroupL2, GroupLinf
from sparsvm.problem.solution import Control
from sparsvm.solvers import InteriorPoint

BLOCK, LAM, TOL = 5, 0.1, 1e-6
PENALTIES = {
    "l1": L1(),
    "l1/l2 blocks": GroupL2(groups=BLOCK, per_class=True),
    "l1/linf blocks": GroupLinf(groups=BLOCK, per_class=True),
    "l1/l2 rows": GroupL2(),
}


def solve(X, y, penalty):
    """Return the seconds of one call, on a problem made afresh, and its solution."""
    problem = make_problem(X, y, penalty, LAM)
    began = time.process_time()
    solution = InteriorPoint().solve(problem, None, Control(tol=TOL))
    return time.process_time() - began, solution


def widened(X, support, times, rng):
    """Return X followed by blocks outside the support, shrunk, until it has ``times`` as many."""
    blocks = X.reshape(X.shape[0], -1, BLOCK)
    idle = np.flatnonzero(~support.reshape(-1, BLOCK).any(axis=1))
    chosen = rng.choice(idle, (times - 1) * blocks.shape[1])
    factors = rng.uniform(-0.95, 0.95, chosen.size)
    more = blocks[:, chosen] * factors[:, None]
    return np.concatenate([blocks, more], axis=1).reshape(X.shape[0], -1)


def exponent(sizes, times):
    """Return the slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measure(name, penalty, X, y, doublings, repetitions):
    """Return the Markdown line of one penalty."""
    rng = np.random.default_rng(0)
    narrow = solve(X, y, penalty)[1]
    support = narrow.coef.any(axis=0)
    sizes, times = [], []
    for times_wider in 2 ** np.arange(doublings + 1):
        wide = widened(X, support, int(times_wider), rng)
        runs = [solve(wide, y, penalty) for _ in range(repetitions)]
        found = runs[0][1]
        if abs(found.objective - narrow.objective) > found.gap + narrow.gap:
            raise RuntimeError(f"The optimum changed at d = {wide.shape[1]} ({name}).")
        sizes.append(wide.shape[1])
        times.append(statistics.median(seconds for seconds, _ in runs))
    half = len(sizes) // 2
    cells = [f"{1e3 * seconds:.1f}" for seconds in times]
    cells += [f"{exponent(sizes, times):.2f}", f"{exponent(sizes[half:], times[half:]):.2f}"]
    return sizes, f"| {name} | {support.sum()} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doublings", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    X, y = load("leukemia")
    X = X[:, : X.shape[1] // BLOCK * BLOCK]
    with threadpool_limits(1):
        for number, (name, penalty) in enumerate(PENALTIES.items()):
            sizes, line = measure(name, penalty, X, y, options.doublings, options.repetitions)
            if number == 0:
                heads = ["ms at d = " + str(sizes[0]), *map(str, sizes[1:])]
                heads = ["penalty", "features used", *heads, "exponent", "larger half"]
                print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
            print(line, flush=True)


if __name__ == "__main__":
    main()
