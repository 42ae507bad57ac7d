"""The eight classifiers of the difference-of-convex experiments, and how they are judged.

Every module ``experiments/p004_*.py`` follows the same protocol: 70 % of the samples train and 30 %
test, lambda is chosen from ``LAMBDAS`` by five-fold cross-validation on the training samples (of
equal accuracies the first of the set), and 20 repetitions give mean and standard deviation. All
non-convex fits start from the convex machine of the same fold and lambda, which is fitted once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness import subplots

# isort: split

import numpy as np
from sklearn.model_selection import StratifiedKFold

from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Loss, Ramp
from sparsvm.penalties import L0, L1, L2, CappedL1, Penalty
from sparsvm.plots.style import COLOURS
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, Solution, Start
from sparsvm.solvers import DCA, InteriorPoint

LAMBDAS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
REPETITIONS = 20
NONZERO = 1e-6


@dataclass(frozen=True)
class Classifier:
    """A name of the paper's Table 1, with its loss and penalty."""

    name: str
    loss: Loss
    penalty: Penalty
    shapes: tuple[Penalty, ...] = ()
    """Penalties to choose from together with lambda, the preferred ones first."""

    @property
    def variants(self) -> tuple[Classifier, ...]:
        """The classifier with each penalty that it may choose."""
        forms = (replace(self, name=f"{self.name} {p!r}", penalty=p) for p in self.shapes)
        return tuple(forms) or (self,)

    @property
    def start(self) -> str:
        """The convex classifier to start from."""
        return "SVM" if self.penalty.name == "l2" else "OneNormSVM"


CLASSIFIERS = (
    Classifier("SVM", Hinge(), L2()),
    Classifier("OneNormSVM", Hinge(), L1()),
    Classifier("ZeroNormSVM", Hinge(), L0()),
    Classifier("CapOneNormSVM", Hinge(), CappedL1()),
    Classifier("RLSVM2", Ramp(), L2()),
    Classifier("RLSVM1", Ramp(), L1()),
    Classifier("RLSVM0", Ramp(), L0()),
    Classifier("RLSVMC1", Ramp(), CappedL1()),
)

COLOURS_OF = dict(zip(("l2", "l1", "l0", "capped_l1"), COLOURS, strict=False))


def problem_of(X, y, classifier, lam):
    """The paper's sum of losses plus lambda times the penalty, as a weighted mean."""
    n, d = X.shape
    # Its l2 penalty has no factor 1/2.
    alpha = lam / n * (2.0 if classifier.penalty.name == "l2" else 1.0)
    return Problem(
        design=make_design(np.ascontiguousarray(X)),
        y=y,
        mass=np.full(n, 1.0 / n),
        cost=classifier.loss.cost_matrix(2),
        n_classes=2,
        alpha=alpha,
        loss=classifier.loss,
        penalty=classifier.penalty.resolve(d, 1),
    )


def fit_all(X, y, lam, classifiers=CLASSIFIERS, stopping="objective") -> dict[str, Solution]:
    """Fit every classifier at one lambda, the convex ones first.

    With ``stopping="change"`` DCA ends as in the paper, where the parameters change by 1e-3.
    """
    found: dict[str, Solution] = {}
    wanted = {c.name for c in classifiers} | {c.start for c in classifiers}
    for classifier in CLASSIFIERS:
        if classifier.name in wanted and classifier.name == classifier.start:
            problem = problem_of(X, y, classifier, lam)
            found[classifier.name] = InteriorPoint().solve(problem, None, Control(tol=1e-7))
    for classifier in classifiers:
        if classifier.name not in found:
            first = found[classifier.start]
            start = Start(first.coef, first.intercept, first.dual)
            problem = problem_of(X, y, classifier, lam)
            found[classifier.name] = DCA(stopping=stopping).solve(problem, start, Control(tol=1e-3))
    return {c.name: found[c.name] for c in classifiers}


def accuracy(solution, X, y):
    return float(np.mean((X @ solution.coef[0] + solution.intercept[0] > 0.0) == (y == 1)))


def choose(X, y, seed, classifiers=CLASSIFIERS) -> dict[str, tuple[Classifier, float]]:
    """The form and lambda of each classifier with the best five-fold accuracy.

    The first among equals: the first form, and of that the first lambda of the set.
    """
    variants = [variant for classifier in classifiers for variant in classifier.variants]
    totals = {variant.name: np.zeros(len(LAMBDAS)) for variant in variants}
    folds = StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
    for train, test in folds:
        for at, lam in enumerate(LAMBDAS):
            for name, solution in fit_all(X[train], y[train], lam, variants).items():
                totals[name][at] += accuracy(solution, X[test], y[test])
    chosen = {}
    for classifier in classifiers:
        # Sums of the same five numbers may differ in the last bit.
        table = np.round([totals[variant.name] for variant in classifier.variants], 9)
        form, lam = np.unravel_index(int(np.argmax(table)), table.shape)
        chosen[classifier.name] = classifier.variants[form], LAMBDAS[lam]
    return chosen


def judge(classifier, solution, train, test):
    """Accuracy on the test samples, shares of features, support vectors and parameters."""
    (X, y), (X_test, y_test) = train, test
    problem = problem_of(X, y, classifier, 1.0)
    scores = problem.scores(solution.coef, solution.intercept)
    support = float(problem.loss.on_slope(scores, y, problem.margins()).mean())
    selected = np.abs(solution.coef[0]) > NONZERO
    return {
        "accuracy": accuracy(solution, X_test, y_test),
        "features": float(selected.mean()),
        "support": support,
        "parameters": float(selected.mean()) * support,
        "steps": float(solution.n_iter),
        "selected": selected,
    }


def run(X, y, seed, classifiers=CLASSIFIERS):
    """One repetition: split, choose lambda, fit, judge."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    cut = round(0.7 * y.size)
    train, test = order[:cut], order[cut:]
    data = (X[train], y[train]), (X[test], y[test])
    rows = {}
    for name, (form, lam) in choose(*data[0], seed, classifiers).items():
        solution = fit_all(*data[0], lam, (form,))[form.name]
        rows[name] = {"lambda": lam, **judge(form, solution, *data)}
    return rows


def with_mu(classifier, mu):
    """The same classifier with another width of its ramp."""
    return replace(classifier, loss=Ramp(mu=mu))


def mean_std(values):
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}"


def bars(rows, key, groups, classifiers, xlabel, ylabel):
    """Grouped bars: mean over repetitions with one standard deviation.

    ``groups`` are functions of a row by their labels on the axis. A penalty has one colour in all
    figures: pale with the hinge, full with the ramp loss, hatched where more than lambda is chosen.
    """
    figure, axes = subplots(1, 1, (9, 3.6))
    losses = {form.name: form.loss.name for form in CLASSIFIERS}
    ax = axes[0, 0]
    width = 0.85 / len(classifiers)
    for at, name in enumerate(classifiers):
        cells = [
            [row[key] for row in rows if row["classifier"] == name and belongs(row)]
            for belongs in groups.values()
        ]
        place = np.arange(len(groups)) + (at - (len(classifiers) - 1) / 2) * width
        ax.bar(
            place,
            [np.mean(cell) if cell else 0.0 for cell in cells],
            width,
            yerr=[np.std(cell) if cell else 0.0 for cell in cells],
            color=(_colour_of(name), 1.0 if losses.get(name) == "ramp" else 0.4),
            hatch="" if name in losses else "////",
            edgecolor=_colour_of(name),
            linewidth=0.6,
            error_kw={"lw": 0.7},
            label=name,
        )
    ax.set_xticks(np.arange(len(groups)), list(groups))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_ylim(bottom=0.0)
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def _colour_of(name):
    """Colour of the penalty of a classifier, whatever is chosen beside lambda."""
    forms = {form.name: form.penalty.name for form in CLASSIFIERS}
    return COLOURS_OF[forms[name.split(",")[0]]]


def means(rows, key, groups, classifiers):
    """Table of mean and deviation: a line a classifier, a column a group."""
    lines = []
    for name in classifiers:
        cells = [
            [row[key] for row in rows if row["classifier"] == name and belongs(row)]
            for belongs in groups.values()
        ]
        lines.append([name, *(mean_std(cell) if cell else "" for cell in cells)])
    return lines
