"""What a path of 100 alphas costs, in cold fits at its densest point.

Run ``python benchmarks/path.py [--data leukemia news20_1000] [--repetitions 5]`` with SPARSVM_DATA
set. It prints a Markdown table: the seconds of ``svm_path`` (alpha_max included, eps=1e-3, every
point certified to 1e-4) and of ``SparseSVC.fit`` at the smallest alpha, where most weights are not
zero, both with reading the data; the median of the ratios measured side by side in processor time
on one thread.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time

from exact_hinge.cases import load

from sparsvm import SparseSVC, alpha_max, svm_path
from sparsvm.penalties import L1, GroupL2, GroupLinf, SparseGroup

ROWS = {"l1/l2, rows": GroupL2()}
PENALTIES = {
    "leukemia": {
        "l1": L1(),
        **ROWS,
        "l1/l2, blocks of 5": GroupL2(groups=5, per_class=True),
        "l1/linf, rows": GroupLinf(),
        "l1/linf, blocks of 5": GroupLinf(groups=5, per_class=True),
        "sparse group, rows": SparseGroup(),
    },
    "news20_1000": {"l1": L1(), **ROWS},
}


def seconds(call):
    """Return the processor time of a call, and what it returned."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def measured(X, y, penalty):
    """Return the ratio, the seconds of the path, of alpha_max and of a cold fit, and the path."""
    whole, path = seconds(lambda: svm_path(X, y, penalty=penalty))
    first, _ = seconds(lambda: alpha_max(X, y, penalty=penalty))
    model = SparseSVC(penalty=penalty, alpha=float(path.alphas[-1]))
    cold, _ = seconds(lambda: model.fit(X, y))
    return whole / cold, whole, first, cold, path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=PENALTIES, default=list(PENALTIES))
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(
        "| data | penalty | path (s) | of it alpha_max (s) | cold fit (s) | ratio | features "
        "| largest gap |\n|---|---|---|---|---|---|---|---|"
    )
    for data in options.data:
        X, y = load(data)
        for name, penalty in PENALTIES[data].items():
            runs = [measured(X, y, penalty) for _ in range(options.repetitions)]
            runs.sort(key=lambda run: run[0])
            ratio, whole, first, cold, path = runs[len(runs) // 2]
            print(
                f"| {data} | {name} | {whole:.3f} | {first:.3f} | {cold:.4f} | {ratio:.1f} "
                f"| {path.n_selected[-1]} | {path.gaps.max():.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
