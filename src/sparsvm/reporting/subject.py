"""What a report is about: the fitted classifier inside what the user has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Counts, Floats, Ints
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.numerics.sparse_format import dense_coefficients
from sparsvm.plots.style import names_of_features


@dataclass(frozen=True, eq=False)
class TestSet:
    """Samples that took no part in the fit, as the classifier sees them."""

    __test__ = False  # no class of tests

    scores: Floats
    y: Array
    codes: Counts
    predicted: Counts
    deviations: Floats

    @property
    def correct(self) -> Any:
        """Which samples are classified correctly; those of unknown labels never are."""
        return self.codes == self.predicted


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted linear classifier with the names of its features and classes.

    Attributes
    ----------
    model : SparseLinearClassifier
    names : list of str
        Names of the features that ``model`` sees, after the steps of a pipeline.
    steps : list of str
        What the pipeline does before.
    weights : array of shape (K, d), or (1, d) for two classes
    used : int array
        The features that any class uses.
    test : TestSet or None
    path : SVMPath or None
        The models for other alphas, where they are known.
    """

    model: Any
    names: list[str]
    steps: list[str]
    weights: Floats
    used: Ints
    test: TestSet | None = None
    path: SVMPath | None = None
    classes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[str]:
        """The class for which each row of the weights speaks: with two classes the second."""
        return self.classes[1:] if len(self.weights) == 1 else self.classes

    def sizes_of(self, weights: Floats, features: Ints) -> Floats:
        """Return weights, times the standard deviations of the features where these are known."""
        return weights if self.test is None else weights * self.test.deviations[features]


def read_subject(given: Any, X: Any, y: Any) -> Subject:
    """Look into searches and pipelines for the classifier, and let it predict the test samples."""
    if (X is None) != (y is None):
        raise ValueError("X_test and y_test go together; give both, or neither.")
    model, steps = (given[-1], []) if isinstance(given, SVMPath) else _unwrapped(given)
    if not isinstance(model, SparseLinearClassifier):
        raise ValueError(
            f"A report needs a fitted classifier of sparsvm, or a pipeline that ends in one; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model, "coef_")
    weights = np.asarray(dense_coefficients(model.coef_), dtype=np.float64)
    names = names_of_features(model, weights.shape[1], _names_after(steps))
    return Subject(
        model,
        names,
        [type(step).__name__ for step in steps],
        weights,
        model.selected_features_,
        None if X is None else _tested(model, steps, X, y),
        given if isinstance(given, SVMPath) else getattr(model, "path_", None),
        [str(label) for label in model.classes_],
    )


def _unwrapped(given: Any) -> tuple[Any, list[Any]]:
    """Return the classifier and the transformers before it."""
    given = getattr(given, "best_estimator_", given)
    if not hasattr(given, "named_steps"):
        return given, []
    before = [step for _, step in given.steps[:-1] if step is not None and step != "passthrough"]
    model, more = _unwrapped(given.steps[-1][1])
    return model, before + more


def _names_after(steps: list[Any]) -> Any:
    """Return the names that a pipeline gives to what it passes on; None where it cannot tell."""
    names = None
    for step in steps:
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            return None
    return names


def _tested(model: Any, steps: list[Any], X: Any, y: Any) -> TestSet:
    y = np.asarray(y).reshape(-1)
    for step in steps:
        X = step.transform(X)
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if len(scores) != y.size:
        raise ValueError(f"X_test has {len(scores)} samples, but y_test has {y.size} labels.")
    if y.size == 0:
        raise ValueError("X_test has no samples; leave X_test and y_test out instead.")
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    number = {label: k for k, label in enumerate(model.classes_.tolist())}
    codes = np.array([number.get(label, -1) for label in y.tolist()], dtype=np.int64)
    if np.all(codes < 0):
        raise ValueError(
            f"No label of y_test is known to the model: it has {y[0]!r} and so on, the model "
            f"{model.classes_[0]!r} and so on."
        )
    predicted = np.array([number[label] for label in model.predict(X).tolist()], dtype=np.int64)
    return TestSet(scores, y, codes, predicted, deviations(X))


def deviations(X: Any) -> Floats:
    """Return the standard deviation of every column."""
    if not sp.issparse(X):
        return np.asarray(np.std(np.asarray(X, dtype=np.float64), axis=0))
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).reshape(-1)
    square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).reshape(-1)
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
