"""The groups and the weights of a penalty, read from what the user gave."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from sparsvm._typing import Features, Floats
from sparsvm.parameters import LARGEST_NUMBER


def group_numbers(groups: Any, d: int) -> tuple[Features, int]:
    """Number the groups 0, 1, ... in sorted order of their labels."""
    if groups is None:
        return np.arange(d, dtype=np.int32), d
    if isinstance(groups, numbers.Integral) and not isinstance(groups, bool):
        if groups < 1:
            raise ValueError(f"A block size must be at least 1; got groups={groups!r}.")
        size = min(int(groups), max(d, 1))
        return (np.arange(d) // size).astype(np.int32), -(-d // size)
    in_order = hasattr(groups, "__len__") and getattr(groups, "ndim", 1) == 1
    if isinstance(groups, (str, bytes, set, frozenset, dict)) or not in_order:
        raise ValueError(
            f"groups must be None, a block size or one label per feature; got {groups!r}."
        )
    if len(groups) != d:
        raise ValueError(
            f"groups has {len(groups)} labels but the data have {d} features; give one label "
            "per feature."
        )
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    for feature, label in enumerate(labels):
        if not _is_label(label):
            raise ValueError(
                f"groups must hold labels such as numbers or names; that of feature {feature} is "
                f"{label!r}."
            )
    try:
        distinct = sorted(set(labels))
    except TypeError:
        # Labels of mixed types have no order; then the groups count as they first appear.
        distinct = list(dict.fromkeys(labels))
    position = {label: number for number, label in enumerate(distinct)}
    return np.array([position[label] for label in labels], dtype=np.int32), len(distinct)


def _is_label(label: Any) -> bool:
    """Whether it can be compared, and is not missing: neither None nor other than itself."""
    try:
        return label is not None and bool(label == label) and hash(label) is not None
    except (TypeError, ValueError):
        return False


def is_product(weights: Any) -> bool:
    """Whether weights multiply named ones: ("scale", weights), ("sqrt_size", weights)."""
    return isinstance(weights, tuple) and len(weights) == 2 and isinstance(weights[0], str)


def is_scaled(weights: Any) -> bool:
    """Whether weights are, or multiply, the standard deviations of the columns."""
    if is_product(weights):
        return is_scaled(weights[0]) or is_scaled(weights[1])
    return isinstance(weights, str) and weights == "scale"


def feature_weights(
    weights: Any, groups: Features, n_groups: int, column_std: Floats | None
) -> Floats:
    """Return one weight per feature."""
    d = groups.size
    if weights is None:
        return np.ones(d)
    if is_product(weights):
        factors = feature_weights(weights[1], groups, n_groups, column_std)
        omega = factors * feature_weights(weights[0], groups, n_groups, column_std)
        _require_moderate(omega)
        return omega
    wrong = (
        "weights must be None, 'adaptive', an array of numbers, 'scale' or 'sqrt_size'; got "
        f"{weights!r}."
    )
    if isinstance(weights, str):
        if weights == "sqrt_size":
            return np.sqrt(np.bincount(groups, minlength=n_groups))[groups]
        if weights == "adaptive":
            raise ValueError(
                "weights='adaptive' come from a first fit, which SparseSVC, SparseSVCCV, svm_path "
                "and alpha_max make. Give weights as an array here."
            )
        if weights != "scale":
            raise ValueError(wrong)
        if column_std is None or np.shape(column_std) != (d,):
            raise ValueError(
                f"weights='scale' needs the standard deviation of each of the {d} columns; got "
                f"{'none' if column_std is None else f'an array of shape {np.shape(column_std)}'}."
            )
        std = np.asarray(column_std, dtype=np.float64)
        return np.where(std > 0.0, std, 1.0)
    try:
        omega = np.array(weights, dtype=None if np.iscomplexobj(weights) else np.float64)
    except (TypeError, ValueError, OverflowError):
        omega = np.array(None)
    if omega.dtype != np.float64:
        raise ValueError(wrong)
    if omega.ndim != 1 or omega.size not in (d, n_groups):
        raise ValueError(
            f"weights has shape {omega.shape} but there are {d} features in {n_groups} groups; "
            "give one weight per feature or one per group."
        )
    refused = ~(np.isfinite(omega) & (omega >= 0.0))
    if refused.any():
        where = int(np.argmax(refused))
        raise ValueError(
            f"Penalty weights must be finite and not negative; weight {where} is {omega[where]}."
        )
    _require_moderate(omega)
    return omega if omega.size == d else omega[groups]


def spread_weights(weights: Any, columns: Features, d: int, n_groups: int) -> Any:
    """Return the weights of copies of features; those of groups, and named ones, stay."""
    if is_product(weights):
        return weights[0], spread_weights(weights[1], columns, d, n_groups)
    if weights is None or isinstance(weights, str):
        return weights
    given = np.asarray(weights)
    if given.shape not in ((d,), (n_groups,)):
        raise ValueError(
            f"weights has shape {given.shape} but there are {d} features in {n_groups} groups; "
            "give one weight per feature or one per group."
        )
    return given[columns] if given.shape == (d,) else given


def _require_moderate(omega: Floats) -> None:
    """Refuse weights so small or large that products with them may vanish or overflow."""
    refused = (omega != 0.0) & ((omega < 1.0 / LARGEST_NUMBER) | (omega > LARGEST_NUMBER))
    if refused.any():
        where = int(np.argmax(refused))
        raise ValueError(
            f"Penalty weights must be 0 or between {1.0 / LARGEST_NUMBER:g} and "
            f"{LARGEST_NUMBER:g}; weight {where} is {omega[where]:g}. Multiply all weights "
            "by a constant, or alpha."
        )
