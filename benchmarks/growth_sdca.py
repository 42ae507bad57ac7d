"""How time and memory of ``sdca`` grow with samples, features, classes and selected features.

Run ``python benchmarks/growth_sdca.py`` with SPARSVM_DATA set. Time: News20, joint l1/l2, to a
certified gap of 1e-2, on the first documents, the most frequent words or the first classes, with
the exponent e of the fit time ~ (entries x classes)^e, and the time of one sweep over all samples
and features (l2), which should have the exponent 1; the same sweep on the first classes of
Banking77; and the time to 1e-2 against the features selected, of which larger lambdas ask for more.
Memory: the peak of a child process above what it held before the solver was called, against
1.5 x (X + 8 (n + used features) K bytes). What reading the data left free is given back first, and
a twentieth of the documents is solved before, so that neither memory that happens to be free nor
the code of libraries counts.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import ctypes
import gc
import itertools
import multiprocessing
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from exact_hinge.cases import first_of_each, load, make_problem
from sklearn.base import clone

from sparsvm import SparseSVC
from sparsvm.penalties import L1, L2, GroupL2
from sparsvm.problem.solution import Control
from sparsvm.solvers import SDCA

clock = time.process_time


def sizes(X, y):
    """Yield (what, value, X, y) for each direction of growth."""
    for per_class in (50, 100, 200, 400):
        rows = first_of_each(y, per_class)
        yield "samples", rows.size, X[rows], y[rows]
    frequent = np.argsort(-X.getnnz(axis=0), kind="stable")
    for d in (1000, 4000, 16000, X.shape[1]):
        columns = np.sort(frequent[:d])
        yield "features", d, X[:, columns], y
    for K in (3, 5, 10, 20):
        rows = np.flatnonzero(y < K)
        yield "classes", K, X[rows], y[rows]


def solve_seconds(X, y, lam=0.3):
    """Return the seconds to a gap of 1e-2 and the features used."""
    problem = make_problem(X, y, GroupL2(), lam)
    began = clock()
    solution = SDCA().solve(problem, None, Control(tol=1e-2))
    return clock() - began, np.count_nonzero(solution.coef.any(axis=0))


def sweep_seconds(X, y):
    """Return the seconds of as many visits as there are samples, all features taking part."""
    problem = replace(make_problem(X, y, L2(), 1.0), fit_intercept=False)
    return float(np.median([visit_seconds(problem) for _ in range(5)])) * problem.n


def visit_seconds(problem):
    """Return the seconds of one visit of a sample: sweeps pass by those that are all but done."""
    method = SDCA()._method(problem, Control())
    method.start(np.zeros((problem.d, problem.n_outputs)), np.zeros(problem.n_outputs), None)
    # The first sweep differs from all others; each run ends with a look, which cancels.
    runs = []
    for sweeps in (1, 6, 1):
        visits, began = method.values()["visits"], clock()
        method.run(0.0, sweeps)
        runs.append((clock() - began, method.values()["visits"] - visits))
    (_, _), (many, all_visits), (one, few) = runs
    return max(many - one, 0.0) / (all_visits - few)


def exponent(work, times):
    """Return the slope of log time against log work."""
    return float(np.polyfit(np.log(work), np.log(times), 1)[0])


def classes_of_banking():
    """Print the time of a sweep over the first classes of Banking77."""
    X, y = load("banking77")
    print("| classes | documents | entries × classes | sweep (ms) |")
    print("|" + " --- |" * 4)
    works, sweeps = [], []
    for K in (10, 20, 40, 77):
        rows = np.flatnonzero(y < K)
        works.append(X[rows].nnz * K)
        sweeps.append(min(sweep_seconds(X[rows], y[rows]) for _ in range(3)))
        print(f"| {K} | {rows.size} | {works[-1]:.3g} | {1e3 * sweeps[-1]:.2f} |", flush=True)
    print(f"\nexponent {exponent(works, sweeps):.2f}", flush=True)


def growth():
    """Print the table of times."""
    X, y = load("news20_full")
    print("| grows | value | entries × classes | to 1e-2 (s) | features used | sweep (ms) |")
    print("|" + " --- |" * 6)
    found = {}
    for what, value, part, labels in sizes(X, y):
        classes = int(labels.max()) + 1
        seconds, used = solve_seconds(part, labels)
        sweep = sweep_seconds(part, labels)
        work = part.nnz * classes
        found.setdefault(what, []).append((work, seconds, sweep))
        print(
            f"| {what} | {value} | {work:.3g} | {seconds:.3f} | {used} | {1e3 * sweep:.1f} |",
            flush=True,
        )
    for what, rows in found.items():
        work, seconds, sweep = map(np.array, zip(*rows, strict=True))
        print(
            f"\n{what}: exponent {exponent(work, seconds):.2f} to a gap of 1e-2, "
            f"{exponent(work, sweep):.2f} per sweep",
            flush=True,
        )


def selected():
    """Print the time against the number of selected features, which lambda changes."""
    X, y = load("news20_full")
    print("| λ | features used | to 1e-2 (s) |")
    print("|" + " --- |" * 3)
    used, seconds = [], []
    for lam in (0.1, 0.2, 0.3, 0.5, 1.0, 2.0):
        found = [solve_seconds(X, y, lam) for _ in range(3)]
        seconds.append(min(found)[0])
        used.append(found[0][1])
        print(f"| {lam:g} | {used[-1]} | {seconds[-1]:.3f} |", flush=True)
    print(f"\nexponent {exponent(used, seconds):.2f} in the features used", flush=True)


def status(field):
    """Return a size of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no line {field}.")


def start_of_measurement():
    """Give back what is free, reset the high-water mark (Linux) and return the present size."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def arrays_of(data):
    """Return X and y: digits in single precision, rows of sparse data in order.

    What is not so is copied once, by ``make_design`` or by ``fit``.
    """
    X, y = load(data)
    if data.startswith("mnist"):
        return X.astype(np.float32), y
    X.sort_indices()
    return X, y


def problem_of(X, y, penalty, lam):
    """Return the problem, with l2 without intercept as LIBLINEAR solves it."""
    return replace(make_problem(X, y, penalty, lam), fit_intercept=penalty.name != "l2")


def peak_of(data, penalty, lam, tol, sender):
    """Send the peak above the level before the call, the size of X and of the result, in bytes."""
    X, y = arrays_of(data)
    problem = problem_of(X, y, penalty, lam)
    SDCA().solve(problem_of(X[::20], y[::20], penalty, lam), None, Control(tol=tol))
    before = start_of_measurement()
    solution = SDCA().solve(problem, None, Control(tol=tol))
    above = status("VmHWM") - before
    used = np.count_nonzero(solution.coef.any(axis=0))
    sender.send((above, size_of(X), 8 * (problem.n + used) * problem.n_classes))


def peak_of_fit(data, penalty, lam, tol, sender):
    """Send the same of SparseSVC.fit followed by predict, as a user calls them."""
    X, y = arrays_of(data)
    options = {"solver": "sdca", "tol": tol, "fit_intercept": penalty.name != "l2"}
    model = SparseSVC(penalty=penalty, alpha=1.0 / (len(y) * lam), **options)
    clone(model).fit(X[::20], y[::20]).predict(X[::20])
    before = start_of_measurement()
    model.fit(X, y).predict(X)
    above = status("VmHWM") - before
    sender.send((above, size_of(X), 8 * (len(y) + model.selected_features_.size) * (max(y) + 1)))


def size_of(X):
    """Return the bytes of a matrix."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


# Data, penalty, lambdas, gaps.
REMEMBERED = (
    ("news20_full", GroupL2(), (0.1, 0.3, 1.0), (1e-2, 1e-3, 1e-5)),
    ("banking77", GroupL2(), (1.0,), (1e-2, 1e-3, 1e-5)),
    ("news20_full", L2(), (0.1, 1.0), (1e-3, 1e-5)),
    ("mnist_60000", L1(), (0.01,), (1e-3,)),
)


def memory():
    """Print the table of memory."""
    print(
        "\n| problem | penalty | λ | gap | call | X (MB) | 8(n + used)K (MB) "
        "| X + peak of the call (MB) | ratio |"
    )
    print("|" + " --- |" * 9)
    spawn = multiprocessing.get_context("spawn")
    for data, penalty, lams, tols in REMEMBERED:
        for lam, tol, call in itertools.product(lams, tols, (peak_of, peak_of_fit)):
            receiver, sender = spawn.Pipe(duplex=False)
            child = spawn.Process(target=call, args=(data, penalty, lam, tol, sender))
            child.start()
            above, size, state = receiver.recv()
            child.join()
            print(
                f"| {data} | {penalty.name} | {lam:g} | {tol:g} "
                f"| {'solve' if call is peak_of else 'fit, predict'} "
                f"| {size / 1e6:.1f} | {state / 1e6:.1f} | {(size + above) / 1e6:.1f} "
                f"| {(size + above) / (size + state):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["growth", "selected", "banking77", "memory"])
    only = parser.parse_args().only
    for name, table in (
        ("growth", growth),
        ("selected", selected),
        ("banking77", classes_of_banking),
        ("memory", memory),
    ):
        if only in (None, name):
            table()
