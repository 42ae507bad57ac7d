"""How far other packages' models are from their optima, by certify.

python benchmarks/other_models.py [output.md]

Paths of R's glmnet (where Rscript has it), scikit-learn's LinearSVC, and lightning's CDClassifier
(where `make build/lightning/.installed` was run), at their default tolerances and at sharper ones,
on the data that scikit-learn brings, standardised. LinearSVC penalises its intercept: it is
certified on data with a column of ones, which is the problem it solves.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from sparsvm import certify

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "breast cancer": load_breast_cancer,
}
LIGHTNING = Path(__file__).parents[1] / "build/lightning/bin/python"

GLMNET = """
suppressMessages(library(glmnet))
argument <- commandArgs(TRUE)
X <- as.matrix(read.csv("X.csv", header = FALSE))
y <- factor(scan("y.csv", quiet = TRUE))
family <- if (nlevels(y) == 2) "binomial" else "multinomial"
model <- glmnet(X, y, family, type.multinomial = argument[1], standardize = FALSE,
                thresh = as.numeric(argument[2]))
each <- coef(model)
if (!is.list(each)) each <- list(each)
write.table(rbind(model$lambda, do.call(rbind, lapply(each, as.matrix))), "path.csv", sep = ",",
            row.names = FALSE, col.names = FALSE)
"""

CD = """
import sys
import numpy as np
from lightning.classification import CDClassifier
loss, iterations, alpha, tol = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
X, y = np.loadtxt("X.csv", delimiter=","), np.loadtxt("y.csv", dtype=int)
model = CDClassifier(loss=loss, multiclass=True, penalty="l1/l2", C=1 / len(y), alpha=alpha,
                     tol=tol, max_iter=iterations, random_state=0)
np.savetxt("coef.csv", model.fit(X, y).coef_, delimiter=",")
"""

Row = tuple[str, str, list[float]]


def glmnet(X: np.ndarray, y: np.ndarray, folder: Path) -> Iterator[Row]:
    """Certify every tenth model of paths of 100."""
    for kind, penalty in {"ungrouped": "l1", "grouped": "l1/l2"}.items():
        if penalty == "l1/l2" and y.max() == 1:
            continue
        for threshold in ("1e-7", "1e-10"):
            command = ["Rscript", "-e", GLMNET, kind, threshold]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            path = np.loadtxt(folder / "path.csv", delimiter=",")
            models = path[1:].reshape(-1, X.shape[1] + 1, path.shape[1])
            found = []
            for j in range(9, path.shape[1], 10):
                intercept, coef = models[:, 0, j], models[:, 1:, j]
                problem = {"loss": "logistic", "penalty": penalty, "alpha": path[0, j]}
                found.append(certify(X, y, coef, intercept, **problem).suboptimality)
            yield f"glmnet, logistic, {penalty}", f"thresh = {threshold}", found


def linear_svc(X: np.ndarray, y: np.ndarray, folder: Path) -> Iterator[Row]:
    with_ones = np.hstack([X, np.ones((len(y), 1))])
    kinds = [
        ({}, "ovr_squared_hinge", "l2"),
        ({"penalty": "l1", "dual": False}, "ovr_squared_hinge", "l1"),
        ({"multi_class": "crammer_singer"}, "hinge", "l2"),
    ]
    for kind, loss, penalty in kinds:
        rows = 2 if loss == "hinge" and y.max() == 1 else 1
        for iterations in (1000, 100_000):
            found = []
            for C in (0.01, 0.1, 1.0, 10.0):
                model = LinearSVC(C=C, max_iter=iterations, random_state=0, **kind).fit(X, y)
                proof = certify(
                    with_ones,
                    y,
                    np.hstack([model.coef_, model.intercept_[:, None]]),
                    loss=loss,
                    penalty=penalty,
                    alpha=1 / (rows * C * len(y)),
                    fit_intercept=False,
                )
                found.append(proof.suboptimality)
            yield f"LinearSVC, {loss}, {penalty}", f"max_iter = {iterations}", found


def lightning(X: np.ndarray, y: np.ndarray, folder: Path) -> Iterator[Row]:
    if y.max() == 1:
        return
    for theirs, loss in {"squared_hinge": "squared_hinge", "log": "logistic"}.items():
        for iterations, tol in ((50, "1e-3"), (2000, "1e-9")):
            found = []
            for alpha in (0.01, 0.001):
                command = [str(LIGHTNING), "-c", CD, theirs, str(iterations), str(alpha), tol]
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                coef = np.loadtxt(folder / "coef.csv", delimiter=",")
                problem = {"loss": loss, "penalty": "l1/l2", "alpha": alpha}
                proof = certify(X, y, coef, fit_intercept=False, **problem)
                found.append(proof.suboptimality)
            yield f"CDClassifier, {loss}, l1/l2", f"max_iter = {iterations}, tol = {tol}", found


def main() -> None:
    packages = [linear_svc]
    if shutil.which("Rscript"):
        packages.append(glmnet)
    if LIGHTNING.exists():
        packages.append(lightning)
    # LinearSVC says itself where it stops early.
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = ["| data | model | stops at | models | median | worst |", "|---|---|---|--:|--:|--:|"]
    print("\n".join(lines))
    for package in packages:
        for name, load in DATA.items():
            X, y = load(return_X_y=True)
            X = X[:, X.std(axis=0) > 0]
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            with tempfile.TemporaryDirectory() as folder:
                np.savetxt(Path(folder) / "X.csv", X, delimiter=",")
                np.savetxt(Path(folder) / "y.csv", y, fmt="%d")
                for model, stop, found in package(X, y, Path(folder)):
                    figures = f"{len(found)} | {np.median(found):.1g} | {max(found):.1g}"
                    lines.append(f"| {name} | {model} | {stop} | {figures} |")
                    print(lines[-1], flush=True)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
