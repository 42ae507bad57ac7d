"""The hierarchical problem: the largest smallest margin among classifiers of least hinge."""

from __future__ import annotations

from typing import Any

from sparsvm.hierarchical.hsdm import HSDM
from sparsvm.hierarchical.result import HierarchicalSolution
from sparsvm.hierarchical.staged import Staged
from sparsvm.parameters import quoted

__all__ = ["HSDM", "SOLVERS", "HierarchicalSolution", "Staged", "as_hierarchical_solver"]

SOLVERS: dict[str, Any] = {"staged": Staged, "hsdm": HSDM}


def as_hierarchical_solver(solver: Any) -> Any:
    """Turn a name or an object into a solver; "auto" is the exact one.

    Raises
    ------
    ValueError
        If it is neither, naming what there is.
    """
    if isinstance(solver, str):
        if solver == "auto":
            return Staged()
        if solver in SOLVERS:
            return SOLVERS[solver]()
    elif isinstance(solver, tuple(SOLVERS.values())):
        return solver
    raise ValueError(
        f"solver must be one of {quoted(['auto', *SOLVERS])}, or an object of "
        f"sparsvm.hierarchical, but {solver!r} was given."
    )
