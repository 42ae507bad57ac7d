"""The tables of docs/coming_from.md: models of others are optimal for the converted problems."""

from __future__ import annotations

import shutil
import subprocess
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sparsvm import certify
from sparsvm.penalties import L1, ElasticNet, GroupL2

N, D = 60, 5
C = 0.3
PACKAGE = 'if (!requireNamespace("glmnet", quietly = TRUE)) quit(status = 1)'
GLMNET = """
suppressMessages(library(glmnet)); arg <- commandArgs(TRUE)
X <- as.matrix(read.csv(arg[1], header = FALSE)); y <- factor(scan(arg[2], quiet = TRUE))
fit <- glmnet(X, y, lambda = as.numeric(arg[3]), thresh = 1e-14, maxit = 1e6, {options})
b <- coef(fit); b <- if (is.list(b)) lapply(b, as.matrix) else list(as.matrix(b))
write.table(t(do.call(cbind, b)), arg[4], row.names = FALSE, col.names = FALSE)
"""


def data(K):
    """Overlapping classes, and columns of different size."""
    rng = np.random.default_rng(K)
    y = np.arange(N) % K
    X = rng.normal(size=(N, D)) + 0.7 * rng.normal(size=(K, D))[y]
    return X * np.array([0.5, 1.0, 2.0, 1.0, 1.5]), y


def check(X, y, coef, intercept, alpha, *problem, **options):
    """The weights are within 1e-5 of the optimum at ``alpha``, and not at an alpha beside it."""
    loss, penalty = problem
    for factor, near in ((1.0, True), (1.5, False)):
        proof = certify(
            X,
            y,
            coef,
            intercept,
            loss=loss,
            penalty=penalty,
            alpha=factor * alpha,
            tol=1e-5,
            **options,
        )
        assert proof.within_tol == near, (factor, proof.suboptimality)


TWO_AND_THREE = pytest.mark.parametrize("K", [2, 3])


@pytest.mark.parametrize(
    "loss, penalty", [("squared_hinge", "l1"), ("squared_hinge", "l2"), ("hinge", "l2")]
)
def test_linear_svc_with_class_weights(loss, penalty):
    """Its C multiplies a sum of weighted losses: n becomes the sum of the weights."""
    X, y = data(2)
    weights = {0: 2.0, 1: 0.5}
    other = LinearSVC(
        penalty=penalty, loss=loss, dual=loss == "hinge", C=C, class_weight=weights,
        fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0,
    ).fit(X, y)  # fmt: skip
    ours = "hinge" if loss == "hinge" else "ovr_squared_hinge"
    masses = np.array([weights[label] for label in y])
    options = {"sample_weight": masses, "fit_intercept": False}
    check(X, y, other.coef_, None, 1.0 / (masses.sum() * C), ours, penalty, **options)


def test_linear_svc_with_a_large_intercept_scaling_has_a_free_intercept():
    X, y = data(3)
    options = {"penalty": "l1", "dual": False, "C": C, "tol": 1e-8, "max_iter": 10**5}
    other = LinearSVC(intercept_scaling=1e3, **options).fit(X, y)
    check(X, y, other.coef_, other.intercept_, 1.0 / (N * C), "ovr_squared_hinge", "l1")


def test_linear_svc_refuses_l1_with_the_hinge():
    with pytest.raises(ValueError, match="l1"):
        LinearSVC(penalty="l1", loss="hinge").fit(*data(2))


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
@TWO_AND_THREE
def test_logistic_regression(K, ratio):
    X, y = data(K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # later versions want the ratio alone
        other = LogisticRegression(
            penalty="elasticnet", l1_ratio=ratio, solver="saga", C=C, tol=1e-10, max_iter=10**5,
            random_state=0,
        ).fit(X, y)  # fmt: skip
    penalty = {0.0: "l2", 1.0: "l1"}.get(ratio, ElasticNet(ratio))
    check(X, y, other.coef_, other.intercept_, 1.0 / (N * C), "logistic", penalty)


def glmnet(folder, X, y, strength, options):
    """Return the weights and intercepts that R's glmnet finds."""
    np.savetxt(folder / "X.csv", X, delimiter=",", fmt="%.17g")
    np.savetxt(folder / "y.txt", y, fmt="%d")
    (folder / "fit.R").write_text(GLMNET.replace("{options}", options))
    names = [str(folder / name) for name in ("fit.R", "X.csv", "y.txt")]
    command = ["Rscript", *names, f"{strength:.17g}", str(folder / "weights.txt")]
    subprocess.run(command, check=True, timeout=120)
    found = np.loadtxt(folder / "weights.txt", ndmin=2)
    return found[:, 1:], found[:, 0]


FACTORS = np.array([0.5, 1.0, 3.0, 2.0, 1.0])


@pytest.fixture(scope="module")
def installed():
    if not shutil.which("Rscript") or subprocess.run(["Rscript", "-e", PACKAGE]).returncode:
        pytest.skip("R's glmnet is not installed")


@pytest.mark.parametrize(
    "K, options, penalty, scale",
    [
        (2, 'family = "binomial"', L1(weights="scale"), 1.0),
        (3, 'family = "multinomial"', L1(weights="scale"), 1.0),
        (3, 'family = "multinomial", standardize = FALSE', "l1", 1.0),
        (3, 'family = "multinomial", standardize = FALSE, alpha = 0.4', ElasticNet(0.4), 1.0),
        (3, 'family = "multinomial", type.multinomial = "grouped"', GroupL2(weights="scale"), 1.0),
        (
            2,
            'family = "binomial", standardize = FALSE, penalty.factor = c(0.5, 1, 3, 2, 1)',
            L1(weights=FACTORS),
            1.0 / FACTORS.mean(),
        ),
    ],
)
def test_glmnet(K, options, penalty, scale, tmp_path, installed):
    X, y = data(K)
    coef, intercept = glmnet(tmp_path, X, y, 0.05, options)
    check(X, y, coef, intercept, 0.05 * scale, "logistic", penalty)
