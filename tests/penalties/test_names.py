"""Weights, groups and costs follow the labels of pandas and polars objects."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from sparsvm import ConstrainedSparseSVC, SparseSVC, SparseSVCCV, alpha_max, certify, svm_path
from sparsvm.losses import Hinge, Logistic, Ramp, SquaredHinge
from sparsvm.penalties import L1, ElasticNet, GroupL2, GroupLinf, SparseGroup

NAMES = ["age", "sex", "height", "blood", "pulse"]
COSTS = np.array([[0, 1, 2], [3, 0, 1], [1, 4, 0.0]])


def frame(seed=0, kind=pd.DataFrame):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "some", "yes"])[np.arange(60) % 3]
    X = rng.standard_normal((60, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    X[:, :3] += np.eye(3)[np.arange(60) % 3]
    return (pd.DataFrame(X, columns=NAMES) if kind is pd.DataFrame else pl.DataFrame(X, NAMES)), y


def omega(penalty, names=NAMES, **options):
    return penalty.resolve(5, 3, feature_names=names, **options).omega.tolist()


def groups(penalty, names=NAMES):
    return penalty.resolve(5, 3, feature_names=names).groups.tolist()


WEIGHTS = pd.Series([1.0, 2.0, 3.0, 4.0, 0.0], index=NAMES)


def test_a_labelled_series_of_weights_is_aligned_with_the_columns():
    assert omega(L1(weights=WEIGHTS.iloc[::-1])) == [1.0, 2.0, 3.0, 4.0, 0.0]
    assert omega(L1(weights=pd.Series([5.0, 4, 3, 2, 1]))) == [5.0, 4.0, 3.0, 2.0, 1.0]
    by_position = pd.Series([5.0, 4, 3, 2, 1], index=[4, 3, 2, 1, 0])
    assert omega(L1(weights=by_position)) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert omega(L1(weights=by_position), names=None) == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_dictionary_gives_the_weights_of_some_features():
    assert omega(L1(weights={"age": 0, "blood": 3})) == [0.0, 1.0, 1.0, 3.0, 1.0]
    assert omega(ElasticNet(weights={3: 0.5}), names=None) == [1.0, 1.0, 1.0, 0.5, 1.0]
    assert omega(L1(weights={})) == [1.0] * 5


def test_scale_is_multiplied_by_what_names_say():
    std = np.array([1.0, 2.0, 3.0, 0.0, 5.0])
    penalty = L1(weights=("scale", {"age": 0, "sex": 10}))
    assert penalty.needs_column_std
    assert omega(penalty, column_std=std) == [0.0, 20.0, 3.0, 1.0, 5.0]
    shuffled = WEIGHTS.iloc[[2, 0, 1, 4, 3]]
    assert omega(L1(weights=("scale", shuffled)), column_std=std) == [1.0, 4.0, 9.0, 4.0, 0.0]


def test_groups_by_name():
    expected = [1, 1, 2, 0, 0]
    labels = {"pulse": "body", "blood": "body", "age": "person", "sex": "person", "height": "size"}
    assert groups(GroupL2(labels)) == expected
    assert groups(GroupL2(pd.Series(labels))) == expected
    assert groups(GroupLinf([["blood", "pulse"], ["sex", "age"], ["height"]])) == expected
    assert groups(GroupLinf([[3, 4], [1, 0], {2}]), names=None) == expected


def test_features_that_groups_leave_out_are_groups_by_themselves():
    assert groups(SparseGroup(groups=[["pulse", "sex"]])) == [1, 0, 2, 3, 0]
    left_out = groups(GroupL2({"pulse": "body", "sex": "body"}))
    assert left_out[1] == left_out[4]
    assert len(set(left_out)) == 4
    assert len(set(groups(GroupL2({4: 0, 1: 0}), names=None))) == 4


def test_weights_by_the_labels_of_groups():
    labels = {"pulse": "body", "blood": "body", "age": "person", "sex": "person", "height": "size"}
    assert omega(GroupL2(labels, weights={"body": 2})) == [1.0, 1.0, 1.0, 2.0, 2.0]
    by_group = pd.Series([3.0, 2.0, 1.0], index=["size", "person", "body"])
    assert omega(GroupL2(labels, weights=by_group)) == [2.0, 2.0, 3.0, 1.0, 1.0]
    assert omega(GroupL2(labels, weights={"age": 0})) == [0.0, 1.0, 1.0, 1.0, 1.0]
    alone = GroupL2({"pulse": "body", "blood": "body"}, weights={"age": 0, "body": 2})
    assert omega(alone) == [0.0, 1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("penalty", "names", "sentence"),
    [
        (L1(weights={"agee": 0}), NAMES, "'agee', which X has not; its features are 'age', 'sex'"),
        (L1(weights={"age": 0}), None, "'age', but X has no feature names"),
        (L1(weights={5: 0}), NAMES, "only the columns 0 to 4"),
        (L1(weights={-1: 0}), NAMES, "only the columns 0 to 4"),
        (L1(weights=WEIGHTS.iloc[:4]), NAMES, "no entry for 'pulse'"),
        (L1(weights=WEIGHTS.iloc[[0, 1, 2, 3, 3]]), NAMES, "'blood' more than once"),
        (L1(weights=WEIGHTS.iloc[::-1]), None, "no feature names"),
        (L1(weights={"age": "much"}), NAMES, "array of numbers"),
        (L1(weights={"age": -1}), NAMES, "not negative; weight 0"),
        (L1(weights={"age": 0}), ["age"] * 5, "several columns of that name"),
        (L1(weights=("std", {"age": 0})), NAMES, "'scale' or 'sqrt_size'; got 'std'"),
        (GroupL2([["age", "age"], ["sex"]]), NAMES, "'age' more than once"),
        (GroupL2([["age"], ["age", "sex"]]), NAMES, "groups overlap"),
        (GroupL2({"weight": 1}), NAMES, "'weight', which X has not"),
        (GroupL2(WEIGHTS.iloc[:3]), NAMES, "groups is labelled .* no entry for 'blood'"),
        (GroupL2([0, 0, 1, 1, 1], weights={1: 2}), NAMES, "may mean a feature or a group"),
    ],
)
def test_what_does_not_match_is_refused_in_a_sentence(penalty, names, sentence):
    with pytest.raises(ValueError, match=sentence):
        penalty.resolve(5, 3, np.ones(5), feature_names=names)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_fits_follow_names(kind):
    X, y = frame(kind=kind)
    plain = SparseSVC(penalty=L1(weights=[0, 1, 1, 1, 2.0]), alpha=0.05, tol=1e-6).fit(X, y)
    named = SparseSVC(penalty=L1(weights={"pulse": 2.0, "age": 0}), alpha=0.05, tol=1e-6)
    assert np.array_equal(named.fit(X, y).coef_, plain.coef_)
    assert np.array_equal(clone(named).fit(X, y).coef_, plain.coef_)
    swapped = X[NAMES[::-1]]
    other = named.fit(swapped, y)
    np.testing.assert_allclose(other.coef_[:, ::-1], plain.coef_, atol=1e-3)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-3)


def test_paths_budgets_and_certificates_follow_names():
    X, y = frame()
    named, plain = L1(weights=WEIGHTS.iloc[::-1]), L1(weights=WEIGHTS.to_numpy())
    assert alpha_max(X, y, penalty=named) == alpha_max(X, y, penalty=plain)
    paths = [svm_path(X, y, penalty=p, n_alphas=3).objectives for p in (named, plain)]
    assert np.array_equal(*paths)
    fits = [ConstrainedSparseSVC(penalty=p, eta=0.8).fit(X, y).objective_ for p in (named, plain)]
    assert fits[0] == fits[1]
    zeros = np.ones((3, 5))
    bounds = [
        certify(X, y, zeros, loss="hinge", penalty=p, alpha=0.1).objective for p in (named, plain)
    ]
    assert bounds[0] == bounds[1]


def test_cross_validation_follows_names_and_keeps_the_penalty_as_given():
    X, y = frame()
    X = X[NAMES[::-1]]
    named, plain = L1(weights=WEIGHTS), L1(weights=WEIGHTS.to_numpy()[::-1].copy())
    a, b = (SparseSVCCV(penalty=p, n_alphas=4, cv=3).fit(X, y) for p in (named, plain))
    assert np.array_equal(a.scores_, b.scores_)
    assert np.array_equal(a.coef_, b.coef_)
    assert a.penalty_ == named
    scaled = {"penalty": [L1(weights=("scale", {"age": 0})), GroupL2([["age", "sex"]])]}
    SparseSVCCV(param_grid=scaled, n_alphas=3, cv=3).fit(X, y)


def test_penalties_are_equal_if_their_labels_are():
    assert L1(weights=WEIGHTS) == L1(weights=WEIGHTS.copy())
    assert L1(weights=WEIGHTS) != L1(weights=WEIGHTS.set_axis(NAMES[::-1]))
    assert GroupL2([["a"], ["b", "c"]]) == GroupL2([["a"], ["b", "c"]])
    assert GroupL2([["a"], ["b", "c"]]) != GroupL2([["a"], ["b"]])
    assert L1(weights={"a": 0}) == L1(weights={"a": 0})
    assert L1(weights=("scale", {"a": 0})) != L1(weights=("scale", {"a": 1}))


LABELS = np.array(["no", "some", "yes"])


@pytest.mark.parametrize("loss", [Hinge, SquaredHinge, Logistic, Ramp])
def test_a_labelled_cost_matrix_is_aligned_with_the_classes(loss):
    order = [2, 0, 1]
    labelled = pd.DataFrame(COSTS, LABELS, LABELS).iloc[order, [1, 2, 0]]
    assert np.array_equal(loss(margin=labelled).cost_matrix(3, LABELS), COSTS)
    assert np.array_equal(loss(margin=pd.DataFrame(COSTS)).cost_matrix(3, LABELS), COSTS)
    columns = pl.DataFrame(COSTS[np.ix_(order, order)], schema=list(LABELS[order]))
    assert np.array_equal(loss(margin=columns).cost_matrix(3, LABELS), COSTS)
    numbers = pd.DataFrame(COSTS, [7, 8, 9], [7, 8, 9]).iloc[order, order]
    assert np.array_equal(loss(margin=numbers).cost_matrix(3, np.array([7, 8, 9])), COSTS)
    more = pd.DataFrame(np.ones((4, 4)) - np.eye(4), [*LABELS, "other"], [*LABELS, "other"])
    more.iloc[:3, :3] = COSTS
    assert np.array_equal(loss(margin=more).cost_matrix(3, LABELS), COSTS)


def test_costs_of_other_labels_are_refused():
    other = pd.DataFrame(COSTS, ["no", "some", "Yes"], LABELS)
    X, y = frame()
    with pytest.raises(ValueError, match=r"rows of the cost matrix .* none for the label 'yes'"):
        SparseSVC(Hinge(other)).fit(X, y)
    with pytest.raises(ValueError, match="columns of the cost matrix"):
        SparseSVC(Hinge(other.T)).fit(X, y)
    with pytest.raises(ValueError, match="the same label twice"):
        SparseSVC(Hinge(pd.DataFrame(np.zeros((4, 4)), [*LABELS, "no"], [*LABELS, "no"]))).fit(X, y)


def test_a_fit_with_labelled_costs_is_that_of_the_sorted_ones():
    X, y = frame()
    shuffled = pd.DataFrame(COSTS, LABELS, LABELS).iloc[[1, 2, 0], [2, 0, 1]]
    fits = [SparseSVC(Hinge(c), alpha=0.05).fit(X, y) for c in (shuffled, COSTS)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
