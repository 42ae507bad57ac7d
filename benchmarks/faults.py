"""What happens to a fit on a Dask cluster when something breaks.

    python benchmarks/faults.py              # ten kills, memory limit, late worker, interrupt
    python benchmarks/faults.py --method clusters --kills 3   # or smooth, gathered
    python benchmarks/faults.py --what path   # or cv

Every line says how a fit on a LocalCluster of two workers ended: with the certified objective of an
undisturbed fit ("same"), or with an error, after how many seconds, and how many tasks were left on
the scheduler ten seconds later at most. Workers are killed by SIGKILL at random moments of the
time that an undisturbed fit takes; their nanny starts new ones.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import _thread
import argparse
import os
import signal
import threading
import time

import numpy as np
from distributed import Client, LocalCluster

from partitioned import generated
from sparsvm.dask import SparseSVC, SparseSVCCV, svm_path
from sparsvm.partitioned import hinge, prepare

TOL = 1e-4


def fitted(what, loss, parts, client):
    """Return the objectives and the largest gap of a fit, a path or a cross-validation."""
    options = {"loss": loss, "penalty": "l1/l2", "tol": TOL, "client": client}
    if what == "fit":
        model = SparseSVC(alpha=2e-3, **options).fit(parts)
        return np.array([model.objective_]), model.dual_gap_
    if what == "path":
        path = svm_path(parts, n_alphas=5, eps=0.01, **options)
    else:
        path = SparseSVCCV(n_alphas=4, eps=0.02, cv=2, **options).fit(parts).path_
    return path.objectives, path.gaps.max()


def left(client, seconds=10.0):
    """Tasks on the scheduler, after some seconds if there are any at first."""
    end = time.monotonic() + seconds
    while True:
        count = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if count == 0 or time.monotonic() > end:
            return count
        time.sleep(0.1)


def disturbed(name, task, disturb, expected=None, workers=2, memory="1GB"):
    """Fit while ``disturb(cluster, client)`` happens; return the objectives and the seconds."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=memory
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("sparsvm.dask"))
        began = time.perf_counter()
        disturb(cluster, client)
        objectives = None
        try:
            objectives, gap = fitted(*task, client)
            end = f"gap {gap:.1e}"
            if expected is not None:
                same = gap <= TOL and objectives.shape == expected.shape
                same = same and np.all(np.abs(objectives - expected) <= TOL * expected)
                end = ("same, " if same else "DIFFERENT, ") + end
        except (Exception, KeyboardInterrupt) as error:
            end = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        seconds = time.perf_counter() - began
        print(f"| {name} | {end[:70]} | {seconds:.1f} | {left(client)} |", flush=True)
    return objectives, seconds


def killing(after):
    def disturb(cluster, client):
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(after, os.kill, (victim, signal.SIGKILL)).start()

    return disturb


def joining(after):
    def disturb(cluster, client):
        threading.Timer(after, cluster.scale, (2,)).start()

    return disturb


def interrupting(after):
    def disturb(cluster, client):
        threading.Timer(after, _thread.interrupt_main).start()

    return disturb


def _hog():
    held = []
    for _ in range(200):
        held.append(np.ones(1 << 22))  # 32 MB
        time.sleep(0.01)
    return len(held)


def filling(after):
    """Let a task of somebody else fill the memory of a worker, whose nanny then restarts it."""

    def disturb(cluster, client):
        other = Client(cluster.scheduler_address, set_as_default=False)
        held = []
        threading.Timer(after, lambda: held.append(other.submit(_hog, pure=False))).start()

    return disturb


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rows", type=int, default=40_000)
    methods = ["multipliers", "clusters", "smooth", "gathered"]
    parser.add_argument("--method", choices=methods, default="multipliers")
    parser.add_argument("--what", choices=["fit", "path", "cv"], default="fit")
    args = parser.parse_args()
    prepare.GATHERED_BYTES = 1 << 30 if args.method == "gathered" else 0
    prepare.TALL_ROWS = np.inf
    hinge.TALL_ROWS = np.inf if args.method == "clusters" else 1e-9
    X, y = generated(args.rows, 40)
    size = args.rows // 20
    parts = [(X[at : at + size], y[at : at + size]) for at in range(0, args.rows, size)]
    task = args.what, "logistic" if args.method == "smooth" else "hinge", parts
    print("| disturbance | end | seconds | tasks left |\n|---|---|---|---|")
    expected, seconds = disturbed("none", task, lambda *_: None)
    for after in np.random.default_rng(0).uniform(0.0, 0.5 * seconds, args.kills):
        disturbed(f"SIGKILL after {after:.1f} s", task, killing(after), expected)
    half = 0.3 * seconds
    disturbed("a worker's memory is full", task, filling(half), expected, memory="600MB")
    disturbed("a second worker joins", task, joining(half), expected, workers=1)
    disturbed("the client is interrupted", task, interrupting(half), expected)


if __name__ == "__main__":
    main()
