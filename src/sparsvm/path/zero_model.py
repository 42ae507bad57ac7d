r"""The optimum with all penalised weights at zero, and the dual points that prove it optimal.

Without penalised features the problem is one of the intercepts (and unpenalised weights) alone,

.. math:: h_0 = \min_b \sum_i p_i \max_k (m_{ik} + b_k - b_{y_i}).

Its dual solutions are a face of the dual polytope: the Y with rows on the classes
:math:`A_i = \arg\max_k (m_{ik} + b_k - b_{y_i})` and :math:`\sum_i f_i \tilde Y_{ik} = 0` for every
free column f. Zero weights are optimal at alpha exactly where this face has a point with
:math:`\|X^\top \tilde Y\|_* \le alpha`. For a smooth loss the face is one point, the derivative of
the loss at the optimal intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsvm._typing import Bools, Floats, Ints
from sparsvm.certificate.balance import free_columns
from sparsvm.certificate.gap import repaired_dual
from sparsvm.data.design import make_design
from sparsvm.losses import SmoothLoss
from sparsvm.numerics.rounding import TINY
from sparsvm.path.smooth_zero_model import smooth_free_coefficients
from sparsvm.problem.problem import Problem
from sparsvm.problem.restriction import Restriction
from sparsvm.problem.solution import Control, Solution
from sparsvm.solvers import InteriorPoint

# Settings.
# Precision of the intercept-only problem; reached in about ten Newton steps.
_TOL = 1e-12
# A dual point counts as one of the face when its value misses h_0 by no more than this share.
_ON_FACE = 1e-10
# Rows with less than this share of their mass on the face start from an even row.
_EMPTY = 1e-30
# Newton steps allowed. They end at rounding (_EXACT), or where the residual is small (_SMALL) and
# no longer falls tenfold (_TENFOLD).
_STEPS = 60
_EXACT, _SMALL, _TENFOLD = 1e-15, 1e-11, 0.1
# The line search allows for the rounding of the value, and ends at steps that change nothing.
_VALUE_ROUNDING, _LEAST_STEP = 1e-13, 1e-12
# The Hessian is singular along one direction per column; this is above its rounding.
_SINGULAR = 1e-14
# Exponents below it are zero beside the largest, which is 1.
_LEAST_EXPONENT = -600.0


@dataclass(frozen=True, eq=False)
class ZeroModel:
    """The optimum without penalised features.

    Attributes
    ----------
    coef, intercept : arrays
        Unpenalised weights (the others are zero) and intercepts.
    value : float
        A lower bound on :math:`h_0`, exact to about 1e-12.
    dual : array of shape (n, K)
        A point in the relative interior of the optimal face.
    active : bool array of shape (n, K)
        The classes on which the optimal face has its rows.
    """

    coef: Floats
    intercept: Floats
    value: float
    dual: Floats
    active: Bools


def zero_model(problem: Problem) -> ZeroModel:
    """Solve the problem in its intercepts and unpenalised features."""
    if isinstance(problem.loss, SmoothLoss):
        return smooth_zero_model(problem)
    part, small, members = _small(problem)
    small = replace(small, penalty=small.penalty.as_l1(), alpha=1.0, linear_term=None)
    found = InteriorPoint().solve(small, None, Control(tol=_TOL))
    dual, active = found.dual, _active(small, found)
    if members is not None:
        share = problem.mass / small.mass[members]
        dual, active = dual[members] * share[:, None], active[members]
    return ZeroModel(part.lift(found.coef), found.intercept, found.dual_objective, dual, active)


def smooth_zero_model(problem: Problem) -> ZeroModel:
    """The optimum of a smooth loss; its dual face is the single point of the derivatives."""
    part, small, _ = _small(problem)
    weights, intercept = smooth_free_coefficients(small)
    coef = part.lift(weights)
    scores = problem.scores(coef, intercept)
    losses = problem.loss.value(scores, problem.y, problem.margins())
    dual = problem.dual_at(scores)
    value = float(np.sum(problem.mass * losses))
    return ZeroModel(coef, intercept, value, dual, dual > 0.0)


def _small(problem: Problem) -> tuple[Restriction, Problem, Ints | None]:
    """Restrict the problem to unpenalised features; where there are none, merge like samples."""
    part = Restriction.to(problem, problem.penalty.free.astype(np.int32))
    if problem.penalty.free.size > 0 or problem.margin_matrix is not None:
        return part, part.part, None
    return part, *_distinct(part.part)


def _distinct(problem: Problem) -> tuple[Problem, Ints]:
    """Merge samples of one class and margin, which have the same loss without features."""
    scale = np.ones(problem.n) if problem.margin_scale is None else problem.margin_scale
    keys = np.stack([problem.y.astype(np.float64), scale], axis=1)
    distinct, members = np.unique(keys, axis=0, return_inverse=True)
    members = members.reshape(-1)
    merged = replace(
        problem,
        design=make_design(np.zeros((len(distinct), 0))),
        y=distinct[:, 0].astype(np.int32),
        mass=np.asarray(np.bincount(members, problem.mass), dtype=np.float64),
        margin_scale=None if problem.margin_scale is None else distinct[:, 1],
    )
    return merged, members


def _active(problem: Problem, found: Solution) -> Bools:
    """Tell which classes attain the maximum in every sample.

    An interior point ends near the middle of the optimal sets, where of each dual value and its
    slack exactly one tends to zero.
    """
    margins = problem.margins()
    scores = margins + problem.scores(found.coef, found.intercept)
    slack = scores.max(axis=1, keepdims=True) - scores
    unit = max(float(margins.max(initial=0.0)), TINY)
    active = found.dual / problem.mass[:, None] >= slack / unit
    active[np.arange(problem.n), scores.argmax(axis=1)] = True
    return np.asarray(active)


def on_face(problem: Problem, zero: ZeroModel, dual: Floats) -> Floats | None:
    r"""Move a dual point onto the optimal face of the zero model; None where that fails.

    The nearest point of the face in relative entropy has the form
    :math:`Y_{ik} e^{f_i \cdot \beta_k}` on the classes A_i, with rows scaled to their mass. The
    :math:`\beta` minimises the convex function

    .. math::
        \sum_i p_i \log \sum_{k \in A_i} Y_{ik} e^{f_i \cdot \beta_k}
        - \sum_i p_i f_i \cdot \beta_{y_i},

    found by Newton's method from zero.
    """
    entries = np.where(zero.active, np.maximum(dual, 0.0), 0.0)
    empty = entries.sum(axis=1) <= _EMPTY * problem.mass
    entries[empty] = zero.active[empty] * problem.mass[empty, None]
    columns = free_columns(problem)
    beta = np.zeros((columns.shape[1], problem.n_classes))
    target = np.zeros((problem.n, problem.n_classes))
    target[np.arange(problem.n), problem.y] = problem.mass
    wanted = columns.T @ target
    value, point = _partition(entries, columns, beta, problem.mass, wanted)
    residual = np.inf
    for _ in range(_STEPS):
        gradient = columns.T @ point - wanted
        size = float(np.abs(gradient).max(initial=0.0))
        # Newton's method squares the error; where that ends, rounding is all that is left.
        if size <= _EXACT or (size < _SMALL and size > _TENFOLD * residual):
            break
        residual = size
        step = _newton_step(columns, point, problem.mass, gradient)
        trial, moved = _partition(entries, columns, beta - step, problem.mass, wanted)
        while trial > value + _VALUE_ROUNDING * abs(value) and np.abs(step).max() > _LEAST_STEP:
            step = 0.5 * step
            trial, moved = _partition(entries, columns, beta - step, problem.mass, wanted)
        beta, point, value = beta - step, moved, trial
    balanced = repaired_dual(problem, point)
    gain = float(np.sum(balanced * problem.margins()))
    return balanced if gain >= zero.value * (1.0 - _ON_FACE) else None


def _partition(
    entries: Floats, columns: Floats, beta: Floats, mass: Floats, wanted: Floats
) -> tuple[float, Floats]:
    """Return the convex function at beta and the entries scaled by it."""
    exponents = columns @ beta
    exponents -= exponents.max(axis=1, keepdims=True, initial=-np.inf)
    scaled = entries * np.exp(np.clip(exponents, _LEAST_EXPONENT, 0.0))
    totals = scaled.sum(axis=1)
    shift = (columns @ beta).max(axis=1, initial=-np.inf)
    value = float(np.sum(mass * (np.log(totals) + shift))) - float(np.sum(wanted * beta))
    return value, scaled * (mass / totals)[:, None]


def _newton_step(columns: Floats, point: Floats, mass: Floats, gradient: Floats) -> Floats:
    """Solve for the step with the Hessian sum_i f_i f_i' x (diag(P_i) - P_i P_i' / p_i)."""
    q, K = columns.shape[1], point.shape[1]
    products = (columns[:, :, None] * columns[:, None, :]).reshape(-1, q * q)
    hessian = np.zeros((q, K, q, K))
    for k in range(K):
        blocks = -(products.T @ (point * (point[:, k] / mass)[:, None])).reshape(q, q, K)
        hessian[:, k, :, :] += blocks
        hessian[:, k, :, k] += (products.T @ point[:, k]).reshape(q, q)
    matrix = hessian.reshape(q * K, q * K)
    # The same shift of all classes leaves the entries as they are, so the matrix is singular.
    solution, *_ = np.linalg.lstsq(matrix, gradient.reshape(-1), rcond=_SINGULAR)
    return np.asarray(solution.reshape(q, K))
