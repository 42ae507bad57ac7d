"""The displays show what was computed, and nothing overlaps."""

import builtins

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_wine

from sparsvm import SparseSVC, SparseSVCCV, svm_path
from sparsvm.penalties import GroupL2
from sparsvm.plots import (
    ConvergenceDisplay,
    PathDisplay,
    SelectionDisplay,
    SparsityPatternDisplay,
)
from sparsvm.plots.style import spread

matplotlib.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return X, data.target, list(data.feature_names)


@pytest.fixture(scope="module")
def chosen(wine):
    X, y, _ = wine
    return SparseSVCCV(penalty="l1/l2", n_alphas=12, eps=0.05, cv=3, rule="1se").fit(X, y)


def boxes(texts, figure):
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    # Of an annotation the text alone, without the line that leads to it.
    extent = matplotlib.text.Text.get_window_extent
    return [extent(text, renderer) for text in texts if text.get_text()]


def assert_apart(found):
    for i, box in enumerate(found):
        for other in found[i + 1 :]:
            assert not box.overlaps(other)


def assert_inside(found, figure):
    frame = figure.bbox
    for box in found:
        assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1
        assert box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1


def test_the_path_display_draws_one_line_for_each_feature_ever_used(wine, chosen):
    X, y, names = wine
    display = PathDisplay.from_estimator(chosen, X, y, feature_names=names, n_labels=6)
    used = np.unique(np.concatenate([coef.indices for coef in display.path.coefs]))
    assert len(display.lines_) == used.size
    strongest = display.lines_[0].get_ydata()
    last = display.path.coefs[-1].toarray()
    assert strongest[-1] == pytest.approx(np.sqrt((last**2).sum(axis=0)).max())
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), chosen.alphas_)
    labels = [text for text in display.ax_.texts if text.get_text() in names]
    assert len(labels) == 6
    found = boxes(labels, display.figure_)
    assert_apart(found)
    assert_inside(found, display.figure_)
    (mark,) = (text for text in display.ax_.texts if text.get_text().startswith("chosen"))
    (above,) = boxes([mark], display.figure_)
    assert above.y0 >= display.ax_.get_window_extent().y1
    assert_inside([above], display.figure_)


def test_a_path_is_drawn_into_given_axes(wine):
    X, y, _ = wine
    _, ax = plt.subplots()
    display = PathDisplay(svm_path(X, y, n_alphas=5)).plot(ax=ax)
    assert display.ax_ is ax


def test_the_selection_display_marks_the_best_and_the_one_error_choice(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    means = chosen.scores_.mean(axis=1)
    assert means[display.best_index_] == means.max()
    assert chosen.alphas_[display.one_error_index_] == chosen.alpha_
    told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert told[0].startswith("best") and told[1].startswith("1-SE rule")
    assert f"{means[display.one_error_index_]:.3f}" in told[1]
    with pytest.raises(ValueError, match="has no scores_"):
        SelectionDisplay.from_estimator(SparseSVC())


def test_the_pattern_shows_the_used_features_and_hides_the_zeros(wine):
    X, y, names = wine
    model = SparseSVC(alpha=0.05).fit(X, y)
    display = SparsityPatternDisplay.from_estimator(model, feature_names=names)
    np.testing.assert_array_equal(display.features_, model.selected_features_)
    shown = display.ax_.images[0].get_array()
    np.testing.assert_array_equal(shown.mask, model.coef_[:, display.features_] == 0)
    ticks = display.ax_.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == [names[j] for j in display.features_]
    found = boxes(ticks, display.figure_)
    assert_apart(found)
    assert_inside(found, display.figure_)


def test_groups_are_put_side_by_side_and_separated(wine):
    X, y, _ = wine
    groups = np.arange(13) % 4
    model = SparseSVC(penalty=GroupL2(groups=groups), alpha=0.3).fit(X, y)
    display = SparsityPatternDisplay.from_estimator(model)
    assert np.all(np.diff(groups[display.features_]) >= 0)
    borders = display.ax_.collections[-1].get_segments()
    assert len(borders) == np.unique(groups[display.features_]).size - 1


def test_a_crowded_pattern_names_only_what_can_be_read():
    coef = np.random.default_rng(0).standard_normal((3, 400))
    display = SparsityPatternDisplay(coef, ["a", "b", "c"]).plot(max_features=150)
    assert display.features_.size == 150
    ticks = display.ax_.get_xticklabels()
    assert len(ticks) < 150
    assert_apart(boxes(ticks, display.figure_))
    assert "is named" in display.ax_.get_title(loc="left")


def test_a_model_of_zeros_and_one_of_two_classes_are_drawn(wine):
    X, y, _ = wine
    nothing = SparsityPatternDisplay(np.zeros((3, 5)), [0, 1, 2]).plot()
    assert nothing.features_.size == 0
    assert nothing.ax_.texts[0].get_text() == "no feature is in use"
    two = SparsityPatternDisplay.from_estimator(SparseSVC(alpha=0.1).fit(X, y == 0).sparsify())
    assert two.ax_.get_yticklabels()[0].get_text() == "True against False"


def test_the_convergence_display_ends_at_the_certified_gap(wine):
    X, y, _ = wine
    models = {
        name: SparseSVC(solver=name, alpha=0.1, tol=1e-3).fit(X, y)
        for name in ("interior_point", "fbpd")
    }
    display = ConvergenceDisplay.from_estimators(models)
    assert display.tol == 1e-3
    for line, (name, model) in zip(display.lines_, models.items(), strict=True):
        assert line.get_label() == name
        assert line.get_ydata()[-1] == pytest.approx(model.dual_gap_)
        assert np.all(np.diff(line.get_xdata()) >= -1e-9)
    assert len({line.get_color() for line in display.lines_}) == 2
    assert len({line.get_linestyle() for line in display.lines_}) == 2


def test_labels_are_moved_apart_as_little_as_needed():
    np.testing.assert_allclose(spread([0.1, 0.5], 0.1), [0.1, 0.5])
    np.testing.assert_allclose(spread([0.5, 0.5], 0.1), [0.45, 0.55])
    places = spread(np.random.default_rng(0).random(20), 0.04)
    assert np.all(np.diff(np.sort(places)) >= 0.04 - 1e-12)


def test_drawing_without_matplotlib_says_what_to_install(wine, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"sparsvm\[plots\]"):
        SparsityPatternDisplay(np.ones((2, 3)), [0, 1, 2]).plot()


def test_the_path_of_a_cross_validation_is_drawn_without_fitting(wine, chosen, monkeypatch):
    def forbidden(*args, **options):
        raise AssertionError("followed again")

    monkeypatch.setattr("sparsvm.plots.path.svm_path", forbidden)
    display = PathDisplay.from_estimator(chosen)
    assert display.path is chosen.path_
    with pytest.raises(ValueError, match=r"SparseSVC has no path_\. Give X and y"):
        PathDisplay.from_estimator(SparseSVC())


def test_the_legend_of_the_selection_hides_no_point(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1 - 1.0
    assert legend.x1 <= display.figure_.bbox.x1


def test_names_must_fit_the_features(wine, chosen):
    X, y, _ = wine
    with pytest.raises(ValueError, match="2 names for 13 features"):
        PathDisplay.from_estimator(chosen, X, y, feature_names=["a", "b"])
