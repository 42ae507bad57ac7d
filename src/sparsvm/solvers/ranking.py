"""The solvers of label ranking by name, and which of them is the default."""

from __future__ import annotations

from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.solution import Control
from sparsvm.solvers.base import Solver
from sparsvm.solvers.observed import Observed
from sparsvm.solvers.papers.bcd import BCD
from sparsvm.solvers.papers.first_order import FISTA, ForwardBackward, SpaRSA
from sparsvm.solvers.prox_newton import ProxNewton
from sparsvm.solvers.registry import Registry, Rule

KINDS: tuple[type[Solver], ...] = (ProxNewton, BCD, FISTA, SpaRSA, ForwardBackward)

RANKING = Registry(
    {kind.name: kind for kind in KINDS},
    (
        Rule(
            (FISTA.name,),
            lambda problem, control: problem.penalty.only_prox,
            "a user's own penalty has a prox and nothing else",
        ),
        Rule((ProxNewton.name,), lambda problem, control: True, "Newton steps on few features"),
    ),
)


def resolve_ranking(solver: str | Solver, problem: RankingProblem, control: Control) -> Solver:
    """Return the solver that a name or an object stands for, if it can rank labels."""
    if isinstance(solver, Observed):
        return Observed(resolve_ranking(solver.solver, problem, control), solver.callback)
    if isinstance(solver, Solver) and not isinstance(solver, KINDS):
        raise ValueError(
            f"solver={solver.name!r} cannot rank labels. Solvers that can: "
            f"{', '.join(repr(name) for name in RANKING.solvers)}."
        )
    return RANKING.resolve(solver, problem, control)
