"""The features, groups and weights of a model by name, and the transformer that keeps them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsvm import (
    ConstrainedSparseSVC,
    MaxMarginSVC,
    SparseSelector,
    SparseSVC,
    SparseSVCCV,
    load_model,
    save_model,
)
from sparsvm.penalties import L1, GroupL2

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 20))
Y = np.arange(60) % 3
X[np.arange(60), Y] += 2.0
FRAME = pd.DataFrame(X).rename(columns="gene {}".format)
LABELS = np.array(["a", "b", "c"])[Y]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_frame_holds_every_weight_that_is_not_zero(library, sparse):
    model = SparseSVC(alpha=0.1).fit(FRAME, LABELS)
    expected = {
        (f"gene {j}", label): model.coef_[k, j]
        for k, label in enumerate("abc")
        for j in range(20)
        if model.coef_[k, j] != 0.0
    }
    if sparse:
        model.sparsify()
    frame = model.coef_frame(library)
    assert isinstance(frame, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(frame.columns) == ["feature", "class", "weight", "group"]
    pairs = zip(frame["feature"], frame["class"], strict=True)
    assert dict(zip(pairs, frame["weight"], strict=True)) == expected
    assert list(frame["group"]) == list(frame["feature"])
    assert list(dict.fromkeys(frame["feature"])) == list(model.selected_feature_names_)


def test_with_two_classes_the_weights_belong_to_the_second():
    model = SparseSVC(alpha=0.1).fit(X[Y < 2], LABELS[Y < 2])
    frame = model.coef_frame()
    assert set(frame["class"]) == {"b"}
    assert list(frame["feature"]) == [f"x{j}" for j in model.selected_features_]
    assert frame["weight"].tolist() == model.coef_[0, model.selected_features_].tolist()


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (5, [j // 5 for j in range(20)]),
        (["even", "odd"] * 10, ["even", "odd"] * 10),
        ({"gene 0": "one", "gene 1": "one"}, ["one"] * 2 + [f"gene {j}" for j in range(2, 20)]),
        ([["gene 0", "gene 1"], ["gene 2"]], [0, 0, 1, *range(2, 19)]),
        (None, [f"gene {j}" for j in range(20)]),
    ],
)  # fmt: skip
def test_groups_are_told_by_their_labels(groups, labels):
    model = SparseSVC(penalty=GroupL2(groups=groups), alpha=0.3).fit(FRAME, LABELS)
    used = {labels[j] for j in model.selected_features_}
    assert set(model.selected_groups_) == used
    frame = model.coef_frame()
    assert all(
        labels[list(FRAME.columns).index(feature)] == group
        for feature, group in zip(frame["feature"], frame["group"], strict=True)
    )
    assert 0 < len(used) < len(set(labels)) or len(used) == len(set(labels)) <= 2


@pytest.mark.parametrize(
    "model", [SparseSVCCV(n_alphas=4, cv=3), ConstrainedSparseSVC(eta=0.5), MaxMarginSVC()], ids=str
)
def test_every_estimator_has_a_frame_and_names(model):
    model.fit(FRAME, LABELS)
    assert len(model.coef_frame()) == np.count_nonzero(model.coef_)
    names = [f"gene {j}" for j in model.selected_features_]
    assert list(model.selected_feature_names_) == names == list(model.selected_groups_)


def test_an_unknown_library_is_refused():
    model = SparseSVC(alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="'pandas', 'polars' or None; got 'spark'"):
        model.coef_frame("spark")


# ---------------------------------------------------------------------- SparseSelector


@pytest.mark.filterwarnings("ignore:Every weight is zero:UserWarning")
@pytest.mark.filterwarnings("ignore:No features? (is|were) selected:UserWarning")
@parametrize_with_checks(
    [SparseSelector(SparseSVC()), SparseSelector(SparseSVC(penalty="l1/l2"), max_features=1)]
)
def test_scikit_learn_check_of_the_selector(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame])
def test_exactly_the_features_in_use_are_kept(kind):
    model = SparseSVC(penalty="l1/l2", alpha=0.02).fit(X, Y)
    selector = SparseSelector(SparseSVC(penalty="l1/l2", alpha=0.02)).fit(kind(X), Y)
    assert np.array_equal(selector.selected_features_, model.selected_features_)
    kept = selector.transform(kind(X))
    kept = kept.toarray() if sp.issparse(kept) else np.asarray(kept)
    assert np.array_equal(kept, X[:, model.selected_features_])
    # What this is for: the usual transformer drops features that the model uses.
    usual = SelectFromModel(SparseSVC(penalty="l1/l2", alpha=0.02)).fit(X, Y)
    assert usual.get_support().sum() < selector.get_support().sum()


def test_names_pass_through_a_pipeline():
    selector = SparseSelector(SparseSVC(alpha=0.1))
    whole = make_pipeline(StandardScaler(), selector, LogisticRegression())
    whole.set_output(transform="pandas").fit(FRAME, LABELS)
    names = list(whole[-1].feature_names_in_)
    assert names == list(whole[1].selected_feature_names_) == list(whole[1].get_feature_names_out())
    assert set(names) <= set(FRAME.columns)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_at_most_max_features_are_kept_and_the_model_uses_exactly_those(limit):
    # Three features carry the signal.
    selector = SparseSelector(SparseSVC("logistic", "l1/l2", alpha=1e-3), max_features=limit)
    selector.fit(FRAME, LABELS)
    assert 1 <= selector.selected_features_.size <= limit
    assert set(selector.selected_features_[:3]) <= {0, 1, 2}
    assert selector.estimator_.dual_gap_ <= 1e-3
    assert np.array_equal(selector.estimator_.selected_features_, selector.selected_features_)
    if limit == 1:
        whole = SparseSVC("logistic", "l1/l2", alpha=1e-3).fit(X, Y)
        assert whole.selected_features_.size > 5
    loose = SparseSelector(SparseSVC(penalty="l1/l2", alpha=0.3), max_features=20).fit(X, Y)
    plain = SparseSVC(penalty="l1/l2", alpha=0.3).fit(X, Y)
    assert np.array_equal(loose.estimator_.coef_, plain.coef_)


def test_cross_validation_chooses_among_models_of_at_most_max_features():
    inner = SparseSVCCV("squared_hinge", "l1/l2", n_alphas=15, cv=3)
    selector = SparseSelector(inner, max_features=3).fit(X, Y)
    assert set(selector.selected_features_) <= {0, 1, 2}
    assert selector.estimator_.max_features == 3 and inner.max_features is None


def test_features_that_enter_at_once_are_told():
    # Three classes of equal size: the hinge is not smooth at zero, and no feature is the first.
    selector = SparseSelector(SparseSVC(penalty="l1/l2"), max_features=1)
    with pytest.warns(UserWarning, match="several enter the path of SparseSVC at once"):
        selector.fit(X, Y)
    assert selector.selected_features_.size == 0


def test_sample_weights_reach_the_model():
    weight = 1.0 + (Y == 1)
    plain = SparseSVC(alpha=0.1).fit(X, Y, sample_weight=weight)
    selector = SparseSelector(SparseSVC(alpha=0.1)).fit(X, Y, sample_weight=weight)
    assert np.array_equal(selector.estimator_.coef_, plain.coef_)


def test_a_grid_search_reaches_the_model_inside():
    whole = make_pipeline(SparseSelector(SparseSVC()), LogisticRegression())
    grid = {"sparseselector__estimator__alpha": [0.01, 0.1]}
    search = GridSearchCV(whole, grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.7


def test_what_cannot_be_limited_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="SparseSVC or SparseSVCCV, but MaxMarginSVC"):
        SparseSelector(MaxMarginSVC(), max_features=2).fit(X, Y)
    free = SparseSVC(penalty=L1(weights=[0.0] * 3 + [1.0] * 17))
    with pytest.raises(ValueError, match="leaves more of them unpenalised"):
        SparseSelector(free, max_features=2).fit(X, Y)


def test_a_selector_is_saved_and_loaded(tmp_path):
    selector = SparseSelector(SparseSVC(alpha=0.3), max_features=4).fit(FRAME, LABELS)
    save_model(selector, tmp_path / "selector")
    same = load_model(tmp_path / "selector")
    assert repr(same) == repr(selector)
    assert same.transform(FRAME).tobytes() == selector.transform(FRAME).tobytes()
    assert list(same.get_feature_names_out()) == list(selector.get_feature_names_out())
    with pytest.raises(ValueError, match="estimator_ is no fitted estimator of sparsvm"):
        other = SparseSelector(SparseSVC(alpha=0.1)).fit(X, Y)
        other.estimator_ = LogisticRegression().fit(X, Y)
        save_model(other, tmp_path / "other")
