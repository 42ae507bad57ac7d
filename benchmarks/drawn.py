"""Cold fits of the hinge by ``auto`` on dense problems drawn at random, a line each.

``python benchmarks/drawn.py --seed 0 --count 60``: 510 to 1500 samples, 8 to 250 features, 2 to 10
classes, features that share factors or do not, noisy labels, columns of one scale or over four
orders, five penalties, alphas down to 3e-4 of the size at which weights appear, tol=1e-3. Run by
the interpreters of two builds it compares them on problems that no setting was chosen by.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time
import warnings

import numpy as np

from sparsvm import SparseSVC

PENALTIES = ("l1", "l1/l2", "l1/linf", "sparse_group", "elasticnet")


def draw(seed):
    """Return X, y, the penalty and alpha."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(510, 1500)), int(rng.integers(2, 11))
    d = int(np.exp(rng.uniform(np.log(8), np.log(250))))
    shared = rng.standard_normal((n, int(rng.integers(2, 15))))
    kind = rng.choice(["independent", "labels of factors", "factors"])
    X = rng.standard_normal((n, d))
    if kind != "independent":
        X = shared @ rng.standard_normal((shared.shape[1], d)) + rng.choice([0.1, 0.5, 1.0]) * X
    known = shared if kind == "labels of factors" else X[:, : min(d, 8)]
    scores = known @ rng.standard_normal((known.shape[1], K))
    y = np.argmax(scores + rng.choice([0.01, 1.0, 3.0]) * rng.standard_normal((n, K)), axis=1)
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-2.0, 2.0, d)
    if rng.random() < 0.2:
        X += 5.0
    target = np.eye(K)[y]
    steepest = np.abs((target - target.mean(axis=0)).T @ X).max() / n
    return X, y, str(rng.choice(PENALTIES)), 10.0 ** rng.uniform(-3.5, -0.5) * steepest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| seed | samples × features, classes | penalty | seconds | gap | objective | solvers |")
    print("|" + "---|" * 7)
    total = 0.0
    for seed in range(options.seed, options.seed + options.count):
        X, y, penalty, alpha = draw(seed)
        if np.unique(y).size < 2:
            continue
        began = time.process_time()
        model = SparseSVC(penalty=penalty, alpha=alpha, time_limit=options.limit).fit(X, y)
        seconds = time.process_time() - began
        total += seconds
        size = f"{X.shape[0]} × {X.shape[1]}, {model.classes_.size}"
        print(
            f"| {seed} | {size} | {penalty} | {seconds:.2f} | {model.dual_gap_:.0e} | "
            f"{model.objective_:.6g} | {model.result_.solver} |",
            flush=True,
        )
    print(f"{total:.1f} s in all")


if __name__ == "__main__":
    main()
