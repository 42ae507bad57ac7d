r"""Samples of one partition in clusters that stand for them.

A cluster C of samples of one class is replaced by their weighted mean with the mass of them all. A
convex loss at the mean is at most the mean of the losses,

.. math::
    p_C\, \ell(y, W \bar x_C + b) \le \sum_{i \in C} p_i\, \ell(y, W x_i + b),

so that the problem on clusters lies below the problem on all samples everywhere, and every lower
bound for it is one for all the data. For the hinge, which is piecewise linear, both sides are
equal wherever the samples of the cluster are on the same piece: have the same worst class, or no
loss. So clusters that are not on one piece at the solution are split until none is left, or
until the two objectives are as close as the tolerance asks. (Park and Klabjan call this an
aggregate and iterative disaggregate algorithm.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsvm._typing import Array, Floats, Ints
from sparsvm.estimators.linear import column_scores
from sparsvm.partitioned.survey import Population


@dataclass(frozen=True, eq=False)
class Clusters:
    """Weighted means of samples.

    Attributes
    ----------
    number : array of int64
        Their numbers within the partition.
    parent : array of int64
        The clusters that they were part of; -1 for none.
    X : array or CSR matrix of shape (n_clusters, d)
    y, mass, margin : arrays of shape (n_clusters,)
    """

    number: Ints
    parent: Ints
    X: Any
    y: Array
    mass: Floats
    margin: Floats | None


class State(NamedTuple):
    """The cluster of every sample of a partition, and how many numbers are in use.

    It takes four bytes a row, and stays with the partition.
    """

    cluster: NDArray[np.int32]
    used: int


class Report(NamedTuple):
    """What a partition tells the driver: its part of the loss, clusters gone and clusters new."""

    loss: float
    size: float
    gone: Ints
    added: Clusters | None


class Task(NamedTuple):
    """What all partitions are told: the point, and how finely to divide.

    ``singles`` samples nearest to another piece are left by themselves; at the first division the
    others form about ``groups`` clusters, and later divisions add about ``more``.
    """

    population: Population
    cost: Floats
    coef: Floats
    intercept: Floats
    singles: int
    groups: int
    more: int


def divide(part: Any, number: int, state: State | None, task: Task) -> tuple[State, Report]:
    """Evaluate the loss at the task's point and split the clusters that lie on several pieces."""
    X, y, mass, margin = task.population.read(part, number)
    if y.size == 0:
        return State(np.zeros(0, dtype=np.int32), 0), Report(0.0, 0.0, np.zeros(0, np.int64), None)
    terms, sizes = _terms(X, y, margin, task)
    rows = np.arange(y.size)
    piece = terms.argmax(axis=1)
    worst = terms[rows, piece]
    loss = float(np.sum(mass * worst))
    errors = None if state is None else _errors(state, mass, terms, worst)
    terms[rows, piece] = -np.inf
    second = terms.argmax(axis=1)
    distance = worst - terms[rows, second]
    size = float(np.sum(mass * sizes))
    if state is None:
        order = np.argsort(distance, kind="stable")
        labels = _first_groups(order[task.singles :], task.groups, y, piece, second, distance)
        cluster = np.full(y.size, -1)
        cluster[order[task.singles :]] = labels
        split = _Split(rows, cluster, np.full(y.size, -1), np.zeros(0, dtype=np.int64))
    else:
        assert errors is not None
        split = _later_split(state, errors, mass, piece, distance, task)
    if split.rows.size == 0:
        assert state is not None
        return state, Report(loss, size, split.gone, None)
    used = 0 if state is None else state.used
    label = split.label
    alone = label < 0
    groups = int(label.max(initial=-1)) + 1
    label = label.copy()
    label[alone] = groups + np.arange(np.count_nonzero(alone))
    count = groups + int(np.count_nonzero(alone))
    added = _means(X, y, mass, margin, split, label, count, used)
    cluster = np.empty(y.size, dtype=np.int32) if state is None else state.cluster.copy()
    cluster[split.rows] = used + label
    return State(cluster, used + count), Report(loss, size, split.gone, added)


def _terms(X: Any, y: Array, margin: Floats | None, task: Task) -> tuple[Floats, Floats]:
    """Return m + Delta of every class (0 of the true one), and the size of both parts."""
    outputs = np.asarray(column_scores(X, task.coef), dtype=np.float64) + task.intercept
    if task.population.classes.size == 2:
        outputs = np.hstack([np.zeros_like(outputs), outputs])
    margins = task.cost[y] if margin is None else task.cost[y] * margin[:, None]
    size = np.abs(outputs).max(axis=1) + np.abs(margins).max(axis=1)
    rows = np.arange(y.size)
    outputs += margins - outputs[rows, y][:, None]
    outputs[rows, y] = 0.0
    return outputs, size


class _Split(NamedTuple):
    """Samples that get new clusters: their labels (-1: by themselves) and old clusters."""

    rows: Ints
    label: Ints
    parent: Ints
    gone: Ints


def _first_groups(
    rows: Ints, groups: int, y: Array, piece: Ints, second: Ints, distance: Floats
) -> Ints:
    """Number groups of samples of one class, alike in piece, nearest piece and distance.

    Where there are more kinds of these than groups asked for, the nearest piece is left out, and
    then the piece.
    """
    if rows.size == 0:
        return rows
    K = int(max(y.max(), piece.max(), second.max())) + 1
    keys = [y[rows].astype(np.int64)]
    for finer in (piece, second):
        keys.append(keys[-1] * K + finer[rows])
    kind = next((k for k in keys[::-1] if np.unique(k).size <= groups), keys[0])
    # The size of a group, for about as many groups as asked.
    length = max(1, -(-rows.size // max(1, groups)))
    order = np.lexsort((distance[rows], kind))
    begins = np.ones(rows.size, dtype=bool)
    begins[1:] = kind[order][1:] != kind[order][:-1]
    places = np.arange(rows.size)
    since = places - np.maximum.accumulate(np.where(begins, places, 0))
    labels = np.empty(rows.size, dtype=np.int64)
    labels[order] = np.cumsum(begins | (since % length == 0)) - 1
    return labels


def _errors(state: State, mass: Floats, terms: Floats, worst: Floats) -> Floats:
    """Return by how much the loss of each cluster's mean is below the losses of its samples."""
    n, used = mass.size, state.used
    sums = sp.csr_array((mass, (state.cluster, np.arange(n))), shape=(used, n))
    return np.asarray(sums @ worst - (sums @ terms).max(axis=1))


def _later_split(
    state: State, errors: Floats, mass: Floats, piece: Ints, distance: Floats, task: Task
) -> _Split:
    """Split clusters on several pieces: the samples off its main piece leave each.

    First those that err most, and no more than the driver is to hold.
    """
    cluster, used = state.cluster.astype(np.int64), state.used
    K = task.cost.shape[0]
    first = np.full(used, -1)
    first[cluster[::-1]] = piece[::-1]
    mixed = np.zeros(used, dtype=bool)
    mixed[cluster[piece != first[cluster]]] = True
    worst_first = np.flatnonzero(mixed)
    worst_first = worst_first[np.argsort(-errors[worst_first], kind="stable")]
    mixed[worst_first[max(1, task.more) :]] = False
    rows = np.flatnonzero(mixed[cluster])
    if rows.size == 0:
        return _Split(rows, rows, rows, rows)
    keys, places = np.unique(cluster[rows] * K + piece[rows], return_inverse=True)
    weights = np.bincount(places.ravel(), mass[rows])
    order = np.lexsort((weights, keys // K))
    last = np.append(np.diff((keys // K)[order]) != 0, True)
    main = np.full(used, -1)
    main[(keys // K)[order][last]] = (keys % K)[order][last]
    leaving = rows[piece[rows] != main[cluster[rows]]]
    alone = leaving[np.argsort(distance[leaving], kind="stable")[: task.singles]]
    single = np.zeros(cluster.size, dtype=bool)
    single[alone] = True
    rest = ~single[rows]
    label = np.full(rows.size, -1)
    label[rest] = np.unique(places.ravel()[rest], return_inverse=True)[1].ravel()
    return _Split(rows, label, cluster[rows], np.flatnonzero(mixed))


def _means(
    X: Any,
    y: Array,
    mass: Floats,
    margin: Floats | None,
    split: _Split,
    label: Ints,
    count: int,
    used: int,
) -> Clusters:
    """Return the new clusters."""
    rows = split.rows
    total = np.bincount(label, mass[rows], count).astype(np.float64)
    share = mass[rows] / total[label]
    sums = sp.csr_array((share, (label, np.arange(rows.size))), shape=(count, rows.size))
    means = sums @ (X[rows] if rows.size < X.shape[0] else X)
    member = np.empty(count, dtype=np.int64)
    member[label[::-1]] = np.arange(rows.size)[::-1]
    return Clusters(
        number=used + np.arange(count),
        parent=split.parent[member],
        X=sp.csr_array(means) if sp.issparse(means) else np.asarray(means, dtype=np.float64),
        y=y[rows[member]],
        mass=total,
        margin=None if margin is None else np.asarray(sums @ margin[rows]),
    )
