"""The protocol of the difference-of-convex experiments, on a few samples."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

import dc_common
import dc_simulated


def test_simulated_data_are_the_two_gaussians_of_the_paper():
    X, y = dc_simulated.simulate(0, noise_dimensions=20)
    assert X.shape == (100, 30)
    assert np.bincount(y).tolist() == [50, 50]
    assert X[y == 1, :10].mean() == pytest.approx(0.2, abs=0.03)
    assert X[y == 0, :10].mean() == pytest.approx(-0.2, abs=0.03)
    assert X[y == 1, :10].std() == pytest.approx(0.2 * np.sqrt(1.5), abs=0.03)
    assert np.abs(X[:, 10:]).max() <= 0.2
    _, flipped = dc_simulated.simulate(0, noise_dimensions=20, flipped=0.3)
    assert np.count_nonzero(flipped != y) == 30


def test_every_classifier_minimises_the_sum_of_the_paper():
    X, y = dc_simulated.simulate(1, flipped=0.1)
    t = 2.0 * y - 1.0
    for classifier, solution in zip(
        dc_common.CLASSIFIERS, dc_common.fit_all(X, y, 0.5).values(), strict=True
    ):
        w = solution.coef[0]
        scores = t * (X @ w + solution.intercept[0])
        losses = np.maximum(0.0, 1.0 - scores)
        if classifier.loss.name == "ramp":
            losses = np.minimum(losses, 2.0)
        penalties = {
            "l2": w @ w,
            "l1": np.abs(w).sum(),
            "l0": np.sum(1.0 - np.exp(-4.0 * np.abs(w))),
            "capped_l1": np.minimum(np.abs(w), 1.0).sum(),
        }
        value = losses.sum() + 0.5 * penalties[classifier.penalty.name]
        assert 100.0 * solution.objective == pytest.approx(value)


def test_one_repetition_judges_all_classifiers_on_held_out_samples(monkeypatch):
    monkeypatch.setattr(dc_common, "LAMBDAS", (0.5, 2.0))
    X, y = dc_simulated.simulate(2, noise_dimensions=10)
    rows = dc_common.run(X, y, seed=2)
    assert list(rows) == [classifier.name for classifier in dc_common.CLASSIFIERS]
    for row in rows.values():
        assert row["accuracy"] > 0.7
        assert row["parameters"] == pytest.approx(row["features"] * row["support"])
    assert rows["RLSVM0"]["features"] < rows["OneNormSVM"]["features"]


def test_the_parameter_of_a_penalty_is_chosen_with_lambda_the_sparser_model_first(monkeypatch):
    monkeypatch.setattr(dc_common, "LAMBDAS", (0.5, 2.0))
    X, y = dc_simulated.simulate(3, noise_dimensions=10)
    zero_norm = dc_simulated.CHOSEN[0]
    assert tuple(v.penalty.sharpness for v in zero_norm.variants) == dc_simulated.SHARPNESSES
    chosen, lam = dc_common.choose(X, y, 3, (zero_norm,))[zero_norm.name]
    scores = {}
    for variant in zero_norm.variants:
        one = dc_common.Classifier("one", variant.loss, variant.penalty)
        scores[variant.name] = dc_common.choose(X, y, 3, (one,))["one"][1]
    assert chosen in zero_norm.variants
    assert scores[chosen.name] == lam
    rows = dc_simulated.once({"noise_dimensions": 10}, (zero_norm,), 3)
    assert 0.0 <= rows[zero_norm.name]["false positives"] <= 1.0


def test_tables_and_figures_are_written(tmp_path):
    values = {
        case: {c.name: [{"accuracy": 0.5}, {"accuracy": 0.75}] for c in dc_common.CLASSIFIERS}
        for case in ("a", "b")
    }
    dc_simulated.table(tmp_path / "t.md", "title", "case", values, ("accuracy",))
    lines = (tmp_path / "t.md").read_text().splitlines()
    assert lines[2].startswith("`python ")
    assert lines[4] == "| classifier | case | accuracy |"
    assert lines[6] == "| SVM | a | 0.62 ± 0.12 |"
    dc_common.panels(tmp_path / "t.png", {"accuracy": ("accuracy", ())}, ["a", "b"], values)
    assert (tmp_path / "t.png").stat().st_size > 1000
