"""The certificate of any point of any problem, recomputed from scratch."""

from __future__ import annotations

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.certificate.gap import duality_gap
from sparsvm.certificate.ranking_gap import ranking_gap
from sparsvm.numerics.columns import Columns, few
from sparsvm.problem.linearise import concave_part_is_linear, tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.ranking import RankingProblem
from sparsvm.problem.solution import Certificate, History, Solution


def certify(
    problem: Problem,
    W: Floats | Columns,
    b: Floats,
    dual: Floats | None,
    overwrite_dual: bool = False,
) -> Certificate:
    """Return the duality gap of (W, b), with a lower bound made from ``dual``.

    ``dual`` may be any (n, K) array; it is repaired into a feasible point first. None means
    the derivatives at (W, b) for a smooth loss, and zero off the true classes for the hinge.
    Where the problem is not convex, the certificate is the criticality instead of a gap.
    With ``overwrite_dual`` the array may be used as the feasible point's. A time limit that has
    passed does not cut it short: a run that ends by itself would have no point to return.
    """
    held = _core.hold_stop(True)
    try:
        return _certificate(problem, W, b, dual, overwrite_dual)
    finally:
        _core.hold_stop(held)


def _certificate(
    problem: Problem,
    W: Floats | Columns,
    b: Floats,
    dual: Floats | None,
    overwrite_dual: bool,
) -> Certificate:
    if isinstance(problem, RankingProblem):
        return ranking_gap(problem, W, b, dual)
    if problem.convex:
        return duality_gap(problem, W, b, dual, overwrite_dual)
    return _critical(problem, W.dense() if isinstance(W, Columns) else W, b, dual)


def certified(
    problem: Problem,
    coef: Floats | Columns,
    intercept: Floats,
    dual: Floats | None,
    *,
    tol: float,
    n_iter: int,
    seconds: float,
    history: History,
    solver: str,
    status_if_not: str = "max_iter",
    overwrite_dual: bool = False,
) -> Solution:
    """Return the solution of a point, with a certificate recomputed from scratch.

    The status is "optimal" if and only if ``gap <= max(tol * |objective|, floor)`` (where the
    problem is not convex: the criticality in place of the gap), otherwise ``status_if_not``.
    With ``overwrite_dual`` the given array may become the solution's.
    """
    if isinstance(coef, Columns) and not few(coef.used.size, coef.d):
        # To the last digit what the certificate of the whole matrix says.
        coef = coef.dense()
    proof = certify(problem, coef, intercept, dual, overwrite_dual)
    local_minimum = None
    if not problem.convex:
        W = coef.dense() if isinstance(coef, Columns) else coef
        linear = concave_part_is_linear(problem, W, intercept)
        local_minimum = None if linear is None else linear and proof.within(tol)
    return Solution(
        # All coefficients only now: many of them take as much memory as the certificate did.
        coef=coef.dense() if isinstance(coef, Columns) else coef,
        intercept=intercept,
        dual=proof.dual,
        objective=proof.objective,
        dual_objective=proof.dual_objective,
        gap=proof.gap,
        relative_gap=proof.relative_gap,
        floor=proof.floor,
        status="optimal" if proof.within(tol) else status_if_not,
        n_iter=n_iter,
        seconds=seconds,
        history=history,
        solver=solver,
        criticality=proof.criticality,
        local_minimum=local_minimum,
    )


def recertified(
    problem: Problem,
    solution: Solution,
    coef: Floats,
    intercept: Floats,
    tol: float,
    status_if_not: str,
    overwrite_dual: bool = False,
) -> Solution:
    """Return the solution with other coefficients, certified from its dual."""
    return certified(
        problem,
        coef,
        intercept,
        solution.dual,
        tol=tol,
        n_iter=solution.n_iter,
        seconds=solution.seconds,
        history=solution.history,
        solver=solution.solver,
        status_if_not=status_if_not,
        overwrite_dual=overwrite_dual,
    )


def _critical(problem: Problem, W: Floats, b: Floats, dual: Floats | None) -> Certificate:
    """Return how far (W, b) is from critical: the gap of its own tangent problem there."""
    touching = tangent(problem, W, b)
    proof = duality_gap(touching.problem, W, b, dual)
    return Certificate(
        objective=problem.objective(W, b),
        dual_objective=float("nan"),
        floor=proof.floor / touching.scale,
        dual=proof.dual,
        criticality=proof.gap / touching.scale,
    )
