"""A first look at sparsvm on two real data sets: ``python -m sparsvm.demo``.

Prints a table of sparse models against scikit-learn's linear classifiers, and draws which pixels
each digit uses and which measurements each wine uses. Writes a report about one of the models, and
says what it shows.
"""

from __future__ import annotations

import argparse
import importlib.util
import textwrap
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from sparsvm.demo.table import Row, Task, print_table
from sparsvm.estimators import SparseSVC
from sparsvm.estimators.cv import SparseSVCCV
from sparsvm.reporting import report

# scikit-learn's classifiers get more strengths, over a wider range, than the sparse models do:
# each of the four has its best one elsewhere.
STRENGTHS_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

NEXT_STEPS = """\
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sparsvm import SparseSVC, losses, penalties
X, y = load_wine(return_X_y=True)
# Columns in any unit: weights="scale" penalises as if they were standardised.
model = SparseSVC(penalty=penalties.GroupL2(weights="scale"), alpha=0.1).fit(X, y)
print(model.selected_features_, model.dual_gap_)
# Mistaking wine 0 for wine 2 costs five times as much as any other mistake.
SparseSVC(losses.Hinge(margin=[[0, 1, 5], [1, 0, 1], [1, 1, 0]]), alpha=0.1).fit(X, y)
# It is a scikit-learn estimator: search, pipelines and cross-validation work as usual.
GridSearchCV(SparseSVC("hinge", "l1/linf"), {"alpha": [0.3, 0.1, 0.03]}).fit(X, y)
"""


def load_tasks(seed: int = 0, n_digits: int = 200) -> list[Task]:
    """Load digits, with ``n_digits`` images to learn from, and wine, with 60 bottles."""
    digits, wine = load_digits(), load_wine()
    pixels = [f"row {j // 8}, column {j % 8}" for j in range(64)]
    options = {"random_state": seed}
    X, X_test, y, y_test = train_test_split(
        digits.data / 16.0, digits.target, train_size=n_digits, stratify=digits.target, **options
    )
    alphas = (0.1, 0.03, 0.01, 0.003)
    tasks = [Task("digits", "pixels", pixels, alphas, (X, y), (X_test, y_test))]
    X, X_test, y, y_test = train_test_split(
        wine.data, wine.target, train_size=60, stratify=wine.target, **options
    )
    scaler = StandardScaler().fit(X)
    train, test = (scaler.transform(X), y), (scaler.transform(X_test), y_test)
    alphas = (1.0, 0.3, 0.1, 0.03)
    return [*tasks, Task("wine", "measurements", list(wine.feature_names), alphas, train, test)]


def _l1_logistic() -> LogisticRegression:
    # scikit-learn 1.8 replaced penalty="l1" by l1_ratio=1.
    recent = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    option = {"l1_ratio": 1.0} if recent else {"penalty": "l1"}
    return LogisticRegression(solver="saga", max_iter=10_000, tol=1e-3, random_state=0, **option)


def compare(task: Task) -> list[Row]:
    """Fit every kind of model and choose the strength of each by the same rule."""
    rows = []
    for penalty in ("l1", "l1/l2", "l1/linf"):
        template = SparseSVC(penalty=penalty)
        rows.append(_chosen(f"SparseSVC {penalty}", task, "alpha", task.alphas, template))
    others = {
        "LinearSVC l1": LinearSVC(penalty="l1", dual=False, max_iter=100_000),
        "LinearSVC l2": LinearSVC(max_iter=100_000),
        "LogisticRegression l1": _l1_logistic(),
        "LogisticRegression l2": LogisticRegression(max_iter=10_000),
    }
    return rows + [_chosen(name, task, "C", STRENGTHS_C, model) for name, model in others.items()]


def _chosen(name: str, task: Task, parameter: str, values: Sequence[float], template: Any) -> Row:
    """Cross-validate, then fit with the most accurate strength; the stronger one in a tie."""
    # The largest alpha is the strongest penalty, and so is the smallest C.
    values = sorted(values, reverse=parameter == "alpha")
    models = [clone(template).set_params(**{parameter: value}) for value in values]
    accuracies = np.array([cross_val_score(m, *task.train, cv=5).mean() for m in models])
    choice = int(np.argmax(accuracies))
    start = time.process_time()
    model = models[choice].fit(*task.train)
    seconds = time.process_time() - start
    return Row(name, f"{parameter}={values[choice]:g}", model.score(*task.test), seconds, model)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(prog="python -m sparsvm.demo", description=__doc__)
    parser.add_argument("--output", default="demo.png", help="where the picture goes")
    parser.add_argument("--report", default="demo_report.html", help="where the report goes")
    parser.add_argument("--seed", type=int, default=0, help="another split of the data")
    parser.add_argument("--digits", type=int, default=200, help="images to learn from")
    options = parser.parse_args(arguments)
    if not 50 <= options.digits <= 1500:
        parser.error(f"--digits must be between 50 and 1500, but {options.digits} was given.")
    results = []
    # One thread for everybody, which at these sizes is also the fastest.
    with threadpool_limits(1), warnings.catch_warnings():
        # The search may go too far.
        warnings.filterwarnings(
            "ignore", "Every weight is zero|.* predicted for no training sample"
        )
        for task in load_tasks(options.seed, options.digits):
            print(f"Learning {task.name}, seven kinds of model ...", flush=True)
            rows = compare(task)
            print_table(task, rows)
            print()
            results.append((task, rows))
    print(
        "strength   the most accurate in a 5-fold cross-validation of the training samples\n"
        "accuracy   on samples that took no part in any of this\n"
        "features   used by at least one class; weights: the non-zero ones of all classes\n"
        "gap        how far the objective can be above the optimum, as a fraction of itself\n"
        "seconds    of the processor, for the one fit at this strength on one thread"
    )
    if importlib.util.find_spec("matplotlib") is None:
        print("\nNo picture: matplotlib is not installed; try pip install matplotlib.")
    else:
        from sparsvm.demo.picture import draw

        draw(results, options.output)
        print(f"\nThe picture of what each class uses is in {options.output}.")
    print(f"\nWhat to try next:\n\n{NEXT_STEPS}\nAnother split: python -m sparsvm.demo --seed 1\n")
    if any(importlib.util.find_spec(name) is None for name in ("plotly", "jinja2")):
        print('No report: plotly or Jinja2 is not installed; try pip install "sparsvm[report]".')
    else:
        print(told_report(results[1][0], options.report))


def told_report(task: Task, path: str) -> str:
    """Choose a model of a task by cross-validation, write its report, and say what it shows."""
    model = SparseSVCCV(penalty="l1/l2", n_alphas=30, rule="1se").fit(*task.train)
    model.feature_names_in_ = np.array(task.feature_names, dtype=object)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        page = report(
            model, *task.test, path, title=f"{task.name.capitalize()}, told apart"
        ).resolve()
        right = round(model.score(*task.test) * len(task.test[1]))
    used = [task.feature_names[j].replace("_", " ") for j in model.selected_features_]
    text = (
        f"The report {page.as_uri()} is a page to look at and to pass on. It shows a model of "
        f"{task.name} that uses {len(used)} of {len(task.feature_names)} {task.feature} "
        f"({', '.join(used)}) and is right on {right} of {len(task.test[1])} test samples: which "
        f"are confused, how far each is from the boundary, and what every {task.feature[:-1]} "
        f"says about each class. Its objective is proven to be within {model.dual_gap_:.0e} of the "
        "best possible one. Move the slider to see what a sparser or a denser model would do."
    )
    return textwrap.fill(text, 80, break_long_words=False, break_on_hyphens=False)
