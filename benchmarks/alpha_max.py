"""What the start of a grid costs, beside a cold fit at a third of it.

Run ``python benchmarks/alpha_max.py [--data su coil20] [--exact]`` with SPARSVM_DATA set. It prints
a Markdown table in processor seconds of one thread: the cheap bound, the bracket of 5 % that grids
of the hinge begin with, ``SparseSVC.fit`` at 0.3 of it (tol=1e-3), and, if asked for, ``alpha_max``
to 1e-6.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time
from functools import partial

from exact_hinge.cases import load
from sklearn.datasets import load_digits

from sparsvm import SparseSVC, alpha_max
from sparsvm.datasets import load_coil20, load_microarray
from sparsvm.path.alpha_max import quick_bound
from sparsvm.path.svm_path import read_problem

DATA = {
    "leukemia": lambda: load("leukemia"),
    "su": lambda: load_microarray("su", return_X_y=True),
    "nci60": lambda: load_microarray("nci60", return_X_y=True),
    "christensen": lambda: load_microarray("christensen", return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "coil20": lambda: load_coil20(return_X_y=True),
    "news20_1000": lambda: load("news20_1000"),
}
PENALTIES = ("l1", "l1/l2", "l1/linf")


def seconds(call):
    """Return the processor time of a call, and what it returned."""
    began = time.process_time()
    result = call()
    return time.process_time() - began, result


def cheap_bound(X, y, penalty):
    """Return the upper bound that costs one product with X, from the data as they are read."""
    _, problem = read_problem(X, y, "hinge", penalty, True, None, None, None)
    return quick_bound(problem).value


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args()
    print(
        "| data | penalty | bound (s) | over bracket | bracket (s) | cold fit (s) | ratio | exact |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in options.data:
        X, y = DATA[name]()
        for penalty in PENALTIES:
            quick, bound = seconds(partial(cheap_bound, X, y, penalty))
            rough, value = seconds(partial(alpha_max, X, y, penalty=penalty, tol=0.05))
            model = SparseSVC(penalty=penalty, alpha=0.3 * value)
            cold, _ = seconds(partial(model.fit, X, y))
            exact = "-"
            if options.exact:
                exact = f"{seconds(partial(alpha_max, X, y, penalty=penalty))[0]:.2f}"
            print(
                f"| {name} | {penalty} | {quick:.3f} | {bound / value:.2f} | {rough:.3f} "
                f"| {cold:.3f} | {rough / cold:.2f} | {exact} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
