"""Run a small set of the benchopt benchmark of several packages, and print ratios of times.

A time is that of the run which first brings the objective within 1e-3, or 1e-6, of a proven lower
bound; the ratio is that time over ours. Times are of the clock, all from one run.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent / "objectives"
SMALL = (
    "Simulated[n_samples=200,n_features=2000,n_classes=5]",
    "Simulated[n_samples=300,n_features=1000,n_classes=2]",
    "Real[data=digits]",
)
GOALS = (1e-3, 1e-6)
OURS = "sparsvm"


def run(datasets, share, seconds):
    """Run benchopt and return the rows of its newest result."""
    command = [sys.executable, "-m", "benchopt", "run", str(HERE), "--no-plot", "--no-html"]
    command += ["-o", f"Sparse linear classification[share={share}]", "-n", "14", "-r", "1"]
    command += [part for name in datasets for part in ("-d", name)]
    subprocess.run([*command, "--timeout", str(seconds)], check=True)
    newest = max((HERE / "outputs").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    return pd.read_parquet(newest)


def reached(rows, goal):
    """Return the time of the first run within ``goal``, or NaN."""
    within = rows[rows["objective_value"] <= goal]
    return float(within["time"].min()) if len(within) else float("nan")


def table(results):
    """Return the Markdown table: one row for each problem, data set and package."""
    lines = ["| problem | data | package | to 1e-3 (s) | ratio | to 1e-6 (s) | ratio |"]
    lines.append("|---|---|---|---|---|---|---|")
    problem = results["objective_name"].str.extract(r"problem=(.*),share", expand=False)
    data = results["dataset_name"].str.replace(
        r"(n_samples|n_features|n_classes|data)=", "", regex=True
    )
    for (kind, where), part in results.groupby([problem, data]):
        solvers = dict(list(part.groupby("solver_name")))
        ours = {goal: reached(solvers[OURS], goal) for goal in GOALS}
        for name in sorted(solvers, key=lambda name: (name != OURS, name)):
            cells = []
            for goal in GOALS:
                time = reached(solvers[name], goal)
                told = time == time  # not NaN
                cells += [f"{time:.3f}" if told else "not reached"]
                cells += ["" if name == OURS or not told else f"{time / ours[goal]:.1f}"]
            lines.append(f"| {kind} | {where} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=SMALL, help="as for benchopt run -d")
    parser.add_argument("--share", type=float, default=0.1, choices=(0.1, 0.01))
    parser.add_argument("--seconds", type=float, default=10.0, help="limit of one package")
    options = parser.parse_args()
    results = run(options.datasets, options.share, options.seconds)
    print(f"\n{platform.processor() or platform.machine()}, Python {platform.python_version()}\n")
    print(table(results))


if __name__ == "__main__":
    main()
