r"""Directions in which unpenalised weights may grow for ever without cost.

Let :math:`v_k` be changes of the unpenalised weights and :math:`c_k` of the intercepts. Along
them no loss rises, and one falls, if and only if

.. math:: (v_{y_i} - v_k)^\top x_i + c_{y_i} - c_k \ge 0 \quad\text{for all samples } i
    \text{ and classes } k \ne y_i,

not all of them equalities (one-vs-rest: :math:`\pm(v_k^\top x_i + c_k) \ge 0`). Then the features
*separate* classes, completely where all of the inequalities are strict. The logistic loss has no
minimum then, and the hinge has minima of any size. A linear program finds such a direction on some
samples; samples that contradict it are added until none does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from sparsvm._typing import Floats, Ints
from sparsvm.problem.problem import Problem

# Settings.
# Samples of the first linear program: of data that are not separated, most contradict each other.
FIRST_SAMPLES = 200
# Entries of a linear program beyond which it is not tried (80 MB).
MOST_ENTRIES = 10_000_000
MOST_PROGRAMS = 50
# Of features scaled to 1 and directions of at most 1: what HiGHS may miss an inequality by, and
# what counts as a strict one.
EQUALITY_TOL, STRICTNESS = 1e-9, 1e-6


@dataclass(frozen=True, eq=False)
class Recession:
    """A direction of recession.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n_free)
        Changes of the unpenalised weights.
    intercept : ndarray of shape (n_outputs,)
        Changes of the intercepts.
    least : float
        The least of the inequalities' left sides; positive if all are strict, so that the loss
        tends to zero.
    features : ndarray
        Features that separate classes by themselves; all that are needed, where none does.
    """

    coef: Floats
    intercept: Floats
    least: float
    features: Ints

    @property
    def complete(self) -> bool:
        """Whether every inequality is strict."""
        return self.least > 0.0


def recession(problem: Problem) -> Recession | None:
    """Return a direction of recession of the unpenalised features, None where there is none."""
    free = problem.penalty.free
    if free.size == 0:
        return None
    columns = np.asarray(problem.design.gather_columns(free.astype(np.int32)))
    scale = np.abs(columns).max(axis=0)
    used = scale > 0.0
    columns = columns[:, used] / scale[used]
    if columns.shape[1] == 0:
        return None
    found = _direction(problem, columns, complete=True)
    complete = found is not None
    if found is None:
        found = _direction(problem, columns, complete=False)
    if found is None:
        return None
    alone = [j for j in range(columns.shape[1]) if _separates(problem, columns[:, [j]])]
    needed = alone or np.flatnonzero(np.abs(found[:, :-1]).max(axis=0) > STRICTNESS)
    coef = np.zeros((problem.n_outputs, free.size))
    coef[:, used] = found[:, :-1] / scale[used]
    least = float(_least_slack(problem, columns, found).min()) if complete else 0.0
    features = free[np.flatnonzero(used)[needed]].astype(np.intp)
    return Recession(coef, found[:, -1], least, features)


def _separates(problem: Problem, column: Floats) -> bool:
    return _direction(problem, column, complete=False) is not None


def _direction(problem: Problem, columns: Floats, *, complete: bool) -> Floats | None:
    """Return v and c, shape (n_outputs, columns + 1), or None."""
    n, outputs = problem.n, problem.n_outputs
    samples = np.unique(np.linspace(0, n - 1, min(n, FIRST_SAMPLES)).astype(np.intp))
    for _ in range(MOST_PROGRAMS):
        rows = inequalities(problem, columns, samples)
        if rows is None:
            return None
        point = _most_strict(rows, complete)
        slack = rows @ point
        if (slack.min() if complete else slack.max()) <= STRICTNESS:
            if complete or samples.size == n or _spans(rows, columns, problem):
                return None
            more = np.setdiff1d(np.arange(n), samples)
        else:
            direction = point.reshape(outputs, -1)
            worst = _least_slack(problem, columns, direction)
            if worst.min() >= (STRICTNESS if complete else -EQUALITY_TOL):
                return direction
            more = np.setdiff1d(np.argsort(worst), samples, assume_unique=True)
            more = more[worst[more] < (STRICTNESS if complete else -EQUALITY_TOL)]
            if more.size == 0:  # the solver's own error
                return None
        samples = np.union1d(samples, more[: samples.size])
    return None


def inequalities(problem: Problem, columns: Floats, samples: Ints) -> Floats | None:
    """Return the rows a with aᵀ(v, c) >= 0, one for each sample and other class."""
    outputs = problem.n_outputs
    per_sample = 1 if outputs == 1 else outputs if problem.one_vs_rest else outputs - 1
    width = columns.shape[1] + 1
    if samples.size * per_sample * outputs * width > MOST_ENTRIES:
        return None
    own = np.hstack([columns[samples], np.full((samples.size, 1), float(problem.fit_intercept))])
    y, at = problem.y[samples], np.arange(samples.size)
    if outputs == 1:
        return np.asarray(np.where(y == 1, 1.0, -1.0)[:, None] * own)
    rows = np.zeros((samples.size, outputs, outputs, width))
    for k in range(outputs):
        rows[:, k, k] = -own
        if not problem.one_vs_rest:
            rows[at, k, y] += own
    if problem.one_vs_rest:
        rows[at, y, y] = own
        return rows.reshape(-1, outputs * width)
    kept = np.ones((samples.size, outputs), dtype=bool)
    kept[at, y] = False
    return rows[kept].reshape(-1, outputs * width)


def _most_strict(rows: Floats, complete: bool) -> Floats:
    """Maximise the least of the inequalities, or their sum, over a box."""
    size = rows.shape[1]
    bounds = [(-1.0, 1.0)] * size
    if complete:
        rows = np.hstack([-rows, np.ones((rows.shape[0], 1))])
        cost = np.append(np.zeros(size), -1.0)
        found = linprog(cost, rows, np.zeros(rows.shape[0]), bounds=[*bounds, (None, 1.0)])
    else:
        found = linprog(-rows.sum(axis=0), -rows, np.zeros(rows.shape[0]), bounds=bounds)
    return np.zeros(size) if found.x is None else np.asarray(found.x[:size])


def _least_slack(problem: Problem, columns: Floats, direction: Floats) -> Floats:
    """Return the least of each sample's inequalities."""
    scores = columns @ direction[:, :-1].T
    if problem.fit_intercept:
        scores += direction[:, -1]
    y, at = problem.y, np.arange(problem.n)
    if problem.n_outputs == 1:
        return np.asarray(np.where(y == 1, 1.0, -1.0) * scores[:, 0])
    own = scores[at, y].copy()
    if problem.one_vs_rest:
        scores[at, y] = -own
        return np.asarray((-scores).min(axis=1))
    scores[at, y] = -np.inf
    return np.asarray(own - scores.max(axis=1))


def _spans(rows: Floats, columns: Floats, problem: Problem) -> bool:
    """Whether what these samples leave unchanged, all samples do: then they speak for all."""
    width = np.hstack([columns, np.ones((problem.n, 1))]) if problem.fit_intercept else columns
    outputs = problem.n_outputs
    directions = outputs if outputs == 1 or problem.one_vs_rest else outputs - 1
    return bool(np.linalg.matrix_rank(rows) == directions * np.linalg.matrix_rank(width))
