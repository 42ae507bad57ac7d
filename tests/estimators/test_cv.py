"""SparseSVCCV: the scores are those of separate fits, and the choice follows its rule."""

import builtins
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
)

from sparsvm import SparseSVC, SparseSVCCV, alpha_max
from sparsvm.data import canonical, training_set
from sparsvm.estimators import cv_progress
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, GroupL2, SparseGroup


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 40))
    X[:, :4] += 1.2 * rng.standard_normal((3, 4))[y]
    return X, y


def quick(**options):
    return SparseSVCCV(**{"n_alphas": 8, "eps": 0.05, "cv": 3, **options})


@pytest.mark.parametrize("penalty", [L1(), GroupL2()], ids=str)
def test_the_scores_are_those_of_separate_fits(data, penalty):
    X, y = data
    model = quick(penalty=penalty, tol=1e-8).fit(X, y)
    assert model.scores_.shape == model.n_selected_.shape == (8, 3)
    for t in (1, 4, 7):
        separate = SparseSVC(penalty=penalty, alpha=model.alphas_[t], tol=1e-8)
        expected = cross_val_score(separate, X, y, cv=StratifiedKFold(3))
        np.testing.assert_allclose(model.scores_[t], expected)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_alphas_and_scores_are_those_of_a_grid_search(data, loss):
    X, y = data
    # From large to small: of equal means both take the first.
    alphas = np.geomspace(0.2, 0.01, 6)
    ours = SparseSVCCV(loss, alphas=alphas, cv=3, tol=1e-8).fit(X, y)
    grid = GridSearchCV(SparseSVC(loss, tol=1e-8), {"alpha": alphas}, cv=3).fit(X, y)
    splits = np.stack([grid.cv_results_[f"split{fold}_test_score"] for fold in range(3)], axis=1)
    np.testing.assert_allclose(ours.scores_, splits)
    assert ours.alpha_ == grid.best_params_["alpha"]


def test_the_model_is_fitted_on_all_samples_at_the_chosen_alpha(data):
    X, y = data
    model = quick().fit(X, y)
    assert 1 - 1e-6 <= model.alphas_[0] / alpha_max(X, y) <= 1 / 0.95
    assert model.alpha_ in model.alphas_
    assert model.best_params_ == {"alpha": model.alpha_}
    again = SparseSVC(alpha=model.alpha_).fit(X, y)
    assert model.objective_ == pytest.approx(again.objective_, rel=2e-3)
    assert model.dual_gap_ <= 1e-3
    np.testing.assert_array_equal(model.coef_, model.path_.at(model.alpha_).coef_)
    np.testing.assert_array_equal(model.class_prior_, again.class_prior_)
    assert model.n_iter_ >= 1
    assert model.dual_.shape == (60, 3)
    assert model.score(X, y) == accuracy_score(y, model.predict(X))


def test_best_takes_the_largest_alpha_of_the_best_mean_and_1se_a_larger_one(data):
    X, y = data
    best, sparser = quick(n_alphas=20).fit(X, y), quick(n_alphas=20, rule="1se").fit(X, y)
    means = best.scores_.mean(axis=1)
    t = int(np.flatnonzero(best.alphas_ == best.alpha_)[0])
    assert means[t] == means.max() == best.best_score_
    assert np.all(means[:t] < means[t])
    error = best.scores_[t].std(ddof=1) / np.sqrt(3)
    s = int(np.flatnonzero(sparser.alphas_ == sparser.alpha_)[0])
    assert s <= t
    assert means[s] >= means[t] - error
    assert np.all(means[:s] < means[t] - error)


def test_parameters_of_penalty_and_loss_are_chosen_together_with_alpha(data):
    X, y = data
    grid = {"penalty__l1_ratio": [0.1, 0.9], "loss__margin": [1.0, 2.0]}
    model = quick(penalty="sparse_group", param_grid=grid).fit(X, y)
    assert len(model.cv_results_["params"]) == 4 * 8
    assert set(model.best_params_) == {"alpha", "penalty__l1_ratio", "loss__margin"}
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    assert model.cv_results_["params"][model.best_index_] == model.best_params_
    chosen = SparseSVC(
        Hinge(margin=model.best_params_["loss__margin"]),
        SparseGroup(l1_ratio=model.best_params_["penalty__l1_ratio"]),
        alpha=model.alpha_,
    )
    assert model.objective_ == pytest.approx(chosen.fit(X, y).objective_, rel=2e-3)


def test_results_are_a_table_of_candidates_and_alphas(data):
    X, y = data
    grid = [{"penalty": ["elasticnet"], "penalty__l1_ratio": [0.5, 1.0]}, {"loss": ["logistic"]}]
    model = quick(param_grid=grid).fit(X, y)
    frame = pd.DataFrame(model.cv_results_)
    assert len(frame) == 3 * 8
    row = frame.iloc[model.best_index_]
    assert row["param_alpha"] == model.alpha_
    assert row["mean_test_score"] == model.best_score_ == model.scores_.mean(axis=1).max()
    assert row["rank_test_score"] == 1
    t = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    splits = [row[f"split{f}_test_score"] for f in range(3)]
    np.testing.assert_array_equal(splits, model.scores_[t])
    assert row["mean_n_selected"] == pytest.approx(model.n_selected_[t].mean())
    assert frame["param_penalty__l1_ratio"].iloc[0] == 0.5
    assert frame["param_penalty__l1_ratio"].iloc[-1] is np.ma.masked


def test_the_path_on_all_samples_is_kept(data):
    X, y = data
    model = quick(param_grid={"penalty": ["l1", "l1/l2"]}).fit(X, y)
    assert len(model.path_) == 8
    np.testing.assert_array_equal(model.path_.alphas, model.alphas_)
    same = model.path_.at(model.alpha_)
    assert same.objective_ == pytest.approx(model.objective_, rel=2e-3)
    np.testing.assert_array_equal(same.classes_, model.classes_)


def test_folds_share_the_grid_of_all_samples_which_ends_where_nothing_changes():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = rng.standard_normal((30, 50)) + 4.0 * np.eye(3, 50)[y]
    model = SparseSVCCV(n_alphas=50, cv=3).fit(X, y)
    assert model.scores_.shape == (model.alphas_.size, 3)
    assert 3 < model.alphas_.size < 50
    given = np.geomspace(1.0, 1e-3, 50)
    assert SparseSVCCV(alphas=given, cv=3).fit(X, y).alphas_.size == 50


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "ovr_squared_hinge"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_model_is_the_paths_and_certified_again(data, loss, dtype):
    X, y = data
    model = quick(loss=loss, penalty="l1/l2").fit(X.astype(dtype), y)
    t = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    np.testing.assert_array_equal(model.coef_, model.path_.coefs[t].toarray())
    assert model.coef_.dtype == dtype
    assert model.dual_gap_ <= 1e-3
    assert model.result_.status == "optimal"
    assert model.support_.size > 0


def test_only_models_with_few_features_compete(data):
    X, y = data
    free = quick(n_alphas=20, eps=0.01).fit(X, y)
    model = quick(n_alphas=20, eps=0.01, max_features=5).fit(X, y)
    assert free.path_.n_selected.max() > 5
    assert model.path_.n_selected.max() <= 5
    assert model.selected_features_.size <= 5
    n = len(model.path_)
    np.testing.assert_array_equal(model.scores_, free.scores_[:n])
    assert free.path_.n_selected[n] > 5
    with pytest.raises(ValueError, match="max_features"):
        quick(max_features=0).fit(X, y)
    with pytest.raises(ValueError, match="uses more features already"):
        quick(penalty="l2", max_features=5).fit(X, y)


def test_l2_has_alphas_by_default(data):
    X, y = data
    model = quick(penalty="l2").fit(X, y)
    assert np.all(model.n_selected_ == 40)
    assert model.dual_gap_ <= 1e-3


def test_data_are_validated_and_hashed_once(data, monkeypatch):
    X, y = data
    calls = []
    for module, name in ((training_set, "read_samples_and_labels"), (canonical, "hash_rows")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, real=real, name=name: (calls.append(name), real(*args))[1]
        )
    quick().fit(X, y)
    assert sorted(calls) == ["hash_rows", "read_samples_and_labels"]


def test_whole_penalties_may_be_compared(data):
    X, y = data
    model = quick(param_grid={"penalty": ["l1", "l1/l2", GroupL2(groups=4)]}).fit(X, y)
    tried = [params["penalty"] for params in model.cv_results_["params"]]
    assert tried == 8 * ["l1"] + 8 * ["l1/l2"] + 8 * [GroupL2(groups=4)]
    with pytest.raises(ValueError, match="param_grid may vary"):
        quick(param_grid={"tol": [1e-3]}).fit(X, y)


def test_weights_enter_fits_scores_and_alphas(data):
    X, y = data
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.1, 3.0, y.size)
    model = quick(tol=1e-8).fit(X, y, sample_weight=weight)
    largest = alpha_max(X, y, sample_weight=weight)
    assert 1 - 1e-6 <= model.alphas_[0] / largest <= 1 / 0.95
    for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        fold = SparseSVC(alpha=model.alphas_[4], tol=1e-8)
        fold.fit(X[train], y[train], sample_weight=weight[train])
        expected = accuracy_score(y[test], fold.predict(X[test]), sample_weight=weight[test])
        assert model.scores_[4, f] == pytest.approx(expected)
    again = SparseSVC(alpha=model.alpha_, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-6)


def test_a_fold_without_weight_is_refused_with_its_number(data):
    X, y = data
    folds = [(np.arange(0, len(y), 2), np.arange(1, len(y), 2))] * 2
    weight = np.ones(len(y))
    weight[1::2] = 0.0
    with pytest.raises(ValueError, match="test samples of fold 0 have the weight zero"):
        SparseSVCCV(n_alphas=3, cv=folds).fit(X, y, sample_weight=weight)


def test_weightless_samples_leave_no_trace(data):
    X, y = data
    X2, y2 = np.vstack([X, X[:9] + 5.0]), np.concatenate([y, (y[:9] + 1) % 3])
    weight = np.concatenate([np.ones(60), np.zeros(9)])
    splits = list(StratifiedKFold(3).split(X, y))
    with_zeros = [(np.append(train, np.arange(60, 69)), test) for train, test in splits]
    a = quick(cv=splits).fit(X, y)
    b = quick(cv=with_zeros).fit(X2, y2, sample_weight=weight)
    np.testing.assert_allclose(a.alphas_, b.alphas_)
    np.testing.assert_array_equal(a.scores_, b.scores_)


def test_a_fold_without_a_class_is_tolerated(data):
    X, y = data
    y = y.copy()
    y[y == 2] = 0
    y[5] = 2
    with np.errstate(all="raise"):
        model = quick(cv=KFold(4)).fit(X, y)
    assert np.isfinite(model.scores_).all()
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    # The lonely sample's class cannot be predicted where it is left out.
    fold = [5 in test for _, test in KFold(4).split(X)].index(True)
    assert np.all(model.scores_[:, fold] <= 14 / 15)


def test_a_fold_with_one_class_predicts_it(data):
    X, y = data
    y = (y > 0).astype(int)
    ones, rest = np.flatnonzero(y == 1)[:10], np.arange(0, 60, 2)
    splits = [(ones, np.arange(60)), (np.arange(60), rest)]
    model = quick(cv=splits).fit(X, y)
    np.testing.assert_allclose(model.scores_[:, 0], y.mean())


def test_scorers_see_decision_values_of_all_classes(data):
    X, y = data

    def columns(estimator, X, y):
        return float(estimator.decision_function(X).shape[1])

    lonely = y.copy()
    lonely[lonely == 2] = 0
    lonely[5] = 2
    model = quick(scoring=columns, cv=KFold(4)).fit(X, lonely)
    assert np.all(model.scores_ == 3)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", make_scorer(accuracy_score)])
def test_any_scorer_and_splitter_serves(data, scoring):
    X, y = data
    groups = np.arange(60) // 5
    model = quick(scoring=scoring, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert model.scores_.shape == (8, 4)
    assert model.n_splits_ == 4
    with pytest.raises(TypeError, match="metadata routing"):
        quick().fit(X, y, colour=groups)


def test_folds_in_parallel_change_nothing(data):
    X, y = data
    one, two = quick().fit(X, y), quick(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_without_refit_there_are_scores_and_no_model(data):
    X, y = data
    model = quick(refit=False).fit(X, y)
    assert model.alpha_ in model.alphas_
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="not fitted"):
        model.predict(X)


def test_sparse_data_frames_and_names_of_classes(data):
    X, y = data
    labels = np.array(["x", "y", "z"])[y]
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(40)])
    plain, framed = quick().fit(X, y), quick().fit(frame, labels)
    np.testing.assert_array_equal(plain.scores_, framed.scores_)
    assert framed.feature_names_in_[3] == "gene 3"
    assert set(framed.predict(frame)) <= {"x", "y", "z"}
    # Solved closely, so that no sample between two classes can fall on either side.
    dense, sparse = (quick(tol=1e-8).fit(kind(X), y) for kind in (np.asarray, sp.csr_matrix))
    np.testing.assert_allclose(dense.scores_, sparse.scores_)


def test_given_alphas_are_used_as_they_are(data):
    X, y = data
    model = quick(alphas=[0.01, 0.1, 10.0]).fit(X, y)
    np.testing.assert_array_equal(model.alphas_, [10.0, 0.1, 0.01])
    assert np.all(model.n_selected_[0] == 0)
    l2 = quick(penalty="l2", alphas=[0.1, 0.01]).fit(X, y)
    assert np.all(l2.n_selected_ == 40)


def test_cross_validation_where_no_feature_helps_warns_of_zero_weights():
    X, y = np.ones((30, 3)), np.arange(30) % 2
    with pytest.warns(UserWarning, match="Every weight is zero"):
        model = quick().fit(X, y)
    assert not model.coef_.any()


def test_a_default_grid_that_ends_before_the_scores_do_is_told():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="smaller ones may be better. Lower eps"):
        model = SparseSVCCV("logistic", n_alphas=5, eps=0.5).fit(X, y)
    assert model.best_index_ == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Alphas of one's own end where one wants them to.
        SparseSVCCV("logistic", alphas=model.alphas_).fit(X, y)
        # Nothing would change any more where this grid ends, or it has a best alpha inside.
        assert SparseSVCCV("logistic", n_alphas=30).fit(X, y).best_index_ < 29


def test_points_that_missed_the_tolerance_are_told(data):
    X, y = data
    # Those of the paths in one sentence, and the model that is kept.
    with (
        pytest.warns(ConvergenceWarning, match="did not reach the tolerance"),
        pytest.warns(ConvergenceWarning, match=r"above tol=0\.001"),
    ):
        quick(max_iter=1, n_alphas=3).fit(X, y)


def test_progress_is_shown_with_rich_and_without(data, capsys, monkeypatch):
    X, y = data
    quick(verbose=True, n_alphas=3).fit(X, y)
    assert "12/12 models" in capsys.readouterr().out
    real = builtins.__import__

    def without_rich(name, *args, **kwargs):
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    quick(verbose=True, n_alphas=3, param_grid={"penalty": ["l1"]}).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("cross-validation: 12/12 models")
    assert "fold 3/3: best score" in lines[-1]
    assert "penalty='l1'" in lines[-1]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_counts_models_within_a_fold(data, n_jobs, monkeypatch):
    X, y = data
    seen = []
    monkeypatch.setattr(cv_progress, "_shown", lambda: nullcontext(lambda *told: seen.append(told)))
    monkeypatch.setattr(cv_progress, "_READING_PAUSE", 1e-3)
    quick(verbose=True, n_alphas=30, cv=2, n_jobs=n_jobs).fit(X, y)
    solved = [told[0] for told in seen]
    assert solved == sorted(solved)
    assert seen[-1][:2] == (90, 90)
    assert set(solved) - {0, 30, 60, 90}  # not only between folds


def test_a_failing_fit_leaves_the_estimator_as_it_was(data):
    X, y = data
    model = quick().fit(X, y)
    before = pickle.dumps(model.scores_)

    def broken(estimator, X, y):
        raise RuntimeError("the scorer is out of order")

    model.set_params(scoring=broken)
    with pytest.raises(RuntimeError, match="out of order"):
        model.fit(X[:, :5], y)
    assert pickle.dumps(model.scores_) == before
    assert model.n_features_in_ == 40


def test_clone_and_pickle(data):
    X, y = data
    model = quick(penalty=GroupL2(groups=2)).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert not hasattr(clone(model), "coef_")
    assert clone(model).get_params()["penalty__groups"] == 2


def test_metadata_routing_reaches_splitter_and_scorer(data):
    X, y = data
    weight = np.random.default_rng(2).uniform(0.5, 2.0, y.size)
    groups = np.arange(60) // 5
    plain = quick(cv=GroupKFold(3)).fit(X, y, sample_weight=weight, groups=groups)
    with config_context(enable_metadata_routing=True):
        routed = quick(cv=GroupKFold(3))
        routed.fit(X, y, sample_weight=weight, groups=groups)
        np.testing.assert_array_equal(plain.scores_, routed.scores_)
        deaf = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        unweighted = quick(cv=GroupKFold(3), scoring=deaf)
        unweighted.fit(X, y, sample_weight=weight, groups=groups)
        assert not np.array_equal(unweighted.scores_, routed.scores_)


def test_the_logistic_loss_is_scored_by_its_probabilities(data):
    X, y = data
    model = quick(loss="logistic", scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.all(model.scores_ < 0.0)
    assert not hasattr(quick().fit(X, y), "predict_proba")


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_classes_of_one_sample_each_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"Every class has one sample.*SparseSVC fits"):
        SparseSVCCV().fit(np.eye(6), np.arange(6))


def test_default_folds_are_fewer_where_classes_are_small():
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    X = rng.standard_normal((10, 3)) + np.eye(3)[y]
    with pytest.warns(UserWarning, match="more than 4 samples: cross-validation has 4 folds"):
        model = SparseSVCCV(n_alphas=3).fit(X, y)
    assert model.n_splits_ == 4
    assert SparseSVCCV(n_alphas=3).fit(np.vstack([X, X]), np.r_[y, y]).n_splits_ == 5


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_smooth_losses_are_cross_validated_along_native_paths(penalty):
    X, y = load_iris(return_X_y=True)
    model = SparseSVCCV("logistic", penalty, n_alphas=8, cv=3).fit(X, y)
    whole = SparseSVC("logistic", penalty, alpha=model.alpha_, tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(whole.objective_, rel=1.1e-3)
    assert model.score(X, y) > 0.9


def test_where_all_samples_have_a_zero_model_folds_are_scored_with_zero_models():
    X, y = make_classification(
        150, 12, n_informative=5, n_redundant=0, n_classes=4, class_sep=0.7, random_state=0
    )
    chosen = SparseSVCCV(penalty="l1/l2", n_alphas=10, cv=3, tol=1e-5).fit(X, y)
    first = chosen.alphas_[0]
    assert chosen.path_.n_selected[0] == 0
    train = next(StratifiedKFold(3).split(X, y))[0]
    fold = SparseSVC(penalty="l1/l2", alpha=first, tol=1e-5).fit(X[train], y[train])
    assert fold.selected_features_.size > 0  # the same alpha on fewer samples
    assert not chosen.n_selected_[0].any()
    assert chosen.cv_results_["mean_test_score"][0] < 0.3 < chosen.best_score_
    assert chosen.selected_features_.size > 0


def test_a_zero_model_keeps_unpenalised_features_in_the_folds():
    X, y = make_classification(
        150, 12, n_informative=5, n_redundant=0, n_classes=4, class_sep=0.7, random_state=0
    )
    weights = np.ones(12)
    weights[3] = 0.0
    chosen = SparseSVCCV("logistic", L1(weights=weights), n_alphas=5, cv=3).fit(X, y)
    assert chosen.path_.n_selected[0] == 1
    assert np.all(chosen.n_selected_[0] == 1)
