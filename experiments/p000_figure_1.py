"""000 Fig. 1: MNIST with scattering features, l1/linf, 3, 5 and 10 samples per class."""

from __future__ import annotations

from few_per_class import (
    LOSSES,
    complete,
    experiment,
    hinge_is_best,
    hinge_is_sparsest,
    path_rows,
)
from harness import distinct, pick, values

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
# How many times smaller alphas get where the least ones are the best, on the first draws.
FURTHER, SMALLER = "{}, further", 10.0**-0.5
FURTHER_SIZES, FURTHER_DRAWS = (3, 5), 3
# With smooth losses, and more weights to a group than samples, Newton steps from one such alpha
# to the next end far from the solution, and the interior point takes over. A path in smaller steps
# has points in between, each of a few steps: one-vs-all at 3 per class 10 -> 4 s, square at 10 per
# class 60 -> 23, logit 46 -> 16; one-vs-all there 29 -> 42, as its last point fails all the same.
STEPS = 4
# The slides of the paper print the errors of the hinge at these sizes.
PUBLISHED = {(3, "hinge"): 25.64, (5, "hinge"): 13.59, (10, "hinge"): 9.40}
DRAWS = 25


def protocol(every):
    rows = complete(every)
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
        "at every size. Where the least alpha tried is the best, smaller ones may do better still."
        f"{further(every)} "
        "The hinge errs more often than published at 5 and 10 images per class, by more than the "
        "draws explain; from 15 on it does not, as the page of the [table of 002](002_table.md) "
        "shows, so that its draws or features must differ where images are few.\n\nSeconds are "
        "those of a path over its points. With a smooth loss and more weights to a group than "
        "images, Newton steps from one alpha to the next, half a decade away, do not come to the "
        "solution, and an interior point takes over; in quarters of these steps (the later draws) "
        "paths are two to three times as quick as in whole ones (the first 13, 10 and 5 draws)."
    )


def measure(cell, quick):
    X, y = scattered_draw(cell["per_class"], cell["draw"])
    test = scattered_test(1000 if quick else 10000)
    penalty = GroupLinf(groups=81, per_class=True)
    loss, *further = cell["loss"].split(", ")
    alphas = ALPHAS[loss][:3] if quick else ALPHAS[loss]
    if further:
        alphas = np.append(alphas, alphas[-1] * SMALLER)
    one = loss == "hinge" or (loss == "one-vs-all" and cell["per_class"] >= 10)
    return path_rows(X, y, *test, loss, penalty, alphas, 1 if one else STEPS)


def further(rows):
    """What one more, smaller alpha gains, on the draws that all losses were run on."""
    told = []
    for size in FURTHER_SIZES:
        names = [FURTHER.format(loss) for loss in ALPHAS if loss != "hinge"]
        drawn = [set(values(rows, "draw", per_class=size, loss=name)) for name in names]
        draws = set.intersection(*drawn)
        if len(draws) < 2:
            continue
        shown = []
        for name in names:
            found = [r for r in pick(rows, per_class=size, loss=name) if r["draw"] in draws]
            if found:
                least, second = sorted(distinct(found, "alpha"))[:2]
                errors = [
                    100 * np.mean(values(found, "error", alpha=alpha)) for alpha in (second, least)
                ]
                shown.append(f"{name.split(',')[0]} {errors[0]:.2f} to {errors[1]:.2f} %")
        if shown:
            told.append(f"{size} per class, {len(draws)} draws: {', '.join(shown)}")
    if not told:
        return ""
    return f" One step further down brings the error from ({'; '.join(told)})."


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
    [
        {"per_class": size, "draw": draw, "loss": FURTHER.format(loss)}
        for size in FURTHER_SIZES
        for draw in range(FURTHER_DRAWS)
        for loss in ALPHAS
        if loss != "hinge"
    ],
)

if __name__ == "__main__":
    EXPERIMENT.main()
