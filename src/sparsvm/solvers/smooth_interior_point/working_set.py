"""The interior point for smooth losses on a working set of features, certified on all the data."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np

from sparsvm import _core
from sparsvm._typing import Features, Floats
from sparsvm.certificate.certify import certified
from sparsvm.problem.problem import Problem
from sparsvm.problem.restriction import Restriction, group_strength
from sparsvm.problem.solution import Control, History, Solution, Start
from sparsvm.solvers.run.progress import progress
from sparsvm.solvers.smooth_interior_point.run import InteriorPointRun
from sparsvm.solvers.smooth_interior_point.systems import features_work, samples_work

# Settings.
# Coefficients of a step's matrix (of each, where it falls into blocks), and multiplications to form
# it: about a third of a second each.
LARGEST_SYSTEM = 2000
LARGEST_STEP = 5e9
# Steps of a run, which takes 10 to 40, and the multiplications of a matrix product in the time that
# a step takes besides: five milliseconds, and twenty passes over the data for each output.
STEPS, STEP_WORK, ENTRY_WORK = 20, 5e7, 200.0
# Rounds of adding the features that violate optimality.
ROUNDS = 20
# The relative complementarity, in tolerances, from which on the iterates are certified.
CERTIFYING_LEVEL = 30.0
# Steps without a better certificate, or an objective lower by this part of the tolerance, before
# rounding is taken to have the last word.
PATIENCE, PROGRESS = 8, 0.1
# A certificate is better where its gap is below this share of the best one's.
IMPROVEMENT = 0.9
# Zeros: the coarsest rounding, relative to the largest contribution to the scores, that keeps the
# certificate is taken, so that the model is exactly sparse.
ROUNDINGS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def predicted_work(problem: Problem) -> float:
    """Return about how many multiplications a run on all features takes, at most."""
    n, terms, p = problem.n, problem.penalty, problem.n_outputs * (problem.d + 1)
    groups = 0
    if terms.group_order is not None:
        groups = terms.n_groups * (problem.n_outputs if terms.per_class else 1)
    by_features = features_work(n, p, problem.n_blocks)
    by_samples = samples_work(n, problem.n_classes, p, groups, 0)
    return STEPS * (STEP_WORK + ENTRY_WORK * n * p + min(by_features, by_samples))


def unsupported_smooth(problem: Problem) -> str | None:
    """Say why not; None where the working set of features may stay small enough."""
    terms = problem.penalty
    least = problem.n_outputs * (terms.free.size + 1)
    if terms.l1_ratio == 0.0 and terms.group_order is None:
        least += problem.n_outputs * problem.d  # nothing is selected
    blocks, work = problem.n_blocks, problem.n * least**2
    if max(least, terms.largest_group) > LARGEST_SYSTEM * blocks or work > LARGEST_STEP * blocks:
        return (
            "interior_point takes smooth losses with at most "
            f"{LARGEST_SYSTEM} coefficients at a time, and these data need more. Use block_newton."
        )
    return None


def solve_smooth(
    problem: Problem, start: Start | None, control: Control, limit: int, name: str
) -> Solution:
    """Solve on a growing working set of features, certifying on all the data."""
    began = time.perf_counter()
    report, records = progress(name, control), []
    best: Solution | None = None
    features, done, stop = _first_features(problem, start), 0, False
    for _ in range(ROUNDS):
        whole = features.size == problem.d
        restriction = Restriction.to(problem, features) if not whole else None
        part = problem if restriction is None else restriction.part
        run, idle, local, lowest = InteriorPointRun(part), 0, None, np.inf
        while done < limit and idle < PATIENCE:
            objective = part.objective(*run.point())
            if run.complementarity <= CERTIFYING_LEVEL * control.tol * abs(objective):
                found = _certified(part, run, control, done, began, name)
                lower = objective < lowest - PROGRESS * control.tol * abs(objective)
                lowest = min(lowest, objective)
                if local is None or found.gap < IMPROVEMENT * local.gap:
                    local, idle = found, 0
                else:
                    idle = 0 if lower else idle + 1
                record = (done, time.perf_counter() - began, local.objective, local.gap)
                records.append((*record, int(np.count_nonzero(local.coef))))
                if report is not None:
                    current = partial(_lifted, restriction, local.coef, local.intercept)
                    stop = report(*records[-1], current)
                if stop or local.within(0.5 * control.tol):
                    break
            elif report is not None:
                # No certificate is made of points that are still far from complementarity.
                coef, intercept = run.point()
                elapsed = time.perf_counter() - began
                current = partial(_lifted, restriction, coef, intercept)
                stop = report(done, elapsed, objective, np.nan, coef.size, current)
            done += 1
            stop = stop or bool(_core.stopping())
            if stop or not run.step():
                break
        local = local or _certified(part, run, control, done, began, name)
        solution = local
        if restriction is not None:
            solution = _on_all(restriction, local, control, done, began, name)
        if best is None or solution.gap < best.gap:
            best = solution
        if best.converged or done >= limit or whole or stop:
            break
        larger = _with_violators(problem, features, solution)
        if larger.size == features.size:
            break
        features = larger
    assert best is not None
    ended = "max_iter" if done >= limit else "stalled"
    return replace(
        best,
        n_iter=done,
        seconds=time.perf_counter() - began,
        history=History.of(records) if records else History.empty(),
        status="optimal" if best.converged else ended,
    )


def _certified(
    problem: Problem,
    run: InteriorPointRun,
    control: Control,
    done: int,
    began: float,
    name: str,
) -> Solution:
    """Return the iterate with as many exact zeros as keep its certificate."""
    coef, intercept = run.point()
    sizes = np.abs(coef) * run.spread
    sizes[:, problem.penalty.omega == 0.0] = np.inf
    largest = np.max(sizes, where=np.isfinite(sizes), initial=0.0)
    solution: Solution | None = None
    for rounding in (*ROUNDINGS, 0.0):
        solution = certified(
            problem,
            np.where(sizes <= rounding * largest, 0.0, coef),
            intercept,
            run.loss.dual(),
            tol=control.tol,
            n_iter=done,
            seconds=time.perf_counter() - began,
            history=History.empty(),
            solver=name,
        )
        if solution.within(0.5 * control.tol):
            break
    assert solution is not None
    return solution


def _lifted(
    restriction: Restriction | None, coef: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    return coef if restriction is None else restriction.lift(coef), intercept


def _on_all(
    restriction: Restriction, found: Solution, control: Control, done: int, began: float, name: str
) -> Solution:
    return certified(
        restriction.whole,
        restriction.lift(found.coef),
        found.intercept,
        found.dual,
        tol=control.tol,
        n_iter=done,
        seconds=time.perf_counter() - began,
        history=History.empty(),
        solver=name,
    )


def _most_features(problem: Problem) -> int:
    """Return how many features a step can take, from the side of the samples or of the features."""
    n, K, blocks = problem.n, problem.n_outputs, problem.n_blocks
    coefficients = min(LARGEST_SYSTEM * blocks, np.sqrt(LARGEST_STEP * blocks / n))
    if n * problem.n_classes <= LARGEST_SYSTEM:
        coefficients = max(coefficients, LARGEST_STEP / (n * n))
    return max(1, int(coefficients / K) - 1)


def _first_features(problem: Problem, start: Start | None) -> Features:
    most = _most_features(problem)
    if problem.d <= most:
        return np.arange(problem.d, dtype=np.int32)
    coef = np.zeros((problem.n_outputs, problem.d)) if start is None else start.coef
    intercept = np.zeros(problem.n_outputs) if start is None else start.intercept
    strength = group_strength(problem, problem.dual_at(problem.scores(coef, intercept)))
    used = np.unique(problem.penalty.groups[coef.any(axis=0)])
    strength[used] = np.inf
    return _of_groups(problem, strength, most // 2)


def _with_violators(problem: Problem, features: Features, solution: Solution) -> Features:
    strength = group_strength(problem, solution.dual)
    strength[problem.penalty.groups[features]] = np.inf
    strength[strength <= 1.0] = -np.inf
    room = min(_most_features(problem), 2 * features.size)
    return _of_groups(problem, strength, room)


def _of_groups(problem: Problem, strength: Floats, most: int) -> Features:
    """Return the features of the strongest groups, about as many, and the unpenalised ones."""
    groups = problem.penalty.groups
    order = np.argsort(-strength, kind="stable")
    total = np.cumsum(np.bincount(groups, minlength=strength.size)[order])
    taken = np.zeros(strength.size, dtype=bool)
    taken[order[: max(1, int(np.searchsorted(total, most, side="right")))]] = True
    taken[strength == np.inf] = True
    taken[strength == -np.inf] = False
    return np.flatnonzero(taken[groups] | (problem.penalty.omega == 0.0)).astype(np.int32)
