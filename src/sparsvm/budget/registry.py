"""Names of the solvers of the constrained problem."""

from __future__ import annotations

from typing import Any, Protocol

from sparsvm.budget.fbpd_budget import FBPDEpigraph, FBPDLinear
from sparsvm.budget.problem import ConstrainedProblem, ConstrainedSolution
from sparsvm.budget.search import BudgetSearch
from sparsvm.parameters import quoted
from sparsvm.problem.solution import Control, Start


class ConstrainedSolver(Protocol):
    """What every solver of the constrained problem offers."""

    @property
    def name(self) -> str:
        """The name by which estimators know it."""

    def unsupported(self, problem: ConstrainedProblem) -> str | None:
        """Say in a sentence why this solver cannot solve ``problem``; None when it can."""

    def solve(
        self, problem: ConstrainedProblem, start: Start | None, control: Control
    ) -> ConstrainedSolution:
        """Minimise the penalty within the budget."""


CONSTRAINED_SOLVERS: dict[str, type[Any]] = {
    kind.name: kind for kind in (BudgetSearch, FBPDEpigraph, FBPDLinear)
}


def as_constrained_solver(solver: Any) -> ConstrainedSolver:
    """Return the solver of that name, ``BudgetSearch`` for "auto", or the object itself."""
    if isinstance(solver, str) and solver == "auto":
        return BudgetSearch()
    if isinstance(solver, str) and solver in CONSTRAINED_SOLVERS:
        found: ConstrainedSolver = CONSTRAINED_SOLVERS[solver]()
        return found
    if isinstance(solver, tuple(CONSTRAINED_SOLVERS.values())):
        given: Any = solver
        return given  # type: ignore[no-any-return]
    names = quoted(["auto", *CONSTRAINED_SOLVERS])
    raise ValueError(
        f"solver must be one of {names} or an object of one of their classes in sparsvm.solvers, "
        f"but {solver!r} was given."
    )
