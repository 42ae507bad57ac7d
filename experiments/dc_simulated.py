"""Simulated data with 0 ... 200 noise dimensions, and with 0 ... 30 % of the labels flipped.

Run ``python experiments/dc_simulated.py [--repetitions 20] [--jobs 1] [--output FOLDER]``. Two
Gaussians in ten dimensions with variance 1.5 around (1, ..., 1) and (-1, ..., -1), 100 samples; the
noise dimensions are uniform on [-1, 1]; everything is scaled by 0.2.

What to look for: l0 and capped l1 use fewer features and fewer false ones than l1, at a similar
accuracy where their parameter a is chosen too; with flipped labels the ramp losses gain fewer
support vectors than the hinge losses.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from dc_common import (
    CLASSIFIERS,
    Classifier,
    arguments,
    mean_std,
    panels,
    repeat,
    run,
    write_table,
)

from sparsvm.losses import Hinge
from sparsvm.penalties import L0, CappedL1

INFORMATIVE = 10
SAMPLES = 100
NOISE_DIMENSIONS = (0, 10, 100, 200)
FLIPPED = (0.0, 0.1, 0.2, 0.3)
DENSE = ("SVM", "RLSVM2")
# The paper fixes a = 4 and a = 1; here a is chosen with lambda, the sparser model among equals.
SHARPNESSES = (4.0, 2.0, 1.0, 0.5, 0.25)
CAPS = (1.0, 1.5, 2.0)
CHOSEN = (
    Classifier("ZeroNormSVM, a chosen", Hinge(), L0(), tuple(map(L0, SHARPNESSES))),
    Classifier("CapOneNormSVM, a chosen", Hinge(), CappedL1(), tuple(map(CappedL1, CAPS))),
)
NOTES = (
    "All ten true features tell equally much: k of them let the best linear classifier be right "
    "with probability Phi(sqrt(k / 1.5)), which is 0.94 for k = 3.6 and 0.995 for k = 10. With "
    "a = 4 and separable samples the penalty l0 is at its ceiling, so that its minimisers are the "
    "smallest sets of features that separate the training samples, three or four, and no lambda "
    "of the set makes it keep more (the same holds with the linear programs solved by HiGHS or by "
    "CVXOPT). What l0 with a = 4 and capped l1 with a = 1 lose in accuracy against l1 is due to a, "
    "not to lambda or to the start: with a chosen by cross-validation as well, both come close to "
    "the accuracy of l1 with fewer features and fewer false ones.",
)


def simulate(seed, noise_dimensions=0, flipped=0.0):
    """Return X and labels 0, 1, of which the given share is wrong."""
    rng = np.random.default_rng([seed, noise_dimensions])
    y = np.repeat([0, 1], SAMPLES // 2).astype(np.int32)
    signal = np.where(y == 1, 1.0, -1.0)[:, None]
    signal = signal + np.sqrt(1.5) * rng.standard_normal((SAMPLES, INFORMATIVE))
    noise = rng.uniform(-1.0, 1.0, (SAMPLES, noise_dimensions))
    wrong = rng.permutation(SAMPLES)[: round(flipped * SAMPLES)]
    y[wrong] = 1 - y[wrong]
    return 0.2 * np.hstack([signal, noise]), y


def once(case, classifiers, seed):
    """One repetition of a case: accuracy, sparsity, and how the true features were told."""
    rows = run(*simulate(seed, **case), seed, classifiers)
    for row in rows.values():
        noise = row["selected"][INFORMATIVE:]
        row["false positives"] = float(noise.mean()) if noise.size else 0.0
        row["false negatives"] = float(np.mean(~row["selected"][:INFORMATIVE]))
    return rows


def repetitions_of(cases, options, classifiers=CLASSIFIERS):
    """Results of every case: classifier name -> one dictionary per repetition."""
    values = {}
    for name, case in cases.items():
        rows = repeat(partial(once, case, classifiers), options)
        values[name] = {c.name: [row[c.name] for row in rows] for c in classifiers}
        print(name, "done", flush=True)
    return values


def table(path, title, first, values, keys, notes=()):
    header = ["classifier", first, *keys]
    rows = [
        [name, str(case), *(mean_std([row[key] for row in values[case][name]]) for key in keys)]
        for name in next(iter(values.values()))
        for case in values
    ]
    write_table(path, title, header, rows, notes)


def noise_dimensions(options):
    cases = {d: {"noise_dimensions": d} for d in NOISE_DIMENSIONS}
    classifiers = (*CLASSIFIERS, *CHOSEN)
    values = repetitions_of(cases, options, classifiers)
    keys = ("accuracy", "features", "false positives", "false negatives", "support", "steps")
    title = f"Shares by number of noise dimensions, {options.repetitions} repetitions"
    path = options.output / "dc_noise_dimensions.md"
    table(path, title, "noise dimensions", values, keys, NOTES)
    wanted = {
        "features": ("share of features", DENSE),
        "false positives": ("share of noise features used", DENSE),
        "false negatives": ("share of true features missed", DENSE),
        "accuracy": ("accuracy", ()),
    }
    path = options.output / "dc_noise_dimensions.png"
    panels(path, wanted, list(values), values, classifiers, xlabel="noise dimensions")


def label_noise(options):
    cases = {f"{share:.0%}": {"flipped": share} for share in FLIPPED}
    values = repetitions_of(cases, options)
    keys = ("accuracy", "support", "parameters", "features", "steps")
    title = f"Shares by share of flipped labels, {options.repetitions} repetitions"
    table(options.output / "dc_label_noise.md", title, "labels flipped", values, keys)
    wanted = {
        "support": ("share of support vectors", ()),
        "parameters": ("share of parameters", ()),
        "accuracy": ("accuracy", ()),
    }
    path = options.output / "dc_label_noise.png"
    panels(path, wanted, list(values), values, xlabel="labels flipped")


def main():
    options = arguments(__doc__.splitlines()[0])
    noise_dimensions(options)
    label_noise(options)


if __name__ == "__main__":
    main()
