"""Logistic paths of 100 alphas against R's glmnet: seconds, and objectives of both.

``python benchmarks/paths/against_glmnet.py [NAME ...]`` needs Rscript with glmnet and the data of
``sparsvm.datasets``; ``--npz FILE`` takes the arrays X and y of a file instead. glmnet chooses the
alphas (100, down to a hundredth of the first; all are computed) and stops by its default threshold;
ours prove a relative gap of 1e-4 at each of them. Dense columns are standardised, classes of one
sample left out, which glmnet refuses. Processor time of one thread; of paths that take less than
two seconds the slower of two counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import argparse
import subprocess
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from sparsvm import datasets, svm_path

TOL = 1e-4
KINDS = {"l1": "ungrouped", "l1/l2": "grouped"}


def mnist():
    X, y = datasets.load_mnist(return_X_y=True)
    return X[:5000], y[:5000]


def news20():
    X, y = datasets.load_20newsgroups(return_X_y=True)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:1000]
    return X[rows][:, np.flatnonzero(X[rows].getnnz(0))], y[rows]


DATA = {
    "leukemia": lambda: datasets.load_leukemia(return_X_y=True),
    "nci60": lambda: datasets.load_microarray("nci60", return_X_y=True),
    "lymphoma": lambda: datasets.load_microarray("lymphoma", return_X_y=True),
    "su": lambda: datasets.load_microarray("su", return_X_y=True),
    "christensen": lambda: datasets.load_microarray("christensen", return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "mnist_5000": mnist,
    "coil20": lambda: datasets.load_coil20(return_X_y=True),
    "news20_1000": news20,
}


def prepared(X, y):
    """Leave out classes of one sample and standardise dense columns; labels are numbers."""
    labels, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, labels[counts > 1])
    X, code = X[kept], np.unique(np.asarray(y)[kept], return_inverse=True)[1]
    if sp.issparse(X):
        return X.tocsr(), code
    X = np.asarray(X, dtype=float)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0), code


def glmnet(X, code, kind):
    """Return glmnet's seconds, alphas, weights (alphas, classes, features) and intercepts."""
    n, d = X.shape
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "dim.txt").write_text(f"{n} {d}")
        # Digits alone would be sorted as text.
        (here / "y.txt").write_text("\n".join(f"c{label:05d}" for label in code))
        if sp.issparse(X):
            columns = X.tocsc()
            columns.sort_indices()
            columns.indices.astype(np.int32).tofile(here / "i.bin")
            columns.indptr.astype(np.int32).tofile(here / "p.bin")
            columns.data.tofile(here / "v.bin")
        else:
            np.ascontiguousarray(X.T).tofile(here / "x.bin")
        script = str(Path(__file__).with_name("glmnet_path.R"))
        run = subprocess.run(
            ["Rscript", script, name, kind], capture_output=True, text=True, check=True
        )
        seconds, count = run.stdout.split()[-2:]
        alphas = np.fromfile(here / "lambda.bin")
        shape = (code.max() + 1, int(count), d)
        weights = np.fromfile(here / "beta.bin").reshape(shape).swapaxes(0, 1)
        return float(seconds), alphas, weights, np.fromfile(here / "a0.bin").reshape(shape[1::-1])


def objective(X, code, W, b, alpha, penalty):
    """Return the mean logistic loss plus the penalty, for one row of W a class."""
    S = np.asarray(X @ W.T) + b
    S -= S.max(axis=1, keepdims=True)
    loss = np.mean(np.log(np.exp(S).sum(axis=1)) - S[np.arange(code.size), code])
    norm = np.abs(W).sum() if penalty == "l1" else np.linalg.norm(W, axis=0).sum()
    return loss + alpha * norm


def ours(X, code, penalty, alphas):
    """Return our path and its seconds."""
    began = time.process_time()
    path = svm_path(X, code, loss="logistic", penalty=penalty, alphas=alphas, tol=TOL)
    return path, time.process_time() - began


def compared(name, X, code, penalty):
    """Return one line of the table."""
    theirs, alphas, weights, intercepts = glmnet(X, code, KINDS[penalty])
    path, seconds = ours(X, code, penalty, alphas)
    if seconds < 2.0:
        seconds = max(seconds, ours(X, code, penalty, alphas)[1])
    K = code.max() + 1
    values = []
    for t, (W, b, alpha) in enumerate(zip(weights, intercepts, alphas, strict=True)):
        V, c = path.coefs[t].toarray(), path.intercepts[t]
        if K == 2:
            V, c = np.vstack([-V / 2, V / 2]), np.r_[-c / 2, c / 2]
        values.append([objective(X, code, *model, alpha, penalty) for model in ((V, c), (W, b))])
    f, g = np.array(values).T
    return (
        f"| {name} | {X.shape[0]} × {X.shape[1]}, {K} | {penalty} | {alphas.size} | {theirs:.2f} | "
        f"{seconds:.2f} | {theirs / seconds:.2f} | {np.max(f / g - 1):.0e} | "
        f"{np.max(g / f - 1):.0e} | {path.gaps.max():.0e} | {path.nonzeros[-1]} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(DATA)}; all by default")
    parser.add_argument("--npz", help="a file with arrays X and y")
    parser.add_argument("--penalties", nargs="*", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    chosen = {name: DATA[name] for name in options.names or ([] if options.npz else DATA)}
    if options.npz:
        with np.load(options.npz) as file:
            chosen[Path(options.npz).stem] = lambda arrays=(file["X"], file["y"]): arrays
    print(
        "| data | samples × features, classes | penalty | alphas | glmnet (s) | ours (s) | ratio | "
        "ours above | glmnet above | largest gap | weights |\n|" + "---|" * 11
    )
    for name, load in chosen.items():
        X, code = prepared(*load())
        for penalty in options.penalties:
            print(compared(name, X, code, penalty), flush=True)


if __name__ == "__main__":
    main()
