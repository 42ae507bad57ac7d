"""Cross-validation against the path: how many paths it costs, and what a second process gains.

``python benchmarks/paths/cv.py [NAME ...] [--folds 5] [--losses logistic hinge]`` follows 100
alphas down to a hundredth of alpha_max with ``svm_path``, and cross-validates the same ones with
``SparseSVCCV`` in one process and in two. A cross-validation has one more path than folds, that on
all samples. Processor time of one thread and, for two processes, the clock: that needs an idle
machine, and the load is printed with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import argparse
import os
import time
import warnings

import numpy as np
from against_glmnet import DATA, prepared

from sparsvm import SparseSVCCV, alpha_max, svm_path

NAMES = ("su", "digits", "nci60", "news20_1000")
TOL = 1e-3


def seconds(run, *arguments, **options) -> tuple[float, float]:
    """Return processor seconds of this process, and those of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    run(*arguments, **options)
    return time.process_time() - cpu, time.perf_counter() - clock


def measured(name, X, y, loss, folds, two_processes):
    """Return one line of the table."""
    # The least significant digits of alpha_max cost more than a path with the hinge.
    largest = alpha_max(X, y, loss=loss, penalty="l1", tol=0.05)
    alphas = largest * np.logspace(0, -2, 100)
    path, _ = seconds(svm_path, X, y, loss=loss, alphas=alphas, tol=TOL)
    model = SparseSVCCV(loss, alphas=alphas, cv=folds, tol=TOL)
    cpu, one = seconds(model.fit, X, y)
    cells = [name, loss, f"{path:.2f}", f"{cpu:.2f}", f"{cpu / path:.1f}", f"{one:.1f}", "", ""]
    if two_processes:
        # The first run starts the processes, and maps the data into their memory.
        model.set_params(n_jobs=2)
        two = min(seconds(model.fit, X, y)[1] for _ in range(3))
        cells[-2:] = [f"{two:.1f}", f"{one / two:.2f}"]
    return f"| {' | '.join(cells)} | {os.getloadavg()[0]:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(DATA)}")
    parser.add_argument("--losses", nargs="*", default=["logistic", "hinge"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--one", action="store_true", help="one process only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| data | loss | path (s) | cross-validation (s) | paths | clock of one (s) | of two (s) | "
        "ratio | load |\n|" + "---|" * 9
    )
    # What the first cross-validation of a process imports takes the time of a small path.
    SparseSVCCV(alphas=[0.1], cv=2).fit(np.eye(4), [0, 1, 0, 1])
    for name in options.names:
        X, y = prepared(*DATA[name]())
        for loss in options.losses:
            print(measured(name, X, y, loss, options.folds, not options.one), flush=True)


if __name__ == "__main__":
    main()
