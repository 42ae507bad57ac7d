"""Peers of logistic paths: R's glmnet, adelie and celer, on the same alphas.

Each function returns processor seconds and the models, weights (alphas, classes, features) and
intercepts (alphas, classes), or None where the peer is not installed, refuses or takes too long.
"""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

KINDS = {"l1": "ungrouped", "l1/l2": "grouped"}


class Unfinished(NamedTuple):
    """A path that took more than the limit of seconds, and the percentage computed by then."""

    seconds: float
    computed: str


def glmnet(X, code, penalty, limit):
    """Return seconds, the alphas that glmnet chose, weights and intercepts."""
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
            ["Rscript", script, name, KINDS[penalty]],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )
        if run.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
            return Unfinished(np.inf, (re.findall(r"(\d+)%", run.stdout) or ["0"])[-1])
        if run.returncode != 0:
            return None
        seconds, count = run.stdout.split()[-2:]
        alphas = np.fromfile(here / "lambda.bin")
        shape = (code.max() + 1, int(count), d)
        weights = np.fromfile(here / "beta.bin").reshape(shape).swapaxes(0, 1)
        return float(seconds), alphas, weights, np.fromfile(here / "a0.bin").reshape(shape[1::-1])


def adelie(X, code, alphas):
    """Return seconds, weights and intercepts of the grouped path.

    Its loss is divided by the number of classes K too, and a group of K weights has a penalty of
    sqrt(K): its lambda is alpha / K^1.5.
    """
    try:
        import adelie as ad
    except ImportError:
        return None
    (n, d), K = X.shape, code.max() + 1
    Y = np.zeros((n, K))
    Y[np.arange(n), code] = 1.0
    matrix = ad.matrix.sparse(X.tocsc(), method="naive") if sp.issparse(X) else np.asfortranarray(X)
    began = time.process_time()
    state = ad.grpnet(
        matrix,
        ad.glm.multinomial(Y),
        lmda_path=alphas / K**1.5,
        early_exit=False,
        progress_bar=False,
        n_threads=1,
    )
    seconds = time.process_time() - began
    if state.betas.shape[0] != alphas.size:
        return None
    return seconds, state.betas.toarray().reshape(-1, d, K).swapaxes(1, 2), state.intercepts


def celer(X, sign, alphas, tol):
    """Return seconds and weights of the l1 path of two classes without an intercept."""
    try:
        from celer import celer_path
    except ImportError:
        return None
    data = X.tocsc() if sp.issparse(X) else np.asfortranarray(X)
    n = X.shape[0]
    # Its loss is a sum; one short run compiles nothing, but loads what it needs.
    celer_path(data, sign, pb="logreg", alphas=n * alphas[:2], tol=tol)
    began = time.process_time()
    _, weights, _ = celer_path(data, sign, pb="logreg", alphas=n * alphas, tol=tol)
    return time.process_time() - began, weights.T
