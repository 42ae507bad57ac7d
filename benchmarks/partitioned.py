"""What partitions cost: passes, bytes and seconds over partitions beside one machine's fit.

    python benchmarks/partitioned.py                    # threads, generated data and MNIST
    python benchmarks/partitioned.py --workers 1 2 4    # a local Dask cluster of so many processes
    python benchmarks/partitioned.py --data mnist --workers 1 2 4   # or news20
    python benchmarks/partitioned.py --data news20 --gathered 0   # whose rows stay where they are
    python benchmarks/partitioned.py --rows 20000000 --columns 250 --file X.npy   # out of core
    python benchmarks/partitioned.py --rows 5000000 --columns 250 --file X.npy --workers 1 2 4

Seconds are of the wall clock, and processor seconds of the driver (and of all workers) beside them.
Peak memory is what the system counts as anonymous (RssAnon): pages of mapped files do not count; of
workers it is the largest resident size of any.
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
from sparsvm.partitioned import SparseSVC, from_npy, prepare, split_rows

# Of every worker.
MEMORY_LIMIT = "1.5GB"


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


def line(name, model, seconds, busy, extra="- | - | -"):
    result = model.result_
    passes = len(getattr(result, "rounds", ())) or "-"
    size = result.rounds[-1].size if hasattr(result, "rounds") else "-"
    print(
        f"| {name} | {model.objective_:.6g} | {model.dual_gap_:.1e} | {passes} | {size} | "
        f"{seconds:.1f} | {busy} | {extra} |",
        flush=True,
    )


def timed(call):
    """Return what the call returns, its seconds and its processor seconds."""
    began, busy = time.perf_counter(), time.process_time()
    found = call()
    return found, time.perf_counter() - began, time.process_time() - busy


def threads(name, X, y, options, rows):
    whole, seconds, busy = timed(lambda: OnOneMachine(**options).fit(X, y))
    line(f"{name}, in memory", whole, seconds, f"{busy:.1f}")
    for jobs in (1, 2):
        fit = SparseSVC(**options, n_jobs=jobs).fit
        model, seconds, busy = timed(lambda fit=fit: fit(split_rows(X, y, rows=rows)))
        line(f"{name}, {jobs} thread(s)", model, seconds, f"{busy:.1f}")


def _usage(dask_worker):
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return time.process_time(), peak, dask_worker.transfer_outgoing_bytes_total


def cluster(name, parts, options, workers):
    """Fit partitions on local clusters of so many processes, each limited to 1.5 GB."""
    from distributed import Client, LocalCluster, wait

    from sparsvm.dask import SparseSVC as OnDask

    for count in workers:
        with (
            LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=None,
                memory_limit=MEMORY_LIMIT,
            ) as local,
            Client(local) as client,
        ):
            client.run(lambda: __import__("sparsvm.dask"))
            held = [client.submit(_same, part, pure=False) for part in parts]
            wait(held)
            before = client.run(_usage).values()
            sent = counted_gathers()
            fit = OnDask(**options, client=client).fit
            model, seconds, busy = timed(lambda fit=fit, held=held: fit(held))
            after = client.run(_usage).values()
            theirs = sum(b[0] - a[0] for a, b in zip(before, after, strict=True))
            moved = sum(b[2] - a[2] for a, b in zip(before, after, strict=True)) / model.n_iter_
            peak = max(each[1] for each in after)
            line(
                f"{name}, Dask, {count} worker(s)",
                model,
                seconds,
                f"{busy:.1f} + {theirs:.1f}",
                f"{peak:.0f} | {sum(sent) / model.n_iter_ / 1e6:.1f} | {moved / 1e6:.1f}",
            )


def counted_gathers():
    """Return a list that will hold the bytes of everything that the driver is sent."""
    from dask.sizeof import sizeof

    from sparsvm.dask.engine import Cluster

    sizes, gather = [], Cluster.gather

    def counting(self, handles):
        found = gather(self, handles)
        sizes.append(sum(_bytes(each, sizeof) for each in found))
        return found

    Cluster.gather = counting
    return sizes


def _bytes(value, sizeof):
    if isinstance(value, tuple):
        return sum(_bytes(each, sizeof) for each in value)
    if hasattr(value, "indptr"):
        return sum(each.nbytes for each in (value.data, value.indices, value.indptr))
    if hasattr(value, "__dict__"):
        return sum(_bytes(each, sizeof) for each in vars(value).values())
    return sizeof(value)


def _same(part):
    return part


def data_set(name):
    if name == "mnist":
        from sparsvm.datasets import load_mnist

        X, y = load_mnist(return_X_y=True)
        return (X / 255.0).astype(np.float32), y
    from exact_hinge.cases import load

    return load("news20_full")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--data", choices=["mnist", "news20"])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--alpha", type=float, default=3e-3)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--file", type=Path, help="write the rows here, and fit out of core")
    parser.add_argument("--gathered", type=int, help="bytes of rows that the driver may gather")
    parser.add_argument("--no-threads", action="store_true", help="only on the clusters")
    parser.add_argument("--verbose", action="store_true", help="say what every pass finds")
    args = parser.parse_args()
    if args.gathered is not None:
        prepare.GATHERED_BYTES = args.gathered
    options = {"loss": args.loss, "penalty": "l1/l2", "alpha": args.alpha, "tol": args.tol}
    print(
        "| fit | objective | gap | passes | on the driver | seconds | processor | peak MB | "
        "MB a round to the driver | between workers |"
    )
    print("|" + 10 * "---|")
    if args.file is not None:
        X, y = written(args.file, args.rows, args.columns)
        name = f"{X.stat().st_size / 1e9:.1f} GB of float32 on disk"
        if args.workers:
            cluster(name, from_npy(X, y), options, args.workers)
            return
        with Memory() as memory:
            model, seconds, busy = timed(
                lambda: SparseSVC(**options, verbose=args.verbose).fit(from_npy(X, y))
            )
        line(name, model, seconds, f"{busy:.1f}", f"{memory.peak:.0f} | - | -")
        return
    if args.data is None:
        X, y = generated(args.rows, args.columns)
    else:
        X, y = data_set(args.data)
    name = f"{args.data or 'generated'}, {X.shape[0]} x {X.shape[1]}, {args.loss}"
    rows = max(1000, X.shape[0] // 8)
    if not args.no_threads:
        threads(name, X, y, options, rows)
    if args.workers:
        cluster(name, split_rows(X, y, rows=rows), options, args.workers)


if __name__ == "__main__":
    main()
