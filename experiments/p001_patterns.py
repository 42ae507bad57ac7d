"""001 Fig. 1 and Table 1: patterns of zeros under four penalties, and the sizes of the data."""

from __future__ import annotations

import time

from harness import Experiment, markdown_table, pick, subplots

# isort: split

import numpy as np
import scipy.sparse as sp
from samples import documents_and_digits
from sklearn.datasets import load_digits

from sparsvm import SparseSVC, alpha_max
from sparsvm.losses import SquaredHinge
from sparsvm.penalties import L1, L2, ElasticNet, GroupL2

PENALTIES = {"l2": L2(), "l1": L1(), "elastic net": ElasticNet(0.5), "l1/l2": GroupL2()}
PAPER = {
    "Amazon7": (1362109, 262144, 0.04, 7),
    "RCV1": (534135, 47236, 0.1, 52),
    "MNIST": (70000, 780, 19, 10),
    "News20": (18846, 130088, 0.1, 20),
    "Sector": (9619, 55197, 0.3, 105),
}
# What documents_and_digits calls the data of the paper, and what they are here.
HERE = {
    "Amazon7": ("amazon", "reviews of four domains, two sentiments"),
    "MNIST": ("mnist", "MNIST with its blank pixels"),
    "News20": ("news20", "the 20 newsgroups by date, tf-idf"),
    "Sector": ("banking77", "banking77, tf-idf"),
}


def measure_pattern(cell, quick):
    """Digits of 8 x 8 pixels: every weight of the model, squared hinge, alpha_max / 10."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    penalty = PENALTIES[cell["penalty"]]
    loss = SquaredHinge()
    # The ridge has no alpha_max: it is given that of the groups.
    largest = alpha_max(X, y, loss=loss, penalty=GroupL2() if cell["penalty"] == "l2" else penalty)
    began = time.process_time()
    model = SparseSVC(loss, penalty, alpha=0.1 * largest, tol=1e-6).fit(X, y)
    seconds = time.process_time() - began
    return [
        {"feature": j, "class": k, "weight": float(model.coef_[k, j]), "seconds": seconds}
        for j in range(X.shape[1])
        for k in range(10)
    ]


def _matrix(rows, penalty):
    chosen = pick(rows, penalty=penalty)
    W = np.zeros((64, 10))
    for row in chosen:
        W[row["feature"], row["class"]] = row["weight"]
    return W if chosen else None


def draw_patterns(rows):
    figure, axes = subplots(1, len(PENALTIES), (10, 4.6))
    for ax, penalty in zip(axes.flat, PENALTIES, strict=True):
        W = _matrix(rows, penalty)
        if W is None:
            continue
        ax.imshow(W != 0.0, cmap="Greys", aspect="auto", interpolation="nearest", vmin=0, vmax=1.4)
        ax.set(title=penalty, xlabel="class", ylabel="feature", xticks=range(0, 10, 3))
    return figure


def _shares(rows, penalty):
    W = _matrix(rows, penalty)
    return np.mean(W != 0.0), np.mean(np.any(W != 0.0, axis=1))


def tell_patterns(rows):
    table = [
        (penalty, *(f"{100 * share:.1f}" for share in _shares(rows, penalty)))
        for penalty in PENALTIES
        if _matrix(rows, penalty) is not None
    ]
    return (
        "The paper draws the patterns by hand; here they are those of fitted models: the squared "
        "hinge on 400 images of 8 × 8 pixels (scikit-learn's digits), each penalty at a tenth of "
        "its alpha_max. A dark cell is a weight that is not zero. An eighth of the pixels is blank "
        "in all images and has no weight under any penalty.\n\n"
        + markdown_table(("penalty", "non-zero weights in %", "features used in %"), table)
    )


def _rows_only(rows):
    told, true = [], True
    for penalty in PENALTIES:
        if _matrix(rows, penalty) is None:
            return "not testable here", "needs all four penalties"
        weights, features = _shares(rows, penalty)
        told.append(f"{penalty} {100 * weights:.0f} % of weights, {100 * features:.0f} % of rows")
        dense, whole = weights == features, features < 1.0
        if penalty == "l1/l2":
            true &= bool(dense and whole)
        elif penalty != "l2":
            true &= weights < features
    return ("confirmed" if true else "refuted"), "; ".join(told)


def measure_sizes(cell, quick):
    X, y = documents_and_digits(HERE[cell["data"]][0])
    X = sp.csr_array(X)
    return [
        {
            "samples": X.shape[0],
            "features": X.shape[1],
            "used": int(np.unique(X.indices).size),
            "density": 100.0 * X.nnz / np.prod(X.shape, dtype=float),
            "classes": int(np.unique(y).size),
        }
    ]


def tell_sizes(rows):
    table = []
    for name, (samples, features, density, classes) in PAPER.items():
        found = pick(rows, data=name)
        paper = f"{samples} × {features}, {density} %, {classes}"
        ours, what = "", "could not be had, and has no stand-in"
        if name in HERE:
            what = HERE[name][1]
        if found:
            row = found[0]
            ours = (
                f"{row['samples']} × {row['features']} ({row['used']} ever non-zero), "
                f"{row['density']:.2g} %, {row['classes']}"
            )
        table.append((name, paper, what, ours))
    sizes = "samples × features, non-zeros, classes"
    header = ("data", f"the paper: {sizes}", "used here", f"here: {sizes}")
    return (
        "The data of the paper's section 5, and what stands for them in Figs 2 to 5 and Table "
        "2.\n\n" + markdown_table(header, table)
    )


EXPERIMENTS = (
    Experiment(
        "001 Fig. 1",
        "patterns of zeros under four penalties",
        lambda quick: [{"penalty": name} for name in PENALTIES],
        measure_pattern,
        tell_patterns,
        draw_patterns,
        (
            ("l1 and elastic net zero single weights, l1/l2 whole rows", _rows_only),
        ),
        alternative="Non-zero weights by feature and class, one panel for each penalty",
    ),
    Experiment(
        "001 Table 1",
        "sizes of the data, and of those that stand in for Sector and Amazon7",
        lambda quick: [{"data": name} for name in (("Sector",) if quick else HERE)],
        measure_sizes,
        tell_sizes,
    ),
)  # fmt: skip

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
