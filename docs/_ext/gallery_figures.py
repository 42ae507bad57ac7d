"""The figures of the gallery: colours for everybody, and words for those who do not see them."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
from cycler import cycler
from sphinx_gallery.scrapers import matplotlib_scraper

from sparsvm.plots.style import COLOURS

# The gallery begins with what most visitors look for.
TOLD = (
    *("wine", "genes", "text", "digits", "spectra", "groups_and_covariates", "model_selection"),
    *(
        "stability",
        "costs",
        "noisy_labels",
        "label_ranking",
        "calibration",
        "budget",
        "hard_margin",
    ),
    *("certificate", "losses", "convergence", "onnx", "dask"),
)


class Telling:
    """Sort the scripts of the gallery as they are told; new ones come last."""

    def __init__(self, folder):
        self.places = {f"plot_{name}.py": place for place, name in enumerate(TOLD)}

    def __call__(self, file):
        return self.places.get(file, len(TOLD))


def safe_colours(gallery_conf, name):
    """Before each example: lines in colours that stay apart for colour-blind readers."""
    plt.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)


def described(block, block_vars, gallery_conf, **options):
    """Save the open figures, with their labels (``figure.set_label``) as alternative texts."""
    labels = [plt.figure(number).get_label() for number in plt.get_fignums()]
    if not all(labels):
        raise ValueError(f"A figure of {block_vars['src_file']} has no label to describe it.")
    text = matplotlib_scraper(block, block_vars, gallery_conf, **options)
    waiting = iter(labels)
    return re.sub(r"(:alt:).*", lambda found: f"{found[1]} {next(waiting)}", text)
