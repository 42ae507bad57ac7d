"""Labels of every kind come back as they were, and equal scores go to the heaviest class."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC, SparseSVCCV

X = np.random.default_rng(0).standard_normal((36, 3))
TWO = np.arange(36) % 2
X[TWO == 1] += 1.0
NAMED = np.array(["a", "b"])[TWO]
ESTIMATORS = [
    SparseSVC(alpha=0.05),
    SparseSVCCV(n_alphas=3, cv=3),
    ConstrainedSparseSVC(eta=0.7),
    MaxMarginSVC(),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (pd.Series(TWO, dtype="Int64"), "i"),
        (pd.array(TWO, dtype="UInt8"), "u"),
        (pd.Series(TWO == 1, dtype="boolean"), "b"),
        (pl.Series(TWO == 1), "b"),
        (pd.Series(NAMED, dtype="string"), "O"),
        (pd.Series(NAMED, dtype="category"), "O"),
    ],
)
def test_nullable_labels_keep_their_type(model, labels, kind):
    model.fit(X, labels)
    assert model.classes_.dtype.kind == kind
    assert model.predict(X).dtype.kind == kind


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(NAMED, dtype="string").where(TWO + np.arange(36) > 1),
        pd.Series(TWO, dtype="Int64").where(np.arange(36) > 1),
        pd.Series(TWO == 1, dtype="boolean").where(np.arange(36) > 1),
        pd.Series(NAMED, dtype="category").where(np.arange(36) > 1),
    ],
)
def test_missing_labels_are_refused_with_their_number(labels):
    with pytest.raises(ValueError, match=r"y contains NaN: \d of its 36 labels are missing"):
        SparseSVC().fit(X, labels)


def test_missing_labels_among_objects_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="none that is missing"):
        SparseSVC().fit(X, np.where(np.arange(36) > 1, NAMED.astype(object), pd.NA))


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        ([([0, 1, 2, 50], [3])], "Fold 0 of cv has the row 50, but X has the rows 0 to 35"),
        ([([0, 1, 2], [-30])], "has the row -30"),
        ([(np.array([0.5, 1.0]), [3])], "type float64"),
        ([([0, 1, 2], [])], "at least one training and one test row"),
        ([("ab", [1])], "numbers of at least one"),
        ([3], "pairs of training and test rows, but one of its folds is none"),
        ([], "no folds at all"),
    ],
)
def test_folds_of_rows_that_are_not_there_are_refused(cv, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseSVCCV(cv=cv, n_alphas=2).fit(X, TWO)


def test_masks_are_folds_too():
    first = np.arange(36) < 18
    masks = SparseSVCCV(cv=[(first, ~first)], n_alphas=3).fit(X, TWO)
    rows = [(np.flatnonzero(first), np.flatnonzero(~first))]
    numbers = SparseSVCCV(cv=rows, n_alphas=3).fit(X, TWO)
    assert np.array_equal(masks.scores_, numbers.scores_)


THREE = np.repeat(["x", "y", "z"], [10, 12, 14])


@pytest.mark.filterwarnings("ignore:Every weight is zero")
@pytest.mark.parametrize(
    "model",
    [
        SparseSVC(alpha=10.0),
        SparseSVCCV(alphas=[10.0, 20.0], cv=3),
        SparseSVCCV(alphas=[10.0, 20.0], cv=3, scoring="balanced_accuracy"),
        ConstrainedSparseSVC(eta=5.0),
        MaxMarginSVC(),
    ],
)
@pytest.mark.parametrize("heaviest", ["x", "y", "z"])
def test_a_model_of_zeros_predicts_the_class_of_the_largest_weight(model, heaviest):
    samples = np.zeros_like(X) if isinstance(model, MaxMarginSVC) else X
    weight = np.where(heaviest == THREE, 14.0, 10.0) / (THREE[:, None] == THREE).sum(axis=0)
    model.fit(samples, THREE, weight)
    assert not model.coef_.any()
    assert not model.intercept_.any()
    for kind in (np.asarray, sp.csr_array):
        assert set(model.predict(kind(samples))) == {heaviest}
    assert model.class_prior_.argmax() == "xyz".index(heaviest)


@pytest.mark.filterwarnings("ignore:Every weight is zero")
def test_folds_decide_between_equal_scores_as_predict_does():
    model = SparseSVCCV(alphas=[10.0], cv=2).fit(X, THREE)
    assert model.best_score_ == pytest.approx(14 / 36)


def test_two_classes_of_equal_score_zero():
    model = SparseSVC(alpha=0.05).fit(X, TWO, np.where(TWO == 1, 1.5, 1.0))
    model.coef_, model.intercept_ = np.zeros((1, 3)), np.zeros(1)
    assert set(model.predict(X)) == {1}
    model.class_prior_ = np.array([0.5, 0.5])
    assert set(model.predict(X)) == {0}
