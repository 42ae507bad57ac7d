"""003 Figs 1 and 2: the largest smallest margin on halves of iris, beside the naive relaxation.

The paper compares its classifier (the largest smallest margin among those of least hinge) with the
naive relaxation (15),

    minimise  1/2 sum_{r<t} ||w_r - w_t||^2 + C * hinge,     C = 2^10,

stated with b = 0, on one separable and one non-separable half of iris, neither of them published.
Here both are solved exactly on many random halves, the paper's own algorithm (`hsdm`) runs on
standardised features, as its steps are for features of order 1, and (15) is also solved by `fbpd`,
which is what the paper did.
"""

from __future__ import annotations

import warnings

from harness import Experiment, distinct, markdown_table, pick, subplots, values

# isort: split

import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from sparsvm import MaxMarginSVC, SparseSVC
from sparsvm.hierarchical import HSDM

PAIRS = {"003 Fig. 1": [1, 3], "003 Fig. 2": [0, 1]}
NAMES = {"003 Fig. 1": "sepal width, petal width", "003 Fig. 2": "sepal length, sepal width"}
PAPER = {
    "003 Fig. 1": "0.0467 for (15) and 0.0681 for its own classifier, no sample inside a margin",
    "003 Fig. 2": "0.0503 with 16 samples inside margins for (15), 0.0702 with 7 for its own",
}
HALVES = 40
# (15) attains the least total hinge if it exceeds it by no more than this.
ATTAINED = 1e-6
LARGER = 0.01  # what counts as a larger margin
# A sample is inside a margin if it falls short of it by more than this.
INSIDE = 1e-6


def half(seed, columns):
    """Return 75 random samples of iris with two features."""
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(150)[:75]
    return X[rows][:, columns], y[rows]


def naive(X, y, C, intercept=True, solver="auto"):
    """Solve (15): SparseSVC with l2, where alpha = K / (n C)."""
    alpha = len(np.unique(y)) / (len(y) * C)
    tol = 1e-9 if solver == "auto" else 1e-3
    model = SparseSVC(penalty="l2", alpha=alpha, fit_intercept=intercept, tol=tol, solver=solver)
    with warnings.catch_warnings():
        # At the largest C and b = 0 the gap ends between 1e-9 and 1e-8, which is enough here, and
        # fbpd may not get to 1e-3 at all: its gap is reported.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    if solver == "auto" and model.dual_gap_ > 1e-6:
        raise RuntimeError(f"(15) was solved to a relative gap of {model.dual_gap_:.1g} only.")
    return model


def measures(model, X, y, inside=INSIDE):
    """Return total hinge, smallest margin and the number E of samples inside a margin."""
    scores = X @ model.coef_.T + model.intercept_
    rows = np.arange(len(y))
    lifted = 1.0 + scores - scores[rows, y][:, None]
    lifted[rows, y] = 0.0
    hinge = lifted.max(axis=1)
    norms = np.linalg.norm(model.coef_[:, None] - model.coef_[None], axis=2)
    return hinge.sum(), 1.0 / norms.max(), int((hinge > inside).sum())


def compare(X, y):
    """Return the measures of ours, of (15) with b = 0 and of (15) with free b."""
    ours = measures(MaxMarginSVC().fit(X, y), X, y)
    return [ours, *(measures(naive(X, y, 2.0**10, intercept), X, y) for intercept in (False, True))]


def cells(item, quick):
    return [{"item": item, "seed": seed} for seed in range(2 if quick else HALVES)]


def measure(cell, quick):
    X, y = half(cell["seed"], PAIRS[cell["item"]])
    ours = MaxMarginSVC().fit(X, y)
    found = {"ours": (ours, X)}
    for power in (8, 9, 10):
        found[f"(15), C = 2^{power}, free b"] = naive(X, y, 2.0**power), X
    found["(15), C = 2^10, b = 0"] = naive(X, y, 2.0**10, intercept=False), X
    # The references take seconds each: on few halves.
    slow = cell["seed"] < (1 if quick else 5)
    if slow:
        method = HSDM(max_iter=2000) if quick else HSDM()
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        found["ours, standardised"] = MaxMarginSVC().fit(Z, y), Z
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["hsdm, standardised"] = MaxMarginSVC(solver=method).fit(Z, y), Z
        found["(15), C = 2^10, free b, by fbpd"] = naive(X, y, 2.0**10, solver="fbpd"), X
    rows = []
    for name, (model, data) in found.items():
        # hsdm ends at its own accuracy, so that samples on a margin may be short by that much.
        inside = 2.0 * model.result_.resolution if name.startswith("hsdm") else INSIDE
        hinge, margin, errors = measures(model, data, y, inside)
        rows.append(
            {
                "method": name,
                "separable": int(ours.separable_),
                "hinge": float(hinge),
                "margin": float(margin),
                "errors": errors,
                "gap": float(getattr(model, "dual_gap_", float("nan"))),
            }
        )
    return rows


def tell(item, rows):
    table = []
    for method in distinct(rows, "method"):
        chosen = pick(rows, method=method)
        base = "ours, standardised" if "standardised" in method else "ours"
        ratios, attained = [], 0
        for row in chosen:
            ours = pick(rows, method=base, seed=row["seed"])[0]
            allowed = ATTAINED if not method.startswith("hsdm") else 1e-2 * max(1.0, ours["hinge"])
            if row["hinge"] <= ours["hinge"] + allowed:
                attained += 1
                ratios.append(ours["margin"] / row["margin"])
        table.append(
            (
                method,
                f"{attained} of {len(chosen)}",
                f"{np.median(values(chosen, 'hinge')):.4g}",
                f"{np.median(values(chosen, 'margin')):.4f}",
                f"{np.median(values(chosen, 'errors')):g}",
                f"{min(ratios):.4f} … {max(ratios):.4f}" if ratios else "–",
            )
        )
    separable = sum(row["separable"] for row in pick(rows, method="ours"))
    header = (
        "method",
        "attains the least hinge",
        "median hinge",
        "median smallest margin",
        "median E",
        "our margin / its, where attained",
    )
    return (
        f"Random halves of iris ({NAMES[item]}), {separable} of {len(pick(rows, method='ours'))} "
        f"separable. The paper, on one half that it does not give: {PAPER[item]}. E counts samples "
        "inside a margin. Everything but hsdm and fbpd is solved exactly.\n\n"
        + markdown_table(header, table)
        + "\n\nWith free intercepts and solved exactly, (15) at C = 2^10 mostly attains the least "
        "hinge, and then has almost the largest smallest margin too: what the paper sees between "
        "the two is not a difference of the two problems, but of b = 0, of a C that is too small "
        "for the half, or of where an iterative solution of (15) stopped."
    )


def draw(item, rows):
    """Margins of (15) over ours against the hinge that it leaves, one dot a half."""
    from sparsvm.plots import MarginDisplay

    figure, axes = subplots(1, 3, (15, 4.6))
    X, y = half(0, PAIRS[item])
    names = NAMES[item].split(", ")
    models = {
        "(15), C = 2^10, b = 0": naive(X, y, 2.0**10, intercept=False),
        "(15), C = 2^10, free b": naive(X, y, 2.0**10),
        "largest smallest margin": MaxMarginSVC().fit(X, y),
    }
    for ax, (title, model) in zip(axes[0], models.items(), strict=True):
        MarginDisplay.from_estimator(
            model, X, y, feature_names=names, class_names=load_iris().target_names, ax=ax
        )
        hinge, margin, errors = measures(model, X, y)
        ax.set_title(
            f"{title}\nhinge {hinge:.4g}, smallest margin {margin:.4f}, E = {errors}",
            fontsize="medium",
        )
    return figure


def _larger_margin(rows):
    ratios = []
    for row in pick(rows, method="(15), C = 2^10, free b"):
        ours = pick(rows, method="ours", seed=row["seed"])[0]
        if row["hinge"] <= ours["hinge"] + ATTAINED:
            ratios.append(ours["margin"] / row["margin"])
    if not ratios:
        return "not testable here", "(15) never attains the least hinge"
    told = f"ours / (15): {min(ratios):.6f} to {max(ratios):.6f} on {len(ratios)} halves"
    return ("confirmed" if min(ratios) >= 1.0 - 1e-6 else "refuted"), told


def _larger_than_relaxation(rows):
    """Per form of (15): halves with a larger margin and no more samples inside margins."""
    told, shares = [], []
    for method in ("(15), C = 2^10, b = 0", "(15), C = 2^10, free b"):
        won, count = 0, 0
        for row in pick(rows, method=method):
            ours = pick(rows, method="ours", seed=row["seed"])[0]
            larger = ours["margin"] > (1.0 + LARGER) * row["margin"]
            won += larger and ours["errors"] <= row["errors"]
            count += 1
        if count == 0:
            return "not testable here", "(15) was not solved"
        shares.append(won / count)
        told.append(f"{method}: {won} of {count}")
    verdict = "confirmed" if min(shares) > 0.5 else "refuted"
    return verdict, f"halves with both, the margin by {LARGER:.0%} at least, against " + (
        "; ".join(told) + " (limit: half of them)"
    )


def _experiment(item, title):
    return Experiment(
        item=item,
        title=title,
        cells=lambda quick: cells(item, quick),
        measure=measure,
        tell=lambda rows: tell(item, rows),
        draw=lambda rows: draw(item, rows),
        claims=(
            ("At the least hinge no classifier has a larger smallest margin", _larger_margin),
            (
                "It has a larger smallest margin than (15), and no more samples inside margins",
                _larger_than_relaxation,
            ),
        ),
        alternative="Decision regions and margins of the naive relaxation and of ours on iris",
    )


EXPERIMENTS = (
    _experiment("003 Fig. 1", "iris, sepal width and petal width"),
    _experiment("003 Fig. 2", "iris, sepal length and sepal width"),
)

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
