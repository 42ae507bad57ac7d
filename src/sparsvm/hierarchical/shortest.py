"""The second and third stage: short differences of weights on the face of least hinge."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats, Ints
from sparsvm.hierarchical.least_hinge import RANK_TOLERANCE, Face, decomposed, lifted_scores
from sparsvm.hierarchical.polish import ROUNDING_RESIDUAL, Program, State, interior_state, polish
from sparsvm.hierarchical.reduction import ReducedSamples, pair_norms, split_pairs
from sparsvm.hierarchical.row_generation import Optimum, RowGenerator, Rows
from sparsvm.numerics.cone_program import Look

# By how much rows may be violated after the interior point, and after the polishing.
ROUGH_VIOLATION = 1e-6
FINE_VIOLATION = 1e-10
# Multipliers, of which the largest are of order 1 in all, that count as positive.
LEAST_MULTIPLIER = 1e-10
# What the third stage may lose of the longest difference and of the rows.
ALLOWANCE = 1e-9


def shortest_on_face(
    samples: ReducedSamples,
    face: Face,
    guess: Optimum | None,
    tol: float,
    look: Look | None = None,
) -> Optimum:
    r"""Minimise :math:`\max_{r<t} \|w_r - w_t\|` over the face, from a guess if there is one."""
    norms = pair_norms(samples, face.point)
    unit = float(norms.max())
    if face.directions is not None and face.directions.shape[1] == 0:
        none = np.zeros(0, dtype=np.intp)
        only = (np.arange(norms.size) == norms.argmax()).astype(np.float64)
        return Optimum(face.point, Rows(none, none, none), np.zeros(0), only, 0)
    search = _FaceSearch(samples, face, face.point, face.directions, unit, look)
    if guess is None:
        state, rows = search.interior(False, tol)
    else:
        rows = guess.rows
        state = State(np.zeros(search.size), 1.0, guess.pair_dual, guess.row_dual / unit)
    state, rows = search.polished(state, rows, False)
    if guess is not None and state.residual > ROUNDING_RESIDUAL:
        # Where features differ much in scale, the guess was too rough to be polished.
        other, more = search.polished(*search.interior(False, tol), False)
        if other.residual < state.residual:
            state, rows = other, more
    x = search.unknowns(state.z)
    return Optimum(
        x=x,
        rows=rows,
        # From half the square of a norm in units of `unit` to the norm itself.
        row_dual=np.maximum(state.rows, 0.0) * unit * (unit / float(pair_norms(samples, x).max())),
        pair_dual=np.maximum(state.pairs, 0.0),
        iterations=search.iterations + (guess.iterations if guess else 0),
    )


def even_out(
    samples: ReducedSamples,
    face: Face,
    optimum: Optimum,
    tol: float,
    look: Look | None = None,
) -> Floats:
    r"""Minimise :math:`\sum_{r<t} \|w_r - w_t\|^2` among the minimisers of the maximum.

    Every minimiser of the maximum is complementary to the multipliers found with one of them:
    where the multiplier of a pair is not zero, the difference of the two is the same vector in
    all minimisers, and where that of a row is not zero, the row holds with equality. What is left
    are the directions in which none of these change.
    """
    norms = pair_norms(samples, optimum.x)
    longest = float(norms.max())
    directions = _free_directions(samples, face, optimum, norms, longest)
    moves = samples.differences() @ directions
    if directions.shape[1] == 0 or float(np.abs(moves).max(initial=0.0)) <= RANK_TOLERANCE:
        return optimum.x
    search = _FaceSearch(samples, face, optimum.x, directions, longest, look)
    state, _ = search.polished(*search.interior(True, tol), True)
    x = search.unknowns(state.z)
    after = pair_norms(samples, x)
    better = (after**2).sum() < (norms**2).sum() and after.max() <= longest * (1.0 + ALLOWANCE)
    return x if better and search.excess(x)[~face.tied].max(initial=0.0) <= ALLOWANCE else optimum.x


def _free_directions(
    samples: ReducedSamples, face: Face, optimum: Optimum, norms: Floats, longest: float
) -> Floats:
    fixed = np.flatnonzero(optimum.pair_dual > np.maximum(1.0 - norms / longest, LEAST_MULTIPLIER))
    parts = split_pairs(samples, samples.differences())
    rows = optimum.rows
    lifted = lifted_scores(samples, optimum.x)
    slack = lifted[rows.sample, rows.low] - lifted[rows.sample, rows.high]
    tight = np.flatnonzero(optimum.row_dual / longest > np.maximum(slack, LEAST_MULTIPLIER))
    stacked = [parts[pair] for pair in _forest(samples, fixed)]
    stacked.append(samples.rows(rows.sample[tight], rows.high[tight], rows.low[tight]))
    held = sp.vstack(stacked).toarray()
    if face.directions is None:
        return _null_space(held)
    return np.asarray(face.directions @ _null_space(held @ face.directions))


def _forest(samples: ReducedSamples, pairs: Ints) -> list[int]:
    """Leave out the pairs whose difference follows from those of others."""
    first, second = samples.pairs()
    root = np.arange(samples.n_classes)
    kept = []
    for pair in pairs:
        r, t = root[first[pair]], root[second[pair]]
        if r != t:
            root[root == t] = r
            kept.append(int(pair))
    return kept


def _null_space(matrix: Floats) -> Floats:
    _, _, right, rank = decomposed(matrix)
    return np.asarray(right[rank:].T)


class _FaceSearch:
    """Programs over ``point + unit * directions z`` within the rows of a face.

    In units of the largest norm at the point, the programs are of order 1.
    """

    def __init__(
        self,
        samples: ReducedSamples,
        face: Face,
        point: Floats,
        directions: Any,
        unit: float,
        look: Look | None,
    ) -> None:
        if directions is None:
            directions = sp.eye_array(samples.n_unknowns, format="csr")
        self._samples = samples
        self._face = face
        self._point = point
        self._directions = directions
        self._unit = unit
        self._look = look
        differences = samples.differences()
        self._moves = split_pairs(samples, differences @ directions)
        self._starts = split_pairs(samples, differences @ point / unit)
        self._lifted = lifted_scores(samples, point)
        self.iterations = 0

    @property
    def size(self) -> int:
        return int(self._directions.shape[1])

    def unknowns(self, z: Floats) -> Floats:
        return np.asarray(self._point + self._unit * (self._directions @ z))

    def excess(self, x: Floats) -> Floats:
        """By how much each class scores above the one that should be on top."""
        lifted = lifted_scores(self._samples, x)
        own = lifted[np.arange(self._samples.n), self._face.top]
        return np.asarray(lifted - own[:, None])

    def interior(self, square_sum: bool, tol: float) -> tuple[State, Rows]:
        """Solve by the interior-point method, with the rows that matter."""
        face = self._face
        generator: RowGenerator[State] = RowGenerator(self._samples, ~face.tied, face.top)

        def program(rows: Rows, accuracy: float) -> State:
            state, iterations = interior_state(
                self._program(rows, square_sum), accuracy, self._look
            )
            self.iterations += iterations
            return state

        def violation(state: State) -> Floats:
            return self.excess(self.unknowns(state.z))

        return generator.solve(program, violation, tol, ROUGH_VIOLATION)

    def polished(self, state: State, rows: Rows, square_sum: bool) -> tuple[State, Rows]:
        """Polish a state, adding rows that turn out to be violated."""
        while True:
            state = polish(self._program(rows, square_sum), state)
            present = self._face.tied.copy()
            present[rows.sample, rows.high] = True
            excess = np.where(present, 0.0, self.excess(self.unknowns(state.z)))
            sample, high = np.nonzero(excess > FINE_VIOLATION)
            if sample.size == 0:
                return state, rows
            low = self._face.top[sample]
            rows = Rows(
                np.concatenate([rows.sample, sample]),
                np.concatenate([rows.high, high]),
                np.concatenate([rows.low, low]),
            )
            more = np.concatenate([state.rows, np.zeros(sample.size)])
            state = State(state.z, state.tau, state.pairs, more)

    def _program(self, rows: Rows, square_sum: bool) -> Program:
        matrix = self._samples.rows(rows.sample, rows.high, rows.low) @ self._directions
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        slack = self._lifted[rows.sample, rows.low] - self._lifted[rows.sample, rows.high]
        # In the third stage the point is feasible but for rounding, and must stay so.
        bound = np.maximum(slack, 0.0) if square_sum else slack
        # Rows that no direction changes are rounding noise, which must not be scaled up.
        constant = np.abs(matrix).max(axis=1, initial=0.0) <= RANK_TOLERANCE
        matrix[constant], bound[constant] = 0.0, 1.0
        return Program(self._moves, self._starts, self._unit * matrix, bound, square_sum)
