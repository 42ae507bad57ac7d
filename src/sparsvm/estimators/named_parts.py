"""Parameters of losses, penalties and solvers that are given by their names."""

from __future__ import annotations

from typing import Any, TypeVar

from sparsvm.estimators.documented import Documented
from sparsvm.losses import as_loss
from sparsvm.penalties import as_penalty
from sparsvm.solvers import as_solver

Self = TypeVar("Self", bound="NamedParts")
_OBJECTS = {"loss": as_loss, "penalty": as_penalty, "solver": as_solver}


class NamedParts(Documented):
    """Let ``set_params(penalty__l1_ratio=0.2)`` reach the penalty that "elasticnet" stands for."""

    def set_params(self: Self, **params: Any) -> Self:
        """Set parameters by name; a part that is given by its name is made an object for its own.

        Parameters
        ----------
        **params
            Parameters of the estimator, and those of its parts as ``penalty__weights`` and so on.

        Returns
        -------
        self
            The estimator.
        """
        for part in {name.split("__")[0] for name in params if "__" in name} & set(_OBJECTS):
            value = params.get(part, getattr(self, part, None))
            if isinstance(value, str):
                params[part] = _OBJECTS[part](value)
        super().set_params(**params)
        return self
