"""The l1 multiclass SVM by SparseSVC and, as a linear program, by HiGHS: same optimum, two times.

Run ``python benchmarks/against_highs.py``. Wine and digits come with scikit-learn; leukemia is
added where the environment variable ``SPARSVM_DATA`` names a folder with its file. Seconds are of
the processor, one thread each; HiGHS is given the better of its simplex and interior-point methods.
"""

import os
import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, scale
from threadpoolctl import threadpool_limits

from sparsvm import SparseSVC


def linear_program(X, y, alpha):
    """Costs, matrix, right-hand side and lower bounds for u, v >= 0 (W = u - v), b, xi.

    Rows: S_ik - S_iy - xi_i <= -1 for every sample i and class k other than its own.
    """
    n, d = X.shape
    K = y.max() + 1
    sample, other = np.nonzero(np.arange(K) != y[:, None])
    number = np.arange(sample.size)
    ones = np.ones(sample.size)
    shape = (sample.size, K)
    # Which class each row adds and which it takes away.
    classes = sp.csr_matrix((ones, (number, other)), shape) - sp.csr_matrix(
        (ones, (number, y[sample])), shape
    )
    rows = sp.csr_matrix(X)[sample]
    scores = sp.hstack([sp.diags(classes.getcol(k).toarray().ravel()) @ rows for k in range(K)])
    slack = sp.csr_matrix((ones, (number, sample)), (sample.size, n))
    matrix = sp.hstack([scores, -scores, classes, -slack]).tocsc()
    costs = np.concatenate([np.full(2 * K * d, alpha), np.zeros(K), np.full(n, 1.0 / n)])
    lower = np.concatenate([np.zeros(2 * K * d), np.full(K, -np.inf), np.zeros(n)])
    return costs, matrix, -ones, lower


def seconds_of(function, *arguments):
    """Return the result and the processor time it took."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def highs(program, method):
    """Solve the linear program; the time includes nothing but the call of HiGHS."""
    costs, matrix, rhs, lower = program
    bounds = np.column_stack([lower, np.full(lower.size, np.inf)])
    result = linprog(costs, A_ub=matrix, b_ub=rhs, bounds=bounds, method=method)
    if not result.success:
        raise RuntimeError(f"{method} failed: {result.message}")
    return result


def problems():
    """Yield name, samples, labels from 0 and the strength of the penalty."""
    wine = load_wine()
    yield "wine", scale(wine.data), wine.target, 0.1
    digits = load_digits()
    X, _, y, _ = train_test_split(
        digits.data / 16.0, digits.target, train_size=200, stratify=digits.target, random_state=0
    )
    yield "digits", X, y, 0.01
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit_transform(X)
    yield "digits with products of pixels", products, y, 0.01
    if os.environ.get("SPARSVM_DATA"):
        from sparsvm.datasets import load_leukemia

        X, y = load_leukemia(return_X_y=True)
        yield "leukemia", scale(X), np.unique(y, return_inverse=True)[1], 1.0 / 38.0


def main():
    """Print a table in Markdown, one line per problem."""
    print("| problem | n × d × K | gap | HiGHS differs by | sparsvm | HiGHS | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, X, y, alpha in problems():
        program = linear_program(X, y, alpha)
        SparseSVC(alpha=alpha).fit(X, y)  # loads what is loaded once in every process
        model, ours = seconds_of(SparseSVC(alpha=alpha, tol=1e-6).fit, X, y)
        runs = [seconds_of(highs, program, method) for method in ("highs-ds", "highs-ipm")]
        result, theirs = min(runs, key=lambda run: run[1])
        size = f"{X.shape[0]} × {X.shape[1]} × {y.max() + 1}"
        difference = result.fun / model.objective_ - 1.0
        print(
            f"| {name} | {size} | {model.dual_gap_:.0e} | {difference:.0e} | {ours:.3f} s "
            f"| {theirs:.3f} s | {theirs / ours:.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
