"""A model of the rounds of a fit on a cluster, with constants measured here, and its simulation.

    python benchmarks/scaling.py                       # 1e9 x 1e6, 50 non-zeros a row, 100 workers
    python benchmarks/scaling.py --workers 400 --link 1e9

A round of a smooth loss (value and gradient) is: the coefficients go from worker to worker along a
tree, every worker passes over its partitions, and the sums return along a tree. With n rows of q
non-zeros on p workers, m partitions, K outputs of d features, a link of B bytes a second, a latency
of t a message and s seconds of the scheduler a task,

    broadcast   log2(p) (8 K d / B + t)
    pass        (n / p) (a + b q)                    a, b: seconds a row and a non-zero, measured
    reduction   m - p sums of 8 K d bytes in memory, spread over p, then log2(p) (8 K d / B + t)
    scheduling  2 m s

A round of the hinge by clusters has the same broadcast and pass, but every partition sends its new
clusters to the driver, one link: (singles rows of 12 q bytes + groups means of at most
12 min(d, q n / groups) bytes) / B. A Newton step of the augmented Lagrangian is a round of a smooth
loss whose sums hold the second derivatives of the features in use, too. The simulation runs the
rounds task by task: workers whose speeds differ, one partition after another, a scheduler that
hands out one task at a time, and links that serve one message at a time.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import heapq
import time

import numpy as np
import scipy.sparse as sp

from sparsvm.losses import Hinge, Logistic
from sparsvm.partitioned.aggregation import Task, divide
from sparsvm.partitioned.derivatives import Place, slopes
from sparsvm.partitioned.hinge import GROUPS, SINGLES
from sparsvm.partitioned.model import MOST_VARIABLES
from sparsvm.partitioned.proximal_hinge import ProximalHinge
from sparsvm.partitioned.survey import Population, survey
from sparsvm.penalties import L1


def rows_of(n, d, q, K, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.integers(0, d, (n, q)), axis=1).ravel()
    X = sp.csr_matrix((rng.random(n * q), indices, np.arange(0, n * q + 1, q)), shape=(n, d))
    X.sum_duplicates()
    return X, rng.integers(0, K, n)


def seconds_of(call, repeat=3):
    """Processor seconds, the least of some calls."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def constants(d, K, n=40_000):
    """Return seconds a row and a non-zero of a pass, for the smooth losses and the hinge."""
    rng = np.random.default_rng(1)
    coef = np.zeros((K, d))
    used = np.unique(rng.integers(0, d, MOST_VARIABLES // K - 1)).astype(np.int32)
    coef[:, used] = rng.standard_normal((K, used.size))
    found = {}
    for q in (10, 50):
        part = rows_of(n, d, q, K)
        population = Population.of([survey(part, 0, 10, 1e6, 0, 1)], None)
        at = Place(
            population,
            Logistic(),
            Logistic().cost_matrix(K),
            L1().resolve(d, K, None),
            coef,
            np.zeros(K),
        )
        smooth = seconds_of(lambda part=part, at=at: slopes(part, 0, None, at))
        task = Task(population, Hinge().cost_matrix(K), coef, np.zeros(K), 10, 10, 10)
        hinge = seconds_of(lambda part=part, task=task: divide(part, 0, None, task))
        near = at._replace(loss=ProximalHinge(10.0), cost=Hinge().cost_matrix(K))
        steps = seconds_of(lambda part=part, near=near: slopes(part, 0, None, near, used))
        found[q] = smooth / n, hinge / n, steps / n
    out = {}
    for which, name in enumerate(("smooth", "clusters", "augmented Lagrangian")):
        slope = (found[50][which] - found[10][which]) / 40
        out[name] = max(found[10][which] - 10 * slope, 0.0), slope
    return out


def summed(args, name):
    """Return the bytes of a partition's sums."""
    curved = 8.0 * MOST_VARIABLES**2 if name == "augmented Lagrangian" else 0.0
    return 8.0 * args.outputs * args.features + curved


def modelled(args, a, b, name):
    size = 8.0 * args.outputs * args.features
    hops = np.log2(args.workers)
    edge = size / args.link + args.latency
    parts = {
        "broadcast": hops * edge,
        "pass": args.rows / args.workers * (a + b * args.nonzeros),
        "scheduling": 2 * args.partitions * args.task,
    }
    if name == "clusters":
        mean = 12.0 * min(args.features, args.nonzeros * args.rows / GROUPS)
        parts["reports"] = (SINGLES * 12.0 * args.nonzeros + GROUPS * mean) / args.link
    else:
        size = summed(args, name)
        sums = (args.partitions / args.workers - 1) * size / args.memory
        parts["reduction"] = sums + hops * (size / args.link + args.latency)
    return parts


def simulated(args, a, b, name, seed=0):
    """Return the seconds of one round, event by event."""
    rng = np.random.default_rng(seed)
    speed = rng.lognormal(0.0, args.spread, args.workers)
    size = 8.0 * args.outputs * args.features
    edge = size / args.link + args.latency
    # Worker w has the coefficients after those it gets them from have sent what they owe.
    ready, senders = np.full(args.workers, np.inf), [(edge, 0)]
    ready[0] = edge
    for worker in range(1, args.workers):
        free, sender = heapq.heappop(senders)
        ready[worker] = free + edge
        heapq.heappush(senders, (free + edge, sender))
        heapq.heappush(senders, (ready[worker], worker))
    each = args.rows / args.partitions * (a + b * args.nonzeros)
    queue = [(ready[w], w) for w in range(args.workers)]
    heapq.heapify(queue)
    scheduler, driver, done = 0.0, 0.0, np.zeros(args.workers)
    mean = 12.0 * min(args.features, args.nonzeros * args.rows / GROUPS)
    report = (SINGLES * 12.0 * args.nonzeros + GROUPS * mean) / args.partitions
    for _ in range(args.partitions):
        free, worker = heapq.heappop(queue)
        scheduler = max(scheduler, 0.0) + 2 * args.task
        end = max(free, scheduler) + each * speed[worker] * rng.lognormal(0.0, args.spread)
        if name == "clusters":
            driver = max(driver, end) + report / args.link + args.latency
        else:
            end += summed(args, name) / args.memory
        done[worker] = end
        heapq.heappush(queue, (end, worker))
    if name == "clusters":
        return driver
    level, edge = list(done), summed(args, name) / args.link + args.latency
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [max(p) + edge if len(p) == 2 else p[0] for p in pairs]
    return level[0] + edge


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=int, default=10**6)
    parser.add_argument("--nonzeros", type=int, default=50)
    parser.add_argument("--outputs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--link", type=float, default=1.25e9, help="bytes a second (10 Gbit)")
    parser.add_argument("--memory", type=float, default=5e9, help="bytes a second, adding sums")
    parser.add_argument("--latency", type=float, default=5e-3, help="seconds a message")
    parser.add_argument("--task", type=float, default=1e-3, help="scheduler's seconds a task")
    parser.add_argument("--spread", type=float, default=0.2, help="of the workers' speeds (log)")
    args = parser.parse_args()
    found = constants(args.features, args.outputs)
    for name, (a, b) in found.items():
        parts = modelled(args, a, b, name)
        runs = [simulated(args, a, b, name, seed) for seed in range(5)]
        print(f"{name}: {1e9 * a:.0f} ns a row + {1e9 * b:.2f} ns a non-zero")
        print("  modelled, seconds: " + ", ".join(f"{k} {v:.2f}" for k, v in parts.items()))
        print(f"  a round: {sum(parts.values()):.1f} s modelled, {np.mean(runs):.1f} s simulated")


if __name__ == "__main__":
    main()
