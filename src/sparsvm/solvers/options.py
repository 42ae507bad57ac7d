"""Checks of the options of solvers, with the same sentences everywhere."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Refuse an option that is none of the choices."""
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, but {value!r} was given."
        )


def check_positive(name: str, value: float, *, above: float = 0.0, below: float = np.inf) -> None:
    """Refuse an option outside the open interval."""
    if not above < value < below:
        raise ValueError(
            f"{name} must lie strictly between {above:g} and {below:g}, but is {value!r}."
        )


def check_at_least_one(solver: Any, *names: str) -> None:
    """Refuse counts below 1, and what is no count at all."""
    for name in names:
        value = getattr(solver, name)
        if not isinstance(value, numbers.Integral):
            raise ValueError(f"{name} must be an integer, at least 1, but is {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, but is {value!r}.")
