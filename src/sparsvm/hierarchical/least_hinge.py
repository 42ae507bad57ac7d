"""The least total hinge, and the face of all classifiers that attain it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Bools, Floats, Ints
from sparsvm.hierarchical.reduction import ReducedSamples
from sparsvm.hierarchical.row_generation import RowGenerator, Rows
from sparsvm.numerics.cone_program import Look, solve_cone_program

# Rows are of order 1, so singular values below this count as zero.
RANK_TOLERANCE = 1e-9
# By how much rows, of order 1, may be violated.
VIOLATION = 1e-9


@dataclass(frozen=True, eq=False)
class Face:
    r"""All classifiers of least hinge: an affine space and the rows that hold in it.

    With :math:`f_{ik} = m_{ik} + S_{ik} - S_{i y_i}` (zero at the true class) the hinge of a
    sample is :math:`\max_k f_{ik}`. By complementary slackness with one optimal dual point Y, a
    classifier has the least hinge if and only if, for every sample, all classes with
    :math:`Y_{ik} > 0` attain that maximum. The classes that tie give equalities, the others
    inequalities, and the value of the hinge itself is needed in neither.

    Attributes
    ----------
    point : array of shape (p,)
        A classifier of the face.
    directions : matrix of shape (p, q), or None
        Directions that keep the ties, orthonormal; None stands for all.
    top : int array of shape (n,)
        A class that attains the maximum for each sample.
    tied : bool array of shape (n, K)
        The classes that attain it on the whole face.
    dual : array of shape (n, K)
        An optimal dual point, its rows summing to the masses.
    ties : Ties or None
        The equalities that the ties give, if there are any.
    iterations : int
    """

    point: Floats
    directions: Floats | None
    top: Ints
    tied: Bools
    dual: Floats
    ties: Ties | None
    iterations: int


@dataclass(frozen=True, eq=False)
class Ties:
    """The equalities ``matrix x + offset = 0`` of a face and their pseudo-inverse."""

    sample: Ints
    high: Ints
    low: Ints
    inverse: Floats


def separable_face(samples: ReducedSamples, point: Floats) -> Face:
    """Return the face of separable samples: the hinge is zero, the true class is on top."""
    problem = samples.problem
    y = problem.y.astype(np.intp)
    tied = np.arange(samples.n_classes) == y[:, None]
    return Face(point, None, y, tied, tied * problem.mass[:, None], None, 0)


def least_hinge(samples: ReducedSamples, tol: float, look: Look | None = None) -> Face:
    """Minimise the total hinge as a linear program, and describe all its solutions.

    An interior-point method ends near the middle of the face, where every multiplier that can be
    positive is: a class ties where its multiplier exceeds its slack. The point and the dual are
    then moved, by the least amount, to satisfy the equalities to the last digits.
    """
    n, K, y = samples.n, samples.n_classes, samples.problem.y.astype(np.intp)
    generator: RowGenerator[_Hinge] = RowGenerator(samples, np.arange(K) != y[:, None], y)
    total = 0

    def program(rows: Rows, accuracy: float) -> _Hinge:
        nonlocal total
        found = _program(samples, rows, accuracy, look)
        total += found.iterations
        return found

    def violation(found: _Hinge) -> Floats:
        return lifted_scores(samples, found.point) - found.hinge[:, None]

    found, _ = generator.solve(program, violation, tol, VIOLATION)
    tied = found.share > found.slack
    top = found.share.argmax(axis=1)
    tied[np.arange(n), top] = True
    if np.array_equal(tied, np.arange(K) == y[:, None]):
        return replace(separable_face(samples, found.point), iterations=total)
    return _polished(samples, found.point, found.share * tied, tied, top, total)


def lifted_scores(samples: ReducedSamples, x: Floats) -> Floats:
    """Return f_ik = m_ik + S_ik - S_{i y_i}, shape (n, K)."""
    scores = samples.scores(x)
    own = scores[np.arange(samples.n), samples.problem.y]
    return np.asarray(samples.problem.margins() + scores - own[:, None])


@dataclass(frozen=True, eq=False)
class _Hinge:
    point: Floats
    hinge: Floats
    share: Floats
    slack: Floats
    iterations: int


def _program(samples: ReducedSamples, rows: Rows, accuracy: float, look: Look | None) -> _Hinge:
    """Minimise the hinge of the samples that have rows; the others are thought to have none."""
    problem = samples.problem
    n, K, y = samples.n, samples.n_classes, problem.y
    members, number = np.unique(rows.sample, return_inverse=True)
    weight = problem.mass[members] * n
    m = members.size
    matrix = samples.rows(rows.sample, rows.high, rows.low)
    picks = sp.csr_array((np.ones(number.size), (np.arange(number.size), number)))
    nothing = sp.csr_array((m, samples.n_unknowns))
    found = solve_cone_program(
        np.concatenate([np.zeros(samples.n_unknowns), weight]),
        [
            (
                sp.hstack([matrix, -picks]),
                -problem.margins()[rows.sample, rows.high],
                "nonnegative",
            ),
            (sp.hstack([nothing, -sp.eye_array(m)]), np.zeros(m), "nonnegative"),
        ],
        tol=accuracy,
        look=look,
    )
    share, slack = np.zeros((n, K)), np.full((n, K), np.inf)
    share[np.arange(n), y] = 1.0
    share[rows.sample, rows.high], slack[rows.sample, rows.high] = found.dual[0], found.slack[0]
    share[members, y[members]], slack[members, y[members]] = found.dual[1], found.slack[1]
    share[members] = np.maximum(share[members], 0.0) / weight[:, None]
    share /= share.sum(axis=1, keepdims=True)
    hinge = np.zeros(n)
    hinge[members] = found.slack[1]
    return _Hinge(found.x[: samples.n_unknowns], hinge, share, slack, found.iterations)


def decomposed(matrix: Floats) -> tuple[Floats, Floats, Floats, int]:
    """Return the singular value decomposition, all right vectors included, and the rank."""
    wide = matrix.shape[0] < matrix.shape[1]
    left, size, right = np.linalg.svd(matrix, full_matrices=wide)
    return left, size, right, int((size > RANK_TOLERANCE).sum())


def _polished(
    samples: ReducedSamples,
    point: Floats,
    share: Floats,
    tied: Bools,
    top: Ints,
    iterations: int,
) -> Face:
    """Move point and dual onto the equalities that the ties give."""
    problem = samples.problem
    n = samples.n
    others = tied.copy()
    others[np.arange(n), top] = False
    sample, high = np.nonzero(others)
    low = top[sample]
    matrix = samples.rows(sample, high, low).toarray()
    margins = problem.margins()
    offset = margins[sample, high] - margins[sample, low]
    left, size, right, rank = decomposed(matrix)
    inverse = (right[:rank].T / size[:rank]) @ left[:, :rank].T
    # Twice, because the first correction of a large error leaves a rounding error of its size.
    for _ in range(2):
        point = point - inverse @ (matrix @ point + offset)

    # With all mass on the top class, the gradient in the unknowns is `base`; the multipliers of
    # the ties must cancel it.
    numbers = np.arange(n)
    whole = samples.rows(numbers, top, problem.y.astype(np.intp))
    base = whole.T @ problem.mass
    entries = (share * problem.mass[:, None])[sample, high]
    for _ in range(2):
        entries = entries - inverse.T @ (matrix.T @ entries + base)
    entries = np.maximum(entries, 0.0)
    dual = np.zeros_like(share)
    dual[sample, high] = entries
    dual[numbers, top] = np.maximum(problem.mass - dual.sum(axis=1), 0.0)
    ties = Ties(sample, high, low, inverse)
    return Face(point, right[rank:].T, top, tied, dual, ties, iterations)
