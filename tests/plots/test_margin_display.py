"""The picture of boundaries and margins shows those of the model."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

from sparsvm import MaxMarginSVC, SparseSVC
from sparsvm.plots import MarginDisplay

matplotlib.use("Agg")

import matplotlib.pyplot as plt

X, Y = load_iris(return_X_y=True)
X = X[:, [1, 3]]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("estimator", [MaxMarginSVC(), SparseSVC(penalty="l2", alpha=1e-3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_line_is_a_boundary_or_a_margin(estimator, n_classes):
    rows = n_classes > Y
    model = estimator.fit(X[rows], Y[rows])
    display = MarginDisplay.from_estimator(model, X[rows], Y[rows])
    lines = [line for line in display.ax_.lines if hasattr(line, "_xy1")]
    assert len(lines) == 3 * n_classes * (n_classes - 1) // 2
    number = 0
    for r in range(n_classes):
        for t in range(r + 1, n_classes):
            for level in (0.0, 1.0, -1.0):
                points = np.array([lines[number]._xy1, lines[number]._xy2])
                scores = model.decision_function(points)
                difference = -scores if n_classes == 2 else scores[:, r] - scores[:, t]
                np.testing.assert_allclose(difference, level, atol=1e-9)
                assert (lines[number].get_linestyle() == "-") == (level == 0.0)
                number += 1


def test_the_samples_inside_margins_are_those_of_the_model():
    model = MaxMarginSVC().fit(X, Y)
    display = MarginDisplay.from_estimator(model, X, Y, feature_names=["sepal", "petal"])
    assert display.inside_.sum() == model.n_margin_errors_
    assert display.smallest_margin_ == pytest.approx(model.smallest_margin_)
    assert display.ax_.get_xlabel() == "sepal"
    figure, ax = plt.subplots()
    again = MarginDisplay.from_estimator(model, X, Y, ax=ax)
    assert again.ax_ is ax
    assert again.figure_ is figure


def test_what_cannot_be_shown_is_refused():
    model = MaxMarginSVC().fit(X, Y)
    with pytest.raises(ValueError, match="models of two features, but this one has 4"):
        MarginDisplay.from_estimator(MaxMarginSVC().fit(*load_iris(return_X_y=True)), X, Y)
    with pytest.raises(ValueError, match="There are 2 names for 3 classes"):
        MarginDisplay.from_estimator(model, X, Y, class_names=["a", "b"])
    with pytest.raises(ValueError, match="X must have two columns, but it has 1"):
        MarginDisplay.from_estimator(model, X[:, :1], Y)
    with pytest.raises(ValueError, match=r"X has 150 rows, but y has shape \(149,\)"):
        MarginDisplay.from_estimator(model, X, Y[1:])
    with pytest.raises(ValueError, match=r"the label .*3.*, which the model does not know"):
        MarginDisplay.from_estimator(model, X, Y + 1)
