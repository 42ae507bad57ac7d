"""Peers of logistic paths: R's glmnet, adelie, cyanure, celer, skglm and sortedl1.

Each function returns processor seconds and the models, weights (alphas, classes, features) and
intercepts (alphas, classes), or None where the peer is not installed, refuses or takes too long.
Those of two classes have one row of weights an alpha and no intercept, and labels of -1 and 1.
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
from sklearn.base import clone

KINDS = {"l1": "ungrouped", "l1/l2": "grouped"}


class Unfinished(NamedTuple):
    """A path that took more than the limit of seconds, and the percentage computed by then."""

    seconds: float
    computed: str


def glmnet(X, code, penalty, limit, *, alphas=None, thresh=1e-7, binomial=False):
    """Return seconds, the alphas (by default those that glmnet chooses), weights and intercepts."""
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
        if alphas is not None:
            np.asarray(alphas).tofile(here / "alphas.bin")
        script = str(Path(__file__).with_name("glmnet_path.R"))
        kind = "binomial" if binomial else KINDS[penalty]
        run = subprocess.run(
            ["Rscript", script, name, kind, f"{thresh}"],
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
        found = np.fromfile(here / "lambda.bin")
        if alphas is not None and found.size != len(alphas):
            return None
        shape = (1 if binomial else code.max() + 1, int(count), d)
        weights = np.fromfile(here / "beta.bin").reshape(shape).swapaxes(0, 1)
        intercepts = np.fromfile(here / "a0.bin").reshape(shape[1::-1])
        return float(seconds), found, weights, intercepts


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


def _fit_along(alphas, fit, limit):
    """Return seconds and what ``fit(alpha)`` returned, one alpha after the other."""
    began = time.process_time()
    models = []
    for alpha in alphas:
        models.append(fit(alpha))
        if (spent := time.process_time() - began) > limit and len(models) < len(alphas):
            return Unfinished(spent, f"{100 * len(models) // len(alphas)}")
    return time.process_time() - began, models


def cyanure(X, code, alphas, penalty, limit):
    """Return seconds, weights and intercepts; every fit starts from the model before."""
    try:
        from cyanure.estimators import Classifier
    except ImportError:
        return None
    model = Classifier(
        loss="multiclass-logistic",
        penalty="l1" if penalty == "l1" else "l1l2",
        fit_intercept=True,
        warm_start=True,
        verbose=False,
        n_threads=1,
    )
    data = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)

    def fit(alpha):
        model.lambda_1 = alpha
        model.fit(data, code)
        return model.get_weights()

    found = _fit_along(alphas, fit, limit)
    if isinstance(found, Unfinished):
        return found
    weights, intercepts = (np.array(part) for part in zip(*found[1], strict=True))
    return found[0], weights.swapaxes(1, 2), intercepts.reshape(len(alphas), -1)


def celer(X, sign, alphas):
    """Return seconds and weights of the l1 path of two classes."""
    try:
        from celer import celer_path
    except ImportError:
        return None
    data = X.tocsc() if sp.issparse(X) else np.asfortranarray(X)
    # Its loss is a sum; one short run compiles nothing, but loads what it needs.
    celer_path(data, sign, pb="logreg", alphas=sign.size * alphas[:2])
    began = time.process_time()
    _, weights, _ = celer_path(data, sign, pb="logreg", alphas=sign.size * alphas)
    return time.process_time() - began, weights.T[:, None, :]


def skglm(X, sign, alphas, limit):
    """Return seconds and weights of the l1 path of two classes."""
    try:
        from skglm import SparseLogisticRegression
    except ImportError:
        return None
    data = X.tocsc() if sp.issparse(X) else np.asfortranarray(X)
    model = SparseLogisticRegression(fit_intercept=False, warm_start=True)
    # What numba compiles does not count.
    clone(model).set_params(alpha=alphas[len(alphas) // 2]).fit(data, sign)

    def fit(alpha):
        return model.set_params(alpha=alpha).fit(data, sign).coef_.copy()

    found = _fit_along(alphas, fit, limit)
    return found if isinstance(found, Unfinished) else (found[0], np.array(found[1]))


def sortedl1(X, sign, alphas):
    """Return seconds and weights of the SLOPE path with equal weights, which is that of l1."""
    try:
        from sortedl1 import Slope
    except ImportError:
        return None
    model = Slope(loss="logistic", lam=np.ones(X.shape[1]), fit_intercept=False)
    data = X.tocsc() if sp.issparse(X) else np.asfortranarray(X)
    began = time.process_time()
    # Nothing ends the path before the last alpha.
    path = model.path(
        data, sign, alphas, tol_dev_change=0.0, tol_dev_ratio=1.0, max_clusters=X.shape[1] + 1
    )
    seconds = time.process_time() - began
    weights = np.asarray(path.coefs)
    return None if weights.shape[-1] != len(alphas) else (seconds, np.moveaxis(weights, -1, 0))
