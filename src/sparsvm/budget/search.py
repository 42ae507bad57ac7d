"""The default for the constrained problem: a search over the multiplier with exact solves."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sparsvm._typing import Floats
from sparsvm.budget.cone import by_cone_program, fits_cone_program
from sparsvm.budget.frontier import FrontierPoint, chord_alpha, models, on_margins, slope_between
from sparsvm.budget.frontier_ends import (
    SHARP_GAP,
    SHARPEST_GAP,
    alpha_of_zeros,
    refuse_if_infeasible,
    zero_point,
)
from sparsvm.budget.problem import Bound, ConstrainedProblem, ConstrainedSolution
from sparsvm.numerics.rounding import NO_SIZE
from sparsvm.parameters import Parameterised
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.auto import resolve
from sparsvm.solvers.base import Solver
from sparsvm.solvers.run.options import check_at_least_one, iteration_limit
from sparsvm.solvers.run.progress import progress

# Settings.
# Relative gaps from which on a search that is stuck is worth another method, and from which on a
# regularised problem counts as unsolved.
STUCK_GAP, FAILED_GAP = 1e-8, 1e-5
# Two alphas are apart above, and the same below, such a relative distance.
DISTINCT_ALPHAS, EQUAL_ALPHAS = 1e-6, 1e-7
# A search without progress goes on by geometric means for so many solves.
MOST_IDLE = 8
# Feasibility is in doubt where the penalty is this small a share of the objective, and the search
# at its end where it is this small a share of the mean margin.
SMALL_SHARE, VANISHED_SHARE = 1e-3, 1e-13
# The typical alpha is offset + slope * root(share of the largest hinge), as a share of a bound on
# alpha_max: measured on leukemia and digits with l1, l1/l2 and l1/linf, within a factor of 2. The
# last is that of a budget of zero.
TYPICAL_OFFSET, TYPICAL_SLOPE, TYPICAL_ZERO = 0.12, 0.5, 0.02
# The rest are rules of thumb that were set once. The second alpha aims beyond the budget by this
# share of the way to it, at no less than the second share of the budget, and is the first one
# times or divided by the third at most.
AIM_SHARE, LEAST_AIM, SECOND_FACTOR = 0.3, 0.3, 3.0
# Tolerance of a solve in tolerances of the penalty's share of the objective, and that share before
# it is known.
INNER_TOL, FIRST_SHARE = 0.1, 0.2
# With a budget of zero every alpha is this share of the last one. Otherwise a smaller alpha is
# this share of it where nothing is known, and within these limits.
ZERO_FACTOR = 0.1
ALPHA_SHARE, LEAST_ALPHA_SHARE, MOST_ALPHA_SHARE = 0.3, 0.05, 0.98
# Shares of the gap before that a solve leaves: from the first on there is no progress, from the
# second on it is slow.
NO_PROGRESS, SLOW_PROGRESS = 0.99, 0.3
# An end is near where it is this share of the other's distance from the budget; the line through
# its last two points is followed so far beyond, unless it leads this near to the larger alpha.
NEAR_END, LINE_BEYOND, NEAR_LARGEST = 0.2, 1.5, 0.9


class BudgetSearch(Parameterised):
    r"""Search for the multiplier whose regularised solution spends the budget.

    The least penalty :math:`p(\eta)` is convex and decreasing, and the solution of the regularised
    problem at :math:`\alpha` lies on it where its slope is :math:`-1/\alpha`. Two solutions on both
    sides of the budget bound :math:`p(\eta)` from above by their mixture and from below by their
    tangents; the next :math:`\alpha` is the slope at the budget of the cubic through them, or of
    their chord where the frontier has corners (l1, l1/linf): there the chord's solve either finds a
    corner in between or proves the mixture optimal. Where one of them is much nearer, the line
    through the last two of its side leads across the budget.

    Parameters
    ----------
    inner : str or Solver, default="auto"
        What solves the regularised problems.
    max_iter : int, default=60
        Regularised problems solved at most when the estimator's ``max_iter`` is None.
    """

    name: ClassVar[str] = "budget_search"

    def __init__(self, inner: str | Solver = "auto", max_iter: int = 60) -> None:
        self.inner = inner
        self.max_iter = max_iter

    def unsupported(self, problem: ConstrainedProblem) -> str | None:
        """Say why not: the inner solver cannot solve the regularised problem."""
        try:
            resolve(self.inner, problem.regularised, Control())
        except ValueError as error:
            return str(error)
        return None

    def solve(
        self,
        problem: ConstrainedProblem,
        start: Start | None,
        control: Control,
        alpha: float | None = None,
    ) -> ConstrainedSolution:
        """Solve to ``control.tol``; ``alpha`` is a guess of the multiplier.

        Raises
        ------
        Infeasible
            Where the least mean hinge of any model exceeds the budget.
        """
        check_at_least_one(self, "max_iter")
        search = _Search(self, problem, control)
        if search.open():
            solution = search.solution()
            return solution.with_alpha(alpha_of_zeros(problem))
        if search.problem is not problem:
            start = None if start is None else start.with_masses(search.problem.regularised.mass)
            alpha = None
        search.run(start, alpha)
        search.solve_by_cone_program()
        return search.solution()


class _Search:
    """The state of one search: the two points that enclose the budget and the best bound."""

    over: FrontierPoint

    def __init__(self, solver: BudgetSearch, problem: ConstrainedProblem, control: Control) -> None:
        self.solver = solver
        self.asked, self.problem = problem, problem.even
        self.control = control
        self.limit = iteration_limit(solver.max_iter, control)
        self.began = time.perf_counter()
        self.solved = 0
        self.under: FrontierPoint | None = None
        self.last: FrontierPoint | None = None
        self.previous: FrontierPoint | None = None
        self.bound: Bound = self.problem.bound(None)
        self.candidates: list[tuple[Floats, Floats]] = []
        self.penalty, self.floor = np.inf, 0.0
        self.tightest = 1.0
        self.stuck = self.checked = self.stopped = False
        self.idle, self.slow, self.failed = 0, False, 0
        # The point that was there before the present one, by whether it is over the budget.
        self.ends_before: dict[bool, FrontierPoint | None] = {False: None, True: None}
        self.report = progress(solver.name, control)
        self.records: list[tuple[int, float, float, float, int]] = []

    def solve(self, problem: Problem, start: Start | None, tol: float) -> Solution:
        """Solve a regularised problem."""
        control = replace(self.control, tol=tol, max_iter=None, verbose=False, monitor=None)
        self.solved += 1
        return resolve(self.solver.inner, problem, control).solve(problem, start, control)

    def open(self) -> bool:
        """Begin with the model without penalty, at one end of the frontier; say if it will do."""
        self.over = zero = zero_point(self.problem)
        self.hinge_of_zeros = zero.hinge
        self.bound = self.problem.bound(zero.dual)
        if not self.problem.is_met_by(zero.hinge):
            return False
        self.candidates, self.penalty = [(zero.coef, zero.intercept)], 0.0
        self._record()
        return True

    def run(self, start: Start | None, alpha: float | None) -> None:
        """Enclose the budget, then narrow the pair until the gap is as small as asked."""
        if alpha is None or not 0.0 < alpha < np.inf:
            typical = (
                self._typical_alpha(self.problem.eta) if self.problem.eta > 0.0 else TYPICAL_ZERO
            )
            alpha = self.bound.alpha * typical
        self._visit(alpha, start)
        assert self.last is not None
        while not (self._proved() or self.solved >= self.limit or self.stuck or self.stopped):
            if self.problem.eta == 0.0:
                # From some alpha on no margin is given up for a smaller penalty; below that, only
                # the rounding of the solves changes.
                self._visit(ZERO_FACTOR * self.last.alpha, None)
                self._require_feasible()
                self.stuck = self.stuck or self.idle > 2
            elif self.previous is None:
                self._visit(self._second(self.last), None)
            elif self.under is None:
                self._visit(self._farther(), None)
                self._require_feasible()
            else:
                self._visit(self._between(self.under), None)
            # Another method will do better than more of what cannot be solved.
            self.stuck |= self.failed > 2 and fits_cone_program(self.problem)

    def _typical_alpha(self, hinge: float) -> float:
        """Return the alpha with that mean hinge, about, as a share of a bound on alpha_max."""
        root = float(np.sqrt(min(hinge / self.hinge_of_zeros, 1.0)))
        return TYPICAL_OFFSET + TYPICAL_SLOPE * root

    def _second(self, first: FrontierPoint) -> float:
        """Return the second alpha: the first one moved along the typical curve, a bit beyond."""
        eta = self.problem.eta
        aim = min(
            max(eta + AIM_SHARE * (eta - first.hinge), LEAST_AIM * eta),
            0.5 * (eta + self.hinge_of_zeros),
        )
        ratio = self._typical_alpha(aim) / self._typical_alpha(first.hinge)
        # A larger step than the curve has, should it be steeper here.
        return first.alpha * float(np.clip(ratio, 1.0 / SECOND_FACTOR, SECOND_FACTOR))

    def _visit(self, alpha: float, start: Start | None) -> None:
        """Solve at ``alpha`` and take the solution as one end of the enclosing pair."""
        share = self.last.share if self.last is not None else FIRST_SHARE
        tol = min(INNER_TOL * self.control.tol * share, self.tightest)
        tol = max(tol, SHARP_GAP if self.tightest > SHARP_GAP else SHARPEST_GAP)
        if start is None and self.last is not None:
            start = Start(self.last.coef, self.last.intercept, self.last.dual)
        found = self.solve(self.problem.at(alpha), start, tol)
        self.failed += not found.converged and found.relative_gap > FAILED_GAP
        point = FrontierPoint.of(self.problem, alpha, found.coef, found.intercept, found.dual)
        self._take(point, self.problem.bound(found.dual))

    def _take(self, point: FrontierPoint, bound: Bound) -> None:
        within = point if self.problem.eta > 0.0 else on_margins(self.problem, point)
        if within is not None and self.problem.is_met_by(within.hinge):
            point = within
            if self.under is None or point.alpha > self.under.alpha or self.problem.eta == 0.0:
                self.ends_before[False], self.under = self.under, point
        elif point.alpha < self.over.alpha:
            # The model of zeros lies at the end of the frontier, where its slope jumps.
            self.ends_before[True] = self.over if self.over.penalty > 0.0 else None
            self.over = point
        self.previous, self.last = self.last, point
        before = self.penalty - self.bound.value
        if bound.value > self.bound.value:
            self.bound = bound
        self._update_candidates()
        after = self.penalty - self.bound.value
        self.idle = 0 if after < NO_PROGRESS * before or not after < np.inf else self.idle + 1
        self.slow = not self.slow and SLOW_PROGRESS * before < after < np.inf

    def _update_candidates(self) -> None:
        """Keep the models within the budget that the present pair gives, the cheapest first."""
        found = []
        for coef, intercept in models(self.problem, self.over, self.under):
            if self.problem.is_met_by(self.problem.hinge(coef, intercept)):
                found.append((self.problem.penalty(coef), coef, intercept))
        if found and min(entry[0] for entry in found) <= self.penalty:
            found.sort(key=lambda entry: entry[0])
            self.penalty = found[0][0]
            self.candidates = [(coef, intercept) for _, coef, intercept in found]
            self.floor = self.problem.floor(*self.candidates[0], self.bound.alpha)
        self._record()

    def _record(self) -> None:
        gap = max(self.penalty - self.bound.value, 0.0)
        nonzeros = int(np.count_nonzero(self.candidates[0][0])) if self.candidates else 0
        record = (self.solved, time.perf_counter() - self.began, self.penalty, gap, nonzeros)
        self.records.append(record)
        if self.report is not None:
            # Until a model is within the budget, the last one that is not.
            at = self.last or self.over
            best = self.candidates[0] if self.candidates else (at.coef, at.intercept)
            self.stopped |= self.report(*record, lambda: best)

    def _proved(self) -> bool:
        gap = self.penalty - self.bound.value
        return bool(self.candidates) and gap <= max(self.control.tol * self.penalty, self.floor)

    def _farther(self) -> float:
        """Return a smaller alpha."""
        assert self.last is not None
        alpha, beyond = self.last.alpha, self._beyond()
        ratio = ALPHA_SHARE if beyond is None else beyond / alpha
        return alpha * float(np.clip(ratio, LEAST_ALPHA_SHARE, MOST_ALPHA_SHARE))

    def _between(self, under: FrontierPoint) -> float:
        """Return an alpha between those of the pair: by cubic, and every other time by chord."""
        eta, over = self.problem.eta, self.over
        alpha = 0.0
        if under.penalty > over.penalty:
            beyond, largest = self._beyond(), over.alpha if over.penalty > 0.0 else self.bound.alpha
            most = NEAR_LARGEST * largest + (1.0 - NEAR_LARGEST) * under.alpha
            if beyond is not None and under.alpha < beyond < most:
                alpha = beyond
            elif under.hinge >= eta or self.slow:
                alpha = chord_alpha(over, under)
            else:
                alpha = slope_between(eta, over, under)
        known = [point.alpha for point in (over, under) if point.penalty > 0.0]
        if self.idle > 1 and max(known) > (1.0 + DISTINCT_ALPHAS) * min(known):
            # Neither rule gets far where the frontier bends over many powers of ten.
            self.stuck = self.idle > MOST_IDLE
            return float(np.sqrt(min(known) * max(known)))
        near = any(abs(alpha - other) <= EQUAL_ALPHAS * alpha for other in known)
        if alpha == 0.0 or near or self.idle > 1:
            # Nothing lies between: what is left of the gap is that of the solves themselves.
            self.stuck = self.tightest <= SHARPEST_GAP
            self.tightest = SHARP_GAP if self.tightest > SHARP_GAP else SHARPEST_GAP
        return alpha if alpha > 0.0 else float(np.sqrt(min(known) * max(known)))

    def _beyond(self) -> float | None:
        """Return an alpha just across the budget from the nearer end, if the other end is far off.

        Only points near both sides narrow the pair, so the line through the two last points of the
        near side is followed half as far again as it takes to the budget. None where that leads
        nowhere.
        """
        eta = self.problem.eta
        near, far = self.over, self.under
        if far is not None and eta - far.hinge < near.hinge - eta:
            near, far = far, near
        before = self.ends_before[near is self.over]
        missed = near.hinge - eta
        if before is None or (far is not None and abs(missed) > NEAR_END * abs(far.hinge - eta)):
            return None
        run, rise = near.alpha - before.alpha, near.hinge - before.hinge
        if not 0.0 < run * rise < np.inf:
            return None
        return near.alpha - LINE_BEYOND * missed * run / rise

    def _require_feasible(self) -> None:
        """Raise once the penalty plays no part any more and the budget is still exceeded."""
        assert self.last is not None
        if self.last.penalty == 0.0 or self.last.share > SMALL_SHARE:
            return
        self.stuck = self.last.alpha * self.last.penalty < VANISHED_SHARE * self.problem.unit
        if self.under is not None or self.checked:
            return
        self.checked = True
        refuse_if_infeasible(self.asked, self.solve)

    def solve_by_cone_program(self) -> None:
        """Solve a small problem at once where the regularised ones were too hard."""
        gap = self.penalty - self.bound.value
        if self._proved() or not self.stuck or self.stopped or gap <= STUCK_GAP * self.penalty:
            return
        if fits_cone_program(self.problem):
            found = by_cone_program(self.problem)
            bound = self.problem.bound(found.dual)
            self._take(
                FrontierPoint.of(self.problem, bound.alpha, found.coef, found.intercept), bound
            )

    def solution(self) -> ConstrainedSolution:
        """Return the sparsest of the models that meet the tolerance, or else the cheapest."""
        if not self.candidates:
            self.candidates = [(self.over.coef, self.over.intercept)]
        cheapest = self.problem.penalty(self.candidates[0][0])
        # gap <= tol * penalty, solved for the penalty.
        enough = max(self.bound.value / max(1.0 - self.control.tol, NO_SIZE), cheapest)
        good = [model for model in self.candidates if self.problem.penalty(model[0]) <= enough]
        coef, intercept = min(good, key=lambda model: int(np.count_nonzero(model[0])))
        return ConstrainedSolution.certify(
            self.asked,
            coef,
            intercept,
            self.bound.dual,
            tol=self.control.tol,
            n_iter=max(self.solved, 1),
            seconds=time.perf_counter() - self.began,
            history=History.of(self.records),
            solver=self.solver.name,
            status_if_not="stopped"
            if self.stopped
            else ("max_iter" if self.solved >= self.limit else "stalled"),
        )
