r"""Groups that overlap, as disjoint groups of copies of the features.

The latent group penalty (Jacob, Obozinski and Vert 2009) of coefficients W is

.. math:: \min \Bigl\{ \sum_g \|V^g\| : \sum_g V^g = W \Bigr\},

each :math:`V^g` being zero off the features of group g. A problem with it is the problem with one
copy of a feature for each group it belongs to, whose groups are disjoint: both have the same
optimum, :math:`W = \sum_g V^g` has at most the objective of V, and a lower bound for the one is one
for the other. So the duality gap of V bounds the distance of W from the optimum.

J. Jacob, G. Obozinski and J.-P. Vert. Group lasso with overlap and graph lasso. ICML 2009.
"""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Features, Floats


def folded(coef: Floats, columns: Features) -> Floats:
    """Return the sums of the parts of each feature, the features being 0, 1, ... in columns."""
    return np.array([np.bincount(columns, row) for row in coef])


def unfolded(coef: Floats, columns: Features) -> Floats:
    """Return parts of equal size whose sums are ``coef``."""
    return np.ascontiguousarray(coef[:, columns] / np.bincount(columns)[columns])


def with_sums(coef: Floats, columns: Features, sums: Floats) -> Floats:
    """Return parts next to ``coef`` with these sums; of a feature the largest part is changed."""
    missing = sums - folded(coef, columns)
    out = coef.copy()
    for row in range(coef.shape[0]):
        order = np.lexsort((np.abs(coef[row]), columns))
        last = np.append(np.flatnonzero(np.diff(columns[order])), columns.size - 1)
        out[row, order[last]] += missing[row]
    return out
