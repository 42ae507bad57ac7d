"""Logistic paths of 100 alphas against R's glmnet, adelie and celer: seconds, and objectives.

``python benchmarks/paths/against_glmnet.py [NAME ...]`` needs Rscript with glmnet and the data of
``sparsvm.datasets``; adelie (l1/l2) and celer (two classes, l1, no intercept) take part where they
are installed. ``--npz FILE ...`` takes the arrays X and y of files instead. glmnet chooses the
alphas (100, down to a hundredth of the first; all are computed) and all stop by their default
thresholds; ours prove a relative gap of 1e-4. Where glmnet takes more than ``--limit`` seconds the
same range is used without it. Dense columns are standardised, classes of one sample left out, which
glmnet refuses. Processor time of one thread, libraries being loaded; of paths that take less than
two seconds the slower of two counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import argparse
import time
from functools import partial

import numpy as np
import peers
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from sparsvm import alpha_max, datasets, svm_path

TOL = 1e-4


def mnist():
    X, y = datasets.load_mnist(return_X_y=True)
    return X[:5000], y[:5000]


def news20():
    X, y = datasets.load_20newsgroups(return_X_y=True)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:1000]
    return X[rows][:, np.flatnonzero(X[rows].getnnz(0))], y[rows]


def generated(n, d, K, correlation, used=20):
    """Return dense features with common factors and labels of a sparse logistic model."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((n, max(2, d // 20)))
    loadings = rng.standard_normal((factors.shape[1], d)) / np.sqrt(factors.shape[1])
    X = np.sqrt(correlation) * factors @ loadings
    X += np.sqrt(1.0 - correlation) * rng.standard_normal((n, d))
    W = np.zeros((d, K))
    W[rng.permutation(d)[:used]] = rng.standard_normal((used, K))
    S = X @ W
    return X, np.argmax(3.0 * S / S.std() + rng.gumbel(size=S.shape), axis=1)


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
    "tall, K = 5": lambda: generated(4509, 256, 5, 0.7),
    "wide, K = 10": lambda: generated(150, 8000, 10, 0.5),
    "wide, K = 20": lambda: generated(400, 5000, 20, 0.5),
    "tall, K = 2": lambda: generated(5000, 300, 2, 0.8),
    "wide, K = 2": lambda: generated(200, 10000, 2, 0.6),
}


def files(paths):
    """Return loaders of the arrays X and y of files, by their names."""

    def load(path):
        with np.load(path) as file:
            return file["X"], file["y"]

    return {Path(path).stem: partial(load, path) for path in paths}


def load_libraries():
    """Follow a small path: what the first call of a process loads is not timed for the peers."""
    svm_path(*load_iris(return_X_y=True), loss="logistic", n_alphas=3)


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


def objective(X, code, W, b, alpha, penalty):
    """Return the mean logistic loss plus the penalty, for one row of W a class."""
    S = np.asarray(X @ W.T) + b
    S -= S.max(axis=1, keepdims=True)
    loss = np.mean(np.log(np.exp(S).sum(axis=1)) - S[np.arange(code.size), code])
    norm = np.abs(W).sum() if penalty == "l1" else np.linalg.norm(W, axis=0).sum()
    return loss + alpha * norm


def ours(X, code, penalty, alphas, **options):
    """Return our path and its seconds, of two short ones the slower."""
    slowest = 0.0
    for _ in range(2):
        began = time.process_time()
        path = svm_path(
            X, code, loss="logistic", penalty=penalty, alphas=alphas, tol=TOL, **options
        )
        slowest = max(slowest, time.process_time() - began)
        if slowest > 2.0:
            break
    return path, slowest


def objectives(X, code, penalty, alphas, weights, intercepts):
    models = zip(weights, intercepts, alphas, strict=True)
    return np.array([objective(X, code, W, b, alpha, penalty) for W, b, alpha in models])


def of_path(path, K):
    """Return the weights and intercepts of a path, one row a class."""
    for coef, c in zip(path.coefs, path.intercepts, strict=True):
        V = coef.toarray()
        yield (np.vstack([-V / 2, V / 2]), np.r_[-c / 2, c / 2]) if K == 2 else (V, c)


def above(found, other):
    """Return by how much objectives are above others at most, relative to them."""
    return f"{np.max(found / other - 1):.0e}"


def compared(name, X, code, penalty, limit):
    """Return one line of the table."""
    K, grouped = code.max() + 1, penalty == "l1/l2"
    found = peers.glmnet(X, code, penalty, limit)
    unfinished = isinstance(found, peers.Unfinished)
    if found and not unfinished:
        theirs, alphas, *models = found
    else:
        alphas = alpha_max(X, code, loss="logistic", penalty=penalty) * np.logspace(0, -2, 100)
    path, seconds = ours(X, code, penalty, alphas)
    f = objectives(X, code, penalty, alphas, *zip(*of_path(path, K), strict=True))
    cells = [name, f"{X.shape[0]} × {X.shape[1]}, {K}", penalty, f"{alphas.size}"]
    if unfinished:
        cells += [f"> {limit}, {found.computed} % of the alphas", f"{seconds:.2f}"]
        cells += [f"> {limit / seconds:.2f}", "", ""]
    elif found:
        g = objectives(X, code, penalty, alphas, *models)
        cells += [f"{theirs:.2f}", f"{seconds:.2f}", f"{theirs / seconds:.2f}"]
        cells += [above(f, g), above(g, f)]
    else:
        cells += ["", f"{seconds:.2f}", "", "", ""]
    found = peers.adelie(X, code, alphas) if grouped and K > 2 else None
    if found:
        g = objectives(X, code, penalty, alphas, *found[1:])
        cells += [f"{found[0]:.2f}", f"{found[0] / seconds:.2f}", above(g, f)]
    elif K == 2 and not grouped and (found := peers.celer(X, 2.0 * code - 1.0, alphas)):
        path, seconds = ours(X, code, penalty, alphas, fit_intercept=False)
        cells += [f"{found[0]:.2f} (celer)", f"{found[0] / seconds:.2f}", ""]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join([*cells, f"{path.gaps.max():.0e}", f"{path.nonzeros[-1]}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(DATA)}; all by default")
    parser.add_argument("--npz", nargs="*", default=[], help="files with arrays X and y")
    parser.add_argument("--penalties", nargs="*", default=list(peers.KINDS))
    parser.add_argument("--limit", type=int, default=120, help="seconds for glmnet")
    options = parser.parse_args()
    chosen = {name: DATA[name] for name in options.names or ([] if options.npz else DATA)}
    chosen |= files(options.npz)
    load_libraries()
    print(
        "| data | samples × features, classes | penalty | alphas | glmnet (s) | ours (s) | ratio | "
        "ours above | glmnet above | adelie (s) | ratio | adelie above | largest gap | weights |\n|"
        + "---|"
        * 14
    )
    for name, load in chosen.items():
        X, code = prepared(*load())
        for penalty in options.penalties:
            # Two classes have one weight a feature here, and two in glmnet: groups differ.
            if code.max() == 1 and penalty == "l1/l2":
                continue
            print(compared(name, X, code, penalty, options.limit), flush=True)


if __name__ == "__main__":
    main()
