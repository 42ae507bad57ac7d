"""Sparse data sets of documents: Banking77, Amazon reviews, News20 as LIBSVM has it."""

from __future__ import annotations

import csv
import gzip
from typing import Any

import numpy as np

from sparsvm.datasets.folder import data_file
from sparsvm.datasets.loaders import Folder, _bunch, _parts
from sparsvm.parameters import quoted

_TARGETS = ("domain", "sentiment", "both")


def load_banking77(
    folder: Folder = None, *, subset: str = "train", min_df: int = 1, return_X_y: bool = False
) -> Any:
    """Load Banking77: 10003 + 3080 questions of bank customers, 77 intents, as sparse tf-idf.

    ``TfidfVectorizer(min_df=min_df)``, fitted to the training questions, weighs the words of
    both parts.

    Parameters
    ----------
    folder : path, optional
        Holds ``banking77/train.csv`` and ``banking77/test.csv``; by default the environment
        variable SPARSVM_DATA.
    subset : {"train", "test", "all"}, default="train"
        The published split.
    min_df : int, default=1
        Words in fewer training questions are dropped: 1 leaves 2320 words, 2 leaves 1461.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64), ``target`` (names of the intents), ``text`` (the questions),
        ``feature_names`` (words), ``target_names``.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = _parts(subset)
    rows = {part: _questions(part, folder) for part in {"train", *parts}}
    words = TfidfVectorizer(min_df=min_df).fit([text for text, _ in rows["train"]])
    text = [text for part in parts for text, _ in rows[part]]
    y = np.array([intent for part in parts for _, intent in rows[part]])
    X = words.transform(text)
    X.sort_indices()
    names = words.get_feature_names_out()
    return _bunch(X, y, return_X_y, text=text, feature_names=names, target_names=np.unique(y))


def load_amazon(folder: Folder = None, *, target: str = "domain", return_X_y: bool = False) -> Any:
    """Load 8000 Amazon reviews of four domains: counts of 473856 words and pairs of words.

    Parameters
    ----------
    folder : path, optional
        Holds ``amazon_multidomain/amazon_X.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    target : {"domain", "sentiment", "both"}, default="domain"
        Four classes of 2000 reviews (books, dvd, electronics, kitchen), two of 4000 (negative,
        positive), or eight of 1000 ("books, negative" and so on).
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64, counts), ``target`` (text labels), ``domain`` and ``sentiment`` of
        each review, ``feature_names``, ``target_names``.
    """
    import scipy.sparse as sp

    if target not in _TARGETS:
        raise ValueError(f"target must be one of {quoted(_TARGETS)}, but is {target!r}.")
    X = sp.csr_matrix(
        sp.load_npz(data_file("amazon_multidomain/amazon_X.npz", folder)), dtype=float
    )
    with np.load(data_file("amazon_multidomain/amazon_y.npz", folder)) as file:
        domain, sentiment = file["domain"], file["sentiment"]
    both = np.array([f"{a}, {b}" for a, b in zip(domain, sentiment, strict=True)])
    y = {"domain": domain, "sentiment": sentiment, "both": both}[target]
    if return_X_y:
        return X, y
    words = gzip.decompress(
        data_file("amazon_multidomain/amazon_vocab.txt.gz", folder).read_bytes()
    )
    return _bunch(
        X,
        y,
        return_X_y,
        domain=domain,
        sentiment=sentiment,
        feature_names=np.array(words.decode().rstrip("\n").split("\n")),
        target_names=np.unique(y),
    )


def load_news20_libsvm(folder: Folder = None, *, return_X_y: bool = False) -> Any:
    """Load the training set of News20 from LIBSVM's page: 15935 documents, 62061 words, 20 groups.

    The words have no names; `load_20newsgroups` has the text's own words and the split by date.

    Parameters
    ----------
    folder : path, optional
        Holds ``news20_libsvm/news20_train_X.npz`` and so on; by default the environment variable
        SPARSVM_DATA.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    Bunch
        ``data`` (CSR, float64, counts), ``target`` (int64, 1 to 20), ``target_names``.
    """
    import scipy.sparse as sp

    X = sp.csr_matrix(
        sp.load_npz(data_file("news20_libsvm/news20_train_X.npz", folder)), dtype=float
    )
    y = np.load(data_file("news20_libsvm/news20_train_y.npy", folder)).astype(np.int64)
    return _bunch(X, y, return_X_y, target_names=np.unique(y))


def _questions(part: str, folder: Folder) -> list[tuple[str, str]]:
    with data_file(f"banking77/{part}.csv", folder).open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]
