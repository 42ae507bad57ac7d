"""What every solver promises."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsvm.losses import Hinge
from sparsvm.parameters import Parameterised
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Attempt, Control, Solution, Start

# Settings.
# Rounding errors of so many times what the margins alone have come of too large coefficients: 3e8
# leaves them below a millionth of the margins. A linear term may leave an objective near 0, of
# which less is left.
MOST_ROUNDING, MOST_ROUNDING_WITH_LINEAR_TERM = 3e8, 1e3
# A relative gap within the tolerance counts up to this relative floor, which is a worst case.
LARGEST_FLOOR = 1e-3


def dominated_by_rounding(problem: Problem, floor: float, largest: float) -> bool:
    """Whether to look for a point of smaller coefficients: the floor is above what is allowed.

    Where the penalty has no slope to speak of, next to features of which it has one or because a
    linear term takes it away, a start may lead to coefficients so large that their rounding
    error, the floor, hides any gap; another start may do better.
    """
    if floor <= largest:
        return False
    most = MOST_ROUNDING if problem.linear_term is None else MOST_ROUNDING_WITH_LINEAR_TERM
    zeros = np.zeros((problem.n_outputs, problem.d))
    return floor > most * problem.floor(zeros, np.zeros(problem.n_outputs))


def settled(problem: Problem, solution: Solution, tol: float) -> bool:
    """Whether the tolerance is met, and not because of too large coefficients."""
    size = abs(solution.objective)
    allowed = LARGEST_FLOOR if solution.gap <= tol * size else tol
    return solution.within(tol) and not dominated_by_rounding(
        problem, solution.floor, allowed * size
    )


class Solver(Parameterised):
    """An algorithm with its own options, which turns a ``Problem`` into a ``Solution``.

    A solver keeps no state between calls: everything a solve needs is in the problem, in the
    starting point and in the control, so one object may serve several threads at once.
    """

    name: ClassVar[str]
    # Whether a run that may have to end early is cut into parts, each from the end of the last:
    # for solvers that have their point only at the end.
    in_slices: ClassVar[bool] = False

    def unsupported(self, problem: Problem) -> str | None:
        """Say in a sentence why this solver cannot solve ``problem``; None when it can."""
        raise NotImplementedError

    def _needs_more_than_prox(self, problem: Problem) -> str | None:
        """Say so unless more is known of the penalty than its values and its prox."""
        if not problem.penalty.built_in:
            return f"{self.name} takes the built-in penalties only."
        if problem.penalty.only_prox:
            return f"{self.name} needs more of {problem.penalty.kind} than its prox."
        return None

    def _needs_hinge(self, problem: Problem, built_in: bool = True) -> str | None:
        """Say so unless the loss is the hinge and the penalty convex (and built in)."""
        if not isinstance(problem.loss, Hinge):
            return f"{self.name} solves the hinge loss only."
        if not problem.penalty.convex:
            return f"{self.name} needs a convex penalty."
        if built_in and not problem.penalty.built_in:
            return f"{self.name} takes the built-in penalties only."
        return None

    def solve(self, problem: Problem, start: Start | None, control: Control) -> Solution:
        """Minimise the objective of ``problem``.

        Parameters
        ----------
        problem : Problem
            What is to be solved; ``unsupported(problem)`` must be None.
        start : Start or None
            Where to begin; None lets the solver choose.
        control : Control
            Tolerance, iteration limit (None: the solver's own default), threads, verbosity.

        Returns
        -------
        Solution
            The best point found with a certificate computed afresh on that very point.
        """
        raise NotImplementedError

    def attempt(self, problem: Problem, start: Start | None, control: Control) -> Attempt | None:
        """Return a point within the tolerance by the solver's own bounds, without certificate.

        For callers that solve a sequence of problems and certify its end. None means that the
        solver cannot, or did not, vouch for such a point: then ``solve`` is to be asked.
        """
        return None
