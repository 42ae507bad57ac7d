"""000 Fig. 1: MNIST with scattering features, l1/linf, 3, 5 and 10 samples per class."""

from __future__ import annotations

from few_per_class import LOSSES, experiment, hinge_is_best, hinge_is_sparsest, path_rows
from harness import values

# isort: split

import numpy as np
from samples import scattered_draw, scattered_test

from sparsvm.penalties import GroupLinf

# From where the zero model ends to where errors fall no more, or where a point takes minutes.
ALPHAS = {
    "hinge": np.logspace(1.0, -1.0, 5),
    "square": np.logspace(2.0, 0.0, 5),
    "logit": np.logspace(1.0, -1.0, 5),
    "one-vs-all": np.logspace(1.5, 0.0, 4),
}
# The slides of the paper print the errors of the hinge at these sizes.
PUBLISHED = {(3, "hinge"): 25.64, (5, "hinge"): 13.59, (10, "hinge"): 9.40}
DRAWS = 25


def protocol(rows):
    spread = [
        100 * min(values(rows, "error", per_class=3, loss="hinge", draw=d))
        for d in sorted(set(values(rows, "draw", per_class=3)))
    ]
    return (
        "Subsets of the training set with 3, 5 and 10 images per class, in as many draws as the "
        f"table says (the paper has {DRAWS}), tested on all 10000 test images. 81 × 14 × 14 "
        "scattering coefficients; the groups of l1/linf are the 81 coefficients of one position in "
        "one class. Curves are means over the draws; *best* is the largest alpha within 0.1 points "
        "of the least mean error. The paper shows curves without numbers; *published* are the "
        "errors that the slides (002) print for the hinge. Its values of alpha are not given; ours "
        "reach from the zero model of each loss down to where a point takes minutes.\n\nDraws "
        f"differ more than losses: with 3 images per class the hinge errs on {min(spread):.1f} to "
        f"{max(spread):.1f} %. The losses are therefore compared on the same draws (*above the "
        "hinge, by draw*: mean difference and its standard error). One-vs-all is the most accurate "
        "at every size. Where the least alpha tried is the best, smaller ones may do better still. "
        "The hinge errs more often than published at 5 and 10 images per class, by more than the "
        "draws explain; from 15 on it does not, as the page of the [table of 002](002_table.md) "
        "shows, so that its draws or features must differ where images are few."
    )


def measure(cell, quick):
    X, y = scattered_draw(cell["per_class"], cell["draw"])
    test = scattered_test(1000 if quick else 10000)
    penalty = GroupLinf(groups=81, per_class=True)
    alphas = ALPHAS[cell["loss"]]
    return path_rows(X, y, *test, cell["loss"], penalty, alphas[:3] if quick else alphas)


EXPERIMENT = experiment(
    "000 Fig. 1",
    "errors and zeros against alpha on MNIST with l1/linf",
    (3, 5, 10),
    DRAWS,
    measure,
    protocol,
    (
        (
            "The hinge is slightly more accurate than the other losses",
            hinge_is_best([loss for loss in LOSSES if loss != "hinge"]),
        ),
        ("The hinge yields slightly sparser solutions", hinge_is_sparsest),
    ),
    PUBLISHED,
)

if __name__ == "__main__":
    EXPERIMENT.main()
