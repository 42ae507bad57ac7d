"""001 Fig. 5: test accuracy against the share of non-zero rows, three objectives.

The paper computes the solutions of ten values of lambda; here they are the points of a path, each
certified. What is not trained on is tested on, so that accuracies are known to a third of a point.
"""

from __future__ import annotations

import time

from harness import (
    SURE,
    Experiment,
    distinct,
    markdown_table,
    pick,
    plain_log,
    standard_error,
    subplots,
    values,
    verdict,
)

# isort: split

import numpy as np
from samples import STAND_INS, documents_and_digits
from sklearn.model_selection import StratifiedShuffleSplit

from sparsvm import svm_path
from sparsvm.plots.style import COLOURS, DASHES

LOSSES = {
    "multiclass": "squared_hinge",
    "multitask": "ovr_squared_hinge",
    "logistic": "logistic",
}
# The largest lambda of the ten, which end at a hundredth of it.
LARGEST = {"banking77": 1e-2, "mnist": 1e-3, "news20": 1e-3, "amazon": 1e-3}
# How many of the ten are run, the largest first: on pixels the smallest take long.
VALUES = {"banking77": 10, "mnist": 5, "news20": 10, "amazon": 10}
SPLITS, TRAINED = 3, 2_400
# What counts as comparable, in points.
ALIKE = 2.0


def cells(quick):
    if quick:
        return [{"data": "banking77", "split": 0, "loss": loss} for loss in LOSSES]
    return [
        {"data": name, "split": split, "loss": loss}
        for split in range(SPLITS)
        for name in LARGEST
        for loss in LOSSES
    ]


def measure(cell, quick):
    X, y = documents_and_digits(cell["data"])
    size = 800 if quick else TRAINED
    splitter = StratifiedShuffleSplit(1, train_size=size, random_state=cell["split"])
    train, test = next(splitter.split(np.zeros(len(y)), y))
    lambdas = LARGEST[cell["data"]] * 100.0 ** (
        -np.arange(3 if quick else VALUES[cell["data"]]) / 9
    )
    began = time.process_time()
    path = svm_path(
        X[train],
        y[train],
        loss=LOSSES[cell["loss"]],
        penalty="l1/l2",
        alphas=lambdas,
        fit_intercept=False,
    )
    seconds = time.process_time() - began
    accuracies = path.score(X[test], y[test])
    return [
        {
            "lambda": float(lam),
            "rows": float(np.any(coef.toarray() != 0.0, axis=0).mean()),
            "accuracy": float(accuracies[at]),
            "tested": len(test),
            "gap": float(path.gaps[at]),
            "seconds": seconds,
        }
        for at, (lam, coef) in enumerate(zip(lambdas, path.coefs, strict=True))
    ]


def _complete(rows):
    """The splits in which all objectives were run."""
    done = {}
    for row in rows:
        done.setdefault((row["data"], row["split"]), set()).add(row["loss"])
    return [row for row in rows if len(done[row["data"], row["split"]]) == len(LOSSES)]


def _curve(rows, name, loss, key):
    """Mean over the splits at each lambda, the largest first."""
    chosen = pick(rows, data=name, loss=loss)
    lambdas = sorted(distinct(chosen, "lambda"), reverse=True)
    return lambdas, np.array([np.mean(values(chosen, key, **{"lambda": lam})) for lam in lambdas])


def _best(rows, name, loss):
    """The lambda of the best mean accuracy, and the accuracies of the splits there, in percent."""
    lambdas, means = _curve(rows, name, loss, "accuracy")
    at = int(np.argmax(means))
    chosen = pick(rows, data=name, loss=loss, **{"lambda": lambdas[at]})
    chosen.sort(key=lambda row: row["split"])
    return lambdas[at], 100 * np.array(values(chosen, "accuracy")), at


def _with_error(numbers, shown="{:.2f}"):
    mean = shown.format(numbers.mean())
    if numbers.size < 2:
        return mean
    return f"{mean} ± {standard_error(numbers):.2f}"


def tell(rows):
    rows = _complete(rows)
    table = []
    for name in distinct(rows, "data"):
        for loss in LOSSES:
            lam, accuracies, at = _best(rows, name, loss)
            share = 100 * _curve(rows, name, loss, "rows")[1][at]
            seconds = np.mean(values(rows, "seconds", data=name, loss=loss))
            gap = max(values(rows, "gap", data=name, loss=loss))
            instead = f"{name} (for {STAND_INS[name]})" if name in STAND_INS else name
            shown = f"{lam:.1e}", accuracies.size, f"{seconds:.1f}", f"{gap:.0e}"
            table.append((instead, loss, _with_error(accuracies), f"{share:.2f}", *shown))
    header = (
        "data",
        "objective",
        "best accuracy in %",
        "non-zero rows there in %",
        "λ there",
        "splits",
        "seconds of a path",
        "largest relative gap",
    )
    left = [name for name in LARGEST if name not in distinct(rows, "data")]
    missing = f" Not run to the end: {', '.join(left)}." if left else ""
    tested = f"{min(values(rows, 'tested'))} to {max(values(rows, 'tested'))}"
    return (
        "Ten λ between 1e-2 and 1e-4 (banking77) or 1e-3 and 1e-5, as in the paper (mnist: the "
        "five largest, since paths of the multitask objective take long below), no intercept. "
        f"{TRAINED} samples are trained on, where the paper trains on four fifths of all, and "
        f"{tested} others are tested on; ± is the standard error over the splits. Points are "
        "solutions of paths of our default solver, certified, where the paper has those of block "
        "coordinate descent with its own stopping rule, which [Table 2](001_table_2.md) and "
        "[Section 5.3](001_section_53.md) repeat. RCV1 (534135 samples) could not be had and has "
        "no stand-in. The paper shows curves without numbers; its sentences are judged below, by "
        f"the best accuracy of each objective.{missing}"
        f"\n\n{markdown_table(header, table)}\n\n{DIFFERENCES}"
    )


DIFFERENCES = (
    "With thousands of test samples and three splits most differences are larger than their "
    "errors, and of both signs: on mnist the logistic loss is ahead by more than a point, on "
    "banking77 and news20 behind by as much; the multitask objective is ahead on news20 and a "
    "little behind on banking77 and mnist; on amazon all three are alike. On banking77 and news20 "
    "the logistic loss needs smaller λ than the paper's ten to reach its best."
)


def draw(rows):
    rows = _complete(rows)
    names = distinct(rows, "data")
    figure, axes = subplots(1, len(names), (3.4 * len(names), 3.8))
    for ax, name in zip(axes[0], names, strict=True):
        for loss, colour, dash in zip(LOSSES, COLOURS, DASHES, strict=False):
            shares = 100 * _curve(rows, name, loss, "rows")[1]
            accuracies = 100 * _curve(rows, name, loss, "accuracy")[1]
            style = {"color": colour, "marker": "o", "markersize": 4, "label": loss}
            # A model without rows has no place on the axis.
            ax.plot(shares[shares > 0.0], accuracies[shares > 0.0], dash, **style)
        ax.set(xscale="log", title=name, xlabel="non-zero rows in %")
        low, high = ax.get_xlim()
        if high < 60.0 * low:
            plain_log(ax.xaxis)
    axes[0, 0].set_ylabel("test accuracy in %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _differences(rows, other):
    """Points by which multiclass is above another objective, split by split, and in words."""
    rows, found, told = _complete(rows), {}, []
    for name in distinct(rows, "data"):
        each = _best(rows, name, "multiclass")[1] - _best(rows, name, other)[1]
        found[name] = each
        told.append(f"{name} {_with_error(each, '{:+.2f}')}")
    return found, ", ".join(told)


def _comparable(rows):
    found, shown = _differences(rows, "logistic")
    return (
        verdict([each.mean() >= -ALIKE for each in found.values()]),
        f"points above logistic ('comparable': at most {ALIKE:g} below): {shown}",
    )


def _better_than_multitask(rows):
    found, shown = _differences(rows, "multitask")
    # "Overall": in the mean of the data sets, split by split.
    splits = min(each.size for each in found.values())
    each = np.mean([points[:splits] for points in found.values()], axis=0)
    doubt = SURE * standard_error(each)
    outcome = None if abs(each.mean()) <= doubt else bool(each.mean() > 0.0)
    return verdict([outcome]), f"points above: {shown}; overall {_with_error(each, '{:+.2f}')}"


EXPERIMENT = Experiment(
    "001 Fig. 5",
    "accuracy against non-zero rows, three objectives (stand-ins for Sector and Amazon7)",
    cells,
    measure,
    tell,
    draw,
    (
        ("Accuracy is overall comparable to multiclass logistic regression", _comparable),
        ("Accuracy is overall better than the multitask squared hinge", _better_than_multitask),
    ),
    alternative="Test accuracy against the share of non-zero rows for three objectives",
)

if __name__ == "__main__":
    EXPERIMENT.main()
