"""The protocol of the difference-of-convex experiments, on a few samples."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

import dc_protocol
import p004_simulated


def test_simulated_data_are_the_two_gaussians_of_the_paper():
    X, y = p004_simulated.simulate(0, noise_dimensions=20)
    assert X.shape == (100, 30)
    assert np.bincount(y).tolist() == [50, 50]
    assert X[y == 1, :10].mean() == pytest.approx(0.2, abs=0.03)
    assert X[y == 0, :10].mean() == pytest.approx(-0.2, abs=0.03)
    assert X[y == 1, :10].std() == pytest.approx(0.2 * np.sqrt(1.5), abs=0.03)
    assert np.abs(X[:, 10:]).max() <= 0.2
    _, flipped = p004_simulated.simulate(0, noise_dimensions=20, flipped=30)
    assert np.count_nonzero(flipped != y) == 30


def test_every_classifier_minimises_the_sum_of_the_paper():
    X, y = p004_simulated.simulate(1, flipped=10)
    t = 2.0 * y - 1.0
    for classifier, solution in zip(
        dc_protocol.CLASSIFIERS, dc_protocol.fit_all(X, y, 0.5).values(), strict=True
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
    monkeypatch.setattr(dc_protocol, "LAMBDAS", (0.5, 2.0))
    X, y = p004_simulated.simulate(2, noise_dimensions=10)
    rows = dc_protocol.run(X, y, seed=2)
    assert list(rows) == [classifier.name for classifier in dc_protocol.CLASSIFIERS]
    for row in rows.values():
        assert row["accuracy"] > 0.7
        assert row["parameters"] == pytest.approx(row["features"] * row["support"])
    assert rows["RLSVM0"]["features"] < rows["OneNormSVM"]["features"]


def test_the_parameter_of_a_penalty_is_chosen_with_lambda_the_sparser_model_first(monkeypatch):
    monkeypatch.setattr(dc_protocol, "LAMBDAS", (0.5, 2.0))
    X, y = p004_simulated.simulate(3, noise_dimensions=10)
    zero_norm = p004_simulated.CHOSEN[0]
    assert tuple(v.penalty.sharpness for v in zero_norm.variants) == p004_simulated.SHARPNESSES
    chosen, lam = dc_protocol.choose(X, y, 3, (zero_norm,))[zero_norm.name]
    scores = {}
    for variant in zero_norm.variants:
        one = dc_protocol.Classifier("one", variant.loss, variant.penalty)
        scores[variant.name] = dc_protocol.choose(X, y, 3, (one,))["one"][1]
    assert chosen in zero_norm.variants
    assert scores[chosen.name] == lam
    cell = {"noise": 10, "flipped": 0, "seed": 3}
    rows = p004_simulated.measure(cell, quick=True)
    assert all(0.0 <= row["false positives"] <= 1.0 for row in rows)
    assert [row["classifier"] for row in rows] == list(p004_simulated.NAMES)
