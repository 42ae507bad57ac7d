"""Objects that are defined by the arguments of their constructor."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

Self = TypeVar("Self", bound="Parameterised")

# Solvers form products such as x² margin / alpha and their squares, which must not overflow.
LARGEST_NUMBER, SMALLEST_NUMBER = 1e50, 1e-50


def number(value: Any) -> float:
    """Return a parameter as a float, and NaN, which no interval holds, for what is no number."""
    if not isinstance(value, numbers.Real):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.nan


def quoted(names: Iterable[Any], most: int | None = None) -> str:
    """Return names in quotes; of more than ``most`` the first ones, and how many there are."""
    shown = [repr(name) for name in names]
    if most is None or len(shown) <= most:
        return ", ".join(shown)
    return f"{', '.join(shown[:most])}, … ({len(shown)} in all)"


def only_counts(index: Any) -> bool:
    """Whether an index of pandas holds no labels, but 0, 1, ... as it does by default."""
    return type(index).__name__ == "RangeIndex" and bool(index.start == 0 and index.step == 1)


class Parameterised:
    """Give losses, penalties and solvers scikit-learn's parameter protocol.

    A subclass stores every argument of its ``__init__``, unchanged, under the argument's name.
    In return ``sklearn.clone`` copies it, ``GridSearchCV`` reaches its parameters, and two
    objects of one class are equal when their parameters are.
    """

    @classmethod
    def _parameter_names(cls) -> list[str]:
        signature = inspect.signature(cls)
        return list(signature.parameters)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {p.name: p.default for p in inspect.signature(cls).parameters.values()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name (``deep`` is accepted for scikit-learn; none nests)."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name and return the object itself."""
        valid = self._parameter_names()
        for name, value in params.items():
            if name not in valid:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; "
                    f"it takes {', '.join(valid) or 'none'}."
                )
            setattr(self, name, value)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(), other.get_params()
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # Arrays do not hash; leaving them out keeps equal objects equal in hash.
        scalars = tuple(
            (name, value)
            for name, value in self.get_params().items()
            if isinstance(value, (str, int, float, bool, type(None)))
        )
        return hash((type(self).__name__, scalars))

    def __repr__(self) -> str:
        # As in scikit-learn, only what differs from the default is printed.
        defaults = self._defaults()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _same(a: Any, b: Any) -> bool:
    """Compare two parameter values, arrays and lists by their entries."""
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return bool(type(a) is type(b) and a == b)
    if hasattr(a, "equals") and type(a) is type(b):
        return bool(a.equals(b))  # frames and series, their labels too
    if isinstance(a, dict) or isinstance(b, dict):
        return bool(type(a) is type(b) and a == b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(a, b))
