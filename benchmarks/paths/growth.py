"""How the time of a logistic path grows with samples, features and classes.

``python benchmarks/paths/growth.py`` follows 100 alphas down to a hundredth of alpha_max, to a
proven relative gap of 1e-4, on generated data (see against_glmnet.py) of which one size doubles.
It prints processor seconds and the exponent e of time ~ size^e.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import numpy as np
from against_glmnet import generated, ours, prepared

from sparsvm import alpha_max

SIZES = {
    "samples (d = 200, K = 5)": [(n, 200, 5) for n in (500, 1000, 2000, 4000)],
    "features (n = 150, K = 5)": [(150, d, 5) for d in (1000, 2000, 4000, 8000)],
    "classes (n = 600, d = 300)": [(600, 300, K) for K in (3, 6, 12, 24)],
}


def main() -> None:
    print("| growing | penalty | sizes | seconds | exponent |\n|---|---|---|---|---|")
    for name, shapes in SIZES.items():
        sizes = [shape[{"s": 0, "f": 1, "c": 2}[name[0]]] for shape in shapes]
        for penalty in ("l1", "l1/l2"):
            times = []
            for n, d, K in shapes:
                X, code = prepared(*generated(n, d, K, 0.5))
                largest = alpha_max(X, code, loss="logistic", penalty=penalty)
                times.append(ours(X, code, penalty, largest * np.logspace(0, -2, 100))[1])
            slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
            cells = ", ".join(map(str, sizes)), ", ".join(f"{t:.2f}" for t in times)
            print(f"| {name} | {penalty} | {cells[0]} | {cells[1]} | {slope:.2f} |", flush=True)


if __name__ == "__main__":
    main()
