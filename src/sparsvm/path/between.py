r"""Points of a hinge path that are proven by two solutions, one on either side.

The dual of the hinge with a norm has a linear value, and its feasible set grows with alpha: if
:math:`Y_1, Y_2` are feasible at :math:`\alpha_1 > \alpha_2`, then at
:math:`\alpha = \theta \alpha_1 + (1 - \theta) \alpha_2`

.. math::
    \theta Y_1 + (1 - \theta) Y_2 \text{ is feasible, with the value }
    \theta D_1 + (1 - \theta) D_2 .

So the optimal value is concave in alpha. Its chord between two solved alphas bounds it from below,
the lines :math:`L + \alpha P` of loss and penalty of either solution from above, and the error of
both is of second order in the distance of the alphas. Of a grid whose neighbours differ by a few
per cent, at a gap of 1e-3, every second or third point is solved, a little sharper; those between
are proven by their neighbours, whose weights they take. So the number of solves is bounded by the
tolerance, like its inverse root, however fine the grid (Giesen, Müller, Laue and Swiercy, 2012).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sparsvm._typing import Floats
from sparsvm.certificate.lift import homogeneous, interpolated
from sparsvm.path.continuation import Continuation
from sparsvm.problem.solution import Solution
from sparsvm.solvers import InteriorPoint, resolve
from sparsvm.solvers.chain import Chain

# Settings.
# The part of the tolerance for solutions with points between them, and what of the whole the
# points between are planned to take.
_SHARP_SHARE, _PLANNED_SHARE = 0.3, 0.9
# The most steps of the grid from one solution to the next.
_FARTHEST = 6
# An estimate of the curvature falls to no less than this share of the one before: those of
# vertices vary.
_LEAST_FALL = 0.5
# Fewer steps than this do not pay: solutions are sharper, and starts farther away. 100 alphas over
# two decades, 217 x 1413, K = 3, l1: 0.31 -> 0.20 s with interior_point; 1797 x 64, K = 10, l1/l2:
# 3.3 -> 3.8 s with sdca, whose digits cost more.
_LEAST_STRIDE, _LEAST_STRIDE_OF_SWEEPS = 2, 3
# Below this tolerance no grid is so fine.
_LEAST_TOL = 1e-6


class _Line(NamedTuple):
    """A solution at alpha, whose weights have the objective loss + a * penalty at any a."""

    alpha: float
    solution: Solution
    penalty: float

    def objective(self, alpha: float) -> float:
        return self.solution.objective + (alpha - self.alpha) * self.penalty


class PointsBetween:
    """The solutions at the alphas of a grid, some of them proven by their neighbours.

    Parameters
    ----------
    steps : Continuation
    grid : array
        Decreasing.
    """

    def __init__(self, steps: Continuation, grid: Floats) -> None:
        self.steps, self.grid, self.tol = steps, grid, steps.control.tol
        self._left: _Line | None = None
        self._ready: dict[int, Solution] = {}
        self._curvature = float("inf")  # relative excess of a line one step of the grid away
        solver = resolve(steps.solver, steps.problem, steps.control)
        if isinstance(solver, Chain):
            solver = next(stage.solver for stage in solver.stages if not stage.cold)
        exact = isinstance(solver, InteriorPoint)
        self._least = _LEAST_STRIDE if exact else _LEAST_STRIDE_OF_SWEEPS

    @staticmethod
    def follows(steps: Continuation) -> bool:
        """Whether duals can be interpolated, at a tolerance that a grid may be fine enough for."""
        sharp = steps.control.max_iter is not None or steps.control.tol < _LEAST_TOL
        return steps.problem.convex and homogeneous(steps.problem) and not sharp

    def point(self, t: int) -> Solution:
        """Return the solution at ``grid[t]``; t increases by one from call to call."""
        if t in self._ready:
            return self._ready.pop(t)
        stride = min(self._stride(), len(self.grid) - t)
        if stride > 1 and (known := self.steps.known(self.grid[t])) is not None:
            self._left = self._line(self.grid[t], known)
            return known
        return self._solved_ahead(t, stride)

    def _solved_ahead(self, t: int, stride: int) -> Solution:
        """Solve ``stride`` steps ahead and whatever between is not proven by that."""
        last = t + stride - 1
        right = self._line(self.grid[last], self._solve(self.grid[last], stride > 1))
        if self._left is not None:
            self._bend(self._left, right, stride)
        for k in range(t, last):
            self._ready[k] = self._between(self.grid[k], right)
        self._ready[last] = right.solution
        if stride > 1:
            self.steps.go_on_from(right.alpha, right.solution)
        self._left = right
        return self._ready.pop(t)

    def _between(self, alpha: float, right: _Line) -> Solution:
        left = self._left
        assert left is not None
        line = min(left, right, key=lambda line: line.objective(alpha))
        solution = interpolated(
            self.steps.at(alpha),
            replace(line.solution, objective=line.objective(alpha)),
            (left.alpha, left.solution),
            (right.alpha, right.solution),
            tol=self.tol,
        )
        if not solution.converged:
            solution = self._solve(alpha, sharp=True)
            self._left = self._line(alpha, solution)
        return solution

    def _solve(self, alpha: float, sharp: bool) -> Solution:
        solution = self.steps.solve(alpha, _SHARP_SHARE * self.tol if sharp else None)
        if sharp and solution.relative_gap <= self.tol:
            solution = replace(solution, status="optimal")
        return solution

    def _line(self, alpha: float, solution: Solution) -> _Line:
        return _Line(alpha, solution, self.steps.problem.penalty.value(solution.coef))

    def _bend(self, left: _Line, right: _Line, stride: int) -> None:
        """Estimate the curvature from how far the line of one solution is above the other."""
        size = abs(right.solution.objective)
        excess = left.objective(right.alpha) - right.solution.objective
        found = max(excess, 0.0) / (size * stride**2) if size > 0.0 else 0.0
        known = self._curvature < float("inf")
        self._curvature = max(found, _LEAST_FALL * self._curvature) if known else found

    def _stride(self) -> int:
        """Return how many steps ahead the points between are likely to be proven.

        With t of s steps done, the nearer line is :math:`min(t, s - t)^2` curvatures above the
        optimum and the chord :math:`t (s - t)` below.
        """
        room, stride = (_PLANNED_SHARE - _SHARP_SHARE) * self.tol, 1
        while stride < _FARTHEST and _bulge(stride + 1) * self._curvature <= room:
            stride += 1
        return stride if stride >= self._least and self._left is not None else 1


def _bulge(stride: int) -> int:
    return max(min(t, stride - t) ** 2 + t * (stride - t) for t in range(1, stride))
