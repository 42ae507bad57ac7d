"""The same fits by two installed builds of the package, side by side.

``python benchmarks/two_builds.py --other PYTHON [--cases NAME ...] [--repetitions 3]`` with
SPARSVM_DATA set prints a Markdown table: processor seconds of this build and of the one that the
other interpreter imports, their ratio, and how far the objectives are apart (that of the last
point of a path). Each build runs in a process of its own, which keeps the data; calls alternate
between them, and the smallest of each counts. Names are beginnings.

Only the public surface is used, with ``solver="auto"``, so that any two builds can be compared:
what is timed is a whole call, validation and certificate included.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import json
import subprocess
import sys
import time
import warnings
from functools import cache

import numpy as np


def standardised(X):
    """Columns of mean 0 and standard deviation 1; constant ones become 0."""
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


@cache
def load(data):
    """Return X and the labels of a name such as ``mnist:1000``: the first samples of each class."""
    from sparsvm import datasets

    name, _, count = data.partition(":")
    if name in ("pima", "bupa", "ionosphere", "sonar", "wpbc"):
        X, y = datasets.load_uci(name, return_X_y=True)
    elif name == "arcene":
        X, y = datasets.load_arcene(subset="all", return_X_y=True)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "mnist":
        X = X / 255.0
    elif name != "20newsgroups":
        X = standardised(X)
    if count:
        share = int(count)
        y = np.asarray(y)
        rows = [np.flatnonzero(y == label)[:share] for label in np.unique(y)]
        rows = np.sort(np.concatenate(rows))
        X, y = X[rows], y[rows]
    return X, y


PENALTIES = {
    "l1": ("L1", {}),
    "l2": ("L2", {}),
    "l1/l2": ("GroupL2", {}),
    "l1/linf": ("GroupLinf", {}),
    "l1/l2 blocks": ("GroupL2", {"groups": 5, "per_class": True}),
    "l1/linf blocks": ("GroupLinf", {"groups": 5, "per_class": True}),
    "l0": ("L0", {}),
    "capped_l1": ("CappedL1", {}),
}


def run(case):
    """Solve one case with the build at hand: seconds, objective, number of warnings."""
    import sparsvm
    from sparsvm import penalties

    X, y = load(case["data"])
    name, options = PENALTIES[case["penalty"]]
    penalty = getattr(penalties, name)(**options)
    if case["task"] == "path":
        # Three digits, so that both builds follow the same grid.
        first = float(f"{sparsvm.alpha_max(X, y, penalty=penalty):.2e}")
        alphas = np.geomspace(first, 1e-3 * first, 100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        if case["task"] == "path":
            path = sparsvm.svm_path(X, y, penalty=penalty, alphas=alphas, tol=case["tol"])
            objective = float(path.objectives[-1])
        else:
            alpha = case.get("alpha") or 1.0 / (len(y) * case["lam"])
            model = sparsvm.SparseSVC(
                loss=case["loss"], penalty=penalty, alpha=alpha, tol=case["tol"]
            ).fit(X, y)
            objective = float(model.objective_)
        seconds = time.process_time() - began
    return {"seconds": seconds, "objective": objective, "warned": len(caught)}


def all_cases():
    """Those of ratios.py, smooth/ratios.py, liblinear.py, dca.py and path.py of some seconds."""

    def fit(name, data, loss, penalty, tol, **strength):
        return {
            "name": name,
            "task": "fit",
            "data": data,
            "loss": loss,
            "penalty": penalty,
            "tol": tol,
            **strength,
        }

    for lam in (0.05, 0.1, 1):
        yield fit(f"leukemia l1 {lam:g}", "leukemia", "hinge", "l1", 1e-6, lam=lam)
    for penalty in ("l1/l2 blocks", "l1/linf blocks", "l1/l2", "l1/linf"):
        for lam in (0.1, 1):
            yield fit(f"leukemia {penalty} {lam:g}", "leukemia", "hinge", penalty, 1e-6, lam=lam)
    for penalty in ("l1", "l1/l2 blocks", "l1/linf blocks"):
        for lam in (1, 10):
            yield fit(f"mnist_100 {penalty} {lam:g}", "mnist:10", "hinge", penalty, 1e-6, lam=lam)
    for lam in (0.1, 1):
        yield fit(f"arcene l1 {lam:g}", "arcene", "hinge", "l1", 1e-6, lam=lam)
    for count in (5, 10):
        for lam in (10, 1):
            data = f"20newsgroups:{count}"
            yield fit(f"news20_{20 * count} l1/l2 {lam:g}", data, "hinge", "l1/l2", 1e-6, lam=lam)
    for tol in (1e-3, 1e-6):
        for lam in (1, 3, 10):
            name = f"news20_1000 l1/l2 {lam:g} {tol:.0e}"
            yield fit(name, "20newsgroups:50", "hinge", "l1/l2", tol, lam=lam)
    for lam in (0.1, 1):
        name = f"news20 l1/l2 {lam:g} 1e-03"
        yield fit(name, "20newsgroups", "hinge", "l1/l2", 1e-3, lam=lam)
    for lam, tol in ((0.01, 1e-3), (0.1, 1e-3), (0.01, 1e-6)):
        name = f"mnist_5000 l1 {lam:g} {tol:.0e}"
        yield fit(name, "mnist:500", "hinge", "l1", tol, lam=lam)
    for data, loss, penalty, alpha in (
        ("20newsgroups", "squared_hinge", "l1/l2", 1e-3),
        ("20newsgroups", "squared_hinge", "l1/l2", 1e-4),
        ("20newsgroups", "logistic", "l1/l2", 1e-4),
        ("20newsgroups", "ovr_squared_hinge", "l1", 1e-3),
        ("20newsgroups", "ovr_squared_hinge", "l1", 1e-4),
        ("mnist:500", "squared_hinge", "l1/l2", 1e-3),
        ("mnist:500", "logistic", "l1/l2", 1e-3),
    ):
        name = f"smooth {data} {loss} {penalty} {alpha:g}"
        yield fit(name, data, loss, penalty, 1e-3, alpha=alpha)
    for data in ("20newsgroups", "mnist:500"):
        for lam in (0.01, 1.0):
            yield fit(f"liblinear {data} l2 {lam:g}", data, "hinge", "l2", 1e-3, lam=lam)
    for data in ("pima", "bupa", "ionosphere", "sonar", "wpbc"):
        for loss, penalty in (
            ("ramp", "l2"),
            ("ramp", "l1"),
            ("hinge", "l0"),
            ("ramp", "capped_l1"),
        ):
            yield fit(f"dca {data} {loss} {penalty}", data, loss, penalty, 1e-4, lam=1.0)
    for penalty in ("l1", "l1/l2", "l1/linf", "l1/l2 blocks"):
        name = f"path leukemia {penalty}"
        yield {
            "name": name,
            "task": "path",
            "data": "leukemia",
            "loss": "hinge",
            "penalty": penalty,
            "tol": 1e-4,
        }


class Build:
    """A process of one interpreter that takes cases on its input and writes results."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, case):
        """Return what the build says of the case."""
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def serve():
    """Answer cases until there are no more."""
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--other", metavar="PYTHON", help="interpreter of the build to compare with"
    )
    parser.add_argument("--cases", nargs="+", default=[""], metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.other is None:
        parser.error("name the other build's interpreter: --other PYTHON")
    builds = [Build(sys.executable), Build(options.other)]
    print("| problem | this (s) | other (s) | this / other | objective, this - other | warnings |")
    print("|---|---|---|---|---|---|", flush=True)
    for case in all_cases():
        if not any(case["name"].startswith(name) for name in options.cases):
            continue
        runs = [[], []]
        # The first call of each also loads the data and libraries.
        while len(runs[0]) < options.repetitions + 1:
            for build, results in zip(builds, runs, strict=True):
                results.append(build.run(case))
            if runs[0][0]["seconds"] > 10.0:
                break
        best = [min(result["seconds"] for result in results) for results in runs]
        ours, theirs = (results[-1] for results in runs)
        apart = (
            "" if ours["objective"] is None else f"{ours['objective'] - theirs['objective']:+.0e}"
        )
        print(
            f"| {case['name']} | {best[0]:.3f} | {best[1]:.3f} | {best[0] / best[1]:.2f} | {apart} "
            f"| {ours['warned']}, {theirs['warned']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
