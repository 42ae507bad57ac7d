"""The features that a model uses, the strongest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats
from sparsvm.penalties import as_penalty
from sparsvm.reporting.subject import Subject

# Rows of the table; a page with more of them is slow on a phone and read by nobody.
MOST_ROWS = 500
# Features in the picture.
MOST_DRAWN = 25
# Powers of ten between which the largest weight is written without an exponent, and the digits it
# has after the first.
PLAIN_POWERS, DIGITS = (-3, 5), 2


def features(subject: Subject) -> dict[str, Any]:
    """Return the table of the features in use, ranked by the size of their weights."""
    used = subject.used
    weights = subject.weights[:, used]
    scaled = subject.sizes_of(weights, used)
    size = np.sqrt(np.sum(scaled**2, axis=0))
    order = np.argsort(-size, kind="stable")
    largest = float(size.max()) if size.size else 0.0
    digits = _digits(scaled)
    groups = _groups(subject)
    rows = [
        {
            "rank": rank + 1,
            "name": subject.names[used[j]],
            "group": None if groups is None else groups[used[j]],
            "size": float(size[j]),
            "share": float(size[j]) / largest if largest else 0.0,
            "weights": [
                _cell(weight, value, digits)
                for weight, value in zip(weights[:, j], scaled[:, j], strict=True)
            ],
        }
        for rank, j in enumerate(order[:MOST_ROWS])
    ]
    drawn = order[:MOST_DRAWN]
    return {
        "rows": rows,
        "n_used": int(used.size),
        "n_features": len(subject.names),
        "n_weights": int(np.count_nonzero(weights)),
        "grouped": groups is not None,
        "scaled": subject.test is not None,
        "names": [subject.names[used[j]] for j in drawn],
        "drawn": [[float(value) for value in row] for row in scaled[:, drawn]],
    }


def _digits(values: Floats) -> int | None:
    """Return decimals that give the largest number three digits; None for powers of ten."""
    largest = float(np.abs(values).max(initial=0.0))
    place = 0 if largest == 0.0 else int(np.floor(np.log10(largest)))
    return max(DIGITS - place, 0) if PLAIN_POWERS[0] <= place <= PLAIN_POWERS[1] else None


def _cell(weight: float, value: float, digits: int | None) -> dict[str, str]:
    sign = "plus" if weight > 0 else "minus" if weight < 0 else "zero"
    text = f"{value:+.2e}" if digits is None else f"{value:+.{digits}f}"
    if weight == 0:
        text = "0"
    elif digits is not None and abs(value) < 0.5 * 10.0**-digits:
        text = f"{value:+.0e}"  # not zero, however small
    # A true minus sign, as wide as the plus.
    return {"text": text.replace("-", "\u2212"), "sign": sign, "exact": f"{weight:.6g}"}


def _groups(subject: Subject) -> list[str] | None:
    """Return the label of the group of each feature, where groups were given."""
    model = subject.model
    given: Any = getattr(model, "penalty_", getattr(model, "penalty", None))
    if getattr(given, "groups", None) is None:
        return None
    names = getattr(model, "feature_names_in_", None)
    aligned: Any = as_penalty(given).aligned(len(subject.names), names)
    labels = aligned.groups
    if isinstance(labels, int):
        return [str(j // labels + 1) for j in range(len(subject.names))]
    return [str(label) for label in labels]
