"""What a path of 100 alphas costs, in cold fits at its densest point.

Run ``python benchmarks/path.py`` with SPARSVM_DATA set. It prints a Markdown table: the seconds of
``svm_path`` on leukemia (alpha_max included, eps=1e-3, every point certified to 1e-4) and of
``SparseSVC.fit`` at the smallest alpha, both with reading the data, the median of five ratios
measured side by side in processor time on one thread.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import time

from exact_hinge.benchmark_utils.cases import load

from sparsvm import SparseSVC, alpha_max, svm_path
from sparsvm.penalties import L1, GroupL2, GroupLinf

PENALTIES = {
    "l1": L1(),
    "l1/l2, rows": GroupL2(),
    "l1/l2, blocks of 5": GroupL2(groups=5, per_class=True),
    "l1/linf, rows": GroupLinf(),
}


def seconds(call):
    """Return the processor time of a call, and what it returned."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def main():
    X, y = load("leukemia")
    print("| penalty | path (s) | of it alpha_max (s) | cold fit (s) | ratio | largest gap |")
    print("|---|---|---|---|---|---|")
    for name, penalty in PENALTIES.items():
        runs = []
        for _ in range(5):
            whole, path = seconds(lambda p=penalty: svm_path(X, y, penalty=p))
            first, _ = seconds(lambda p=penalty: alpha_max(X, y, penalty=p))
            model = SparseSVC(penalty=penalty, alpha=float(path.alphas[-1]))
            cold, _ = seconds(lambda m=model: m.fit(X, y))
            runs.append((whole / cold, whole, first, cold))
        ratio, whole, first, cold = sorted(runs)[2]
        print(
            f"| {name} | {whole:.3f} | {first:.3f} | {cold:.4f} | {ratio:.1f} "
            f"| {path.gaps.max():.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
