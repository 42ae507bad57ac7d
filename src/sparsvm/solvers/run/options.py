"""Checks of the options of solvers, with the same sentences everywhere."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from sparsvm.parameters import number, quoted
from sparsvm.problem.solution import Control

# Native code counts with 32 bits, or 64 where a count may become as large.
LARGEST_COUNT = 2**31 - 1
MOST_ITERATIONS = 2**62
# Of all iterations so far, the share that passes before the next certificate: with that spacing the
# certificates of a long run cost next to nothing.
CHECK_SHARE = 1 / 8


def until_certificate(check_every: int, done: int, limit: int) -> int:
    """Return the iterations until the next certificate, which costs as much as several of them."""
    return min(max(check_every, int(CHECK_SHARE * done)), limit - done)


def iteration_limit(max_iter: int, control: Control, most: int = MOST_ITERATIONS) -> int:
    """Return the limit of the control, or without one that of the solver.

    One that native code cannot count to is never reached.
    """
    return min(int(max_iter if control.max_iter is None else control.max_iter), most)


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Refuse an option that is none of the choices."""
    # Of arrays no comparison says whether they are one of the choices.
    if not isinstance(value, str | None) or value not in choices:
        raise ValueError(f"{name} must be one of {quoted(choices)}, but {value!r} was given.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, but is {value!r}.")


def check_positive(name: str, value: Any, *, above: float = 0.0, below: float = np.inf) -> None:
    """Refuse an option outside the open interval."""
    if not above < number(value) < below:
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
