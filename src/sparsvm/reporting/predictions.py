"""How a classifier does on samples that took no part in its fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.reporting.subject import Subject, TestSet
from sparsvm.reporting.words import count, percent

# A table of confusions with more classes than this is longer than anyone reads: then the most
# frequent ones are listed.
MOST_CLASSES = 12
LIST_LENGTH = 15
# Bins of the histogram of margins, and the shares of samples beyond its ends.
N_BINS, ENDS = 30, (0.005, 0.995)
# Of a normal distribution, 95 % are within so many standard deviations.
NORMAL_95 = 1.959964


def accuracy_interval(correct: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share of which ``correct`` of ``total`` were seen."""
    p, z2 = correct / total, NORMAL_95**2
    centre = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = NORMAL_95 * np.sqrt(p * (1 - p) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def accuracy(test: TestSet) -> dict[str, Any]:
    """Return the accuracy, how exact it is, and what guessing the largest class would give."""
    n, right = test.y.size, int(np.count_nonzero(test.correct))
    low, high = accuracy_interval(right, n)
    known = test.codes[test.codes >= 0]
    guess = float(np.bincount(known).max()) / n
    return {
        "share": right / n,
        "headline": percent(right / n),
        "text": (
            f"{right} of {count(n, 'test sample')} are classified correctly. With so many samples "
            f"the true accuracy is, with 95 % confidence, between {percent(low)} and "
            f"{percent(high)}. Always answering with the most frequent class would be right in "
            f"{percent(guess)}."
        ),
        "unknown": int(np.count_nonzero(test.codes < 0)),
    }


def confusion(subject: Subject, test: TestSet) -> dict[str, Any]:
    """Return how often each class was taken for each other one, and precision and recall."""
    n_classes = len(subject.classes)
    known = test.codes >= 0
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (test.codes[known], test.predicted[known]), 1)
    true, answers, hits = counts.sum(axis=1), counts.sum(axis=0), counts.diagonal()
    rows = [
        {
            "name": name,
            "cells": [
                {"count": int(value), "share": float(value) / max(int(true[k]), 1), "hit": k == j}
                for j, value in enumerate(counts[k])
            ],
            "total": int(true[k]),
            "recall": percent(float(hits[k] / true[k])) if true[k] else "–",
            "precision": percent(float(hits[k] / answers[k])) if answers[k] else "–",
        }
        for k, name in enumerate(subject.classes)
    ]
    off = counts - np.diag(hits)
    order = np.argsort(-off, axis=None, kind="stable")[:LIST_LENGTH]
    pairs = [divmod(int(place), n_classes) for place in order if off.flat[place] > 0]
    mistakes = [
        {
            "true": subject.classes[k],
            "predicted": subject.classes[j],
            "count": int(off[k, j]),
            "share": percent(float(off[k, j] / true[k])),
        }
        for k, j in pairs
    ]
    return {"rows": rows, "whole": n_classes <= MOST_CLASSES, "mistakes": mistakes}


def margins_of(test: TestSet) -> Floats:
    """Return the score of the true class less the highest other one."""
    known = np.flatnonzero(test.codes >= 0)
    scores = test.scores[known].copy()
    rows = np.arange(known.size)
    own = scores[rows, test.codes[known]]
    scores[rows, test.codes[known]] = -np.inf
    return np.asarray(own - scores.max(axis=1))


def margins(test: TestSet) -> dict[str, Any]:
    """Return a histogram of the margins and what it shows."""
    values = margins_of(test)
    # The few farthest samples would press all the others into one bin.
    low, high = np.quantile(values, ENDS)
    reach = max(float(high), 1.0) - min(float(low), 0.0)
    # Zero is the border of a bin, so that no bin holds both kinds of samples.
    width = reach / N_BINS
    first = np.floor(min(float(low), 0.0) / width)
    edges = width * np.arange(first, first + N_BINS + 2)
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    wrong = int(np.count_nonzero(values <= 0))
    inside = int(np.count_nonzero((values > 0) & (values < 1)))
    text = (
        "The margin of a sample is the score of its class less the highest other score. Margins of "
        f"at least 1, which is what the hinge asks for: {values.size - wrong - inside}. Right, but "
        f"with less: {inside}. Not above 0, the wrong side: {wrong}."
    )
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "text": text,
        "label": f"Histogram of the margins of {count(values.size, 'test sample')}.",
    }
