"""Which column of a table is what: the labels, the features, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparsvm.cli.failure import Failure, listed, nearest


@dataclass(frozen=True)
class Wanted:
    """What a command wants of a table.

    Attributes
    ----------
    target : str or None
        Name or position of the column of labels; positions count from 1, and -1 is the last.
    labelled : bool
        Whether there must be labels.
    drop : names or positions of columns that are neither labels nor features
    features : list of str or None
        Names of the only columns to read, in this order; None reads all the others.
    n_features : int or None
        How many features there must be.
    """

    target: str | None = None
    labelled: bool = True
    drop: tuple[str, ...] = ()
    features: Sequence[str] | None = None
    n_features: int | None = None


@dataclass(frozen=True)
class Columns:
    """Positions of the features and of the labels, counted from 0, and the features' names."""

    features: list[int]
    target: int | None
    names: list[str] | None


def choose(header: list[str] | None, n_columns: int, wanted: Wanted, source: str) -> Columns:
    """Find the columns; ``header`` is None where the table has no names."""
    if header is not None:
        _require_distinct(header, source)
    target = None
    if wanted.target is not None:
        target = _position(wanted.target, header, n_columns, source, "--target")
    elif wanted.labelled:
        names = header or [str(j + 1) for j in range(n_columns)]
        raise Failure(
            f"Name the column of {source} that holds the labels with --target; it has "
            f"{listed(names)}."
        )
    if wanted.features is not None and header is not None:
        return Columns(_named(wanted.features, header, source), target, list(wanted.features))
    left_out = {_position(name, header, n_columns, source, "--drop") for name in wanted.drop}
    if header is not None and header[0].strip() == "":
        left_out.add(0)  # the names of the rows, as pandas writes them
    features = [j for j in range(n_columns) if j != target and j not in left_out]
    if not features:
        raise Failure(f"{source} has no column left that could be a feature.")
    _require_count(len(features), wanted.n_features, source)
    return Columns(features, target, None if header is None else [header[j] for j in features])


def column_name(header: list[str] | None, position: int) -> str:
    """Return how messages name a column."""
    if header is None or not header[position].strip():
        return f"column {position + 1}"
    return f"column {header[position]!r} ({position + 1})"


def _position(key: str, header: list[str] | None, n: int, source: str, option: str) -> int:
    if header is not None and key in header:
        return header.index(key)
    try:
        number = int(key)
    except ValueError:
        if header is None:
            raise Failure(
                f"{source} has no line of column names, so that {option} needs a position from 1 "
                f"to {n}, or -1 for the last column; got {key!r}."
            ) from None
        raise Failure(f"There is no column {key!r} in {source}{nearest(key, header)}") from None
    if not (1 <= number <= n or -n <= number <= -1):
        raise Failure(f"{source} has {n} columns; {option} asks for number {number}.")
    return number - 1 if number > 0 else n + number


def _named(names: Sequence[str], header: list[str], source: str) -> list[int]:
    place = {name: j for j, name in enumerate(header)}
    missing = [name for name in names if name not in place]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Failure(
            f"{source} lacks the column {missing[0]!r}{more}, which the model needs"
            f"{nearest(missing[0], header)}"
        )
    return [place[name] for name in names]


def _require_distinct(header: list[str], source: str) -> None:
    if len(set(header)) == len(header):
        return
    seen: dict[str, int] = {}
    for position, name in enumerate(header):
        if name in seen:
            raise Failure(
                f"{source}, line 1: columns {seen[name] + 1} and {position + 1} have the same "
                f"name, {name!r}; rename one."
            )
        seen[name] = position


def _require_count(found: int, n_features: int | None, source: str) -> None:
    if n_features is not None and found != n_features:
        raise Failure(
            f"{source} has {found} columns of features, but the model was fitted on {n_features}. "
            "Name the column of labels with --target, and others to leave out with --drop."
        )


def as_labels(cells: Sequence[Any], source: str) -> Any:
    """Return labels as integers if all are, and as text otherwise."""
    import numpy as np

    texts = [str(cell).strip() for cell in cells]
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return np.array(texts)
    if not all(number.is_integer() for number in numbers):
        odd = next(t for t, number in zip(texts, numbers, strict=True) if not number.is_integer())
        raise Failure(
            f"The labels of {source} are numbers with fractions, such as {odd}; classes are "
            "wanted, by name or as integers. Is --target the right column?"
        )
    return np.array([int(number) for number in numbers], dtype=np.int64)
