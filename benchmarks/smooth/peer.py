"""One run of another library, by that library's own interpreter: see ratios.py.

``python peer.py NAME PROBLEM.npz ALPHA SECONDS TARGET...`` prints one line of JSON: for each target
the seconds of processor time at which the objective was first at most that, or null, the time
spent in all, and the last objective. It stops after SECONDS. Only the library's own work is timed.
Several ALPHAs, joined by commas, are a path with a target each (lightning only).
"""

import contextlib
import json
import sys
import time

import numpy as np
import scipy.sparse as sp

clock = time.process_time


def objective(loss, penalty, X, y, alpha, W):
    """Mean loss plus alpha times the penalty at W (classes, features), without intercepts."""
    S = X @ W.T
    rows = np.arange(y.size)
    if loss == "squared_hinge":
        H = np.maximum(1.0 + S - S[rows, y][:, None], 0.0)
        H[rows, y] = 0.0
        losses = np.sum(H * H, axis=1)
    elif loss == "ovr_squared_hinge":
        S[rows, y] *= -1.0
        losses = np.sum(np.maximum(1.0 + S, 0.0) ** 2, axis=1)
    else:
        losses = np.logaddexp.reduce(S, axis=1) - S[rows, y]
    size = np.abs(W).sum() if penalty == "l1" else np.linalg.norm(W, axis=0).sum()
    return float(losses.mean() + alpha * size)


class Watch:
    """Notes when each target was reached; the clock stands still while it looks."""

    def __init__(self, problem, alpha, limit, targets):
        self.problem, self.alpha, self.limit = problem, alpha, limit
        self.targets, self.reached = targets, [None] * len(targets)
        self.spent, self.since, self.last = 0.0, clock(), None

    def pause(self):
        self.spent += clock() - self.since

    def go_on(self):
        self.since = clock()

    def look(self, W, seconds=None):
        """Return whether to stop."""
        self.pause()
        seconds = self.spent if seconds is None else seconds
        self.last = objective(*self.problem, self.alpha, W)
        for k, target in enumerate(self.targets):
            if self.reached[k] is None and self.last <= target:
                self.reached[k] = seconds
        self.go_on()
        return seconds >= self.limit or None not in self.reached


class Enough(Exception):
    """Raised through a library's loop to end it."""


def lightning(watch, X, y, model=None):
    """Block coordinate descent; looked at once an epoch. A model goes on from its coefficients."""
    from lightning.classification import CDClassifier

    def callback(model):
        if watch.look(np.asarray(model.coef_)):
            raise Enough

    model = model or CDClassifier(
        loss="squared_hinge", multiclass=True, penalty="l1/l2", C=1.0 / y.size, max_iter=100000,
        tol=0.0, random_state=0, n_calls=X.shape[1], warm_start=True,
    )  # fmt: skip
    model.set_params(alpha=watch.alpha, callback=callback)
    watch.go_on()
    with contextlib.suppress(Enough):
        model.fit(X, y)
        watch.look(model.coef_)
    return model


def lightning_path(problem, alphas, limit, targets, X, y):
    """Follow the alphas, a target each; return what main() prints."""
    model, spent, reached, last = None, 0.0, [None] * len(alphas), None
    for k, (alpha, target) in enumerate(zip(alphas, targets, strict=True)):
        watch = Watch(problem, alpha, limit - spent, [target])
        model = lightning(watch, X, y, model)
        watch.pause()
        spent, last = spent + watch.spent, watch.last
        if watch.reached[0] is None:
            break
        reached[k] = spent
    return {"reached": reached, "spent": spent, "last": last}


def cyanure(watch, X, y):
    """No callback: runs of more and more epochs, each timed by itself."""
    from cyanure.estimators import Classifier

    epochs = 5
    while True:
        model = Classifier(
            loss="multiclass-logistic", penalty="l1l2", lambda_1=watch.alpha, fit_intercept=False,
            max_iter=epochs, tol=1e-12, verbose=False, n_threads=1,
        )  # fmt: skip
        began = clock()
        model.fit(X, y)
        seconds = clock() - began
        W = model.get_weights()
        W = W[0] if isinstance(W, tuple) else W
        watch.spent = seconds
        if watch.look(np.asarray(W).T if W.shape[0] == X.shape[1] else np.asarray(W), seconds):
            return
        epochs = int(1.5 * epochs) + 1


def liblinear(watch, X, y):
    """LinearSVC at sharper and sharper tolerances, each timed by itself."""
    import warnings

    from sklearn.svm import LinearSVC

    warnings.simplefilter("ignore")
    for tol in 10.0 ** -np.arange(0.5, 8.0, 0.5):
        model = LinearSVC(
            penalty="l1", loss="squared_hinge", dual=False, C=1.0 / (y.size * watch.alpha),
            fit_intercept=False, tol=tol, max_iter=100000, random_state=0,
        )  # fmt: skip
        began = clock()
        model.fit(X, y)
        seconds = clock() - began
        watch.spent = seconds
        if watch.look(model.coef_, seconds):
            return


PEERS = {
    "lightning": (lightning, "squared_hinge", "l1/l2"),
    "cyanure": (cyanure, "logistic", "l1/l2"),
    "liblinear": (liblinear, "ovr_squared_hinge", "l1"),
}


def main():
    name, path, alpha, limit, *targets = sys.argv[1:]
    run, loss, penalty = PEERS[name]
    with np.load(path) as file:
        y = file["y"].astype(np.int64)
        if "dense" in file:
            X = file["dense"]
        else:
            X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), tuple(file["shape"]))
    if name == "lightning":
        X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    problem, limit, targets = (loss, penalty, X, y), float(limit), list(map(float, targets))
    if "," in alpha:
        alphas = list(map(float, alpha.split(",")))
        print(json.dumps(lightning_path(problem, alphas, limit, targets, X, y)))
        return
    watch = Watch(problem, float(alpha), limit, targets)
    run(watch, X, y)
    watch.pause()
    print(json.dumps({"reached": watch.reached, "spent": watch.spent, "last": watch.last}))


if __name__ == "__main__":
    main()
