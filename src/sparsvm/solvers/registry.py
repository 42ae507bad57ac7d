"""The solvers of convex problems by name, and the table behind ``solver="auto"``.

Solvers of other problems, which run these, are added in :mod:`sparsvm.solvers.auto`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sparsvm.parameters import quoted
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
from sparsvm.solvers.smooth_interior_point import predicted_work

Named = str | Callable[[Problem], Solver]


class Link(NamedTuple):
    """A solver of a chain, by name or made for the problem, and the terms of its ``Stage``."""

    solver: Named
    until: float = 0.0
    limit: int | None = None
    cold: bool = False
    enter: float | Callable[[Problem], float] = math.inf


class Rule(NamedTuple):
    """One line of the table: run ``chain`` when ``when(problem, control)`` holds, for ``why``.

    Each link is the name of a solver or a function of the problem that returns one, or one of these
    with the relative gap at which it hands over to the next, its limit of iterations, whether it is
    passed over where there is a warm start, and the largest gap at which it enters. A solver that
    stalls hands over too.
    """

    chain: tuple[Named | Link, ...]
    when: Callable[[Problem, Control], bool]
    why: str


# Settings of the table. Its seconds are processor seconds of benchmarks/auto.py, ratios.py and
# results/ablation.md; lambda = 1 / (n alpha).
MANY_SAMPLES = 500
MANY_SPARSE_SAMPLES, MANY_SPARSE_SAMPLES_FOR_LAST_DIGITS = 50, 150
TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON = 3000
LAST_DIGITS = 1e-5
# Where newton takes over from sdca on dense data, and where newton on sparse data does, or
# interior_point after opening sweeps.
FIRST_DIGITS, FURTHER_DIGITS = 1e-3, 1e-4
# From which gap on newton's steps converge with polyhedral norms (5000 digits, l1: from 0.03 the
# whole took 1.7 times as long as from 0.01); and where samples are so many times a third of the
# coefficients, a step of newton costs so much less than one of interior_point that it may enter at
# any gap.
NEWTON_ENTRY, CHEAP_NEWTON = 3e-2, 7.0
# Sweeps before interior_point where they take at most half the time of its steps from a cold start:
# the steps, and a multiplication of a sweep in those of factorisations, which are so much faster.
OPENING_SWEEPS, COLD_STEPS, SLOW_MULTIPLICATION = 100, 20, 10.0
# Its steps from the last point of a path.
WARM_STEPS = 8
# Multiplications of one of interior_point's thirty steps from the side of the features: with these
# it ends within hundredths of a second, and within ten seconds or so.
CHEAP_STEP, AFFORDABLE_STEP = 2e6, 5e9
# Matrices of an elimination by samples are symmetric, which saves this much; and what newton may do
# before interior_point, in the work of that.
SYMMETRIC, NEWTON_SHARE = 0.4, 0.7
# The same where interior_point is not affordable: up to 49 steps on soybean and raw digits.
LONG_NEWTON_SHARE = 4.0


def _step(problem: Problem) -> float:
    return problem.n * float(problem.n_outputs * problem.d) ** 2


def _sweeps_pay(problem: Problem) -> bool:
    """Whether sweeps cost little beside the cheaper elimination of interior_point's steps."""
    if not problem.penalty.is_norm or problem.linear_term is not None:
        return False
    sweep = SLOW_MULTIPLICATION * problem.n * float(problem.n_outputs * problem.d)
    return OPENING_SWEEPS * sweep <= COLD_STEPS * min(_eliminations(problem)) / 2.0


def _eliminations(problem: Problem) -> tuple[float, float]:
    """Return the multiplications of a step of interior_point by samples and by features."""
    n, K, terms = float(problem.n), problem.n_classes, problem.penalty
    coefficients = float(problem.n_outputs * problem.d)
    # A working set holds hardly more groups than there are samples; over the classes they couple.
    joint = terms.is_group_norm and not terms.per_class
    groups = min(float(terms.n_groups), n) if joint else 0.0
    columns = coefficients + groups
    by_samples = K * n * (n**2 + n * groups + groups**2)
    by_features = n * columns**2 / 2.0 + columns**3 / 6.0
    return by_samples, by_features


def _exact_work(problem: Problem) -> float:
    """Return the multiplications that interior_point is predicted to take."""
    if InteriorPoint().unsupported(problem) is not None:
        return math.inf
    by_samples, by_features = _eliminations(problem)
    return COLD_STEPS * min(SYMMETRIC * by_samples, by_features)


def _sdca_against_others(problem: Problem) -> Solver:
    """Return sdca with interior_point as its rival, which bounds what sweeps may lose."""
    work = _exact_work(problem)
    return SDCA(rival_work=work) if work < math.inf else SDCA()


def _newton_entry(problem: Problem) -> float:
    """Return the gap from which newton is quicker than interior_point from the same point.

    Polyhedra are what it takes many steps for. Limited for all penalties, three of sixty problems
    drawn at random took three times as long: 1431 x 132, K = 8, l1/l2, from a gap of 0.16 newton
    ends in 0.18 s, interior_point in 1.1.
    """
    cheap = CHEAP_NEWTON * problem.n_outputs * problem.d <= 3.0 * problem.n
    return math.inf if cheap or not problem.penalty.polyhedral else NEWTON_ENTRY


def _newton(share: float) -> Callable[[Problem], Solver]:
    """Return what makes newton with a share of interior_point's work, which bounds its losses."""

    def limited(problem: Problem) -> Solver:
        work = share * _exact_work(problem)
        return Newton(max_work=work) if work < math.inf else Newton()

    return limited


def _as_far_as_interior_point(problem: Problem) -> Solver:
    """Return block_newton with the work that interior_point would do: both take twice that."""
    if InteriorPoint().unsupported(problem) is not None:
        return BlockNewton()
    return BlockNewton(max_work=predicted_work(problem))


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


class PathPlan(NamedTuple):
    """What the table says of the next point of a path, for hinges with norms on some features.

    The steps are multiplications of one of interior_point's from the side of the features.

    Attributes
    ----------
    exact_step : float
        Up to this, interior_point solves from the last point; beyond, sdca and newton do.
    affordable_step : float
        Up to this, newton goes on from the first of the two gaps, beyond from the second.
    first_until, second_until : float
        The relative gaps.
    exact_steps : float
        Where newton goes on from the first, sweeps have interior_point as a rival that takes so
        many steps; 0: they have none.
    newton_entry, cheap_newton : float
        There newton takes over at gaps up to the one, or at any with a third as many coefficients
        as samples divided by the other.
    """

    exact_step: float = math.inf
    affordable_step: float = AFFORDABLE_STEP
    first_until: float = 0.0
    second_until: float = 0.0
    exact_steps: float = 0.0
    newton_entry: float = NEWTON_ENTRY
    cheap_newton: float = CHEAP_NEWTON


def path_plan(problem: Problem, control: Control) -> PathPlan | None:
    """Return the plan of a hinge with a norm; None where neither can take all of its points."""
    n, every_feature = problem.n, problem.penalty.free.size == 0
    sparse = problem.design.is_sparse and every_feature
    if n <= (MANY_SPARSE_SAMPLES if sparse else MANY_SAMPLES):
        return PathPlan()
    if problem.margin_matrix is not None or not every_feature:
        return None
    if sparse:
        last = control.tol < LAST_DIGITS and n <= TOO_MANY_SPARSE_SAMPLES_FOR_NEWTON
        until = FURTHER_DIGITS if last and problem.penalty.polyhedral else 0.0
        exact = AFFORDABLE_STEP if n <= MANY_SAMPLES else 0.0
        return PathPlan(exact, AFFORDABLE_STEP, until, until)
    second = 0.0 if _rows(problem) else FIRST_DIGITS
    entry = NEWTON_ENTRY if problem.penalty.polyhedral else math.inf
    return PathPlan(CHEAP_STEP, AFFORDABLE_STEP, FIRST_DIGITS, second, WARM_STEPS, entry)


# Read from the top: the first rule that applies wins, with those of its solvers that can solve the
# problem.
RULES: tuple[Rule, ...] = (
    Rule(
        ("sdca", "fbpd", "fista"),
        lambda problem, control: problem.penalty.only_prox,
        "a user's own penalty has a prox and nothing else; a norm of groups in the core, which may "
        "have no more either, goes to sdca",
    ),
    Rule(
        (_as_far_as_interior_point, "interior_point", "block_newton", "sparsa"),
        lambda problem, control: problem.loss.smooth,
        "Newton steps on the active features are quicker by far on most data, but where the "
        "samples can be separated they go from kink to kink: 137 x 74, K = 8, l2, alpha = 1e-6: "
        "0.2 s with interior_point, 8 without; 30 x 15876, K = 9, squared hinge, l1/linf in "
        "groups of 81 at 1e-4 alpha_max: half a minute, minutes without it",
    ),
    Rule(
        (Link("sdca", FURTHER_DIGITS), "newton", "interior_point"),
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
        (
            Link("sdca", FURTHER_DIGITS, OPENING_SWEEPS, True),
            "interior_point",
            "newton",
            "cone_program",
        ),
        lambda problem, control: problem.n <= MANY_SAMPLES and _sweeps_pay(problem),
        "from a cold start a few sweeps often suffice, or leave interior_point half its steps: 500 "
        "x 300, K = 5, l1 and l1/l2: 0.03 and 0.06 s instead of 0.28 and 0.69; from a warm one "
        "paths of 100 points took up to 1.7 times as long with them",
    ),
    Rule(
        # cone_program solved 5 of 60 problems, most with linear terms, that stay unsolved without
        # it; where weights or columns differ by 14 orders of magnitude its point is the best.
        ("interior_point", "newton", "cone_program"),
        lambda problem, control: problem.n <= MANY_SAMPLES or _step(problem) <= CHEAP_STEP,
        "a dozen factorisations, of the size of the samples or the features: pima and wdbc take a "
        "third of sdca and newton or less; but 2000 scaled samples of 60 features in 5 classes, "
        "l1/l2: sdca 0.03 s, interior_point 0.4",
    ),
    Rule(
        ("sdca", _newton(LONG_NEWTON_SHARE), "interior_point", "newton"),
        lambda problem, control: _rows(problem) and _step(problem) > AFFORDABLE_STEP,
        "sdca has Newton steps of its own here: 800 correlated samples of 600 features in 15 "
        "classes, to 1e-4 and 1e-5, l1/l2: 0.15 and 0.12 s, newton from 1e-3 on 0.39 and 0.43; "
        "l1/linf: 1.2 and 1.9 s, newton and interior_point 6 and 6",
    ),
    Rule(
        (
            Link(_sdca_against_others, FIRST_DIGITS),
            Link(_newton(NEWTON_SHARE), enter=_newton_entry),
            "interior_point",
            "newton",
        ),
        lambda problem, control: _step(problem) <= AFFORDABLE_STEP,
        "sweeps until by their rate newton or interior_point would be quicker: 1000 x 300, K = 6, "
        "ten factors, at 0.02 and 0.004 alpha_max, l1: 5.4 and 4.5 s with 300 sweeps and then "
        "newton, 0.8 and 1.3 so; l1/l2: 1.7 and 14.9 s, 0.6 and 4.2; 1000 x 50, K "
        "= 5, overlapping, l1: 0.04 and 0.08 s, 0.05 and 0.07",
    ),
    Rule(
        (
            Link("sdca", FIRST_DIGITS),
            _newton(LONG_NEWTON_SHARE),
            "interior_point",
            "newton",
        ),
        lambda problem, control: True,
        "cheap sweeps first, then systems of the size of the active coefficients: 5000 raw digits, "
        "l1, to 1e-6: 2.7 and 8.9 s, newton from 1e-2 on 3.4 and 17; but 1000 raw digits, l2, "
        "alpha = 1e-3: interior_point 9 s, newton without limit a gap of 0.6 after 55",
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
            f"solver must be one of {quoted(['auto', *self.solvers])} "
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
                terms = link if isinstance(link, Link) else Link(link)
                named = terms.solver
                solver = self.as_solver(named) if isinstance(named, str) else named(problem)
                reason = solver.unsupported(problem)
                if reason is None:
                    enter = terms.enter(problem) if callable(terms.enter) else terms.enter
                    stages.append(Stage(solver, terms.until, terms.limit, terms.cold, enter))
                else:
                    reasons[solver.name] = reason
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
        advice = f"Solvers that can: {quoted(able)}." if able else "No other solver can either."
        raise ValueError(f"solver={found.name!r} cannot solve this problem: {reason} {advice}")


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
