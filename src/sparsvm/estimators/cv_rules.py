"""Small decisions of a cross-validation."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from sparsvm._typing import Floats


def one_error_rule(scores: Floats, best: int) -> int:
    """Return the first (sparsest) point within one standard error of the best point's mean."""
    if scores.shape[1] < 2:
        return best
    means = scores.mean(axis=1)
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(means >= means[best] - error)[0])


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer accepts sample_weight; those of scikit-learn ask their metric."""
    function = getattr(scorer, "_score_func", scorer)
    parameters = inspect.signature(function).parameters.values()
    return any(
        p.name == "sample_weight" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters
    )
