"""Simulated data with 0 ... 200 noise dimensions, and with 0 ... 30 % of the labels flipped.

Run ``python experiments/dc_simulated.py [--repetitions 20] [--output FOLDER]``. Two Gaussians in
ten dimensions with variance 1.5 around (1, ..., 1) and (-1, ..., -1), 100 samples; the noise
dimensions are uniform on [-1, 1]; everything is scaled by 0.2.

What to look for: l0 and capped l1 use fewer features and fewer false ones than l1 at a similar
accuracy; with flipped labels the ramp losses gain fewer support vectors than the hinge losses.
"""

from __future__ import annotations

import numpy as np
from dc_common import CLASSIFIERS, arguments, mean_std, panels, run, write_table

INFORMATIVE = 10
SAMPLES = 100
NOISE_DIMENSIONS = (0, 10, 100, 200)
FLIPPED = (0.0, 0.1, 0.2, 0.3)
DENSE = ("SVM", "RLSVM2")


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


def repeat(cases, repetitions):
    """Results of every case: classifier name -> one dictionary per repetition."""
    values = {}
    for case, options in cases.items():
        values[case] = {classifier.name: [] for classifier in CLASSIFIERS}
        for seed in range(repetitions):
            for name, row in run(*simulate(seed, **options), seed).items():
                selected = row["selected"]
                noise = selected[INFORMATIVE:]
                row["false positives"] = float(noise.mean()) if noise.size else 0.0
                row["false negatives"] = float(np.mean(~selected[:INFORMATIVE]))
                values[case][name].append(row)
        print(case, "done", flush=True)
    return values


def table(path, title, first, values, keys):
    header = ["classifier", first, *keys]
    rows = [
        [name, str(case), *(mean_std([row[key] for row in values[case][name]]) for key in keys)]
        for name in (classifier.name for classifier in CLASSIFIERS)
        for case in values
    ]
    write_table(path, title, header, rows)


def main():
    options = arguments(__doc__.splitlines()[0])
    repetitions = options.repetitions
    cases = {d: {"noise_dimensions": d} for d in NOISE_DIMENSIONS}
    values = repeat(cases, repetitions)
    keys = ("accuracy", "features", "false positives", "false negatives", "support", "steps")
    title = f"Shares by number of noise dimensions, {repetitions} repetitions"
    table(options.output / "dc_noise_dimensions.md", title, "noise dimensions", values, keys)
    wanted = {
        "features": ("share of features", DENSE),
        "false positives": ("share of noise features used", DENSE),
        "false negatives": ("share of true features missed", DENSE),
        "accuracy": ("accuracy", ()),
    }
    path = options.output / "dc_noise_dimensions.png"
    panels(path, wanted, list(values), values, xlabel="noise dimensions")

    cases = {f"{share:.0%}": {"flipped": share} for share in FLIPPED}
    values = repeat(cases, repetitions)
    keys = ("accuracy", "support", "parameters", "features", "steps")
    title = f"Shares by share of flipped labels, {repetitions} repetitions"
    table(options.output / "dc_label_noise.md", title, "labels flipped", values, keys)
    wanted = {
        "support": ("share of support vectors", ()),
        "parameters": ("share of parameters", ()),
        "accuracy": ("accuracy", ()),
    }
    path = options.output / "dc_label_noise.png"
    panels(path, wanted, list(values), values, xlabel="labels flipped")


if __name__ == "__main__":
    main()
