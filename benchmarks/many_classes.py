"""What the last digits of the hinge cost on sparse data of many classes.

Run ``python benchmarks/many_classes.py [N,K ...] [--banking]`` (banking77 needs SPARSVM_DATA).
For every problem and tolerance it prints seconds of processor time, sweeps and the certified gap.
N,K stands for N bags of words of K classes: words by Zipf's law, half of them from 30 of the class,
tf-idf.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from sparsvm import SparseSVC
from sparsvm.datasets import load_banking77

WORDS, OWN, LENGTH = 20000, 30, 12


def bags(n, n_classes, seed=0):
    """Return X and y of n bags of words."""
    rng = np.random.default_rng(seed)
    ranks, own_ranks = 1 / np.arange(1.0, WORDS + 1), 1 / np.arange(1.0, OWN + 1)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    rng.shuffle(y)
    drawn = WORDS ** rng.random((n_classes, OWN))
    own = np.minimum(drawn.astype(int) + 20, WORDS - 1)
    lengths = np.maximum(3, rng.poisson(LENGTH, n))
    rows = np.repeat(np.arange(n), lengths)
    words = rng.choice(WORDS, rows.size, p=ranks / ranks.sum())
    of_class = rng.random(rows.size) < 0.5
    which = rng.choice(OWN, np.count_nonzero(of_class), p=own_ranks / own_ranks.sum())
    words[of_class] = own[y[rows[of_class]], which]
    counts = sp.csr_matrix((np.ones(rows.size), (rows, words)), shape=(n, WORDS))
    counts.sum_duplicates()
    counts = counts[:, np.flatnonzero(counts.getnnz(axis=0))]
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


def main():
    """Print one line for each problem, penalty, lambda and tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=["4000,100"])
    parser.add_argument("--banking", action="store_true")
    parser.add_argument("--penalties", nargs="+", default=["l1"])
    parser.add_argument("--lambdas", nargs="+", type=float, default=[1.0])
    parser.add_argument("--tols", nargs="+", type=float, default=[1e-2, 1e-3, 1e-4])
    options = parser.parse_args()
    sets = {name: bags(*map(int, name.split(","))) for name in options.problems}
    if options.banking:
        sets["banking77"] = load_banking77(return_X_y=True)
    warnings.simplefilter("ignore")
    for name, (X, y) in sets.items():
        for penalty in options.penalties:
            for lam in options.lambdas:
                for tol in options.tols:
                    began = time.process_time()
                    model = SparseSVC(penalty=penalty, alpha=1 / (X.shape[0] * lam), tol=tol)
                    model.fit(X, y)
                    seconds = time.process_time() - began
                    print(
                        f"{name} {penalty} lambda {lam:g} tol {tol:g}: {seconds:.2f} s, "
                        f"{model.n_iter_} sweeps, gap {model.dual_gap_:.1e}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
