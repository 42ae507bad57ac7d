"""How often each feature is selected from resamples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsvm.reporting.subject import Subject
from sparsvm.reporting.words import count, percent

# Bars of the picture.
MOST_BARS = 30


def stability_of(subject: Subject, stability: Any) -> dict[str, Any] | None:
    """Return the selection probabilities of the features and what they show."""
    if stability is None:
        return None
    check_is_fitted(stability, "selection_probabilities_")
    probabilities = np.asarray(stability.selection_probabilities_, dtype=np.float64)
    if probabilities.size != len(subject.names):
        raise ValueError(
            f"stability was fitted on {probabilities.size} features, but the model on "
            f"{len(subject.names)}; fit both on the same columns."
        )
    order = np.argsort(-probabilities, kind="stable")[:MOST_BARS]
    order = order[probabilities[order] > 0]
    stable = np.flatnonzero(probabilities >= stability.threshold)
    both = np.intersect1d(stable, subject.used).size
    n_resamples = stability.n_selected_.size
    text = [
        f"The features were selected anew from {count(n_resamples, 'resample')} of the training "
        f"samples. {count(stable.size, 'feature')} came out in at least "
        f"{percent(stability.threshold)} of them; the model uses {both} of these.",
    ]
    bounds = [value for value in stability.error_bounds().values() if np.isfinite(value)]
    if bounds:
        text.append(
            f"At most {_range(bounds)} of them are expected to be there by mistake, depending on "
            "what one assumes (Meinshausen and Bühlmann 2010; Shah and Samworth 2013)."
        )
    return {
        "names": [subject.names[j] for j in order],
        "probabilities": [round(float(probabilities[j]), 4) for j in order],
        "threshold": float(stability.threshold),
        "text": text,
        "label": (
            f"Share of the resamples from which each of {count(order.size, 'feature')} was "
            "selected; the dotted line is the threshold."
        ),
    }


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"
