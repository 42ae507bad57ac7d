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
from sparsvm.solvers.smooth_interior_point.systems import samples_work


class Rule(NamedTuple):
    """One line of the table: run ``chain`` when ``when(problem, control)`` holds, for ``why``.

    Each link is the name of a solver, or a name and the relative gap at which it hands over to
    the next, or these and its limit of iterations. A solver that stalls hands over too.
    """

    chain: tuple[str | tuple[str, float] | tuple[str, float, int], ...]
    when: Callable[[Problem, Control], bool]
    why: str


# Settings of the table. Its seconds are processor seconds of benchmarks/auto.py, ratios.py and
# results/ablation.md; lambda = 1 / (n alpha).
MANY_SAMPLES = 500
MANY_SPARSE_SAMPLES, MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS = 50, 150
TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON = 3000
LAST_DIGITS = 1e-5
FEW_SWEEPS = 300
# Coefficients of a smooth loss that interior_point takes all at once, in 0.1 s to 4 s, the
# multiplications of a step that make it cheap, and block_newton's pricings before that: four of
# five problems of the stress search end within them. Where steps are not cheap they may be more:
# digits (7e8), squared hinge with l1/l2 and logistic with l1: 80 and 49 pricings in 1.1 and 0.6 s,
# 1.6 and 1.9 s with a hand-over after 20.
SMALL_SMOOTH_SYSTEM, CHEAP_FEATURE_STEP, FEW_PRICINGS = 2000, 2e8, 20
# Multiplications of a step of interior_point from the side of few samples, a tenth of a second, and
# block_newton's pricings before that: wide data usually end within them.
CHEAP_SMOOTH_STEP, MORE_PRICINGS = 1e9, 200
# Multiplications of one of interior_point's thirty steps from the side of the features: with these
# it ends within hundredths of a second, and within ten seconds or so.
CHEAP_STEP, AFFORDABLE_STEP = 2e6, 5e9


def _step(problem: Problem) -> float:
    return problem.n * float(problem.n_outputs * problem.d) ** 2


def _few_smooth_coefficients(problem: Problem) -> bool:
    return problem.loss.smooth and problem.n_outputs * (problem.d + 1) <= SMALL_SMOOTH_SYSTEM


def _few_smooth_samples(problem: Problem) -> bool:
    n, terms = problem.n, problem.penalty
    groups = 0
    if terms.group_order is not None:
        groups = terms.n_groups * (problem.n_outputs if terms.per_class else 1)
    work = samples_work(n, problem.n_classes, problem.n_outputs * problem.d, groups, 0)
    return work <= CHEAP_SMOOTH_STEP


def _sparse(problem: Problem, control: Control) -> bool:
    # sdca, which these chains begin with, needs every feature penalised, and newton alone takes a
    # hundred times as long as interior_point on sparse data of many classes.
    if problem.penalty.free.size > 0 or not problem.design.is_sparse:
        return False
    # With few features sweeps gain hundredths of a second with norms, and lose minutes where the
    # features are not scaled: 300 newsgroup articles in their 100 to 1000 most frequent words,
    # l1/linf: interior_point 0.1 to 0.3 s, sdca and newton 0.2 to 7.
    if problem.penalty.is_norm and problem.n <= MANY_SAMPLES and _step(problem) <= AFFORDABLE_STEP:
        return False
    # The last digits of few samples: 100 articles, l1, to 1e-6, lambda = 1 and 30: interior_point
    # 0.04 and 0.08 s, sdca and newton 0.12 and 0.63; 400 articles 0.7 and 2.6 s, 0.3 and 1.8.
    last = problem.penalty.is_norm and control.tol < LAST_DIGITS
    return problem.n > (MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS if last else MANY_SPARSE_SAMPLES)


def _rows(problem: Problem) -> bool:
    """Whether sdca has Newton steps of its own: norms of features over the classes."""
    terms = problem.penalty
    joint = terms.is_group_norm and not terms.per_class and problem.n_outputs > 1
    return joint and terms.by_features and terms.free.size == 0


# Read from the top: the first rule that applies wins, with those of its solvers that can solve the
# problem.
RULES: tuple[Rule, ...] = (
    Rule(
        ("fbpd", "fista"),
        lambda problem, control: not problem.penalty.built_in,
        "a user's own penalty has a prox and nothing else",
    ),
    Rule(
        (("block_newton", 0.0, FEW_PRICINGS), "interior_point", "sparsa"),
        lambda problem, control: (
            _few_smooth_coefficients(problem) and _step(problem) <= CHEAP_FEATURE_STEP
        ),
        "Newton steps on the active features; but where the samples can be separated they go from "
        "kink to kink, with l2 too: 137 x 74, K = 8, l2, alpha = 1e-6: 0.2 s with interior_point, "
        "8 without",
    ),
    Rule(
        (("block_newton", 0.0, MORE_PRICINGS), "interior_point", "block_newton", "sparsa"),
        lambda problem, control: (
            _few_smooth_coefficients(problem)
            or (problem.loss.smooth and _few_smooth_samples(problem))
        ),
        "the same where features outnumber few samples: 30 x 15876, K = 9, squared hinge, l1/linf "
        "in groups of 81 at 1e-4 alpha_max: half a minute, minutes without it",
    ),
    Rule(
        ("block_newton", "interior_point", "sparsa"),
        lambda problem, control: problem.loss.smooth,
        "Newton steps on the active features",
    ),
    Rule(
        (("sdca", 1e-4), "newton", "interior_point"),
        # With all 11314 articles newton did not end its first subproblem within minutes.
        lambda problem, control: (
            _sparse(problem, control)
            and problem.penalty.polyhedral
            and problem.n <= TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON
            and control.tol < LAST_DIGITS
        ),
        "a sweep costs as much as the non-zeros, but the last digits of polyhedra take many: 400 "
        "articles, l1, lambda = 1 and 30: 0.3 and 1.8 s, sweeps alone 1.0 and 3.8",
    ),
    Rule(
        ("sdca", "newton", "interior_point"),
        _sparse,
        "a sweep costs as much as the non-zeros: 1000 articles, l1/l2, to 1e-6, lambda = 1, 3, 10: "
        "1.3, 0.8 and 1.1 s, newton from 1e-4 on 2.7, 3.8 and 3.0",
    ),
    Rule(
        # cone_program proves nothing more, but where weights or columns differ by 14 orders of
        # magnitude and more, and no solver gets to the tolerance, its point is the best.
        ("interior_point", "newton", "cone_program"),
        lambda problem, control: problem.n <= MANY_SAMPLES or _step(problem) <= CHEAP_STEP,
        "a dozen factorisations, of the size of the samples or the features: pima and wdbc take a "
        "third of sdca and newton or less; but 2000 scaled samples of 60 features in 5 classes, "
        "l1/l2: sdca 0.03 s, interior_point 0.4",
    ),
    Rule(
        ("sdca", "newton", "interior_point"),
        lambda problem, control: _rows(problem) and _step(problem) > AFFORDABLE_STEP,
        "sdca has Newton steps of its own here: 800 correlated samples of 600 features in 15 "
        "classes, to 1e-4 and 1e-5, l1/l2: 0.15 and 0.12 s, newton from 1e-3 on 0.39 and 0.43; "
        "l1/linf: 1.2 and 1.9 s, newton and interior_point 6 and 6",
    ),
    Rule(
        (("sdca", 1e-3, FEW_SWEEPS), "newton", "interior_point"),
        lambda problem, control: _step(problem) <= AFFORDABLE_STEP,
        "cheap sweeps first, but where classes overlap or features are not scaled they may go on "
        "for ever: seven generated sets (634 to 1692 samples, 5 to 40 classes, noisy labels) 8.9 "
        "s, with 3000 sweeps 20.1; digits (1797 x 64), l1 and l1/linf, to 1e-3, six lambdas: 17.7 "
        "and 19.8; l1/l2, lambda = 1: 0.3, interior_point 2",
    ),
    Rule(
        (("sdca", 1e-3), "newton", "interior_point"),
        lambda problem, control: True,
        "cheap sweeps first, then systems of the size of the active coefficients: 5000 raw digits, "
        "l1, to 1e-6: 2.7 and 8.9 s, newton from 1e-2 on 3.4 and 17",
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
