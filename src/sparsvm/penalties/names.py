"""Weights and groups by the names of features: labelled series, dictionaries, lists of names."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sparsvm._typing import Array
from sparsvm.parameters import only_counts, quoted

Names = Sequence[str] | Array | None

# Names that an error lists.
LIST_LENGTH = 5


class Features:
    """The columns of the data: d of them, with names if X has any.

    A column is meant by its name, or by an integer, its position.
    """

    def __init__(self, d: int, names: Names) -> None:
        self.d = d
        self.names: list[str] | None = None if names is None else list(names)
        self._position = {name: j for j, name in enumerate(self.names or [])}

    def known(self, key: Any) -> bool:
        """Whether a column has that name or position."""
        if isinstance(key, numbers.Integral) and not isinstance(key, bool):
            return 0 <= int(key) < self.d
        return isinstance(key, Hashable) and key in self._position

    def position(self, key: Any, parameter: str) -> int:
        """Return the position of a column; a sentence if there is none of that name."""
        if not self.known(key):
            raise ValueError(f"{parameter} names the feature {key!r}, {self._lacking(key)}.")
        if isinstance(key, numbers.Integral):
            return int(key)
        if self.names.count(key) > 1:  # type: ignore[union-attr]
            raise ValueError(
                f"{parameter} names the feature {key!r}, but X has several columns of that name. "
                "Rename them, or use positions."
            )
        return self._position[key]

    def _lacking(self, key: Any) -> str:
        if isinstance(key, numbers.Integral):
            return f"but X has only the columns 0 to {self.d - 1}"
        if self.names is None:
            return (
                "but X has no feature names. Pass X as a frame whose column names are strings (in "
                "a pipeline: set_output(transform='pandas')), or use positions"
            )
        return f"which X has not; its features are {quoted(self.names, most=LIST_LENGTH)}"


def aligned_groups(groups: Any, features: Features) -> Any:
    """Return groups as before, or as one label per feature where they were given by names."""
    if isinstance(groups, Mapping):
        return _labels_of(groups.items(), features)
    if (keys := labels_of(groups)) is not None:
        found = dict(_by_position(keys, list(groups), features, "groups"))
        return [found[j] for j in range(features.d)]
    if holds_lists(groups):
        overlapping = _overlapping(groups, features)
        if overlapping is not None:
            return overlapping
        pairs = [(key, number) for number, members in enumerate(groups) for key in members]
        labels = _labels_of(pairs, features)
        # Numbers throughout, so that the groups count in the order in which they were given.
        order = {number: number for number in range(len(groups))}
        return [order.setdefault(label, len(order)) for label in labels]
    return groups


def _overlapping(groups: Any, features: Features) -> list[list[int]] | None:
    """Return groups that share features by their positions; None where none is shared.

    A feature that is in no group is one by itself.
    """
    found = []
    for members in groups:
        positions = [features.position(key, "groups") for key in members]
        if len(set(positions)) < len(positions):
            twice = next(
                key for key, j in zip(members, positions, strict=True) if positions.count(j) > 1
            )
            raise ValueError(f"A group of groups names the feature {twice!r} more than once.")
        found.append(positions)
    listed = [j for positions in found for j in positions]
    if len(set(listed)) == len(listed):
        return None
    return found + [[j] for j in sorted(set(range(features.d)) - set(listed))]


def aligned_weights(weights: Any, groups: Any, features: Features) -> Any:
    """Return weights as before, or one per feature where they were given by names.

    ``groups`` have been aligned already; weights may also be given by their labels.
    """
    if isinstance(weights, tuple) and len(weights) == 2 and isinstance(weights[0], str):
        return (weights[0], aligned_weights(weights[1], groups, features))
    if isinstance(weights, Mapping):
        keys, values = list(weights), list(weights.values())
        labels = _group_labels(keys, groups, features)
        if labels is not None:
            return np.array([weights.get(label, 1.0) for label in labels])
        out: list[Any] = [1.0] * features.d
        for j, value in _by_position(keys, values, features, "weights", whole=False):
            out[j] = value
        return out
    labelled = labels_of(weights)
    if labelled is None:
        return weights
    values = list(weights)
    labels = _group_labels(labelled, groups, features)
    if labels is None:
        found = dict(_by_position(labelled, values, features, "weights"))
        return [found[j] for j in range(features.d)]
    of_label = dict(zip(labelled, values, strict=True))
    if missing := [label for label in labels if label not in of_label]:
        raise ValueError(f"weights has no entry for the group {missing[0]!r}.")
    return [of_label[label] for label in labels]


def labels_of(values: Any) -> list[Any] | None:
    """Return the labels of a pandas series; None of what has none, or only counts its entries."""
    index = getattr(values, "index", None)
    if index is None or callable(index) or not hasattr(values, "to_numpy"):
        return None
    return None if only_counts(index) else list(index)


def _by_position(
    keys: list[Any], values: list[Any], features: Features, parameter: str, whole: bool = True
) -> Iterable[tuple[int, Any]]:
    """Return pairs of position and value; every feature must be there where ``whole`` says so."""
    found: dict[int, Any] = {}
    for key, value in zip(keys, values, strict=True):
        position = features.position(key, parameter)
        if position in found:
            raise ValueError(f"{parameter} names the feature {key!r} more than once.")
        found[position] = value
    if whole and len(found) < features.d:
        missing = next(j for j in range(features.d) if j not in found)
        name = missing if features.names is None else features.names[missing]
        raise ValueError(
            f"{parameter} is labelled by features but has no entry for {name!r}. Add it, or give "
            "an array in the order of the columns."
        )
    return found.items()


def _labels_of(pairs: Iterable[tuple[Any, Any]], features: Features) -> list[Any]:
    """Return the label of each feature; those left out are groups of one, with their own name."""
    pairs = list(pairs)
    keys, labels = [key for key, _ in pairs], [label for _, label in pairs]
    found = dict(_by_position(keys, labels, features, "groups", whole=False))
    for j in range(features.d):
        if j not in found:
            alone: Any = ("feature", j) if features.names is None else features.names[j]
            found[j] = ("feature", j) if alone in labels else alone
    return [found[j] for j in range(features.d)]


def _group_labels(keys: list[Any], groups: Any, features: Features) -> list[Any] | None:
    """Return the label of each feature if the keys mean groups, None if they mean features."""
    if groups is None or isinstance(groups, numbers.Integral):
        return None
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    distinct = {label for label in labels if isinstance(label, Hashable)}
    if not keys or not all(key in distinct for key in keys):
        return None
    for key in keys:
        members = [j for j, label in enumerate(labels) if label == key]
        if features.known(key) and members != [features.position(key, "weights")]:
            raise ValueError(
                f"weights has the key {key!r}, which may mean a feature or a group. Give one "
                "weight per feature as an array, or other labels to the groups."
            )
    return labels


def holds_lists(groups: Any) -> bool:
    """Whether groups are given by their members; tuples are labels, like anything hashable."""
    return (
        isinstance(groups, (list, tuple))
        and len(groups) > 0
        and all(isinstance(members, (list, set, np.ndarray)) for members in groups)
    )
