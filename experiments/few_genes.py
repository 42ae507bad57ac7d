"""Few genes: how accurate each loss is with l1/l2 at about 60 genes and with more."""

from __future__ import annotations

import warnings

from harness import Experiment, distinct, markdown_table, pick, subplots, values

# isort: split

import numpy as np
from microarrays import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit

from sparsvm import SparseSVC, alpha_max
from sparsvm.plots.style import COLOURS

SETS = ("nci60", "su", "christensen", "lymphoma")
LOSSES = ("hinge", "squared_hinge", "logistic")
# Genes to have, and how far from that the bisection may stop.
TARGETS = {"about 60": (60, 6), "most, up to 260": (210, 50)}
REPETITIONS = 10
STEPS = 9
# The smallest alpha tried, as a power of ten of alpha_max: a tenth of it gains few more genes.
LEAST = -2.0


def cells(quick):
    if quick:
        return [{"data": "lymphoma", "loss": loss, "seed": 0} for loss in LOSSES]
    return [
        {"data": name, "loss": loss, "seed": seed}
        for seed in range(REPETITIONS)
        for name in SETS
        for loss in LOSSES
    ]


def measure(cell, quick):
    X, y = load(cell["data"])
    splitter = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=cell["seed"])
    train, test = next(splitter.split(X, y))
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    deviation[deviation == 0.0] = 1.0
    Z, T = (X[train] - mean) / deviation, (X[test] - mean) / deviation
    fitted = _Fits(cell["loss"], Z, y[train])
    rows = []
    for target, (genes, within) in TARGETS.items():
        model = fitted.with_genes(genes, within, 4 if quick else STEPS)
        missing = np.setdiff1d(y[train], model.predict(Z)).size
        rows.append(
            {
                "target": target,
                "genes": int(model.selected_features_.size),
                "accuracy": float(np.mean(model.predict(T) == y[test])),
                "never predicted": int(missing),
            }
        )
    return rows


class _Fits:
    """Models of one loss by alpha; the number of genes falls, all but steadily, with alpha."""

    def __init__(self, loss, Z, y):
        self.options = {"loss": loss, "penalty": "l1/l2"}
        self.Z, self.y = Z, y
        self.top = alpha_max(Z, y, **self.options)
        self.models = {}

    def _fit(self, share):
        if share not in self.models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", UserWarning)
                model = SparseSVC(**self.options, alpha=self.top * 10.0**share)
                self.models[share] = model.fit(self.Z, self.y)
        return self.models[share]

    def with_genes(self, genes, within, steps):
        """Return the model nearest to so many genes that a bisection over log alpha meets."""
        low, high = LEAST, 0.0
        for _ in range(steps):
            middle = 0.5 * (low + high)
            found = self._fit(middle).selected_features_.size
            if abs(found - genes) <= within:
                break
            low, high = (low, middle) if found < genes else (middle, high)
        return min(self.models.values(), key=lambda m: abs(m.selected_features_.size - genes))


def tell(rows):
    parts = [
        f"{len(distinct(rows, 'seed'))} stratified splits, two thirds for training; genes "
        "standardised by the training samples; penalty l1/l2 (a gene is in use for all classes or "
        "for none); alpha by bisection between a hundredth of alpha_max and alpha_max, for 60 "
        "genes and for 160 to 260, or as near as that comes: on these sets no model has as many "
        "as 160. Classes of fewer than six samples are left out. *Never predicted* is the mean "
        "number of classes of the training set that the model predicts for none of its own "
        "training samples."
    ]
    for name in distinct(rows, "data"):
        X, y = load(name)
        table = []
        for target in TARGETS:
            for loss in LOSSES:
                chosen = pick(rows, data=name, target=target, loss=loss)
                accuracy = 100.0 * np.array(values(chosen, "accuracy"))
                table.append(
                    (
                        target,
                        loss,
                        f"{np.median(values(chosen, 'genes')):.0f}",
                        f"{accuracy.mean():.1f} ± {accuracy.std() / accuracy.size**0.5:.1f}",
                        f"{np.mean(values(chosen, 'never predicted')):.1f}",
                    )
                )
        parts.append(f"**{name}**: {X.shape[0]} × {X.shape[1]}, {np.unique(y).size} classes.")
        header = ("genes", "loss", "median", "accuracy in %", "never predicted")
        parts.append(markdown_table(header, table))
    return "\n\n".join(parts)


def draw(rows):
    names = distinct(rows, "data")
    figure, axes = subplots(1, len(names), (3.2 * len(names), 3.4))
    for ax, name in zip(axes[0], names, strict=True):
        for at, loss in enumerate(LOSSES):
            found = [pick(rows, data=name, loss=loss, target=target) for target in TARGETS]
            ax.plot(
                [np.median(values(chosen, "genes")) for chosen in found],
                [100 * np.mean(values(chosen, "accuracy")) for chosen in found],
                "osD"[at] + "-",
                color=COLOURS[at],
                label=loss,
            )
        lowest = min(line.get_ydata().min() for line in ax.get_lines())
        ax.set(title=name, xlabel="genes used", ylim=(min(90, lowest - 3), 101))
    axes[0, 0].set_ylabel("test accuracy in %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


EXPERIMENT = Experiment(
    item="Few genes",
    title="three losses with l1/l2 at about 60 genes and with as many as there are",
    cells=cells,
    measure=measure,
    tell=tell,
    draw=draw,
    alternative="Accuracy against genes used, one panel a data set, one line a loss",
)

if __name__ == "__main__":
    EXPERIMENT.main()
