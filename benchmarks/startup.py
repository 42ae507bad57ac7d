"""Time from a new process to a fitted model of iris: SparseSVC against LinearSVC.

Run ``python benchmarks/startup.py [repetitions]``. It prints the median wall-clock time of both
scripts, interpreter start included, and their difference, which is to stay below 0.15 s. The two
scripts alternate, so a busy machine slows both alike.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

SCRIPT = """
from sklearn.datasets import load_iris
from {module} import {name}
X, y = load_iris(return_X_y=True)
{name}().fit(X, y)
"""
CONTENDERS = {
    "LinearSVC": SCRIPT.format(module="sklearn.svm", name="LinearSVC"),
    "SparseSVC": SCRIPT.format(module="sparsvm", name="SparseSVC"),
}


def seconds(script: str) -> float:
    """Return the time a new interpreter takes to run a script."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
    return time.perf_counter() - start


def main(repetitions: int = 5) -> None:
    """Print the medians."""
    for script in CONTENDERS.values():  # fill the file cache
        seconds(script)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(repetitions):
        for name, script in CONTENDERS.items():
            times[name].append(seconds(script))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"{name:10s} {median:6.3f} s")
    print(f"{'difference':10s} {medians['SparseSVC'] - medians['LinearSVC']:+6.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
