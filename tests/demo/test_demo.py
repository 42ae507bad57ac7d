"""The demonstration: its table, its choice of strength, its picture and its advice all hold."""

import importlib.util
import re

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.base import BaseEstimator, ClassifierMixin

from sparsvm.demo import run as demo
from sparsvm.demo import table

MODELS = [
    "SparseSVC l1",
    "SparseSVC l1/l2",
    "SparseSVC l1/linf",
    "LinearSVC l1",
    "LinearSVC l2",
    "LogisticRegression l1",
    "LogisticRegression l2",
]


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_whole_run_prints_both_tables_and_writes_the_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "STRENGTHS_C", (0.1, 1.0))
    path = tmp_path / "picture.png"
    page = tmp_path / "report.html"
    demo.main(["--digits", "50", "--output", str(path), "--report", str(page)])
    printed = capsys.readouterr().out
    for name in MODELS:
        assert printed.count(name + " ") == 2
    assert "--seed 1" in printed
    # It ends by telling what the report shows.
    told = " ".join(printed.split()).partition("The report ")[2]
    assert page.resolve().as_uri() in told and told.endswith("denser model would do.")
    wine = demo.load_tasks()[1]
    used, right = re.search(r"uses (\d+) of 13 .* right on (\d+) of 118", told).groups()
    text = page.read_text(encoding="utf-8")
    assert f"uses {used} of 13" in text
    assert f"{right} of {len(wine.test[1])} test samples are classified correctly" in text
    picture = imread(path)
    assert picture.shape[0] > 800 and picture.shape[1] > 800
    grey = np.all(np.abs(picture[..., :3] - 0xD4 / 255) < 1e-3, axis=-1)
    assert 0.02 < grey.mean() < 0.6  # features that a class does not use are there, and grey


@pytest.mark.parametrize("with_rich", [False, True])
def test_a_row_tells_what_the_model_is(with_rich, capsys, monkeypatch):
    wine = demo.load_tasks()[1]
    model = demo.SparseSVC(penalty="l1/l2", alpha=0.2).fit(*wine.train)
    row = demo.Row("LogisticRegression l1", "alpha=0.003", model.score(*wine.test), 0.5, model)
    if not with_rich:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    demo.print_table(wine, [row])
    printed = capsys.readouterr().out
    for heading in table.HEADINGS:
        assert heading in printed
    used = len(model.selected_features_)
    assert f"{used} of 13" in printed
    assert f" {3 * used} " in printed  # a row of l1/l2 is used by all three classes or none
    assert f"{100 * model.score(*wine.test):.1f} %" in printed
    assert f"{model.dual_gap_:.0e}" in printed
    assert max(map(len, printed.splitlines())) <= 80


class Scripted(ClassifierMixin, BaseEstimator):
    """A classifier whose accuracy depends on its strength alone."""

    def __init__(self, alpha=None, C=None):
        self.alpha = alpha
        self.C = C

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return {8.0: 0.1, 4.0: 0.9, 2.0: 0.9, 1.0: 0.8}[self.alpha or self.C]


@pytest.mark.parametrize(("parameter", "chosen"), [("alpha", "alpha=4"), ("C", "C=2")])
def test_of_equally_accurate_strengths_the_stronger_penalty_is_chosen(parameter, chosen):
    # A large alpha is a strong penalty, a large C a weak one.
    wine = demo.load_tasks()[1]
    row = demo._chosen("scripted", wine, parameter, [1.0, 2.0, 4.0, 8.0], Scripted())
    assert row.strength == chosen


def test_what_to_try_next_runs(capsys):
    names: dict = {}
    exec(demo.NEXT_STEPS, names)
    assert names["model"].dual_gap_ <= 1e-3
    assert 0 < len(names["model"].selected_features_) < 13
    assert capsys.readouterr().out


@pytest.mark.parametrize("number", ["49", "1501"])
def test_too_few_or_too_many_images_are_refused_in_a_sentence(number, capsys):
    with pytest.raises(SystemExit):
        demo.main(["--digits", number])
    assert "between 50 and 1500" in capsys.readouterr().err
