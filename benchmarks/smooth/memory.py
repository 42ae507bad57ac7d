"""Peak memory of fits with smooth losses, against the data in both orientations and the scores.

``python benchmarks/smooth/memory.py`` with SPARSVM_DATA set, on Linux: for each case a process of
its own loads the data, fits a few samples (so that the libraries are loaded), and then fits all of
them with ``SparseSVC(tol=1e-4)``, intercept included. Peak: X and what the process came to hold
above its level before that fit. Limit: 1.5 times twice the bytes of X plus a double for every
score.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import subprocess

import scipy.sparse as sp
from ratios import load

from sparsvm import SparseSVC

CASES = [
    ("news20", "squared_hinge", "l1/l2", 1e-3),
    ("news20", "squared_hinge", "l1/l2", 1e-4),
    ("news20", "logistic", "l1/l2", 1e-4),
    ("news20", "ovr_squared_hinge", "l1", 1e-4),
    ("mnist", "squared_hinge", "l1/l2", 1e-3),
]
HEAD = (
    "| data | loss | penalty | alpha | X (MB) | peak (MB) | limit (MB) |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def held(what):
    """VmRSS or VmHWM of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"There is no {what} in /proc/self/status.")


def line(data, loss, penalty, alpha):
    """Fit in this process; return a line of the table."""
    X, y = load(data)
    model = SparseSVC(loss=loss, penalty=penalty, alpha=alpha)
    SparseSVC(loss=loss, penalty=penalty, alpha=0.1).fit(X[::100], y[::100])
    before = held("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    model.fit(X, y)
    above = held("VmHWM") - before
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    size = sum(part.nbytes for part in parts) / 1e6
    scores = 8 * y.size * model.classes_.size / 1e6
    peak, limit = size + above, 1.5 * (2.0 * size + scores)
    return (
        f"| {data} | {loss} | {penalty} | {alpha:g} | {size:.0f} | {peak:.0f} | {limit:.0f} "
        f"{'✓' if peak <= limit else '✗'} |"
    )


def main():
    if len(sys.argv) > 1:
        print(line(*CASES[int(sys.argv[1])]), flush=True)
        return
    print(HEAD, flush=True)
    for number in range(len(CASES)):
        subprocess.run([sys.executable, __file__, str(number)], check=True)


if __name__ == "__main__":
    main()
