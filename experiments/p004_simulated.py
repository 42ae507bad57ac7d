"""004 Figs 3 to 9: simulated data with 0 ... 200 noise dimensions and 0 ... 30 % flipped labels.

Two Gaussians in ten dimensions with variance 1.5 around (1, ..., 1) and (-1, ..., -1), 100 samples;
the noise dimensions are uniform on [-1, 1]; everything is scaled by 0.2.
"""

from __future__ import annotations

from functools import partial

from harness import Experiment, markdown_table

# isort: split

import numpy as np
from dc_protocol import CLASSIFIERS, Classifier, bars, means, run

from sparsvm.losses import Hinge
from sparsvm.penalties import L0, CappedL1

INFORMATIVE = 10
SAMPLES = 100
NOISE_DIMENSIONS = (0, 10, 100, 200)
FLIPPED = (0, 10, 20, 30)
REPETITIONS = 20
# The paper fixes a = 4 and a = 1; besides, a is chosen with lambda, the sparser model among equals.
SHARPNESSES = (4.0, 2.0, 1.0, 0.5, 0.25)
CAPS = (1.0, 1.5, 2.0)
CHOSEN = (
    Classifier("ZeroNormSVM, a chosen", Hinge(), L0(), tuple(map(L0, SHARPNESSES))),
    Classifier("CapOneNormSVM, a chosen", Hinge(), CappedL1(), tuple(map(CappedL1, CAPS))),
)
NAMES = tuple(c.name for c in CLASSIFIERS)
SPARSE = tuple(name for name in NAMES if name not in ("SVM", "RLSVM2"))
PROTOCOL = (
    "100 samples, 70 for training and 30 for testing, lambda by five-fold cross-validation from "
    "0.1 ... 10, 20 repetitions; mean and standard deviation."
)


def simulate(seed, noise_dimensions=0, flipped=0):
    """Return X and labels 0, 1, of which the given percentage is wrong."""
    rng = np.random.default_rng([seed, noise_dimensions])
    y = np.repeat([0, 1], SAMPLES // 2).astype(np.int32)
    signal = np.where(y == 1, 1.0, -1.0)[:, None]
    signal = signal + np.sqrt(1.5) * rng.standard_normal((SAMPLES, INFORMATIVE))
    noise = rng.uniform(-1.0, 1.0, (SAMPLES, noise_dimensions))
    wrong = rng.permutation(SAMPLES)[: round(flipped * SAMPLES / 100)]
    y[wrong] = 1 - y[wrong]
    return 0.2 * np.hstack([signal, noise]), y


def cells(pairs, quick):
    if quick:
        return [{"noise": noise, "flipped": flipped, "seed": 0} for noise, flipped in pairs[:2]]
    return [
        {"noise": noise, "flipped": flipped, "seed": seed}
        for seed in range(REPETITIONS)
        for noise, flipped in pairs
    ]


def measure(cell, quick):
    """All classifiers on one draw: accuracy, sparsity, and how the true features were told."""
    X, y = simulate(cell["seed"], cell["noise"], cell["flipped"])
    # Figs 3 to 6 alone show what choosing a as well would change.
    also = CHOSEN if cell["flipped"] == 0 and not quick else ()
    rows = []
    for name, row in run(X, y, cell["seed"], (*CLASSIFIERS, *also)).items():
        noise = row["selected"][INFORMATIVE:]
        rows.append(
            {
                "classifier": name,
                **{key: value for key, value in row.items() if key != "selected"},
                "false positives": float(noise.mean()) if noise.size else 0.0,
                "false negatives": float(np.mean(~row["selected"][:INFORMATIVE])),
            }
        )
    return rows


PAIRS = {
    "noise": [(noise, 0) for noise in NOISE_DIMENSIONS],
    "labels": [(0, flipped) for flipped in FLIPPED],
    "both": [(noise, flipped) for noise in NOISE_DIMENSIONS for flipped in FLIPPED],
}


def _groups(pairs, shown):
    return {
        shown(noise, flipped): partial(_belongs, noise=noise, flipped=flipped)
        for noise, flipped in pairs
    }


def _belongs(row, noise, flipped):
    return row["noise"] == noise and row["flipped"] == flipped


def mean(rows, classifier, key, **wanted):
    found = [
        row[key]
        for row in rows
        if row["classifier"] == classifier and all(row[k] == v for k, v in wanted.items())
    ]
    return float(np.mean(found)) if found else float("nan")


def _fewer_features(rows):
    told, true = [], True
    for noise in sorted({row["noise"] for row in rows}):
        if noise == 0:
            continue
        found = [
            mean(rows, c, "features", noise=noise, flipped=0)
            for c in ("OneNormSVM", "ZeroNormSVM", "CapOneNormSVM")
        ]
        true &= max(found[1:]) < found[0]
        told.append(
            f"{noise} noise dimensions: l1 {found[0]:.3f}, l0 {found[1]:.3f}, capped {found[2]:.3f}"
        )
    return _verdict(true), "; ".join(told)


def _fewer_false(rows):
    most = max(row["noise"] for row in rows)
    found = [
        mean(rows, c, "false positives", noise=most, flipped=0)
        for c in ("OneNormSVM", "ZeroNormSVM", "CapOneNormSVM")
    ]
    return (
        _verdict(max(found[1:]) < found[0]),
        f"{most} noise dimensions: l1 {found[0]:.3f}, l0 {found[1]:.3f}, capped {found[2]:.3f}",
    )


def _more_false_with_noise(rows):
    sizes = sorted({row["noise"] for row in rows if row["noise"]})
    found = {
        c: [noise * mean(rows, c, "false positives", noise=noise, flipped=0) for noise in sizes]
        for c in ("OneNormSVM", "ZeroNormSVM", "CapOneNormSVM")
    }
    first, *others = found.values()
    true = len(sizes) > 1 and first[-1] > first[0] and all(o[-1] <= 1.0 for o in others)
    shown = "; ".join(
        f"{c} " + ", ".join(f"{count:.1f}" for count in line) for c, line in found.items()
    )
    listed = ", ".join(map(str, sizes))
    return _verdict(true), f"noise features used at {listed} noise dimensions: {shown}"


def _right_fraction(rows):
    told, worst = [], 0.0
    for noise in sorted({row["noise"] for row in rows}):
        right = 10.0 / (10.0 + noise)
        found = {c: mean(rows, c, "features", noise=noise, flipped=0) for c in SPARSE}
        worst = max([worst, *(max(share / right, right / share) for share in found.values())])
        told.append(f"{noise}: {min(found.values()):.3f} to {max(found.values()):.3f}")
    return _verdict(
        worst <= 2.0
    ), "at 0, 10, 100, 200 noise dimensions the true 1, 0.5, 0.091, " + (
        "0.048 against " + "; ".join(told) + " ('close': a factor of 2)"
    )


def _miss_some(rows):
    found = {
        c: np.mean(
            [r["false negatives"] for r in rows if r["classifier"] == c and not r["flipped"]]
        )
        for c in ("OneNormSVM", "ZeroNormSVM", "CapOneNormSVM")
    }
    true = min(found["ZeroNormSVM"], found["CapOneNormSVM"]) > found["OneNormSVM"]
    return _verdict(true), ", ".join(f"{name} misses {share:.2f}" for name, share in found.items())


def _little_lost_with_flips(rows):
    worst, where = -1.0, ""
    for noise, flipped in sorted({(row["noise"], row["flipped"]) for row in rows}):
        wanted = {"noise": noise, "flipped": flipped}
        dense = mean(rows, "SVM", "accuracy", **wanted)
        for name in SPARSE:
            lost = dense - mean(rows, name, "accuracy", **wanted)
            if lost > worst:
                worst, where = lost, f"{name}, {noise} noise dimensions, {flipped} % flipped"
    return _verdict(
        worst <= 0.05
    ), f"at most {100 * worst:.1f} points below l2 ({where}; 'little': 5)"


def _little_loss(rows):
    worst = 0.0
    for noise in {row["noise"] for row in rows}:
        dense = mean(rows, "SVM", "accuracy", noise=noise, flipped=0)
        for name in ("OneNormSVM", "ZeroNormSVM", "CapOneNormSVM"):
            worst = max(worst, dense - mean(rows, name, "accuracy", noise=noise, flipped=0))
    return _verdict(worst <= 0.05), f"at most {100 * worst:.1f} points below l2 ('small': 5)"


def _fewer_support(rows):
    most = max(row["flipped"] for row in rows)
    rise = {}
    for name in ("SVM", "OneNormSVM", "RLSVM2", "RLSVM1"):
        ends = [mean(rows, name, "support", noise=0, flipped=share) for share in (0, most)]
        rise[name] = ends[1] - ends[0]
    true = rise["RLSVM2"] < rise["SVM"] and rise["RLSVM1"] < rise["OneNormSVM"]
    return _verdict(true), ", ".join(f"{name} +{value:.2f}" for name, value in rise.items())


def _fewest_parameters(rows):
    shares = {
        name: float(np.mean([row["parameters"] for row in rows if row["classifier"] == name]))
        for name in NAMES
    }
    least = sorted(shares, key=shares.get)[:2]
    return (
        _verdict(set(least) == {"RLSVM0", "RLSVMC1"}),
        ", ".join(
            f"{name} {share:.3f}"
            for name, share in sorted(shares.items(), key=lambda item: item[1])
        ),
    )


def _verdict(true):
    return "confirmed" if true else "refuted"


WHY = (
    "All ten true features tell equally much: k of them let the best linear classifier be right "
    "with probability Phi(sqrt(k / 1.5)), which is 0.94 for k = 3.6 and 0.995 for k = 10. With "
    "a = 4 and separable samples the penalty l0 is at its ceiling, so that its minimisers are the "
    "smallest sets of features that separate the training samples, three or four, and no lambda "
    "of the set makes it keep more. What l0 with a = 4 and capped l1 with a = 1 lose in accuracy "
    "against l1 is due to a: with a chosen by cross-validation too, both come close to l1's "
    "accuracy with fewer features and fewer false ones."
)


SMALLEST_SETS = (
    "As in the paper, l0 and capped l1 leave out noise and miss true features. They miss many "
    "here, about two in three with l0, because our solutions of its programs are exact and "
    "the samples separable: three or four of the ten features do, as the page of [Fig. "
    "6](004_figure_6.md) works out. The paper shows bars without numbers, so that only its "
    "sentences can be compared."
)
ROBUST = (
    "The ramp loss is flat far on the wrong side, so that samples with flipped labels are no "
    "support vectors; with the hinge every one of them is. The paper shows bars without numbers."
)
JOINT = (
    "Both kinds of sparsity multiply, as in the paper, which shows bars without numbers. What the "
    "sparse penalties lose in accuracy against l2 is that of [Fig. 6](004_figure_6.md): with a = 4 "
    "and a = 1 too few of the true features are kept, and with flipped labels more so."
)


def _figure(number, title, key, pairs, names, xlabel, claims=(), note=""):
    def shown(noise, flipped):
        if pairs == "both":
            return f"{noise};\n{flipped} %"
        return str(noise) if pairs == "noise" else f"{flipped} %"

    def groups(rows):
        present = {(row["noise"], row["flipped"]) for row in rows}
        return _groups([pair for pair in PAIRS[pairs] if pair in present], shown)

    def tell(rows):
        header = ("classifier", *(label.replace("\n", " ") for label in groups(rows)))
        table = markdown_table(header, means(rows, key, groups(rows), names))
        return "\n\n".join(part for part in (PROTOCOL, table, note) if part)

    return Experiment(
        item=f"004 Fig. {number}",
        title=title,
        cells=partial(cells, PAIRS[pairs]),
        measure=measure,
        tell=tell,
        draw=lambda rows: bars(rows, key, groups(rows), names, xlabel, title.split(" by ")[0]),
        claims=claims,
        alternative=f"Bars: {title} of the classifiers",
        data="004_simulated",
    )


NOISE, LABELS, BOTH = "noise dimensions", "labels flipped", "noise dimensions; labels flipped"
WITH_CHOSEN = (*NAMES, *(c.name for c in CHOSEN))
EXPERIMENTS = (
    _figure(3, "share of features used", "features", "noise", SPARSE, NOISE,
            (("l0 and capped l1 use fewer features than l1", _fewer_features),
             ("The number of chosen features is close to that of true ones", _right_fraction)),
            SMALLEST_SETS),
    _figure(4, "share of noise features used", "false positives", "noise", SPARSE, NOISE,
            (("l0 and capped l1 use fewer noise features than l1", _fewer_false),
             ("l1 uses more noise features as there are more, l0 and capped l1 do not",
              _more_false_with_noise)), SMALLEST_SETS),
    _figure(5, "share of true features missed", "false negatives", "noise", SPARSE, NOISE,
            (("l0 and capped l1 miss some of the true features", _miss_some),), SMALLEST_SETS),
    _figure(6, "accuracy by noise dimensions", "accuracy", "noise", WITH_CHOSEN, NOISE,
            (("Sparse penalties lose little accuracy against l2", _little_loss),), WHY),
    _figure(7, "share of support vectors", "support", "labels", NAMES, LABELS,
            (("With the ramp loss, flipped labels add fewer support vectors", _fewer_support),),
            ROBUST),
    _figure(8, "share of parameters", "parameters", "both", NAMES, BOTH,
            (("RLSVM0 and RLSVMC1 use the fewest parameters", _fewest_parameters),), JOINT),
    _figure(9, "accuracy by noise dimensions and flipped labels", "accuracy", "both", NAMES, BOTH,
            (("Sparse penalties lose little accuracy under both kinds of noise",
              _little_lost_with_flips),), JOINT),
)  # fmt: skip

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        experiment.main()
