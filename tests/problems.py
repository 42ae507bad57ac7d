"""Random and degenerate problems for the tests.

``make(seed)`` draws one small problem; the seed decides everything. Every family in ``FAMILIES``
bends the plain draw in one direction that has broken solvers or certificates before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.penalties import L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.problem import Problem

SMOOTH_LOSSES = ("squared_hinge", "logistic", "ovr_squared_hinge")
PENALTIES = ("l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group")


@dataclass
class Draw:
    """The ingredients of a problem while a family changes them."""

    rng: np.random.Generator
    X: np.ndarray
    y: np.ndarray
    n_classes: int
    sample_weight: np.ndarray
    margin: object = 1.0
    margin_scale: np.ndarray | None = None
    fit_intercept: bool = True
    weights: np.ndarray | None = None
    linear_term: float = 0.0
    sparse: bool = False
    options: dict = field(default_factory=dict)


def plain(draw):
    """Overlapping Gaussian classes."""


def separable(draw):
    """Classes far apart, so that most entries vanish."""
    draw.X[np.arange(draw.y.size), draw.y % draw.X.shape[1]] += 10.0


def duplicates(draw):
    """Repeated samples, some with another label, and repeated features."""
    half = draw.y.size // 2
    draw.X[:half] = draw.X[half : 2 * half]
    draw.X[:, -1] = draw.X[:, 0]


def constant_columns(draw):
    """A column of ones and a column of zeros."""
    draw.X[:, 0] = 1.0
    draw.X[:, -1] = 0.0


def lonely_class(draw):
    """One class has a single sample."""
    draw.y[draw.y == 0] = 1
    draw.y[0] = 0


def column_scales(draw):
    """Columns from 1e-6 to 1e6, the penalty weighted to match or not."""
    scales = 10.0 ** draw.rng.uniform(-6, 6, draw.X.shape[1])
    draw.X *= scales
    if draw.rng.random() < 0.7:
        draw.weights = scales


def sample_weights(draw):
    """Weights over many powers of ten; zero weights are dropped as an estimator would."""
    draw.sample_weight[:] = 10.0 ** draw.rng.uniform(-6, 6, draw.y.size)
    draw.sample_weight[draw.rng.random(draw.y.size) < 0.2] = 0.0
    draw.sample_weight[np.unique(draw.y, return_index=True)[1]] = 1.0


def zero_margins(draw):
    """Some samples, or all, ask for no margin."""
    draw.margin_scale = (draw.rng.random(draw.y.size) < draw.rng.choice([0.0, 0.5])).astype(float)


def sample_margins(draw):
    """A margin of its own for every sample."""
    draw.margin_scale = draw.rng.exponential(size=draw.y.size)


def cost_matrix(draw):
    """Unequal, unsymmetric costs, some of them zero."""
    K = draw.n_classes
    draw.margin = draw.rng.exponential(size=(K, K)) * (draw.rng.random((K, K)) < 0.8)
    np.fill_diagonal(draw.margin, 0.0)


def ties(draw):
    """Small integers everywhere, so that optima are not unique."""
    draw.X[:] = draw.rng.integers(-1, 2, draw.X.shape)


def no_intercept(draw):
    draw.fit_intercept = False


def free_features(draw):
    """One or two features go unpenalised, with or without an intercept."""
    draw.weights = draw.rng.uniform(0.5, 2.0, draw.X.shape[1])
    draw.weights[draw.rng.choice(draw.X.shape[1], draw.rng.integers(1, 3), replace=False)] = 0.0
    draw.fit_intercept = bool(draw.rng.random() < 0.5)


def linear_terms(draw):
    """A linear term inside or on the edge of the dual ball."""
    draw.linear_term = float(draw.rng.choice([0.3, 0.9, 1.0]))


def sparse_rows(draw):
    """Scipy CSR with mostly zero entries."""
    draw.X[draw.rng.random(draw.X.shape) < 0.7] = 0.0
    draw.sparse = True


FAMILIES = (
    plain,
    separable,
    duplicates,
    constant_columns,
    lonely_class,
    column_scales,
    sample_weights,
    zero_margins,
    sample_margins,
    cost_matrix,
    ties,
    no_intercept,
    free_features,
    linear_terms,
    sparse_rows,
)


def make(seed, family=plain, penalty=None, loss="hinge"):
    """Draw a problem of the family; the penalty is drawn too unless named."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    n_classes = int(rng.integers(2, 9)) if seed % 2 else int(rng.integers(2, 4))
    n = int(rng.integers(2 * n_classes, 2 * n_classes + 20))
    d = int(rng.integers(3, 13))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d)) + rng.standard_normal((n_classes, d))[y]
    draw = Draw(rng, X, y, n_classes, np.ones(n))
    family(draw)
    kind = penalty if penalty is not None else PENALTIES[seed % len(PENALTIES)]
    return finish(draw, draw_penalty(kind, draw), _loss(loss, draw))


def cases(per_family, penalty=None, loss="hinge"):
    """Yield (name, problem) for every family."""
    for family in FAMILIES:
        for seed in range(per_family):
            problem = make(seed, family, penalty, loss)
            yield f"{family.__name__}-{seed}-{problem.penalty.kind}", problem


def smooth_cases(per_family):
    """Yield (name, problem) for every family and smooth loss."""
    for loss in SMOOTH_LOSSES:
        for name, problem in cases(per_family, loss=loss):
            yield f"{loss}-{name}", problem


def _loss(name, draw):
    if name == "ovr_squared_hinge":
        draw.margin = 1.0
        return OvrSquaredHinge()
    if name == "logistic" and draw.rng.random() < 0.5:
        return Logistic()
    return {"hinge": Hinge, "squared_hinge": SquaredHinge, "logistic": Logistic}[name](
        margin=draw.margin
    )


def draw_penalty(kind, draw):
    """A penalty of that kind, its groups and mixture drawn."""
    rng, d, weights = draw.rng, draw.X.shape[1], draw.weights
    grouped = {
        "groups": [None, int(rng.integers(1, 4)), rng.integers(0, 3, d)][rng.integers(3)],
        "per_class": bool(rng.random() < 0.3),
        "weights": weights,
    }
    return {
        "l1": lambda: L1(weights=weights),
        "l2": lambda: L2(weights=weights),
        "elasticnet": lambda: ElasticNet(l1_ratio=float(rng.uniform(0.05, 0.95)), weights=weights),
        "l1/l2": lambda: GroupL2(**grouped),
        "l1/linf": lambda: GroupLinf(**grouped),
        "sparse_group": lambda: SparseGroup(l1_ratio=float(rng.uniform(0.05, 0.95)), **grouped),
    }[kind]()


def finish(draw, penalty, loss, shares=(-2.5, -0.1)):
    """The problem of a draw, its alpha a power of ten in ``shares`` times the reference."""
    keep = draw.sample_weight > 0.0
    X, y = np.ascontiguousarray(draw.X[keep]), draw.y[keep].astype(np.int32)
    n_outputs = 1 if draw.n_classes == 2 else draw.n_classes
    terms = penalty.resolve(X.shape[1], n_outputs, None)
    mass = draw.sample_weight[keep] / draw.sample_weight[keep].sum()
    problem = Problem(
        design=make_design(sp.csr_matrix(X) if draw.sparse else X),
        y=y,
        mass=mass,
        cost=loss.cost_matrix(draw.n_classes),
        n_classes=draw.n_classes,
        alpha=1.0,
        loss=loss,
        penalty=terms,
        fit_intercept=draw.fit_intercept,
        margin_scale=None if draw.margin_scale is None else draw.margin_scale[keep],
    )
    share = 10.0 ** draw.rng.uniform(*shares)
    return replace(
        problem, alpha=share * reference_alpha(problem), linear_term=_linear_term(draw, terms)
    )


def reference_alpha(problem):
    """An alpha of the size at which coefficients appear, from an even spread of the dual."""
    even = problem.mass[:, None] * np.ones(problem.n_classes) / problem.n_classes
    G = problem.transposed(problem.signed_dual(even))
    # Where every sample is in all classes alike, what is left is rounding, and alpha would be too.
    G[np.abs(G) <= 1e-14 * problem.column_norms] = 0.0
    if problem.penalty.is_norm:
        size = problem.penalty.dual_norm(G)
    else:
        size = float(np.sum((G * problem.penalty.inverse_omega) ** 2))
    return size if size > 0.0 else 1.0


def _linear_term(draw, terms):
    if draw.linear_term == 0.0:
        return None
    linear_term = draw.rng.standard_normal((terms.n_outputs, terms.d)) * (terms.omega > 0.0)
    if not terms.is_norm:
        return draw.linear_term * linear_term
    if terms.kind == "l1" and draw.linear_term == 1.0:
        return np.sign(linear_term) * (draw.rng.random(linear_term.shape) < 0.5) * terms.omega
    return draw.linear_term * linear_term / terms.dual_norm(linear_term)
