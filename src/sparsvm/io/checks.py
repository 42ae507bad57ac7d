"""Whether the attributes of a fitted estimator belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm.data.inputs import MOST_FEATURES
from sparsvm.estimators.label_ranker import SparseLabelRanker
from sparsvm.estimators.label_ranker_cv import SparseLabelRankerCV
from sparsvm.estimators.linear import SparseLinearClassifier
from sparsvm.estimators.selector import SparseSelector
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.estimators.stability import StabilitySelection


def require_consistent(est: Any) -> None:
    """Refuse a fitted estimator with which ``predict`` or ``transform`` could go wrong.

    Raises
    ------
    ValueError
        A part of a sentence that says what does not fit.
    """
    known = vars(est)
    if isinstance(est, SparseSelector) and any(map(_is_fitted, known)):
        inner = known.get("estimator_")
        if not isinstance(inner, SparseLinearClassifier) or "coef_" not in vars(inner):
            raise ValueError("estimator_ is no fitted estimator of sparsvm")
        if inner.n_features_in_ != known.get("n_features_in_"):
            raise ValueError("estimator_ has another number of features")
        _require_names(known, inner.n_features_in_)
        return
    if isinstance(est, StabilitySelection) and any(map(_is_fitted, known)):
        shares, d = known.get("selection_probabilities_"), known.get("n_features_in_")
        if type(d) is not int or not isinstance(shares, np.ndarray) or shares.shape != (d,):
            raise ValueError("selection_probabilities_ is not one share for each feature")
        _require_names(known, d)
        return
    if not isinstance(est, SparseLinearClassifier) or not any(map(_is_fitted, known)):
        return
    wanted = ("coef_", "intercept_", "classes_", "n_features_in_")
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(f"the model has no {missing[0]}")
    classes, d = known["classes_"], known["n_features_in_"]
    if type(d) is not int or not 1 <= d <= MOST_FEATURES:
        raise ValueError(f"n_features_in_ is {d!r}")
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.size < 2:
        raise ValueError("classes_ is no array of at least two labels")
    if len(set(classes.tolist())) != classes.size:
        raise ValueError("classes_ has a label twice")
    _require_names(known, d)
    prior = known.get("class_prior_")
    if "class_prior_" in known and not (
        isinstance(prior, np.ndarray)
        and prior.dtype.kind == "f"
        and prior.shape == classes.shape
        and np.all((prior >= 0.0) & np.isfinite(prior))
    ):
        raise ValueError("class_prior_ is not one share of the weight for each class")
    est._checked_coefficients()
    if isinstance(est, SparseLabelRanker | SparseLabelRankerCV):
        slope, level = known.get("threshold_coef_"), known.get("threshold_intercept_")
        if not (
            isinstance(slope, np.ndarray)
            and slope.dtype.kind == "f"
            and slope.shape == classes.shape
            and np.isfinite(slope).all()
            and isinstance(level, float)
            and np.isfinite(level)
            and isinstance(known.get("multilabel_"), bool)
        ):
            raise ValueError("the threshold of the label ranker is none")
    if "result_" in known and not hasattr(known["result_"], "status"):
        raise ValueError("result_ is not what a solver returned")


def require_path(found: dict[str, Any]) -> None:
    """Refuse the fields of a path that do not belong together; ``coefs`` is one CSR matrix."""
    numbers = ("alphas", "intercepts", "objectives", "gaps", "nonzeros", "n_selected", "seconds")
    if not all(isinstance(found[name], np.ndarray) for name in (*numbers, "classes")):
        raise ValueError("the fields of the path are no arrays")
    n, K = found["alphas"].size, found["classes"].size
    outputs = 1 if K == 2 else K
    wanted = dict.fromkeys(numbers, (n,)) | {"intercepts": (n, outputs)}
    right = all(
        found[name].shape == shape and found[name].dtype.kind in "fi"
        for name, shape in wanted.items()
    )
    coefs, statuses, prior = found["coefs"], found["statuses"], found["class_prior"]
    if not (
        right
        and n > 0
        and sp.issparse(coefs)
        and coefs.shape[0] == n * outputs
        and np.isfinite(coefs.data).all()
        and np.all((found["alphas"] > 0.0) & np.isfinite(found["alphas"]))
        and isinstance(statuses, list)
        and [type(status) for status in statuses] == [str] * n
        and isinstance(prior, np.ndarray)
        and prior.shape == (K,)
        and prior.dtype.kind == "f"
        and type(found["model"]) is SparseSVC
    ):
        raise ValueError("the fields of the path do not belong together")
    if found["feature_names"] is not None:
        _require_names({"feature_names_in_": found["feature_names"]}, coefs.shape[1])


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _require_names(known: dict[str, Any], d: int) -> None:
    names = known.get("feature_names_in_")
    if names is None:
        if "feature_names_in_" in known:
            raise ValueError("feature_names_in_ is None")
        return
    whole = isinstance(names, np.ndarray) and names.shape == (d,) and names.dtype == object
    if not whole or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names_in_ is not one name for each of the {d} features")
    if any("\0" in name for name in names):
        raise ValueError("feature_names_in_ has a name with a NUL character")
