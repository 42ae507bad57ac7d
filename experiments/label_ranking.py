"""001, section 4.7: label ranking beside one-vs-rest, on reviews and on many labels a sample.

Run with SPARSVM_DATA set: the reviews are amazon_multidomain, whose four domains and two sentiments
are six labels, two of them for each review.
"""

from __future__ import annotations

from harness import Experiment, distinct, markdown_table, pick, subplots, values

# isort: split

import time

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, label_ranking_loss
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sparsvm import SparseLabelRanker
from sparsvm.datasets.folder import data_file
from sparsvm.plots.style import COLOURS

METHODS = ("ranker l1/l2", "ranker l1", "one-vs-rest l1")
SPLITS, FOLDS = 3, 3
# Wide enough that no choice is at an end; the page says where one is. Shares of the largest alpha.
SHARES = np.logspace(-0.5, -3.0, 9)
COSTS = np.logspace(-3.0, 1.0, 9)
# Words in fewer training reviews say nothing about others.
LEAST_REVIEWS = 5
MEASURES = ("ranking loss", "micro F1", "Hamming loss", "exact sets")


def reviews(seed, n_train):
    """Training and test set: reviews as normalised tf-idf, six labels."""
    X = sp.load_npz(data_file("amazon_multidomain/amazon_X.npz")).astype(np.float64).tocsr()
    known = np.load(data_file("amazon_multidomain/amazon_y.npz"))
    Y = np.hstack([_one_hot(known["domain"]), _one_hot(known["sentiment"])])
    order = np.random.default_rng(seed).permutation(X.shape[0])
    train, test = order[:n_train], order[-4000:]
    often = np.bincount(X[train].indices, minlength=X.shape[1])
    kept = np.flatnonzero(often >= LEAST_REVIEWS)
    X = X[:, kept]
    X.data = 1.0 + np.log(X.data)
    X = sp.csr_matrix(X @ sp.diags(np.log(n_train / often[kept])))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1.0 / np.maximum(lengths, 1e-12)) @ X)
    return X[train], Y[train], X[test], Y[test]


def _one_hot(labels):
    return (np.asarray(labels)[:, None] == np.unique(labels)).astype(int)


def many_labels(seed, n_train):
    """Training and test set: 20 labels, about seven a sample, of 10 among 100 features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_train + 1000, 100))
    truth = np.zeros((100, 20))
    truth[:10] = rng.normal(size=(10, 20))
    scores = X @ truth + rng.normal(size=(len(X), 20))
    Y = (scores > np.quantile(scores, 0.65, axis=0)).astype(int)
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


DATA = {"reviews": reviews, "many labels": many_labels}
SIZES = {"reviews": 4000, "many labels": 400}


def cells(quick):
    if quick:
        return [{"data": "many labels", "split": 0, "method": method} for method in METHODS]
    return [
        {"data": data, "split": split, "method": method}
        for data in DATA
        for split in range(SPLITS)
        for method in METHODS
    ]


def fitted(method, X, Y, strengths):
    """Yield a fitted model for every strength, from the strongest penalty down."""
    if method == "one-vs-rest l1":
        for C in strengths:
            svm = LinearSVC(penalty="l1", dual=False, C=float(C), tol=1e-3, max_iter=5000)
            yield OneVsRestClassifier(svm).fit(X, Y)
        return
    model = SparseLabelRanker(method.split()[1], warm_start=True)
    for alpha in strengths:
        yield model.set_params(alpha=float(alpha)).fit(X, Y)


def strengths_for(method, X, Y):
    if method == "one-vs-rest l1":
        return COSTS
    largest = SparseLabelRanker(method.split()[1]).path(X, Y, n_alphas=1).alphas[0]
    return largest * SHARES


def measure(cell, quick):
    method = cell["method"]
    X, Y, X_test, Y_test = DATA[cell["data"]](cell["split"], 150 if quick else SIZES[cell["data"]])
    strengths = strengths_for(method, X, Y)
    began = time.process_time()
    losses = np.zeros((FOLDS, strengths.size))
    for fold, (inside, outside) in enumerate(KFold(FOLDS).split(X)):
        for at, model in enumerate(fitted(method, X[inside], Y[inside], strengths)):
            scores = model.decision_function(X[outside])
            losses[fold, at] = label_ranking_loss(Y[outside], scores)
    best = int(np.argmin(losses.mean(axis=0)))
    model = next(fitted(method, X, Y, strengths[[best]]))
    seconds = time.process_time() - began
    scores, predicted = model.decision_function(X_test), model.predict(X_test)
    if method == "one-vs-rest l1":
        coef = np.vstack([each.coef_ for each in model.estimators_])
        fixed = predicted
    else:
        coef = model.coef_
        fixed = (X_test @ coef.T + model.intercept_ > 0.0).astype(int)
    return [
        {
            "ranking loss": label_ranking_loss(Y_test, scores),
            "micro F1": f1_score(Y_test, predicted, average="micro", zero_division=0.0),
            "Hamming loss": hamming_loss(Y_test, predicted),
            "exact sets": accuracy_score(Y_test, predicted),
            "micro F1 at 0": f1_score(Y_test, fixed, average="micro", zero_division=0.0),
            "features": int(np.count_nonzero(np.any(coef != 0.0, axis=0))),
            "weights": int(np.count_nonzero(coef)),
            "strength": float(strengths[best]),
            "at the end of the grid": int(best in (0, strengths.size - 1)),
            "gap": float(getattr(model, "dual_gap_", np.nan)),
            "seconds": seconds,
        }
    ]


def _complete(rows):
    """Return the rows of the splits in which every method was measured."""
    return [
        row
        for row in rows
        if {each["method"] for each in pick(rows, data=row["data"], split=row["split"])}
        == set(METHODS)
    ]


def tell(rows):
    parts = [
        "The strength of every method is chosen by three-fold cross-validation of the ranking loss "
        "(the share of pairs in the wrong order) on the training samples of three fixed splits, "
        "among nine strengths; numbers are means over the splits on test samples. `ranker` is "
        "SparseLabelRanker with its regressed thresholds, and in the column *at 0* with the fixed "
        "threshold 0; one-vs-rest is LinearSVC(penalty='l1', dual=False) for every label. The "
        "paper has the objective but no experiment with it."
    ]
    names = (*MEASURES, "micro F1 at 0", "features", "weights", "seconds")
    texts = {
        "reviews": f"Reviews: {SIZES['reviews']} for training and 4000 for test, words in at least "
        f"{LEAST_REVIEWS} training reviews, normalised tf-idf; two of six labels each.",
        "many labels": f"Generated: {SIZES['many labels']} samples for training and 1000 for test, "
        "20 labels of which a sample has seven on average, 10 of 100 features matter.",
    }
    rows = _complete(rows)
    for data in distinct(rows, "data"):
        lines = []
        splits = len(distinct(pick(rows, data=data), "split"))
        for method in distinct(rows, "method"):
            chosen = pick(rows, data=data, method=method)
            means = [float(np.mean(values(chosen, name))) for name in names]
            shown = [f"{mean:.3f}" for mean in means[:5]]
            lines.append((method, *shown, *(f"{mean:.0f}" for mean in means[5:])))
        parts += [
            f"{texts[data]} Splits measured: {splits} of {SPLITS}.",
            markdown_table(("", *names), lines),
        ]
    ends = [row for row in rows if row["at the end of the grid"]]
    if ends:
        where = ", ".join(f"{row['method']} on {row['data']}, split {row['split']}" for row in ends)
        parts.append(
            f"Chosen at an end of the grid, where another strength may be better: {where}."
        )
    else:
        parts.append("No strength was chosen at an end of its grid.")
    return "\n\n".join(parts)


def draw(rows):
    rows = _complete(rows)
    names = distinct(rows, "data")
    figure, axes = subplots(len(names), 2, (8, 3.2 * len(names)))
    for data, pair in zip(names, axes, strict=True):
        for ax, measure_name in zip(pair, ("ranking loss", "micro F1"), strict=True):
            for at, method in enumerate(METHODS):
                chosen = pick(rows, data=data, method=method)
                ax.plot(
                    values(chosen, "features"),
                    values(chosen, measure_name),
                    "os^"[at],
                    color=COLOURS[at],
                    label=method,
                )
            ax.set(xlabel="features used", ylabel=measure_name, title=data)
    axes[0, 0].legend(frameon=False)
    return figure


EXPERIMENT = Experiment(
    item="001 Section 4.7",
    title="label ranking beside one-vs-rest",
    cells=cells,
    measure=measure,
    tell=tell,
    draw=draw,
    alternative="Ranking loss and micro F1 against the number of features, a point a split",
)

if __name__ == "__main__":
    EXPERIMENT.main()
