"""000 Fig. 2: News20 as tf-idf, l1/l2 on features, 5, 10 and 50 samples per class."""

from __future__ import annotations

from few_per_class import experiment, hinge_is_best, hinge_is_flattest, path_rows

# isort: split

import numpy as np
from samples import draw, news

from sparsvm.penalties import GroupL2

ALPHAS = np.logspace(1.0, -3.0, 9)
PROTOCOL = (
    "Subsets of the training set (by date) with 5, 10 and 50 documents per class, 10 draws, tested "
    "on all 7532 test documents; tf-idf of 25941 words. A group of l1/l2 is one word in all 20 "
    "classes. Curves are means over the draws."
)


def measure(cell, quick):
    X, y = news()
    rows = draw(y, cell["per_class"], cell["draw"])
    alphas = ALPHAS[2:5] if quick else ALPHAS
    return path_rows(X[rows], y[rows], *news("test"), cell["loss"], GroupL2(), alphas)


EXPERIMENT = experiment(
    "000 Fig. 2",
    "errors and zeros against alpha on News20 with l1/l2",
    (5, 10, 50),
    10,
    measure,
    PROTOCOL,
    (
        ("The hinge is slightly more accurate than the other losses", hinge_is_best),
        ("The hinge is less sensitive to alpha than the square loss", hinge_is_flattest),
    ),
)

if __name__ == "__main__":
    EXPERIMENT.main()
