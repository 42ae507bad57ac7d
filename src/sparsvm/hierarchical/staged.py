"""The exact solution, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from sparsvm._typing import Floats
from sparsvm.hierarchical.bounds import Proof, sample_hinges
from sparsvm.hierarchical.least_hinge import Face, least_hinge, separable_face
from sparsvm.hierarchical.reduction import ReducedSamples, pair_norms, reduce
from sparsvm.hierarchical.result import HierarchicalSolution
from sparsvm.hierarchical.row_generation import Optimum
from sparsvm.hierarchical.shortest import even_out, shortest_on_face
from sparsvm.hierarchical.widest import widest_separation
from sparsvm.numerics.cone_program import Look
from sparsvm.numerics.rounding import EPS, NO_SIZE
from sparsvm.parameters import Parameterised
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers.run.monitor import Stopped
from sparsvm.solvers.run.progress import Report, progress

# The linear program must tell multipliers from slacks, whose product is of this size; the cone
# programs are polished afterwards.
LINEAR_TOLERANCE = 1e-11
CONE_TOLERANCE = 1e-8
# The residual at which intercepts of length zero are reached, and steps of SciPy's active sets for
# each pair of classes (its own limit is 3).
ZERO_LENGTH = 1e-12
STEPS_A_PAIR, FEWEST_PAIRS = 100, 30
# Lengthenings of a classifier until its margins hold in floating point, each by a few roundings
# more than it falls short of; one is usual.
LENGTHENINGS, LENGTH_FACTOR = 4, 1.0 + 4.0 * EPS


class Staged(Parameterised):
    """Solve the stages one after the other, each over the solutions of those before.

    1. The least total hinge. Separable samples are recognised by the widest separation being
       positive; otherwise a linear program gives the least hinge and, by complementary slackness,
       the face of all classifiers that attain it.
    2. The least max ||w_r - w_t|| on that face, a second-order cone program.
    3. Among its minimisers the least sum of squares of all ||w_r - w_t||, weights and intercepts
       that sum to zero over the classes, and at last the shortest intercepts.

    Each program is solved with the few rows that matter, added as they are found violated. A
    callback is told of every iteration of a program and of every stage that is done, with the
    classifier of the last of these (zeros before the first), which is what an ended run returns.
    """

    name: ClassVar[str] = "staged"

    def solve(self, problem: Problem, control: Control) -> HierarchicalSolution:
        """Solve all stages and certify the first two."""
        begin = time.perf_counter()
        watch = _Watch(problem, progress(self.name, control))
        found, iterations, status = watch.found, None, "stalled"
        try:
            for found in _stages(problem, watch):
                watch.stage(found)
        except Stopped:
            iterations, status = watch.iteration, "stopped"
        return HierarchicalSolution.certify(
            problem,
            found.coef,
            found.intercept,
            found.proof,
            tol=control.tol,
            n_iter=found.iterations if iterations is None else iterations,
            seconds=time.perf_counter() - begin,
            solver=self.name,
            status_if_not=status,
        )


@dataclass(frozen=True, eq=False)
class _Found:
    coef: Floats
    intercept: Floats
    proof: Proof
    iterations: int


class _Watch:
    """Reports every iteration of the programs and every stage; raises where the run is to end."""

    def __init__(self, problem: Problem, report: Report | None) -> None:
        self.problem, self.report = problem, report
        self.began = time.perf_counter()
        self.iteration = self.before = 0
        self.look: Look | None = None if report is None else self._look
        own = np.arange(problem.n_classes) == problem.y[:, None]
        coef, intercept = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)
        self.found = _Found(coef, intercept, Proof(own * problem.mass[:, None]), 0)

    def _look(self, iteration: int, primal: float, dual: float) -> bool:
        if iteration == 0:  # of the next program
            self.before = self.iteration
        self.iteration = self.before + iteration
        self._tell()
        return False

    def stage(self, found: _Found) -> None:
        """Report the classifier of a stage."""
        self.found = found
        self._tell()

    def _tell(self) -> None:
        if self.report is None:
            return
        coef, intercept = self.found.coef, self.found.intercept
        hinge = float(np.sum(self.problem.mass * _shortfalls(self.problem, coef, intercept)))
        seconds, nonzeros = time.perf_counter() - self.began, int(np.count_nonzero(coef))
        # No gap is known on the way.
        if self.report(self.iteration, seconds, hinge, np.nan, nonzeros, lambda: (coef, intercept)):
            raise Stopped


def _stages(problem: Problem, watch: _Watch) -> Iterator[_Found]:
    """Yield what each stage found; the last one is the solution."""
    samples, look = reduce(problem), watch.look
    optimum = widest_separation(samples, CONE_TOLERANCE, look) if samples.rank else None
    if optimum is not None:
        face = separable_face(samples, optimum.x)
        proof = _proof(samples, face, optimum)
        yield _Found(*samples.lift(optimum.x), proof, optimum.iterations)
    else:
        face = least_hinge(samples, LINEAR_TOLERANCE, look)
        without = _without_weights(samples, face)
        if without is not None:
            yield without
            return
        yield _Found(*samples.lift(face.point), Proof(face.dual), face.iterations)
    optimum = shortest_on_face(samples, face, optimum, CONE_TOLERANCE, look)
    iterations = face.iterations + optimum.iterations
    yield _Found(*samples.lift(optimum.x), _proof(samples, face, optimum), iterations)
    x = even_out(samples, face, optimum, CONE_TOLERANCE, look)
    coef, intercept = samples.lift(x)
    intercept = _shortened(problem, coef, intercept, face)
    if face.ties is None:
        coef, intercept = widened(problem, coef, intercept)
    yield _Found(coef, intercept, _proof(samples, face, optimum), iterations)


def _shortened(problem: Problem, coef: Floats, intercept: Floats, face: Face) -> Floats:
    """Return the shortest intercepts for given weights, in the user's features."""
    scores = problem.scores(coef, intercept)
    own = scores[np.arange(problem.n), problem.y]
    lifted = problem.margins() + scores - own[:, None]
    if problem.n_classes > 2:
        return shortest_intercepts(lifted, face, intercept)
    half = 0.5 * float(intercept[0])
    b = shortest_intercepts(lifted, face, np.array([-half, half]))
    return np.array([b[1] - b[0]])


def widened(problem: Problem, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Scale a separating classifier until every margin holds in floating point as well."""
    factor = 1.0
    for _ in range(LENGTHENINGS):
        least = 1.0 - float(_shortfalls(problem, factor * coef, factor * intercept).max())
        if least >= 1.0 or least <= 0.5:
            break
        factor *= LENGTH_FACTOR / least
    return factor * coef, factor * intercept


def _shortfalls(problem: Problem, coef: Floats, intercept: Floats) -> Floats:
    return np.asarray(sample_hinges(problem, coef, intercept))


def _without_weights(samples: ReducedSamples, face: Face) -> _Found | None:
    """Return the model of intercepts only, if it has the least hinge."""
    problem, K = samples.problem, samples.n_classes
    # Without features the samples of a class are one.
    classes = replace(
        problem,
        y=np.arange(K, dtype=np.int32),
        mass=np.bincount(problem.y, problem.mass, K).astype(np.float64),
    )
    alone = least_hinge(
        replace(samples, problem=classes, values=np.zeros((K, 0)), basis=None), LINEAR_TOLERANCE
    )
    alone = replace(alone, top=alone.top[problem.y], tied=alone.tied[problem.y])
    coef = np.zeros((problem.n_outputs, problem.d))
    intercept = alone.point
    if K > 2:
        intercept = np.concatenate([[0.0], intercept])
        intercept = intercept - intercept.mean()
    intercept = _shortened(problem, coef, intercept, alone)
    hinge = float(np.sum(problem.mass * sample_hinges(problem, coef, intercept)))
    least = float((face.dual * problem.margins()).sum())
    if hinge - least > problem.floor(coef, intercept):
        return None
    return _Found(coef, intercept, Proof(face.dual), face.iterations + alone.iterations)


def _proof(samples: ReducedSamples, face: Face, optimum: Optimum) -> Proof:
    """Gather the multipliers of both stages, those of the ties included."""
    rows, ties = optimum.rows, face.ties
    signed = np.zeros_like(face.dual)
    np.add.at(signed, (rows.sample, rows.high), optimum.row_dual)
    np.subtract.at(signed, (rows.sample, rows.low), optimum.row_dual)
    first, second = samples.pairs()
    weights, _ = samples.blocks(optimum.x)
    vectors = optimum.pair_dual[:, None] * (weights[first] - weights[second])
    vectors /= float(pair_norms(samples, optimum.x).max())
    if ties is not None:
        # What rows and pairs leave of the gradient lies in the span of the ties.
        matrix = samples.rows(rows.sample, rows.high, rows.low)
        rest = matrix.T @ optimum.row_dual + samples.differences().T @ vectors.ravel()
        multiplier = -(ties.inverse.T @ rest)
        np.add.at(signed, (ties.sample, ties.high), multiplier)
        np.subtract.at(signed, (ties.sample, ties.low), multiplier)
    return Proof(face.dual, signed, samples.scale * samples.vectors(vectors))


def shortest_intercepts(lifted: Floats, face: Face, intercept: Floats) -> Floats:
    r"""Minimise :math:`\|b\|` for given weights, within the rows of a face.

    All rows bound differences: :math:`b_k - b_l \le D_{kl}`. The least-distance problem is solved
    by non-negative least squares (Lawson and Hanson), which ends after finitely many steps and
    does not mind constraints that leave no interior, as two active margins do.

    Parameters
    ----------
    lifted : array of shape (n, K)
        The values f_ik of the rows.
    face : Face
    intercept : array of shape (K,)
        The intercepts they were computed with.
    """
    n, K = lifted.shape
    room = np.full((K, K), np.inf)
    slack = np.maximum(lifted[np.arange(n), face.top][:, None] - lifted, 0.0)
    slack[face.tied] = 0.0
    for k in range(K):
        np.minimum.at(room[k], face.top, slack[:, k])
    sample, high = np.nonzero(face.tied)
    # Classes that tie on the whole face may move together only.
    room[face.top[sample], high] = 0.0
    np.fill_diagonal(room, np.inf)
    above, below = np.nonzero(np.isfinite(room))
    sign = np.zeros((above.size, K))
    sign[np.arange(above.size), below] = 1.0
    sign[np.arange(above.size), above] = -1.0
    least = sign @ intercept - room[above, below]
    size = max(float(np.abs(intercept).max()), NO_SIZE)
    system = np.vstack([sign.T, least / size])
    target = np.zeros(K + 1)
    target[-1] = 1.0
    solution, residual = nnls(system, target, maxiter=STEPS_A_PAIR * max(K * K, FEWEST_PAIRS))
    if residual <= ZERO_LENGTH:
        return intercept
    rest = target - system @ solution
    shortest = -size * rest[:-1] / rest[-1]
    # Far below the rounding of the margins, which are of order 1.
    return np.where(np.abs(shortest) < EPS, 0.0, shortest)
