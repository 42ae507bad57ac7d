"""All solvers by name, and the whole table behind ``solver="auto"``."""

from __future__ import annotations

from sparsvm.solvers.dca import DCA
from sparsvm.solvers.registry import CONVEX, Registry, Rule

ALL = Registry(
    {**CONVEX.solvers, DCA.name: DCA},
    (
        Rule((DCA.name,), lambda problem, control: not problem.convex, "tangents are convex"),
        *CONVEX.rules,
    ),
)
SOLVERS, AUTO = ALL.solvers, ALL.rules
as_solver, choose, resolve = ALL.as_solver, ALL.choose, ALL.resolve
