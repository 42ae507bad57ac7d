"""Accuracy, features and support vectors on five UCI sets, and the width mu of the ramp.

Run ``python experiments/dc_uci.py [--repetitions 20] [--jobs 1] [--output FOLDER]`` with
SPARSVM_DATA set.
Columns are standardised. The first table and figure have all eight classifiers at mu = 1; the
second table compares mu = 1 with a mu chosen by five-fold cross-validation from 0.1, ..., 1.0 for
RLSVM2 (at the lambda that was chosen at mu = 1; of equal accuracies the smallest mu), and its
figure shows accuracy and support vectors against mu.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from dc_common import (
    CLASSIFIERS,
    accuracy,
    arguments,
    fit_all,
    judge,
    mean_std,
    panels,
    repeat,
    run,
    with_mu,
    write_table,
)
from sklearn.model_selection import StratifiedKFold

from sparsvm.datasets import load_uci

SETS = ("pima", "bupa", "ionosphere", "wpbc", "sonar")
WIDTHS = tuple(np.round(np.arange(1, 11) / 10, 1))
RLSVM2 = next(classifier for classifier in CLASSIFIERS if classifier.name == "RLSVM2")


def load(name):
    X, labels = load_uci(name, return_X_y=True)
    std = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(std > 0.0, std, 1.0)
    return X, np.unique(labels, return_inverse=True)[1].astype(np.int32)


def choose_mu(X, y, lam, seed):
    """The mu with the best five-fold accuracy, the smallest among equals.

    The folds are not those that lambda was chosen on at mu = 1, which would favour that mu.
    """
    totals = np.zeros(len(WIDTHS))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed + 1000).split(X, y):
        for at, mu in enumerate(WIDTHS):
            solution = fit_all(X[train], y[train], lam, (with_mu(RLSVM2, mu),))["RLSVM2"]
            totals[at] += accuracy(solution, X[test], y[test])
    return WIDTHS[int(np.argmax(np.round(totals, 9)))]


def widths(X, y, lam, seed):
    """Accuracy and support vectors of RLSVM2 at every mu, and the mu that is chosen."""
    order = np.random.default_rng(seed).permutation(y.size)
    cut = round(0.7 * y.size)
    train, test = order[:cut], order[cut:]
    data = (X[train], y[train]), (X[test], y[test])
    rows = {}
    for mu in WIDTHS:
        classifier = with_mu(RLSVM2, mu)
        solution = fit_all(X[train], y[train], lam, (classifier,))["RLSVM2"]
        rows[mu] = judge(classifier, solution, *data)
    return rows, choose_mu(X[train], y[train], lam, seed)


def once(X, y, seed):
    """One repetition: all classifiers at mu = 1, and RLSVM2 at every mu."""
    rows = run(X, y, seed)
    return rows, widths(X, y, rows["RLSVM2"]["lambda"], seed)


def curves(path, by_width):
    """Draw support vectors and accuracy against mu, one line a data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for ax, key in zip(axes, ("support", "accuracy"), strict=True):
        for name, repetitions in by_width.items():
            means = [np.mean([rows[mu][key] for rows, _ in repetitions]) for mu in WIDTHS]
            ax.plot(WIDTHS, means, marker="o", markersize=3, label=name)
        ax.set_xlabel("mu")
        ax.set_ylabel("share of support vectors" if key == "support" else key)
        ax.set_ylim(0.0, 1.0)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(path)


def main():
    options = arguments(__doc__.splitlines()[0])
    repetitions = options.repetitions
    values, by_width = {}, {}
    for name in SETS:
        X, y = load(name)
        rows, by_width[name] = zip(*repeat(partial(once, X, y), options), strict=True)
        values[name] = {c.name: [row[c.name] for row in rows] for c in CLASSIFIERS}
        print(name, "done", flush=True)

    keys = ("accuracy", "features", "support", "parameters", "steps")
    table = [
        [name, c.name, *(mean_std([row[key] for row in values[name][c.name]]) for key in keys)]
        for name in SETS
        for c in CLASSIFIERS
    ]
    title = f"Eight classifiers at mu = 1, {repetitions} repetitions"
    write_table(options.output / "dc_uci.md", title, ["data", "classifier", *keys], table)
    wanted = {
        "parameters": ("share of parameters", ()),
        "features": ("share of features", ()),
        "support": ("share of support vectors", ()),
        "accuracy": ("accuracy", ()),
    }
    panels(options.output / "dc_uci.png", wanted, list(SETS), values)

    table = []
    for name in SETS:
        one = [rows[1.0] for rows, _ in by_width[name]]
        best = [rows[mu] for rows, mu in by_width[name]]
        cells = [[row[key] for row in part] for part in (one, best) for key in keys[:3:2]]
        chosen = [mu for _, mu in by_width[name]]
        table.append([name, *(mean_std(cell) for cell in [*cells, chosen])])
    header = ["data", "accuracy, mu = 1", "support", "accuracy, mu chosen", "support", "mu"]
    title = f"Ramp with l2: mu = 1 against mu by cross-validation, {repetitions} repetitions"
    write_table(options.output / "dc_mu.md", title, header, table)
    curves(options.output / "dc_mu.png", by_width)


if __name__ == "__main__":
    main()
