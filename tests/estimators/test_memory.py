"""The peak memory of a fit and of a prediction, measured in processes of their own."""

import ctypes
import gc
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from sparsvm import SparseSVC
from sparsvm.penalties import L2, GroupL2

PENALTIES = {"rows": GroupL2(), "l2": L2()}


def texts():
    """Documents of frequent and rare words in 10 classes, a fifth of the words their own."""
    rng = np.random.default_rng(0)
    n, d, K, words = 6000, 20000, 10, 400
    y = np.arange(n) % K
    word = np.minimum(rng.pareto(0.8, n * words) * 30, d - 1).astype(np.int32)
    own = rng.random(n * words) < 0.2
    word[own] = 40 * np.repeat(y, words)[own] + word[own] % 40
    starts = (np.arange(n + 1) * words).astype(np.int32)
    X = sp.csr_matrix((rng.random(n * words), word, starts), shape=(n, d))
    X.sum_duplicates()
    return X[:, X.getnnz(axis=0) > 0], y


def status(field):
    """Return a size of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(field + ":")]
    return 1024 * int(line.split()[1])


def measure(penalty, tol, lam, sender):
    """Send the features used, and (X + peak of fit and predict) / (X + 8 (n + used) K)."""
    X, y = texts()
    options = {"solver": "sdca", "tol": tol, "fit_intercept": penalty != "l2"}
    model = SparseSVC(penalty=PENALTIES[penalty], alpha=1.0 / (len(y) * lam), **options)
    # So that neither the code of libraries nor memory that happens to be free counts.
    clone(model).fit(X[:300], y[:300]).predict(X[:300])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    model.fit(X, y).predict(X)
    above = status("VmHWM") - before
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    used = model.selected_features_.size
    state = 8 * (len(y) + used) * model.classes_.size
    sender.send((used, (size + above) / (size + state)))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux measures the peak.")
@pytest.mark.parametrize(
    ("penalty", "tol", "lam"), [("rows", 1e-3, 0.3), ("rows", 1e-5, 0.3), ("l2", 1e-3, 0.1)]
)
def test_peak_of_fit_and_predict_is_within_half_of_data_and_state(penalty, tol, lam):
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=measure, args=(penalty, tol, lam, sender))
    child.start()
    child.join()
    assert child.exitcode == 0
    used, ratio = receiver.recv()
    assert used > 100
    assert ratio <= 1.5
