"""The widest separation of separable samples."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats
from sparsvm.hierarchical.reduction import ReducedSamples, split_pairs
from sparsvm.hierarchical.row_generation import Optimum, RowGenerator, Rows
from sparsvm.numerics.cone_program import Block, ConeSolution, Look, solve_cone_program

# A separation below this share of the length of the samples is not told from none.
LEAST_MARGIN = 1e-7
# By how much of the margin rows may be violated: the polishing adds those that are.
ROUGH_VIOLATION = 1e-6


def widest_separation(
    samples: ReducedSamples, tol: float, look: Look | None = None
) -> Optimum | None:
    r"""Maximise the least margin over classifiers with all :math:`\|w_r - w_t\| \le 1`.

    This form always has a solution, so that separability need not be known: the samples are
    separable if and only if the margin :math:`\rho` comes out positive. Divided by it, the
    solution is that of least :math:`\max \|w_r - w_t\|` with margins of at least 1.

    Returns
    -------
    Optimum or None
        None if the samples are not separable.
    """
    y = samples.problem.y.astype(np.intp)
    others = np.arange(samples.n_classes) != y[:, None]
    generator: RowGenerator[ConeSolution] = RowGenerator(samples, others, y)
    total = 0

    def program(rows: Rows, accuracy: float) -> ConeSolution:
        nonlocal total
        found = _program(samples, rows, accuracy, look)
        total += found.iterations
        return found

    def violation(found: ConeSolution) -> Floats | None:
        margin = float(found.x[-1])
        if not margin > LEAST_MARGIN:
            return None
        scores = samples.scores(found.x[:-1])
        return np.asarray(scores - scores[np.arange(samples.n), y][:, None] + margin) / margin

    found, rows = generator.solve(program, violation, tol, ROUGH_VIOLATION)
    margin = float(found.x[-1])
    if not margin > LEAST_MARGIN:
        return None
    # Beyond the cone of a pair its multiplier is a vector opposite to the difference.
    pairs = np.array([np.linalg.norm(dual[1:]) for dual in found.dual[1:]])
    length = float(pairs.sum())
    return Optimum(found.x[:-1] / margin, rows, found.dual[0] / length, pairs / length, total)


def _program(
    samples: ReducedSamples, rows: Rows, accuracy: float, look: Look | None
) -> ConeSolution:
    matrix = samples.rows(rows.sample, rows.high, rows.low)
    ones = sp.csr_array(np.ones((rows.sample.size, 1)))
    blocks: list[Block] = [(sp.hstack([matrix, ones]), np.zeros(rows.sample.size), "nonnegative")]
    nothing = sp.csr_array((1, samples.n_unknowns + 1))
    ball = np.eye(1, samples.rank + 1).ravel()
    for part in split_pairs(samples, samples.differences()):
        padded = sp.hstack([-part, sp.csr_array((samples.rank, 1))])
        blocks.append((sp.vstack([nothing, padded]), ball, "second_order"))
    linear = np.zeros(samples.n_unknowns + 1)
    linear[-1] = -1.0
    return solve_cone_program(linear, blocks, tol=accuracy, look=look)
