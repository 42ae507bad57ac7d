"""000 Fig. 1: MNIST with scattering features, l1/linf, 3, 5 and 10 samples per class."""

from __future__ import annotations

from few_per_class import experiment, hinge_is_best, hinge_is_sparsest, path_rows

# isort: split

import numpy as np
from samples import scattered_draw, scattered_test

from sparsvm.penalties import GroupLinf

ALPHAS = np.logspace(1.0, -1.0, 5)
PROTOCOL = (
    "Subsets of the training set with 3, 5 and 10 images per class, 25 draws, tested on all 10000 "
    "test images. 81 × 14 × 14 scattering coefficients; the groups of l1/linf are the 81 "
    "coefficients of one position in one class. Curves are means over the draws."
)


def measure(cell, quick):
    X, y = scattered_draw(cell["per_class"], cell["draw"])
    test = scattered_test(1000 if quick else 10000)
    penalty = GroupLinf(groups=81, per_class=True)
    alphas = ALPHAS[:3] if quick else ALPHAS
    return path_rows(X, y, *test, cell["loss"], penalty, alphas)


EXPERIMENT = experiment(
    "000 Fig. 1",
    "errors and zeros against alpha on MNIST with l1/linf",
    (3, 5, 10),
    25,
    measure,
    PROTOCOL,
    (
        ("The hinge is slightly more accurate than the other losses", hinge_is_best),
        ("The hinge yields slightly sparser solutions", hinge_is_sparsest),
    ),
)

if __name__ == "__main__":
    EXPERIMENT.main()
