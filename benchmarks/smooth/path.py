"""A path of ten alphas with the squared hinge, against lightning's warm-started fits.

``python benchmarks/smooth/path.py --lightning PYTHON`` follows alpha = 1e-3 ... 1e-5 on the
newsgroups (joint l1/l2, no intercepts), every point to a certified relative gap of 1e-3, and lets
lightning follow the same alphas, each from the solution of the one before, until its objective is
as near the optimum, or until it has taken 20 times as long. Processor time of one thread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import numpy as np
from ratios import BEYOND, CASES, load, store

from sparsvm import svm_path

CASE = CASES["news20_s_1e-3"]
ALPHAS = np.geomspace(1e-3, 1e-5, 10)
TOL = 1e-3
GOAL = 20


def follow(tol):
    """Return our path and its seconds."""
    X, y = load(CASE.data)
    began = time.process_time()
    path = svm_path(
        X, y, loss=CASE.loss, penalty=CASE.penalty, alphas=ALPHAS, tol=tol, fit_intercept=False
    )
    return path, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightning", required=True, help="an interpreter with lightning")
    python = parser.parse_args().lightning
    path, seconds = follow(TOL)
    print(f"ours: {seconds:.2f} s, largest gap {path.gaps.max():.1e}", flush=True)
    best = follow(0.01 * TOL)[0].objectives
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(Path(__file__).with_name("peer.py")), "lightning"]
        alphas = ",".join(map(str, ALPHAS))
        limit, targets = BEYOND * GOAL * seconds, [str((1.0 + TOL) * value) for value in best]
        done = subprocess.run(
            [*command, str(store(CASE, folder)), alphas, str(limit), *targets],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    record = json.loads(done.stdout.splitlines()[-1])
    reached = [value for value in record["reached"] if value is not None]
    sign = "" if len(reached) == len(ALPHAS) else "> "
    print(
        f"lightning: {sign}{record['spent']:.4g} s, {len(reached)} of {len(ALPHAS)} alphas reached "
        f"(at {', '.join(f'{value:.3g}' for value in reached)} s), "
        f"ratio {sign}{record['spent'] / seconds:.1f} (goal {GOAL})"
    )


if __name__ == "__main__":
    main()
