"""Fits of lightning to the data that child.py writes: python lightning_fits.py LOSS DIR."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from lightning.classification import CDClassifier

warnings.simplefilter("ignore")
loss, here = sys.argv[1], Path(sys.argv[2])
n, d = map(int, (here / "size.txt").read_text().split())
y = np.fromfile(here / "y.bin", dtype=np.int32)
if (here / "x.bin").exists():
    X = np.asfortranarray(np.fromfile(here / "x.bin").reshape(d, n).T)
else:
    parts = (
        np.fromfile(here / "v.bin"),
        *(np.fromfile(here / f, np.int32) for f in ("i.bin", "p.bin")),
    )
    X = sp.csc_matrix(parts, shape=(n, d))
for line in sys.stdin:
    alpha, tol = map(float, line.split())
    model = CDClassifier(
        loss=loss, multiclass=True, penalty="l1/l2", C=1.0 / n, alpha=alpha, tol=tol,
        max_iter=2000, random_state=0,
    )  # fmt: skip
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    np.ascontiguousarray(model.coef_).tofile(here / "weights.bin")
    print(seconds, flush=True)
