"""From scores of labels to label sets: a threshold for each sample, by regression."""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Bools, Floats

# Beyond all scores of a sample; pairs at the margin 1 have their middle this far from both.
HALF_MARGIN = 0.5
# Singular values below this share of the largest are those of dependent columns.
DEPENDENCE = 1e-10


def best_thresholds(scores: Floats, own: Bools) -> Floats:
    """Return for each sample the threshold with the fewest wrong labels, shape (n,).

    Labels of the set should be above it and others not. Of several intervals the widest counts,
    of an interval its middle.
    """
    n = len(scores)
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    member = np.take_along_axis(own, order, axis=1)
    # Wrong with a threshold below the first, between the others, above the last.
    missed = np.hstack([np.zeros((n, 1)), np.cumsum(member, axis=1)])
    wrong = missed + np.hstack([np.cumsum(~member[:, ::-1], axis=1)[:, ::-1], np.zeros((n, 1))])
    low = np.hstack([ranked[:, :1] - 2.0 * HALF_MARGIN, ranked])
    high = np.hstack([ranked, ranked[:, -1:] + 2.0 * HALF_MARGIN])
    width = high - low
    # An interval without width cannot be had: equal scores are on one side.
    possible = width > 0.0
    fewest = np.where(possible, wrong, np.inf).min(axis=1, keepdims=True)
    chosen = np.argmax(np.where(possible & (wrong == fewest), width, -np.inf), axis=1)
    rows = np.arange(n)
    return np.asarray(0.5 * (low[rows, chosen] + high[rows, chosen]))


def regressed_threshold(scores: Floats, own: Bools, mass: Floats) -> tuple[Floats, float]:
    r"""Return c and :math:`c_0` of the threshold :math:`c \cdot s(x) + c_0`, by least squares.

    From the scores of the training samples to their best thresholds, weighted by ``mass``.
    """
    # Adding a number to all scores adds it to the threshold, so only centred scores are regressors.
    centre = scores.mean(axis=1)
    target = best_thresholds(scores, own) - centre
    root = np.sqrt(mass)
    columns = np.hstack([scores - centre[:, None], np.ones((len(scores), 1))])
    # Centred scores are dependent: of all solutions the smallest is taken.
    found, *_ = np.linalg.lstsq(columns * root[:, None], target * root, rcond=DEPENDENCE)
    slope = found[:-1]
    return np.asarray(slope - slope.mean() + 1.0 / slope.size), float(found[-1])
