"""Seconds of one fit as samples, features, classes or selected features grow, with exponents.

Run ``python benchmarks/growth_plots.py [--page FOLDER]``. Generated data, ``solver="auto"`` to a
proven relative gap of 1e-3, processor seconds of one thread, the median of three fits. The exponent
e is of time ~ size^e, by least squares of the logarithms. ``--page`` writes growth.md and a figure.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from bench import COLOURS, MARKERS, machine

from sparsvm import SparseSVC, alpha_max

PROBLEMS = {
    "hinge, l1": ("hinge", "l1"),
    "hinge, l1/l2": ("hinge", "l1/l2"),
    "squared hinge, l1/l2": ("squared_hinge", "l1/l2"),
    "logistic, l1": ("logistic", "l1"),
    "logistic, l1/l2": ("logistic", "l1/l2"),
}
# What grows, its sizes, and what stays: samples, features, classes, share of alpha_max.
GROWING = {
    "samples": ((250, 500, 1000, 2000, 4000), {"d": 300, "K": 5}),
    "features": ((500, 1000, 2000, 4000, 8000, 16000), {"n": 200, "K": 5}),
    "classes": ((3, 6, 12, 24), {"n": 600, "d": 300}),
    "selected features": ((0.5, 0.3, 0.2, 0.1, 0.05, 0.03), {"n": 400, "d": 2000, "K": 5}),
}
LETTER = {"samples": "n", "features": "d", "classes": "K", "selected features": "share"}

TERMS = """\
Gaussian classes that differ in 20 features, free intercepts, a tenth of `alpha_max` (where selected
features grow, 0.5 to 0.03 of it), a proven gap of 1e-3, the median of three fits. The exponent e is
of seconds ~ size^e, over all sizes. Where times fall or jump, `auto` goes over from one of
`interior_point` and `sdca` to the other."""


def generated(n, d, K):
    """Gaussian classes that differ in 20 features, with a common factor."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    means = np.zeros((K, d))
    means[:, :20] = rng.standard_normal((K, 20))
    X = means[y] + 0.5 * rng.standard_normal((n, 1)) + rng.standard_normal((n, d))
    return X, y


def measure(loss, penalty, n, d, K, share=0.1):
    """Return the median of processor seconds, and the number of selected features."""
    X, y = generated(n, d, K)
    alpha = share * alpha_max(X, y, loss=loss, penalty=penalty, tol=1e-2)
    times = []
    for _ in range(3):
        began = time.process_time()
        model = SparseSVC(loss, penalty, alpha=alpha).fit(X, y)
        times.append(time.process_time() - began)
    assert model.dual_gap_ <= 1e-3
    return statistics.median(times), len(model.selected_features_)


def exponent(sizes, seconds):
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def run():
    """Return for each growing quantity and problem the sizes, the seconds and the exponent."""
    found = {}
    for growing, (sizes, fixed) in GROWING.items():
        for name, parts in PROBLEMS.items():
            rows = [measure(*parts, **{**fixed, LETTER[growing]: size}) for size in sizes]
            seconds, selected = zip(*rows, strict=True)
            at = selected if growing == "selected features" else sizes
            found[growing, name] = (at, seconds, exponent(at, seconds))
            print(line(growing, name, *found[growing, name]), flush=True)
    return found


def line(growing, name, sizes, seconds, power):
    fixed = ", ".join(f"{key} = {value}" for key, value in GROWING[growing][1].items())
    cells = ", ".join(map(str, sizes)), ", ".join(f"{value:.3f}" for value in seconds)
    return f"| {growing} ({fixed}) | {name} | {cells[0]} | {cells[1]} | {power:.2f} |"


def draw(found, file):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8.5, 9.5), layout="constrained", sharey=True)
    for ax, growing in zip(axes.flat, GROWING, strict=True):
        for k, name in enumerate(PROBLEMS):
            sizes, seconds, power = found[growing, name]
            label = f"{name}: {power:.2f}"
            ax.plot(sizes, seconds, marker=MARKERS[k], color=COLOURS[k], label=label)
        ax.set(xscale="log", yscale="log", xlabel=growing)
        if growing != "selected features":
            ax.set_xticks(GROWING[growing][0], map(str, GROWING[growing][0]))
            ax.minorticks_off()
        # Below the axes a legend covers no line.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, title="exponent")
    for ax in axes[:, 0]:
        ax.set_ylabel("processor seconds of one fit")
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="a folder for growth.md and growth.png")
    options = parser.parse_args()
    head = "| growing | problem | sizes | seconds | exponent |\n|---|---|---|---|---|"
    print(head)
    found = run()
    if options.page:
        draw(found, options.page / "growth.png")
        rows = [line(*key, *value) for key, value in found.items()]
        alt = "Seconds of one fit against samples, features, classes and selected features"
        text = [
            "# How the time of a fit grows",
            "",
            f"`python benchmarks/growth_plots.py`: one run. {machine()}",
            TERMS,
            "",
            f"![{alt}, a line for each problem](growth.png)",
            "",
            head,
            *rows,
            "",
        ]
        (options.page / "growth.md").write_text("\n".join(text), "utf-8")


if __name__ == "__main__":
    main()
