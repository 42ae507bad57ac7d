"""Figures 1 and 2 of the hierarchical multiclass SVM: iris, two features, 75 samples.

The paper compares its classifier (the largest smallest margin among those of least hinge) with the
naive relaxation (15),

    minimise  1/2 sum_{r<t} ||w_r - w_t||^2 + C * hinge,     C = 2^10,

stated with b = 0, on one separable and one non-separable half of iris, neither of them published.
This module solves both exactly on many random halves:

    python experiments/max_margin_iris.py [--halves 60]

writes ``results/max_margin_iris.md`` and ``results/max_margin_iris.png`` beside itself.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from sparsvm import MaxMarginSVC, SparseSVC

RESULTS = Path(__file__).parent / "results"
PAIRS = {"sepal width, petal width": [1, 3], "sepal length, sepal width": [0, 1]}
PAPER = {
    "sepal width, petal width": "0.0467 → 0.0681, E 0 → 0 (a separable half)",
    "sepal length, sepal width": "0.0503 → 0.0702, E 16 → 7 (a non-separable half)",
}
C = 2.0**10
# The naive relaxation attains the least total hinge if it exceeds it by no more than this.
ATTAINED = 1e-6
# A sample is inside a margin if it falls short of it by more than this.
INSIDE = 1e-6


def half(seed, columns):
    """Return 75 random samples of iris with two features."""
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(150)[:75]
    return X[rows][:, columns], y[rows]


def naive(X, y, C, intercept=True):
    """Solve (15) exactly: SparseSVC with l2, where alpha = K / (n C)."""
    alpha = len(np.unique(y)) / (len(y) * C)
    model = SparseSVC(penalty="l2", alpha=alpha, fit_intercept=intercept, tol=1e-9)
    with warnings.catch_warnings():
        # At the largest C and b = 0 the gap ends between 1e-9 and 1e-8, which is enough here.
        warnings.filterwarnings("ignore", message="interior_point stopped")
        model.fit(X, y)
    if model.dual_gap_ > 1e-6:
        raise RuntimeError(f"(15) was solved to a relative gap of {model.dual_gap_:.1g} only.")
    return model


def measures(model, X, y):
    """Return total hinge, smallest margin and the number E of samples inside a margin."""
    scores = X @ model.coef_.T + model.intercept_
    rows = np.arange(len(y))
    lifted = 1.0 + scores - scores[rows, y][:, None]
    lifted[rows, y] = 0.0
    hinge = lifted.max(axis=1)
    norms = np.linalg.norm(model.coef_[:, None] - model.coef_[None], axis=2)
    return hinge.sum(), 1.0 / norms.max(), int((hinge > INSIDE).sum())


def compare(X, y):
    """Return the measures of ours, of (15) with b = 0 and of (15) with free b."""
    ours = measures(MaxMarginSVC().fit(X, y), X, y)
    return [ours, *(measures(naive(X, y, C, intercept), X, y) for intercept in (False, True))]


def summary(title, rows):
    """Summarise comparisons in three lines of a table."""
    rows = np.array(rows)  # halves x methods x (hinge, margin, E)
    lines = []
    for method, name in enumerate(("ours", "(15), b = 0", "(15), free b")):
        excess = rows[:, method, 0] - rows[:, 0, 0]
        equal = excess <= ATTAINED
        ratio = rows[:, 0, 1] / rows[:, method, 1]
        assert excess.min() >= -ATTAINED, "a smaller hinge than the least"
        assert not equal.any() or ratio[equal].min() >= 1 - 1e-6, "a larger margin than the largest"
        least = f"{ratio[equal].min():.6f} … {ratio[equal].max():.6f}" if equal.any() else "–"
        lines.append(
            f"| {title} | {name} | {equal.sum()} of {len(rows)} | {np.median(excess):.3g} | "
            f"{np.median(rows[:, method, 1]):.4f} | {np.median(rows[:, method, 2]):g} | {least} |"
        )
    return lines


def halves_table(count):
    """Compare on random halves, and on as many separable ones of the first pair."""
    lines = [
        "| halves | method | attains the least hinge | median excess of the hinge | "
        "median smallest margin | median E | ours / its margin, where attained |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, columns in PAIRS.items():
        lines += summary(
            f"{count} random, {name}", [compare(*half(s, columns)) for s in range(count)]
        )
    columns, separable, seed = PAIRS["sepal width, petal width"], [], 0
    while len(separable) < count:
        if MaxMarginSVC().fit(*half(seed, columns)).separable_:
            separable.append(seed)
        seed += 1
    title = f"{count} separable (of {seed} random), sepal width, petal width"
    lines += summary(title, [compare(*half(s, columns)) for s in separable])
    return lines, separable


def few_errors(target=7, draws=800, swaps=400):
    """Search halves of sepal length and width for a number E of margin errors near the target.

    First at random, then by exchanging single samples as long as E does not move away from it.
    """
    X, y = load_iris(return_X_y=True)
    X = X[:, [0, 1]]
    rng = np.random.default_rng(0)

    def errors(rows):
        return MaxMarginSVC().fit(X[rows], y[rows]).n_margin_errors_

    found = []
    best, best_rows = np.inf, None
    for _ in range(draws):
        order = rng.permutation(150)
        found.append(errors(order[:75]))
        if abs(found[-1] - target) < best:
            best, best_rows = abs(found[-1] - target), order
    rows, rest = best_rows[:75].copy(), best_rows[75:].copy()
    for _ in range(swaps):
        if best == 0:
            break
        i, j = rng.integers(75), rng.integers(75)
        trial = rows.copy()
        trial[i] = rest[j]
        distance = abs(errors(trial) - target)
        if distance <= best:
            rest[j] = rows[i]
            rows, best = trial, distance
    return np.array(found), rows, X[rows], y[rows]


def where_it_differs():
    """Compare on separable data with K >= 3, where (15) minimises a sum and ours a maximum."""
    digits, digits_y = load_digits(return_X_y=True)
    wine, wine_y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    blobs_y = np.arange(60) % 5
    blobs = rng.normal(size=(60, 3)) + 8 * rng.normal(size=(5, 3))[blobs_y]
    data = {
        "wine, standardised (178 × 13, K = 3)": (StandardScaler().fit_transform(wine), wine_y),
        "digits (first 600 × 64, K = 10)": (digits[:600], digits_y[:600]),
        "five blobs (60 × 3, K = 5)": (blobs, blobs_y),
    }
    lines = [
        "| data | ours | " + " | ".join(f"(15), C = {c}" for c in ("2⁰", "2⁵", "2¹⁰")) + " |",
        "|---|---|---|---|---|",
    ]
    for name, (X, y) in data.items():
        cells = [f"{MaxMarginSVC().fit(X, y).smallest_margin_:.4g}"]
        for power in (0, 5, 10):
            hinge, margin, _ = measures(naive(X, y, 2.0**power), X, y)
            cells.append(f"{margin:.4g} (hinge {hinge if hinge > 1e-9 else 0:.2g})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def figure(separable_seed, nonseparable, path):
    """Draw (15) beside ours on one separable and one non-separable half."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from sparsvm.plots import MarginDisplay

    columns = PAIRS["sepal width, petal width"]
    rows = [
        (*half(separable_seed, columns), ["sepal width", "petal width"]),
        (*nonseparable, ["sepal length", "sepal width"]),
    ]
    fig, axes = plt.subplots(2, 3, figsize=(15, 10.5), layout="constrained")
    for line, (X, y, names) in zip(axes, rows, strict=True):
        models = (naive(X, y, C, False), naive(X, y, C), MaxMarginSVC().fit(X, y))
        titles = ("naive, C = 2¹⁰, b = 0", "naive, C = 2¹⁰, free b", "largest smallest margin")
        for ax, model, title in zip(line, models, titles, strict=True):
            MarginDisplay.from_estimator(
                model, X, y, feature_names=names, class_names=load_iris().target_names, ax=ax
            )
            hinge, margin, errors = measures(model, X, y)
            ax.set_title(
                f"{title}\nhinge {hinge:.4g}, smallest margin {margin:.4f}, E = {errors}",
                fontsize="medium",
            )
    fig.savefig(path, dpi=110)


def main():
    """Write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halves", type=int, default=60)
    parser.add_argument("--draws", type=int, default=800)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    table, separable = halves_table(options.halves)
    found, rows, X, y = few_errors(draws=options.draws)
    seven = compare(X, y)
    text = [
        "# Largest smallest margins on halves of iris",
        "",
        "Written by `python experiments/max_margin_iris.py`. Everything is solved exactly: "
        "(15) to a relative duality gap of 1e-9 or nearly, ours to a proven relative gap of the "
        "margin below 1e-6.",
        "",
        *table,
        "",
        "The paper reports, for one half each: "
        + "; ".join(f"{name}: {value}" for name, value in PAPER.items())
        + ".",
        "",
        "With free intercepts and solved exactly, (15) at C = 2^10 attains the least hinge on "
        "nearly every non-separable half, and then its smallest margin is that of ours to "
        "within a third of a per cent: the gap of the paper is not one between the two "
        "problems. With b = 0 it does not come near the least hinge. On separable halves C = "
        "2^10 is often too small for zero hinge, and a larger margin is then bought with a "
        "larger hinge.",
        "",
        "## Halves with few margin errors (sepal length, sepal width)",
        "",
        f"Of {len(found)} random halves the numbers E of ours run from {found.min()} to "
        f"{found.max()} (median {np.median(found):g}); exchanging samples of the best one leads "
        f"to E = {seven[0][2]}. On that half (rows {' '.join(map(str, np.sort(rows)))}):",
        "",
        "| method | total hinge | smallest margin | E |",
        "|---|---|---|---|",
        *(
            f"| {name} | {hinge:.6g} | {margin:.4f} | {errors} |"
            for name, (hinge, margin, errors) in zip(
                ("ours", "(15), b = 0", "(15), free b"), seven, strict=True
            )
        ),
        "",
        "## Where the hierarchical answer differs: separable data with three or more classes",
        "",
        "Smallest margins; in brackets the total hinge that (15) leaves.",
        "",
        *where_it_differs(),
        "",
    ]
    (RESULTS / "max_margin_iris.md").write_text("\n".join(text))
    figure(separable[0], (X, y), RESULTS / "max_margin_iris.png")
    print("\n".join(text))


if __name__ == "__main__":
    main()
