"""Loaders read what is in the folder, and say what to do when there is none.

Small files in the formats of the real ones are always tested. The shapes and class counts of the
real data are tested where SPARSVM_DATA names their folder; elsewhere every loader must say so.
"""

import gzip
import os
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from sparsvm import datasets
from sparsvm.datasets import (
    load_20newsgroups,
    load_amazon,
    load_arcene,
    load_banking77,
    load_coil20,
    load_dexter,
    load_dorothea,
    load_leukemia,
    load_madelon,
    load_microarray,
    load_mnist,
    load_news20_libsvm,
    load_uci,
)

LOADERS = (
    load_leukemia,
    load_mnist,
    load_20newsgroups,
    load_arcene,
    load_dexter,
    load_dorothea,
    load_madelon,
    load_banking77,
)
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
# loader: shape and class counts of the training set, then of the test set
FACTS = {
    load_leukemia: [((38, 7129), [19, 8, 11]), ((34, 7129), [19, 1, 14])],
    load_mnist: [
        ((60000, 784), MNIST_COUNTS),
        ((10000, 784), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ],
    load_20newsgroups: [((11314, 56436), 20), ((7532, 56436), 20)],
    load_arcene: [((100, 10000), [56, 44]), ((100, 10000), [56, 44])],
    load_dexter: [((300, 20000), [150, 150]), ((300, 20000), [150, 150])],
    load_dorothea: [((800, 100000), [722, 78]), ((350, 100000), [316, 34])],
    load_madelon: [((2000, 500), [1000, 1000]), ((600, 500), [300, 300])],
    load_banking77: [((10003, 2320), 77), ((3080, 2320), 77)],
}


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
def test_real_data_have_the_published_shapes_or_the_loader_says_what_to_set(loader):
    if not os.environ.get(datasets.VARIABLE):
        with pytest.raises(FileNotFoundError, match="set the environment variable SPARSVM_DATA"):
            loader()
        return
    for subset, (shape, counts) in zip(("train", "test"), FACTS[loader], strict=True):
        X, y = loader(subset=subset, return_X_y=True)
        found = np.unique(y, return_counts=True)[1]
        assert X.shape == shape
        assert y.shape == shape[:1]
        assert found.size == counts if isinstance(counts, int) else found.tolist() == counts


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
def test_without_a_folder_the_message_names_the_variable_and_bundled_data(loader, monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError) as caught:
        loader()
    assert "SPARSVM_DATA" in str(caught.value)
    assert "load_digits" in str(caught.value)


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_missing_file_is_named_with_its_folder(tmp_path, monkeypatch, by_variable):
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path) if by_variable else "elsewhere")
    with pytest.raises(FileNotFoundError) as caught:
        load_leukemia(None if by_variable else tmp_path)
    assert "golub_leukemia3/golub3.npz" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert ("SPARSVM_DATA names" in str(caught.value)) == by_variable


def test_an_unknown_subset_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match="'train', 'test', 'all', but 'valid' was given"):
        load_arcene("anywhere", subset="valid")


def test_leukemia_reads_its_archive(tmp_path):
    arrays = {
        "X_train": np.arange(6, dtype=np.int32).reshape(2, 3),
        "y_train": np.array(["AML", "ALL-B"]),
        "X_test": np.full((1, 3), 7, dtype=np.int32),
        "y_test": np.array(["ALL-B"]),
        "genes": np.array(["a", "b", "c"]),
    }
    save(tmp_path / "golub_leukemia3" / "golub3.npz", arrays)
    bunch = load_leukemia(tmp_path, subset="all")
    assert bunch.data.dtype == np.float64
    np.testing.assert_array_equal(bunch.data, [[0, 1, 2], [3, 4, 5], [7, 7, 7]])
    assert bunch.target.tolist() == ["AML", "ALL-B", "ALL-B"]
    assert bunch.target_names.tolist() == ["ALL-B", "AML"]
    assert bunch.feature_names.tolist() == ["a", "b", "c"]


def test_mnist_reads_idx_files(tmp_path):
    images = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    folder = tmp_path / "mnist"
    folder.mkdir()
    write_idx(folder / "t10k-images-idx3-ubyte.gz", images)
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", np.array([7, 3], dtype=np.uint8))
    X, y = load_mnist(tmp_path, subset="test", return_X_y=True)
    np.testing.assert_array_equal(X, images.reshape(2, 784))
    assert y.tolist() == [7, 3]


def test_a_file_that_is_not_idx_is_refused(tmp_path):
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"<html>"))
    with pytest.raises(ValueError, match="idx format"):
        load_mnist(tmp_path)


def test_newsgroups_weighs_all_documents_by_the_training_counts(tmp_path):
    train = sp.csr_matrix(np.array([[1, 2, 0, 0], [0, 1, 3, 0], [4, 1, 0, 0]], dtype=np.int16))
    test = sp.csr_matrix(np.array([[1, 1, 1, 1]], dtype=np.int16))
    arrays = {"n_features": 4, "y_train": [0, 1, 0], "y_test": [1], "target_names": ["a", "b"]}
    for part, matrix in (("train", train), ("test", test)):
        for name in ("data", "indices", "indptr"):
            arrays[f"{part}_{name}"] = getattr(matrix, name)
    arrays["test_indices"] = arrays["test_indices"][::-1]  # its counts are all one
    save(tmp_path / "20newsgroups" / "20news_counts.npz", arrays)
    bunch = load_20newsgroups(tmp_path, subset="all")
    assert bunch.data.has_canonical_format  # no fit has to sort a copy
    weighting = TfidfTransformer().fit(train[:, :2])
    expected = weighting.transform(sp.vstack([train, test]).tocsr()[:, :2].astype(float))
    np.testing.assert_allclose(bunch.data.toarray(), expected.toarray(), rtol=1e-14)
    assert bunch.target.tolist() == [0, 1, 0, 1]
    assert load_20newsgroups(tmp_path, min_df=1).data.shape == (3, 3)


def test_arcene_reads_text(tmp_path):
    folder = tmp_path / "arcene"
    folder.mkdir()
    (folder / "arcene_train.data").write_text("0 71 0 \n5 0 999 \n")
    (folder / "arcene_train.labels").write_text("1\n-1\n")
    X, y = load_arcene(tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, [[0, 71, 0], [5, 0, 999]])
    assert y.tolist() == [1, -1]


def save(path, arrays):
    path.parent.mkdir()
    np.savez(path, **arrays)


def write_idx(path, array):
    sizes = np.array(array.shape, dtype=">i4").tobytes()
    path.write_bytes(gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()))


NCI60 = [7, 5, 7, 1, 1, 6, 1, 1, 8, 9, 6, 2, 9, 1]
# Data sets without a published split: how to load each, its shape and class counts.
WHOLE = {
    "pima": (partial(load_uci, "pima"), (768, 8), [500, 268]),
    "bupa": (partial(load_uci, "bupa"), (345, 6), [145, 200]),
    "ionosphere": (partial(load_uci, "ionosphere"), (351, 34), [126, 225]),
    "sonar": (partial(load_uci, "sonar"), (208, 60), [111, 97]),
    "wpbc": (partial(load_uci, "wpbc"), (194, 32), [148, 46]),
    "wdbc": (partial(load_uci, "wdbc"), (569, 30), [357, 212]),
    "nci60": (partial(load_microarray, "nci60"), (64, 6830), NCI60),
    "lymphoma": (partial(load_microarray, "lymphoma"), (62, 4026), [42, 9, 11]),
    "su": (partial(load_microarray, "su"), (102, 5565), [25, 26, 28, 23]),
    "christensen": (partial(load_microarray, "christensen"), (217, 1413), [85, 113, 19]),
    "coil20": (load_coil20, (1440, 1024), [72] * 20),
    "amazon": (load_amazon, (8000, 473856), [2000] * 4),
    "reviews": (partial(load_amazon, target="both"), (8000, 473856), [1000] * 8),
    "news20": (load_news20_libsvm, (15935, 62061), 20),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_sets_have_the_published_shapes_or_the_loader_says_what_to_set(name):
    loader, shape, counts = WHOLE[name]
    if not os.environ.get(datasets.VARIABLE):
        with pytest.raises(FileNotFoundError, match="set the environment variable SPARSVM_DATA"):
            loader()
        return
    X, y = loader(return_X_y=True)
    found = np.unique(y, return_counts=True)[1]
    assert (X.shape, X.dtype) == (shape, np.float64)
    assert found.size == counts if isinstance(counts, int) else found.tolist() == counts


@pytest.mark.parametrize("name", WHOLE)
def test_without_a_folder_whole_sets_name_the_variable(name, monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match="set the environment variable SPARSVM_DATA"):
        WHOLE[name][0]()


def test_uci_files_are_read_without_what_gives_the_outcome_away(tmp_path):
    (tmp_path / "uci").mkdir()
    wpbc = "7,N,31,1.5,2.5\n8,R,12,?,3.5\n9,R,12,4.5,3.5\n"
    (tmp_path / "uci" / "wpbc.data").write_text(wpbc)
    (tmp_path / "uci" / "bupa.data").write_text("85,92,1\n60,40,2\n")
    X, y = load_uci("wpbc", tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, [[1.5, 2.5], [4.5, 3.5]])
    assert y.tolist() == ["N", "R"]
    X, y = load_uci("bupa", tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, [[85.0, 92.0], [60.0, 40.0]])
    assert y.tolist() == ["1", "2"]
    with pytest.raises(ValueError, match=r"name must be one of 'pima', .* but is 'iris'"):
        load_uci("iris", tmp_path)


def test_sparse_challenge_files_are_joined(tmp_path):
    (tmp_path / "dexter").mkdir()
    for part, value in (("train", 1), ("valid", 2)):
        X = sp.csr_matrix(np.array([[0, value], [value, 0]]))
        sp.save_npz(tmp_path / "dexter" / f"dexter_{part}_X.npz", X)
        np.save(tmp_path / "dexter" / f"dexter_{part}_y.npy", np.array([1, -1]))
    X, y = load_dexter(tmp_path, subset="all", return_X_y=True)
    assert (X.format, X.dtype) == ("csr", np.float64)
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [1, 0], [0, 2], [2, 0]])
    assert y.tolist() == [1, -1, 1, -1]


def test_archives_of_images_and_genes_are_read_in_double_precision(tmp_path):
    X = np.array([[0.5, 1.0], [0.0, 2.0]], dtype=np.float32)
    save(tmp_path / "microarray" / "su.npz", {"X": X, "y": np.array(["b", "a"])})
    save(tmp_path / "coil20" / "coil20.npz", {"X": X, "y": np.array([2, 1])})
    genes = load_microarray("su", tmp_path)
    assert genes.data.dtype == np.float64
    np.testing.assert_array_equal(genes.data, X)
    assert genes.target_names.tolist() == ["a", "b"]
    assert load_coil20(tmp_path).target.tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"name must be one of 'nci60', .* but is 'golub'"):
        load_microarray("golub", tmp_path)


def test_madelon_joins_its_archives(tmp_path):
    arrays = {"X": np.array([[999, 1]], dtype=np.int16), "y": np.array([-1], dtype=np.int8)}
    save(tmp_path / "madelon" / "madelon_train.npz", arrays)
    np.savez(tmp_path / "madelon" / "madelon_valid.npz", X=arrays["X"] + 0, y=-arrays["y"])
    X, y = load_madelon(tmp_path, subset="all", return_X_y=True)
    np.testing.assert_array_equal(X, [[999.0, 1.0], [999.0, 1.0]])
    assert y.tolist() == [-1, 1]


def test_banking77_weighs_both_parts_by_the_training_questions(tmp_path):
    folder = tmp_path / "banking77"
    folder.mkdir()
    train = 'text,category\n"My card, where is it?",arrival\nLost my card,lost\n'
    (folder / "train.csv").write_text(train)
    (folder / "test.csv").write_text("text,category\ncard card unseen,lost\n")
    bunch = load_banking77(tmp_path, subset="all")
    assert bunch.text[0] == "My card, where is it?"
    assert bunch.target.tolist() == ["arrival", "lost", "lost"]
    assert bunch.feature_names.tolist() == ["card", "is", "it", "lost", "my", "where"]
    np.testing.assert_array_equal(bunch.data[2].toarray(), [[1, 0, 0, 0, 0, 0]])
    assert load_banking77(tmp_path, min_df=2).feature_names.tolist() == ["card", "my"]


def test_amazon_has_three_targets_and_names_of_words(tmp_path):
    folder = tmp_path / "amazon_multidomain"
    folder.mkdir()
    sp.save_npz(folder / "amazon_X.npz", sp.csr_matrix(np.array([[0, 4], [1, 0]], dtype=np.int16)))
    labels = {"domain": ["dvd", "books"], "sentiment": ["negative", "positive"]}
    np.savez(folder / "amazon_y.npz", **labels)
    (folder / "amazon_vocab.txt.gz").write_bytes(gzip.compress(b"good\nnot_good\n"))
    bunch = load_amazon(tmp_path, target="both")
    np.testing.assert_array_equal(bunch.data.toarray(), [[0, 4], [1, 0]])
    assert bunch.target.tolist() == ["dvd, negative", "books, positive"]
    assert bunch.feature_names.tolist() == ["good", "not_good"]
    for target, expected in labels.items():
        assert load_amazon(tmp_path, target=target, return_X_y=True)[1].tolist() == expected
    with pytest.raises(ValueError, match="target must be one of 'domain', 'sentiment', 'both'"):
        load_amazon(tmp_path, target="stars")


def test_news20_of_libsvm_is_read(tmp_path):
    folder = tmp_path / "news20_libsvm"
    folder.mkdir()
    sp.save_npz(folder / "news20_train_X.npz", sp.csr_matrix(np.array([[0, 3], [1, 0]])))
    np.save(folder / "news20_train_y.npy", np.array([20, 1], dtype=np.int8))
    X, y = load_news20_libsvm(tmp_path, return_X_y=True)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(X.toarray(), [[0, 3], [1, 0]])
    assert y.tolist() == [20, 1]
