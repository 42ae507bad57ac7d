"""Run the benchopt benchmark of several packages on a small set, and print ratios of times.

A time is that of the run which first brings the objective within 1e-3, or 1e-6, of a proven lower
bound, in seconds of the processor; the ratio is that time over ours. Everything is from one run.
With ``--page FOLDER`` the table and curves of all runs become a page, objectives.md, there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent / "objectives"
SMALL = (
    "Simulated[n_samples=80,n_features=300,n_classes=4]",
    "Simulated[n_samples=100,n_features=300,n_classes=2]",
    "Real[data=wine]",
    "Real[data=breast_cancer]",
)
GOALS = (1e-3, 1e-6)
OURS = "sparsvm"
PACKAGES = (
    *("sparsvm", "numpy", "scipy", "scikit-learn", "adelie", "celer", "clarabel", "cvxpy"),
    *("cyanure", "ortools", "rehline", "skglm", "snapml", "sortedl1", "benchopt"),
)
LIGHTNING = Path(__file__).parents[1] / "build/lightning/bin/python"
# The eight colours of Okabe and Ito, which the colour-blind can tell apart; markers do so, too.
COLOURS = ["#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#999999"]
MARKERS = "os^vDP*X<>ph"
# Taken at the start: what is checked out may change while a run goes on.
GIT = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
COMMIT = subprocess.run(GIT, capture_output=True, text=True).stdout.strip() or "unknown"
TERMS = """\
Each package is asked for finer and finer tolerances, from scratch each time. A point of a curve is
one such run: its processor seconds, and how far its objective is above a lower bound that a fit of
sparsvm to a gap of 1e-9 has proven, relative to the bound. Alpha is a tenth of the one at which
every weight is zero (0.01 with l2). There are no intercepts, which packages treat differently. Ours
includes the certificate. HiGHS and Clarabel get the formulation that was fastest for each, PDLP
that of the simplex method; writing programs down and compiling is not timed. A package whose last
run took more seconds than the command allows is asked for no finer tolerance. `fbpd` and `bcd` are
the papers' algorithms, ours in C++. abess is not here: it chooses the best subset of a given size,
which is another problem."""


def run(datasets, share, seconds, resume=False):
    """Run benchopt and return the rows of its newest result.

    benchopt keeps every run, and would show it again where packages have changed since.
    """
    if not resume:
        shutil.rmtree(HERE / "__cache__", ignore_errors=True)
    command = [sys.executable, "-m", "benchopt", "run", str(HERE), "--no-plot", "--no-html"]
    command += ["-o", f"Sparse linear classification[share={share}]", "-n", "14", "-r", "1"]
    command += [part for name in datasets for part in ("-d", name)]
    os.environ.setdefault("LIGHTNING_PYTHON", str(LIGHTNING))
    os.environ["BENCH_BUDGET"] = str(seconds)
    subprocess.run([*command, "--timeout", "600"], check=True)
    newest = max((HERE / "outputs").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    results = pd.read_parquet(newest)
    results["problem"] = results["objective_name"].str.extract(r"problem=(.*),share", expand=False)
    results["data"] = results["dataset_name"].map(plain)
    return results


def plain(name):
    """Return the name of a data set without those of its parameters."""
    values = dict(re.findall(r"(\w+)=([^,\]]+)", name))
    if "data" in values:
        return values["data"]
    return "simulated, {n_samples} × {n_features}, K = {n_classes}".format(**values)


def reached(rows, goal):
    """Return the time of the quickest run within ``goal``, or NaN."""
    within = rows[rows["objective_value"] <= goal]
    return float(within["objective_seconds"].min()) if len(within) else float("nan")


def table(results):
    """Return the Markdown table: one row for each problem, data set and package."""
    lines = ["| problem | data | package | to 1e-3 (s) | ratio | to 1e-6 (s) | ratio |"]
    lines.append("|---|---|---|---|---|---|---|")
    for (kind, where), part in results.groupby(["problem", "data"]):
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


def machine():
    """Return a sentence that names the processor, the commit and the versions of the packages."""
    try:
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        told = 'cat(R.version.string, "with glmnet", format(packageVersion("glmnet")))'
        found.append(subprocess.run(["Rscript", "-e", told], capture_output=True, text=True).stdout)
    except OSError:
        pass
    if LIGHTNING.is_file():
        found.append("lightning 0.6.2.post0")
    load = f", load {os.getloadavg()[0]:.0f} when it ended"
    return (
        f"Commit {COMMIT}; {names[0] if names else platform.machine()}, {os.cpu_count()} cores"
        f"{load}, one thread, Python {platform.python_version()}; {', '.join(filter(None, found))}."
    )


def curves(results, problem, file):
    """Draw the distance from the optimum against processor seconds, a panel for each data set."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    part = results[results["problem"] == problem]
    sets = list(part.groupby("data"))
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.9 * len(sets) + 1.2, 3.6), squeeze=False, layout="constrained"
    )
    names = sorted(part["solver_name"].unique(), key=lambda name: (name != OURS, name))
    for ax, (data, rows) in zip(axes[0], sets, strict=True):
        for k, name in enumerate(names):
            line = rows[rows["solver_name"] == name].sort_values("objective_value")
            line = line[line["objective_seconds"] > 0]
            ax.plot(
                line["objective_seconds"],
                line["objective_value"].clip(lower=1e-10),
                marker=MARKERS[k % len(MARKERS)],
                markersize=5,
                color=COLOURS[k % len(COLOURS)],
                linestyle="-" if k < len(COLOURS) else "--",
                linewidth=2.5 if name == OURS else 1.2,
                label=name,
            )
        ax.set(xscale="log", yscale="log", title=data, xlabel="processor seconds of one run")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.axhline(1e-6, color="0.8", zorder=0)
        ax.axhline(1e-3, color="0.8", zorder=0)
    axes[0, 0].set_ylabel("above the proven bound, relative")
    handles = {
        label: handle
        for ax in axes[0]
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def page(results, folder, options):
    """Write objectives.md and its figures."""
    asked = " ".join(f'"{name}"' for name in options.datasets)
    command = f"benchmarks/bench.py --seconds {options.seconds:g} --share {options.share:g}"
    text = [
        "# The same objectives in other packages",
        "",
        TERMS,
        "",
        f"`python {command} --datasets {asked}`: one run of everything on this page. {machine()}",
        "",
    ]
    for problem in sorted(results["problem"].unique()):
        name = "objectives_" + re.sub(r"\W+", "_", problem) + ".png"
        curves(results, problem, folder / name)
        rows = table(results[results["problem"] == problem]).replace(f"| {problem} ", "")
        alt = f"Distance from the optimum against seconds, a curve for each package: {problem}"
        rows = rows.replace("| problem ", "").replace("|---", "", 1)
        text += [f"## {problem[0].upper()}{problem[1:]}", "", f"![{alt}]({name})", "", rows, ""]
    (folder / "objectives.md").write_text("\n".join(text), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=SMALL, help="as for benchopt run -d")
    parser.add_argument("--share", type=float, default=0.1, choices=(0.1, 0.01))
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of a run (processor)")
    parser.add_argument("--resume", action="store_true", help="go on with a broken-off run")
    parser.add_argument("--page", type=Path, help="a folder for objectives.md and its figures")
    options = parser.parse_args()
    results = run(options.datasets, options.share, options.seconds, options.resume)
    print(f"\n{machine()}\n\n{table(results)}")
    if options.page:
        page(results, options.page, options)


if __name__ == "__main__":
    main()
