"""What a report says, and that nothing in it comes from anywhere else."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsvm import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseSVC,
    SparseSVCCV,
    StabilitySelection,
    report,
    svm_path,
)
from sparsvm.penalties import GroupL2
from sparsvm.reporting.predictions import accuracy_interval, margins_of
from sparsvm.reporting.subject import read_subject

pytest.importorskip("plotly")
pytest.importorskip("jinja2")
IRIS = load_iris()
X, y = IRIS.data[::2], IRIS.target_names[IRIS.target[::2]]
X_TEST, Y_TEST = IRIS.data[1::2], IRIS.target_names[IRIS.target[1::2]]


def page_of(model, *test, folder, **options):
    text = report(model, *test, path=folder / "report.html", **options).read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.S)
    visible = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", visible))
    return words, json.loads(data.group(1)), visible


def test_the_page_tells_what_was_fitted_and_what_is_proven(tmp_path):
    model = SparseSVC(penalty="l1/l2", alpha=0.05).fit(X, y)
    words, _, _ = page_of(model, X_TEST, Y_TEST, folder=tmp_path, title="Flowers")
    assert "Flowers" in words and f"uses {len(model.selected_features_)} of 4 features" in words
    assert "alpha = 0.05" in words
    assert f"The objective of this model is {model.objective_:.6g}" in words
    assert f"{model.result_.dual_objective:.6g}: a dual point proves it" in words
    right = round(accuracy_score(Y_TEST, model.predict(X_TEST)) * len(Y_TEST))
    assert f"{right} of 75 test samples are classified correctly" in words
    assert "load_model(&#34;model.safetensors&#34;)" in words


def test_the_page_asks_nothing_of_the_network(tmp_path):
    model = SparseSVC(alpha=0.05).fit(X, y)
    _, _, visible = page_of(model, X_TEST, Y_TEST, folder=tmp_path)
    assert not re.search(r'(?:src|href)="(?!#|data:,)', visible)


def test_the_confusion_matrix_is_scikit_learns(tmp_path):
    model = SparseSVC(alpha=0.3).fit(X, y)
    _, _, visible = page_of(model, X_TEST, Y_TEST, folder=tmp_path)
    cells = re.findall(r'<td class="(?:hit|miss|none)"[^>]*>(\d+)</td>', visible)
    expected = confusion_matrix(Y_TEST, model.predict(X_TEST), labels=model.classes_)
    assert list(map(int, cells)) == expected.ravel().tolist()


def test_features_are_ranked_by_weight_times_standard_deviation(tmp_path):
    units = np.array([1.0, 1e-3, 1.0, 1e3])
    model = SparseSVC(alpha=0.02).fit(X * units, y)
    _, data, _ = page_of(model, X_TEST * units, Y_TEST, folder=tmp_path)
    sizes = np.linalg.norm(model.coef_ * (X_TEST * units).std(axis=0), axis=0)
    order = [j for j in np.argsort(-sizes) if sizes[j] > 0]
    assert data["features"]["names"] == [f"x{j}" for j in order]
    shown = np.array(data["features"]["drawn"])
    np.testing.assert_allclose(np.linalg.norm(shown, axis=0), sizes[order])


def test_a_cross_validated_model_shows_its_scores_and_its_path(tmp_path):
    model = SparseSVCCV(n_alphas=8).fit(X, y)
    words, data, _ = page_of(model, X_TEST, Y_TEST, folder=tmp_path)
    path = data["path"]
    np.testing.assert_allclose(path["scores"], model.scores_.mean(axis=1), rtol=1e-4)
    assert path["alphas"][path["chosen"]] == pytest.approx(model.alpha_, rel=1e-4)
    sizes = np.linalg.norm(model.coef_ * X_TEST.std(axis=0), axis=0)
    chosen = {n: line[path["chosen"]] for n, line in zip(path["names"], path["lines"], strict=True)}
    for j in model.selected_features_:
        assert chosen[f"x{j}"] == pytest.approx(sizes[j], rel=0.05)
    assert "of 8 values in a cross-validation of 5 folds" in words


def test_a_path_shows_its_last_model_and_all_the_others(tmp_path):
    path = svm_path(X, y, n_alphas=6)
    words, data, _ = page_of(path, X_TEST, Y_TEST, folder=tmp_path)
    assert f"Proven to be within {100 * path.gaps[-1]:.1g} %" in words
    assert data["path"]["chosen"] == len(path) - 1
    assert data["path"]["selected"] == path.n_selected.tolist()


def test_stability_shows_the_shares_and_the_bounds(tmp_path):
    stable = StabilitySelection(n_resamples=5, max_features=2, random_state=0).fit(X, y)
    model = SparseSVC(alpha=0.05).fit(X, y)
    words, data, _ = page_of(model, X_TEST, Y_TEST, folder=tmp_path, stability=stable)
    shown = dict(zip(data["stability"]["names"], data["stability"]["probabilities"], strict=True))
    expected = {f"x{j}": p for j, p in enumerate(stable.selection_probabilities_) if p > 0}
    assert shown == pytest.approx(expected)
    assert "from 10 resamples" in words
    assert f"{max(stable.error_bounds().values()):.2g} of them are expected to be" in words
    narrow = StabilitySelection(n_resamples=2).fit(X[:, :2], y)
    with pytest.raises(ValueError, match="fitted on 2 features, but the model on 4"):
        report(model, path=tmp_path / "r.html", stability=narrow)


def test_margins_are_those_of_the_true_class_against_the_best_other():
    model = SparseSVC(alpha=0.05).fit(X, y)
    test = read_subject(model, X_TEST, Y_TEST).test
    scores, codes = model.decision_function(X_TEST), IRIS.target[1::2]
    expected = [row[k] - max(np.delete(row, k)) for row, k in zip(scores, codes, strict=True)]
    np.testing.assert_allclose(margins_of(test), expected)


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (10, 10, 0.7225, 1.0)],
)
def test_the_interval_of_an_accuracy_is_wilsons(correct, total, low, high):
    # The values that binom.test and prop.test's references give for Wilson's interval.
    assert accuracy_interval(correct, total) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (ConstrainedSparseSVC(eta=0.2), "whose mean hinge loss is at most 0.2"),
        (MaxMarginSVC(), "The smallest margin between two classes is"),
        (SparseSVC(penalty="l0", alpha=0.1), "A better model elsewhere is possible"),
        (SparseSVC("logistic", GroupL2(groups=2), alpha=0.01), "multinomial logistic loss"),
        (
            make_pipeline(StandardScaler(), SparseSVC(alpha=0.1)),
            "the pipeline applies StandardScaler",
        ),
        (GridSearchCV(SparseSVC(), {"alpha": [0.1]}, cv=2), "alpha = 0.1"),
    ],
)
def test_every_kind_of_model_has_a_report(model, sentence, tmp_path):
    words, _, _ = page_of(model.fit(X, y), X_TEST, Y_TEST, folder=tmp_path)
    assert sentence in words
    assert sentence in page_of(model, folder=tmp_path)[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_that_has_not_converged_says_so(tmp_path):
    model = SparseSVC(alpha=1e-4, solver="fbpd", max_iter=3, tol=1e-6).fit(X, y)
    words, _, _ = page_of(model, folder=tmp_path)
    assert "Not solved to the tolerance" in words and "Proven to be" not in words


def test_two_classes_many_classes_sparse_data_and_unknown_labels(tmp_path):
    cancer = load_breast_cancer()
    model = SparseSVC(alpha=0.1).fit(sp.csr_array(cancer.data[::2]), cancer.target[::2])
    words, data, _ = page_of(model, sp.csr_array(cancer.data), cancer.target, folder=tmp_path)
    assert "A positive one speaks for 1, a negative one for 0" in words
    assert np.shape(data["features"]["drawn"])[0] == 1

    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 5)
    Z = np.eye(20)[labels] + 0.3 * rng.normal(size=(100, 20))
    model = SparseSVC(alpha=0.01).fit(Z, labels)
    labels[:2] = 99
    words, _, _ = page_of(model, Z, labels, folder=tmp_path)
    assert "2 of the test samples belong to classes that the model was not trained on" in words
    assert "Recall and precision of all 20 classes" in words


@pytest.mark.filterwarnings("ignore:Every weight is zero")
def test_a_model_of_zeros_has_a_report(tmp_path):
    words, _, _ = page_of(SparseSVC(alpha=1e3).fit(X, y), X_TEST, Y_TEST, folder=tmp_path)
    assert "Every weight is zero" in words


def test_what_cannot_be_reported_is_refused_in_a_sentence(tmp_path):
    model, path = SparseSVC(alpha=0.1).fit(X, y), tmp_path / "report.html"
    with pytest.raises(ValueError, match="got LogisticRegression"):
        report(LogisticRegression().fit(X, y), path=path)
    with pytest.raises(ValueError, match="go together"):
        report(model, X_TEST, path=path)
    with pytest.raises(ValueError, match="75 samples, but y_test has 3"):
        report(model, X_TEST, Y_TEST[:3], path=path)
    with pytest.raises(ValueError, match="No label of y_test is known"):
        report(model, X_TEST, np.zeros(75), path=path)
    with pytest.raises(FileNotFoundError):
        report(model, path=tmp_path / "missing" / "report.html")
    assert list(tmp_path.iterdir()) == []
