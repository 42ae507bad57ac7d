"""What partitions cost: passes, bytes and seconds over partitions beside one machine's fit.

    python benchmarks/partitioned.py                    # threads, generated data and MNIST
    python benchmarks/partitioned.py --workers 1 2 4    # a local Dask cluster of so many processes
    python benchmarks/partitioned.py --rows 20000000 --columns 250 --file X.npy   # out of core

Seconds are of the wall clock, since work runs in several processes. Peak memory is what the system
counts as anonymous (RssAnon): pages of mapped files do not count.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import threading
import time
from pathlib import Path

import numpy as np

from sparsvm import SparseSVC as OnOneMachine
from sparsvm.partitioned import SparseSVC, from_npy, split_rows


def generated(n, d, K=5, seed=0, dtype=np.float64):
    """Rows of which ten columns tell the classes apart."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((d, K), dtype=dtype)
    truth[:10] = rng.standard_normal((10, K))
    X = rng.standard_normal((n, d), dtype=dtype)
    y = (X @ truth + 1.5 * rng.standard_normal((n, K), dtype=dtype)).argmax(axis=1)
    return X, y


def written(path, n, d, rows=100_000):
    """Write generated float32 rows to ``path`` and labels beside it, block by block."""
    labels = path.with_suffix(".labels.npy")
    if not path.is_file():
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
        y = np.empty(n, dtype=np.int8)
        truth = None
        for at in range(0, n, rows):
            rng = np.random.default_rng([1, at])
            block = rng.standard_normal((min(rows, n - at), d), dtype=np.float32)
            if truth is None:
                truth = np.zeros((d, 5), dtype=np.float32)
                truth[:10] = np.random.default_rng(0).standard_normal((10, 5))
            noise = 1.5 * rng.standard_normal((len(block), 5), dtype=np.float32)
            X[at : at + len(block)] = block
            y[at : at + len(block)] = (block @ truth + noise).argmax(axis=1)
        X.flush()
        np.save(labels, y)
    return path, labels


class Memory:
    """The largest anonymous memory of this process while the block runs, in MB."""

    def __enter__(self):
        self.peak, self.done = 0.0, threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self):
        while not self.done.wait(0.02):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.peak = max(self.peak, int(line.split()[1]) / 1024)

    def __exit__(self, *_):
        self.done.set()
        self.watcher.join()


def line(name, model, seconds, extra=""):
    result = model.result_
    passes = len(getattr(result, "rounds", ())) or "-"
    size = result.rounds[-1].size if hasattr(result, "rounds") else "-"
    print(
        f"| {name} | {model.objective_:.6g} | {model.dual_gap_:.1e} | {passes} | {size} | "
        f"{seconds:.1f} | {extra} |",
        flush=True,
    )


def threads(name, X, y, options, rows):
    began = time.perf_counter()
    whole = OnOneMachine(**options).fit(X, y)
    line(f"{name}, in memory", whole, time.perf_counter() - began)
    for jobs in (1, 2):
        began = time.perf_counter()
        model = SparseSVC(**options, n_jobs=jobs).fit(split_rows(X, y, rows=rows))
        line(f"{name}, {jobs} thread(s)", model, time.perf_counter() - began)


def cluster(name, X, y, options, rows, workers):
    import dask.array as da
    from distributed import Client, LocalCluster

    from sparsvm.dask import SparseSVC as OnDask

    for count in workers:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as local,
            Client(local) as client,
        ):
            lazy = da.from_array(X, chunks=(rows, -1)).persist()
            labels = da.from_array(y, chunks=rows).persist()
            client.gather(client.compute([lazy.sum(), labels.sum()]))
            began = time.perf_counter()
            model = OnDask(**options, client=client).fit(lazy, labels)
            line(f"{name}, Dask, {count} worker(s)", model, time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--alpha", type=float, default=3e-3)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--file", type=Path, help="write the rows here, and fit out of core")
    args = parser.parse_args()
    options = {"loss": args.loss, "penalty": "l1/l2", "alpha": args.alpha, "tol": args.tol}
    print("| fit | objective | gap | passes | on the driver | seconds | peak RssAnon, MB |")
    print("|---|---|---|---|---|---|---|")
    if args.file is not None:
        X, y = written(args.file, args.rows, args.columns)
        with Memory() as memory:
            began = time.perf_counter()
            model = SparseSVC(**options).fit(from_npy(X, y))
            seconds = time.perf_counter() - began
        size = X.stat().st_size / 2**30
        line(f"{size:.1f} GB of float32 on disk", model, seconds, f"{memory.peak:.0f}")
        return
    X, y = generated(args.rows, args.columns)
    name = f"{args.rows} x {args.columns}, {args.loss}"
    threads(name, X, y, options, rows=max(1000, args.rows // 8))
    if args.workers:
        cluster(name, X, y, options, max(1000, args.rows // 8), args.workers)


if __name__ == "__main__":
    main()
