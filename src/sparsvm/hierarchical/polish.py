"""The programs of the second and third stage: an interior point, then the last digits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats, Ints
from sparsvm.numerics.cone_program import Block, Look, solve_cone_program

MOST_STEPS = 12
# Singular values below these shares of the largest are cut from the Newton systems, in turn until
# one leads to a solution: a solution that is not unique needs a large share (digits), features
# that differ in scale a small one (wine).
CUTS = (1e-7, 1e-10, 1e-13)
# The residual, in units in which the solution is of order 1, at which Newton's method is done.
FINAL_RESIDUAL = 1e-12
# Below this, a step that does not halve the residual has met rounding.
ROUNDING_RESIDUAL = 1e-9
# A residual that tells a diverging method.
DIVERGENT_RESIDUAL = 100.0
# Pairs whose difference moves by no more than this per unit are taken not to move.
LEAST_MOVE = 1e-9


@dataclass(frozen=True, eq=False)
class Program:
    r"""Short differences of weights under linear rows.

    Minimise over z, with :math:`\omega_{rt} = move_{rt} z + start_{rt}`,

    * :math:`\tau / 2` subject to :math:`\|\omega_{rt}\|^2 \le \tau` (``square_sum`` false), or
    * :math:`\tfrac12 \sum \|\omega_{rt}\|^2` subject to :math:`\|\omega_{rt}\|^2 \le` ``limit``,

    both subject to ``matrix z <= bound``.
    """

    moves: list[Any]
    starts: list[Floats]
    matrix: Floats
    bound: Floats
    square_sum: bool = False
    limit: float = 1.0

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.matrix.shape[1])


@dataclass(frozen=True, eq=False)
class State:
    """A point with the multipliers of pairs and rows; those of inactive ones are zero."""

    z: Floats
    tau: float
    pairs: Floats
    rows: Floats
    residual: float = np.inf


def interior_state(program: Program, tol: float, look: Look | None = None) -> tuple[State, int]:
    """Solve a program by the interior-point method; return the state and the iterations."""
    count = program.size
    width = count if program.square_sum else count + 1
    matrix = np.zeros((program.bound.size, width))
    matrix[:, :count] = program.matrix
    blocks: list[Block] = [(matrix, program.bound, "nonnegative")]
    quadratic, linear = np.zeros((width, width)), np.zeros(width)
    if not program.square_sum:
        linear[-1] = 1.0
    held = []
    for pair, (move, start) in enumerate(zip(program.moves, program.starts, strict=True)):
        dense = move.toarray() if sp.issparse(move) else move
        cone = np.zeros((start.size + 1, width))
        cone[1:, :count] = -dense
        radius = 0.0
        if program.square_sum:
            quadratic += dense.T @ dense
            linear += dense.T @ start
            radius = max(np.sqrt(program.limit), float(np.linalg.norm(start)))
            if np.abs(dense).max(initial=0.0) <= LEAST_MOVE:
                continue
        else:
            cone[0, -1] = -1.0
        held.append(pair)
        blocks.append((cone, np.concatenate([[radius], start]), "second_order"))
    found = solve_cone_program(
        linear, blocks, quadratic=quadratic if program.square_sum else None, tol=tol, look=look
    )
    pairs = np.zeros(len(program.moves))
    pairs[held] = [np.linalg.norm(dual[1:]) for dual in found.dual[1:]]
    if program.square_sum:
        tau, scale = program.limit, np.sqrt(program.limit)
        state = State(found.x, tau, pairs / scale, found.dual[0])
    else:
        # For tau = t^2 the multipliers of t become those of tau over t, and rows follow.
        norm = float(found.x[-1])
        total = float(pairs.sum())
        state = State(found.x[:-1], norm * norm, pairs / total, norm * found.dual[0] / total)
    return state, found.iterations


def polish(program: Program, state: State) -> State:
    r"""Take Newton steps on the optimality conditions, choosing the active constraints anew.

    A row or pair is active where its multiplier exceeds its slack (a semismooth Newton method, or
    primal-dual active sets). The conditions are those of equality on the active ones. Neither the
    solution nor the multipliers need be unique, so each step is the shortest that solves the
    linear system. An interior-point method gets stuck between 1e-4 and 1e-9 on these programs
    (on wine and digits at 1e-4 and 3e-5, by the proven gap); from there four or five steps lead
    to 1e-14.

    Returns
    -------
    State
        The state of least residual, which may be the given one.
    """
    start = best = replace(state, residual=_residual(program, state))
    for cut in CUTS:
        state = start
        for _ in range(MOST_STEPS):
            state = _step(program, state, cut)
            settled = best.residual < ROUNDING_RESIDUAL and state.residual > 0.5 * best.residual
            if state.residual < best.residual:
                best = state
            if settled or not FINAL_RESIDUAL < state.residual < DIVERGENT_RESIDUAL:
                break
        if best.residual < ROUNDING_RESIDUAL:
            break
    return best


def _step(program: Program, state: State, cut: float) -> State:
    """Return the next state, with its residual."""
    slack = program.bound - program.matrix @ state.z
    squares = _squares(program, state.z)
    rows = np.flatnonzero(state.rows > slack)
    pairs = np.flatnonzero(state.pairs > 0.5 * (state.tau - squares))
    value, jacobian = _conditions(program, state, pairs, rows)
    step = -np.linalg.lstsq(jacobian, value, rcond=cut)[0]
    count = program.size
    head = count if program.square_sum else count + 1
    weights, multipliers = np.zeros_like(state.pairs), np.zeros_like(state.rows)
    weights[pairs] = state.pairs[pairs] + step[head : head + pairs.size]
    multipliers[rows] = state.rows[rows] + step[head + pairs.size :]
    tau = state.tau if program.square_sum else state.tau + float(step[count])
    new = State(state.z + step[:count], tau, weights, multipliers)
    return replace(new, residual=_residual(program, new))


def _squares(program: Program, z: Floats) -> Floats:
    vectors = (m @ z + s for m, s in zip(program.moves, program.starts, strict=True))
    return np.array([vector @ vector for vector in vectors])


def _conditions(program: Program, state: State, pairs: Ints, rows: Ints) -> tuple[Floats, Floats]:
    """Return the conditions with equality on the active pairs and rows, and their Jacobian."""
    count = program.size
    head = count if program.square_sum else count + 1
    total = head + pairs.size + rows.size
    value, jacobian = np.zeros(total), np.zeros((total, total))
    number = {int(pair): head + place for place, pair in enumerate(pairs)}
    for pair, (move, start) in enumerate(zip(program.moves, program.starts, strict=True)):
        place = number.get(pair)
        weight = float(program.square_sum) + (0.0 if place is None else state.pairs[pair])
        if weight == 0.0 and place is None:
            continue
        vector = move @ state.z + start
        gradient = move.T @ vector
        value[:count] += weight * gradient
        jacobian[:count, :count] += weight * _gram(move)
        if place is not None:
            value[place] = 0.5 * (vector @ vector - state.tau)
            jacobian[:count, place] = jacobian[place, :count] = gradient
            if not program.square_sum:
                jacobian[count, place] = jacobian[place, count] = -0.5
    if not program.square_sum:
        value[count] = 0.5 * (1.0 - state.pairs[pairs].sum())
    active = program.matrix[rows]
    place = head + pairs.size
    value[:count] += active.T @ state.rows[rows]
    value[place:] = active @ state.z - program.bound[rows]
    jacobian[:count, place:] = active.T
    jacobian[place:, :count] = active
    return value, jacobian


def _gram(move: Any) -> Floats:
    gram = move.T @ move
    return np.asarray(gram.toarray() if sp.issparse(gram) else gram)


def _residual(program: Program, state: State) -> float:
    """Return the largest violation of the optimality conditions, signs included."""
    gradient = program.matrix.T @ state.rows
    for pair, (move, start) in enumerate(zip(program.moves, program.starts, strict=True)):
        weight = float(program.square_sum) + state.pairs[pair]
        if weight != 0.0:
            gradient = gradient + weight * (move.T @ (move @ state.z + start))
    slack = program.bound - program.matrix @ state.z
    room = 0.5 * (state.tau - _squares(program, state.z))
    parts = [
        np.abs(gradient),
        np.abs(np.minimum(slack, state.rows)),
        np.abs(np.minimum(room, state.pairs)),
        np.array([0.0 if program.square_sum else abs(1.0 - state.pairs.sum())]),
    ]
    return max(float(np.max(part, initial=0.0)) for part in parts)
