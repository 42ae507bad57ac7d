"""The solvers of convex problems by name, and the table behind ``solver="auto"``.

Solvers of other problems, which run these, are added in :mod:`sparsvm.solvers.auto`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers.base import Solver
from sparsvm.solvers.block_newton import BlockNewton
from sparsvm.solvers.chain import Chain, Stage
from sparsvm.solvers.cone_program import ConeProgram
from sparsvm.solvers.interior_point import InteriorPoint
from sparsvm.solvers.newton import Newton
from sparsvm.solvers.papers.bcd import BCD
from sparsvm.solvers.papers.cutting_plane import CuttingPlane
from sparsvm.solvers.papers.fbpd import FBPD
from sparsvm.solvers.papers.first_order import FISTA, ForwardBackward, SpaRSA
from sparsvm.solvers.papers.fobos import FOBOS
from sparsvm.solvers.sdca import SDCA


class Rule(NamedTuple):
    """One line of the table: run ``chain`` when ``when(problem, control)`` holds, for ``why``.

    Each link is the name of a solver, or a name and the relative gap at which it hands over to
    the next, or these and its limit of iterations. A solver that stalls hands over too.
    """

    chain: tuple[str | tuple[str, float] | tuple[str, float, int], ...]
    when: Callable[[Problem, Control], bool]
    why: str


# Measured (benchmarks/auto.py and ratios.py, processor seconds): with 38 to 400 dense samples
# interior_point is the fastest and does not stall. On digits (1797 x 64, K = 10) newton, begun by
# sdca, takes a tenth of its time at alpha = 1/n and three quarters at alpha = 1/(30 n). On 5000 raw
# digits with l1 sdca takes a third of newton's time to 1e-3, and newton begun there half to three
# quarters of what it takes from 1e-2 (to 1e-6: 2.7 instead of 3.4 and 8.9 instead of 17 s). Where
# features are not scaled sweeps may go on for ever: on raw digits up to 3000 instead of 20000, with
# interior_point at the end where need be, halve the time of l1/linf (15 to 7 s) and elasticnet.
#
# On sparse data sdca is the fastest to 1e-4, with squared penalties and Euclidean norms to 1e-6
# (1000 newsgroup articles, joint l1/l2, alpha = 1/n, 1/(3 n) and 1/(10 n): 1.3, 0.8 and 1.1 s,
# newton from 1e-4 on 2.7, 3.8 and 3.0). With polyhedral norms its last digits are slow, and
# newton takes them where it can: with all 11314 articles it did not end its first subproblem
# within minutes. Of 100 articles interior_point finds the last digits sooner (0.24 and 0.09 s
# against 0.31 and 0.24), of 200 no more (1.2 and 0.5 against 0.4 and 0.1). Of 300 articles in
# their 100 to 1000 most frequent words interior_point takes 0.03 to 0.09 s with l1, and sdca with
# newton 0.01 to 0.06; with groups of l1/linf 0.1 to 0.3 and 0.2 to 7.
MANY_SAMPLES = 500
MANY_SPARSE_SAMPLES, MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS = 50, 150
TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON = 3000
LAST_DIGITS = 1e-5
FEW_SWEEPS = 3000
# Multiplications of one of interior_point's thirty steps from the side of the features: it ends
# within ten seconds or so.
AFFORDABLE_STEP = 5e9


def _few_coefficients(problem: Problem) -> bool:
    return problem.n * float(problem.n_outputs * problem.d) ** 2 <= AFFORDABLE_STEP


def _many_sparse_samples(problem: Problem, control: Control) -> bool:
    # sdca, which these chains begin with, needs every feature penalised, and newton alone takes a
    # hundred times as long as interior_point on sparse data of many classes.
    if problem.penalty.free.size > 0:
        return False
    # With few features sweeps gain hundredths of a second with norms, and
    # lose minutes where the features are not scaled.
    few = problem.n <= MANY_SAMPLES and _few_coefficients(problem)
    if few and problem.penalty.is_norm:
        return False
    last = problem.penalty.is_norm and control.tol < LAST_DIGITS
    return problem.design.is_sparse and problem.n > (
        MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS if last else MANY_SPARSE_SAMPLES
    )


# Read from the top: the first rule that applies wins, with those of its solvers that can solve the
# problem.
RULES: tuple[Rule, ...] = (
    Rule(
        ("fbpd", "fista"),
        lambda problem, control: not problem.penalty.built_in,
        "a user's own penalty has a prox and nothing else",
    ),
    Rule(
        ("block_newton", "interior_point", "sparsa"),
        lambda problem, control: problem.loss.smooth,
        "Newton steps on the active features",
    ),
    Rule(
        (("sdca", 1e-4), "newton", "interior_point", "cone_program"),
        lambda problem, control: (
            _many_sparse_samples(problem, control)
            and problem.penalty.polyhedral
            and problem.n <= TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON
            and control.tol < LAST_DIGITS
        ),
        "a sweep costs as much as the non-zeros, but the last digits of polyhedra take many",
    ),
    Rule(
        ("sdca", "newton", "interior_point", "cone_program"),
        _many_sparse_samples,
        "a sweep costs as much as the non-zeros",
    ),
    Rule(
        (("sdca", 1e-3, FEW_SWEEPS), "newton", "interior_point", "cone_program"),
        lambda problem, control: problem.n > MANY_SAMPLES and _few_coefficients(problem),
        "cheap sweeps first, as long as they are quicker than a dozen factorisations",
    ),
    Rule(
        (("sdca", 1e-3), "newton", "interior_point", "cone_program"),
        lambda problem, control: problem.n > MANY_SAMPLES,
        "cheap sweeps first, then systems of the size of the active coefficients",
    ),
    Rule(
        ("interior_point", "newton", "cone_program"),
        lambda problem, control: True,
        "a dozen factorisations of size n, whatever the problem",
    ),
)


@dataclass(frozen=True)
class Registry:
    """Solvers by name, and the rules by which ``auto`` chooses among them."""

    solvers: dict[str, type[Solver]]
    rules: tuple[Rule, ...]

    def as_solver(self, solver: str | Solver) -> Solver:
        """Return the solver of that name with its default options, or the object itself.

        Parameters
        ----------
        solver : str or Solver
            A key of ``solvers``, or an object with options of its own. ("auto" depends on the
            problem: see ``resolve``.)
        """
        if isinstance(solver, Solver):
            return solver
        if isinstance(solver, str) and solver in self.solvers:
            return self.solvers[solver]()
        raise ValueError(
            f"solver must be one of {_listing(['auto', *self.solvers])} "
            f"or an object of sparsvm.solvers, but {solver!r} was given."
        )

    def choose(self, problem: Problem, control: Control) -> Solver:
        """Return the solver, or the chain of them, that the rules prescribe."""
        reasons: dict[str, str] = {}
        for rule in self.rules:
            if not rule.when(problem, control):
                continue
            stages = []
            for link in rule.chain:
                name, until, *limit = (link, 0.0) if isinstance(link, str) else link
                solver = self.as_solver(name)
                reason = solver.unsupported(problem)
                if reason is None:
                    stages.append(Stage(solver, until, *limit))
                else:
                    reasons[name] = reason
            if stages:
                return stages[0].solver if len(stages) == 1 else Chain(tuple(stages))
        told = " ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ValueError(f"No solver can solve this problem. {told}")

    def resolve(self, solver: str | Solver, problem: Problem, control: Control) -> Solver:
        """Turn the ``solver`` parameter of an estimator into a solver that can solve ``problem``.

        A name or object that cannot solve the problem is an error which lists those that can.
        """
        if isinstance(solver, str) and solver == "auto":
            return self.choose(problem, control)
        found = self.as_solver(solver)
        reason = found.unsupported(problem)
        if reason is None:
            return found
        able = [name for name, kind in self.solvers.items() if kind().unsupported(problem) is None]
        advice = f"Solvers that can: {_listing(able)}." if able else "No other solver can either."
        raise ValueError(f"solver={found.name!r} cannot solve this problem: {reason} {advice}")


def _listing(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


CONVEX = Registry(
    {
        kind.name: kind
        for kind in (
            InteriorPoint,
            SDCA,
            Newton,
            CuttingPlane,
            ConeProgram,
            FBPD,
            BlockNewton,
            FISTA,
            ForwardBackward,
            SpaRSA,
            FOBOS,
            BCD,
        )
    },
    RULES,
)
