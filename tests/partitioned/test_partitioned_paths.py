"""Paths and cross-validation over partitions are those of all rows, certified point by point."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from sparsvm import SparseSVC as OnOneMachine
from sparsvm import SparseSVCCV as CVOnOneMachine
from sparsvm import alpha_max, load_model, save_model
from sparsvm import svm_path as in_memory_path
from sparsvm.losses import Hinge
from sparsvm.partitioned import SparseSVC, SparseSVCCV, split_rows, svm_path
from sparsvm.partitioned.survey import folds_of
from sparsvm.penalties import L1


def _data(n=400, d=10, K=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.zeros((d, K))
    truth[:4] = rng.standard_normal((4, K))
    X = rng.standard_normal((n, d))
    return X, (X @ truth + 0.7 * rng.standard_normal((n, K))).argmax(axis=1)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "elasticnet"])
def test_every_point_of_a_path_is_the_optimum_of_all_rows(loss, penalty):
    X, y = _data()
    path = svm_path(
        split_rows(X, y, rows=90), loss=loss, penalty=penalty, n_alphas=4, eps=0.05, tol=1e-4
    )
    largest = alpha_max(X, y, loss=loss, penalty=penalty)
    assert largest * (1 - 1e-9) <= path.alphas[0] <= 1.3 * largest
    assert path.n_selected[0] == 0
    assert path.converged and path.gaps.max() <= 1e-4
    for t, alpha in enumerate(path.alphas[1:], 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class that is not predicted yet
            whole = OnOneMachine(loss, penalty, alpha=alpha, tol=1e-6).fit(X, y)
        assert path.objectives[t] == pytest.approx(whole.objective_, rel=1.1e-4)
    assert path[-1].score(X, y) > 0.7


def test_paths_take_margins_alphas_and_a_limit_of_features():
    X, y = _data(K=2)
    margin = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
    given = {"loss": "squared_hinge", "sample_margin": margin}
    path = svm_path(X, y, n_alphas=3, eps=0.1, **given)
    assert path.n_selected[0] == 0
    assert path.alphas[0] == pytest.approx(alpha_max(X, y, **given))
    limited = svm_path(X, y, alphas=[0.001, 0.1, 0.3], max_features=2)
    assert limited.alphas.max() == 0.3
    assert limited.n_selected.max() <= 2
    ridge = svm_path(split_rows(X, y, rows=100), penalty="l2", n_alphas=2, eps=0.1)
    assert ridge.converged
    with pytest.raises(ValueError, match="convex"):
        svm_path(X, y, loss="ramp")
    with pytest.raises(ValueError, match="n_alphas"):
        svm_path(X, y, n_alphas=0)


def _splits(parts, folds):
    """The folds of partitions as rows of the whole."""
    fold = np.concatenate([folds_of(np.asarray(p.y), at, folds) for at, p in enumerate(parts)])
    rows = np.arange(fold.size)
    return [(rows[fold != f], rows[fold == f]) for f in range(folds)], fold


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_cross_validation_scores_what_one_machine_scores(loss):
    X, y = _data()
    weight = np.random.default_rng(2).integers(0, 3, y.size).astype(float)
    labels = np.array(["a", "b", "c"])[y]
    parts = split_rows(X, labels, weight, rows=110)
    splits, _ = _splits(parts, 3)
    options = {"alphas": [0.1, 0.03, 0.01], "tol": 1e-5, "class_weight": "balanced"}
    whole = CVOnOneMachine(loss, cv=splits, **options).fit(X, labels, weight)
    model = SparseSVCCV(loss, cv=3, **options).fit(parts)
    assert model.scores_ == pytest.approx(whole.scores_, abs=0.02)
    assert model.path_.objectives == pytest.approx(whole.path_.objectives, rel=2.1e-5)
    assert model.alpha_ in model.alphas_
    assert model.best_score_ == pytest.approx(model.scores_[model.best_index_].mean())
    assert model.cv_results_["mean_test_score"] == pytest.approx(model.scores_.mean(axis=1))
    assert model.dual_gap_ <= 1e-5
    fitted = SparseSVC(loss, alpha=model.alpha_, tol=1e-5, class_weight="balanced").fit(parts)
    assert model.objective_ == pytest.approx(fitted.objective_, rel=2e-5)
    assert np.array_equal(model.predict(X), model.to_local().predict(X))


def test_folds_have_their_share_of_every_class_and_do_not_depend_on_chance():
    X, y = _data(n=420)
    parts = split_rows(X, y, rows=60)
    _, fold = _splits(parts, 5)
    _, again = _splits(split_rows(X, y, rows=60), 5)
    assert np.array_equal(fold, again)
    for part in range(0, 420, 60):
        for label in range(3):
            members = fold[part : part + 60][y[part : part + 60] == label]
            counts = np.bincount(members, minlength=5)
            assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_where_all_rows_have_a_zero_model_folds_are_scored_with_zero_models(loss):
    X, y = make_classification(
        150, 12, n_informative=5, n_redundant=0, n_classes=4, class_sep=0.7, random_state=0
    )
    parts = split_rows(X, y, rows=40)
    splits, _ = _splits(parts, 3)
    options = {"penalty": "l1/l2", "n_alphas": 5, "eps": 0.1, "tol": 1e-5}
    model = SparseSVCCV(loss, cv=3, **options).fit(parts)
    assert model.path_.n_selected[0] == 0
    assert not model.n_selected_[0].any()
    whole = CVOnOneMachine(loss, cv=splits, **options | {"alphas": model.alphas_}).fit(X, y)
    assert model.scores_ == pytest.approx(whole.scores_, abs=0.03)
    assert model.selected_features_.size > 0


def test_a_zero_model_keeps_unpenalised_features_in_the_folds():
    X, y = _data(n=200, K=2)
    free = L1(weights=[1.0, 0.0] + [1.0] * (X.shape[1] - 2))
    model = SparseSVCCV(penalty=free, alphas=[2.0, 0.01], cv=2).fit(split_rows(X, y, rows=60))
    assert model.path_.n_selected[0] == 1
    assert np.all(model.n_selected_[0] == 1)


def test_a_class_that_a_fold_lacks_is_never_predicted_there():
    X, y = _data(n=120)
    y = np.where(np.arange(120) == 7, 9, y)  # one sample of its own class
    costs = np.ones((4, 4)) - np.eye(4)
    model = SparseSVCCV(Hinge(costs), alphas=[0.05], cv=3).fit(split_rows(X, y, rows=50))
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert 0.5 < model.best_score_ < 1.0


def test_cross_validation_of_scaled_sparse_rows_is_saved_like_any_model(tmp_path):
    X, y = _data()
    X = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0).astype(np.float32))
    parts = split_rows(X, y, rows=150)
    model = SparseSVCCV("hinge", L1(weights="scale"), n_alphas=4, eps=0.05, cv=2, rule="1se")
    model.fit(parts)
    assert model.coef_.dtype == np.float32
    assert model.best_index_ <= int(np.argmax(model.scores_.mean(axis=1)))
    save_model(model, tmp_path / "model.safetensors")
    assert np.array_equal(load_model(tmp_path / "model.safetensors").predict(X), model.predict(X))


def test_a_zero_weight_class_keeps_the_costs_of_the_others():
    X, y = _data()
    costs = [[0, 1, 3], [1, 0, 1], [2, 1, 0]]
    weight = np.where(y == 1, 0.0, 1.0)
    options = {"alpha": 0.02, "tol": 1e-5}
    whole = OnOneMachine(Hinge(costs), **options).fit(X, y, weight)
    model = SparseSVC(Hinge(costs), **options).fit(split_rows(X, y, weight, rows=90))
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-5)


def test_a_time_limit_ends_a_fit_with_a_certified_model(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    monkeypatch.setattr("sparsvm.partitioned.hinge.SINGLES", 5)
    monkeypatch.setattr("sparsvm.partitioned.hinge.GROUPS", 5)
    X, y = _data()
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model = SparseSVC(alpha=0.01, tol=1e-7, time_limit=1e-6).fit(split_rows(X, y, rows=90))
    whole = OnOneMachine(alpha=0.01, tol=1e-8).fit(X, y)
    assert model.result_.dual_objective <= whole.objective_ <= model.objective_


def test_frames_give_their_names_to_paths_and_models():
    pd = pytest.importorskip("pandas")
    X, y = _data(n=200)
    names = [f"gene {j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    parts = [(table[:90], y[:90]), (table[90:], y[90:])]
    assert svm_path(parts, n_alphas=2, eps=0.1).feature_names.tolist() == names
    model = SparseSVC(alpha=0.05).fit(parts)
    assert set(model.selected_feature_names_) <= set(names)
    assert model.feature_names_in_.tolist() == names
    model.fit([(X[:90], y[:90]), (X[90:], y[90:])])
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_gathered_rows_have_the_paths_of_memory_and_folds_that_are_left_out(monkeypatch, loss):
    monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 1 << 20)
    monkeypatch.setattr("sparsvm.partitioned.prepare.SAMPLE_ROWS", 30)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 60)), np.arange(90) % 2  # no feature tells the classes
    alphas = [0.1, 0.02, 0.004]
    parts = split_rows(X, y, rows=40)
    path = svm_path(parts, loss=loss, alphas=alphas, tol=1e-4)
    whole = in_memory_path(X, y, loss=loss, alphas=alphas, tol=1e-6)
    assert path.gaps.max() <= 1e-4
    assert path.objectives == pytest.approx(whole.objectives, rel=1.1e-4)
    model = SparseSVCCV(loss, alphas=alphas, cv=3, tol=1e-4).fit(parts)
    assert model.path_[2].score(X, y) > 0.95
    assert np.all(model.cv_results_["mean_test_score"] < 0.7)
    monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 0)
    divided = SparseSVCCV(loss, alphas=alphas, cv=3, tol=1e-4).fit(parts)
    assert model.scores_ == pytest.approx(divided.scores_, abs=0.11)
