"""Hinge problems from given data, real data sets, and the grid of everything a problem may have.

``problems.py`` draws whole problems at random; here the data, the penalty and each option are
chosen, so that a test can say what it covers.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine

import problems
from reference import certificate as naive
from reference import oracles
from sparsvm.data.design import make_design
from sparsvm.datasets import load_leukemia
from sparsvm.losses import Hinge
from sparsvm.penalties import L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.problem import Problem

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}


def build(X, y, penalty, share=0.1, sample_weight=None, margin=1.0, **options):
    """A problem at ``share`` of the alpha at which coefficients appear."""
    y = np.asarray(y, dtype=np.int32)
    n_classes = int(y.max()) + 1
    weight = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight)
    problem = Problem(
        design=make_design(X),
        y=y,
        mass=weight / weight.sum(),
        cost=Hinge(margin=margin).cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=1.0,
        loss=Hinge(margin=margin),
        penalty=penalty.resolve(X.shape[1], 1 if n_classes == 2 else n_classes, None),
        **options,
    )
    reference = problems.reference_alpha(problem)
    if problem.penalty.kind == "elasticnet":
        # Its l1 part decides when coefficients appear.
        terms = L1(weights=problem.penalty.omega).resolve(problem.d, problem.n_outputs, None)
        reference = problems.reference_alpha(replace(problem, penalty=terms))
        reference /= problem.penalty.l1_ratio
    return replace(problem, alpha=share * reference)


def gaussian(seed, n, d, n_classes, apart=1.0):
    """Gaussian classes whose means are ``apart`` standard deviations from the origin."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    means = apart * rng.standard_normal((n_classes, d))
    return rng.standard_normal((n, d)) + means[y], y


# ---------------------------------------------------------------- penalties and the grid

GROUPINGS = {"rows": lambda d: None, "blocks": lambda d: 3, "labels": lambda d: np.arange(d) % 4}


def _grouped(penalty, grouping, per_class, **options):
    return lambda d, weights=None: penalty(
        groups=GROUPINGS[grouping](d), per_class=per_class, weights=weights, **options
    )


# Every penalty with every grouping: name -> function of (d, weights).
PENALTIES = {
    "l1": lambda d, weights=None: L1(weights=weights),
    "l2": lambda d, weights=None: L2(weights=weights),
    "elasticnet": lambda d, weights=None: ElasticNet(l1_ratio=0.4, weights=weights),
}
for _grouping, _per_class in itertools.product(GROUPINGS, (False, True)):
    _name = f"{_grouping}-{'per_class' if _per_class else 'joint'}"
    PENALTIES[f"l1/l2-{_name}"] = _grouped(GroupL2, _grouping, _per_class)
    PENALTIES[f"l1/linf-{_name}"] = _grouped(GroupLinf, _grouping, _per_class)
    PENALTIES[f"sparse_group-{_name}"] = _grouped(SparseGroup, _grouping, _per_class, l1_ratio=0.3)
# One of each kind, where the grouping is not the point.
KINDS = (
    "l1",
    "l2",
    "elasticnet",
    "l1/l2-rows-joint",
    "l1/linf-rows-joint",
    "l1/l2-blocks-per_class",
    "l1/linf-blocks-per_class",
    "sparse_group-blocks-joint",
)
SPARSE_KINDS = tuple(name for name in KINDS if name != "l2")


@dataclass(frozen=True)
class Options:
    """One cell of the grid."""

    sample_weights: bool
    margin: str  # scalar, sample or cost
    fit_intercept: bool
    weights: str  # of the penalty: even, uneven or free (one feature unpenalised)
    linear_term: float  # its dual norm; 0 for none
    storage: str

    def __str__(self):
        words = [self.margin, self.weights, self.storage]
        words += ["weighted"] * self.sample_weights + ["no_intercept"] * (not self.fit_intercept)
        return "-".join(words + [f"linear{self.linear_term}"] * (self.linear_term > 0.0))


GRID = [
    Options(*cell)
    for cell in itertools.product(
        (False, True),
        ("scalar", "sample", "cost"),
        (True, False),
        ("even", "uneven", "free"),
        (0.0, 0.6),
        STORAGES,
    )
]


def grid_problem(seed, kind, options):
    """A random problem with these options: two to five classes, narrow or wide by the seed."""
    rng = np.random.default_rng([seed, 7])
    n_classes = 2 + seed % 4
    # In wide problems most features start outside the working set.
    n, d = (26, 7) if seed % 3 else (12, 60)
    X, y = gaussian(seed, n, d, n_classes)
    if options.storage in ("csr", "csc"):
        X[rng.random(X.shape) < 0.5] = 0.0
    weights = None if options.weights == "even" else rng.uniform(0.5, 2.0, d)
    if options.weights == "free":
        weights[rng.integers(d)] = 0.0
    margin, scale = 1.5, None
    if options.margin == "sample":
        scale = rng.exponential(size=n)
    elif options.margin == "cost":
        margin = rng.uniform(0.2, 2.0, (n_classes, n_classes))
        np.fill_diagonal(margin, 0.0)
    problem = build(
        STORAGES[options.storage](X),
        y,
        PENALTIES[kind](d, weights),
        share=10.0 ** rng.uniform(-2.5, -0.3),
        sample_weight=rng.uniform(0.2, 3.0, n) if options.sample_weights else None,
        margin=margin,
        margin_scale=scale,
        fit_intercept=options.fit_intercept,
    )
    return replace(problem, linear_term=_linear_term(rng, problem.penalty, options.linear_term))


def _linear_term(rng, terms, size):
    if size == 0.0:
        return None
    linear_term = rng.standard_normal((terms.n_outputs, terms.d)) * (terms.omega > 0.0)
    return (
        size
        * linear_term
        / (terms.dual_norm(linear_term) if terms.is_norm else np.abs(linear_term).max())
    )


# ---------------------------------------------------------------- real data


def standardised(X):
    std = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(std > 0.0, std, 1.0))


def _iris():
    return load_iris(return_X_y=True)


def _wine():
    X, y = load_wine(return_X_y=True)
    return standardised(X), y


def _digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:40], y[:40]


def _leukemia():
    X, names = load_leukemia(return_X_y=True)
    return X, np.unique(names, return_inverse=True)[1]


# Name -> function returning (X, y).
REAL = {"iris": _iris, "wine": _wine, "digits": _digits}
if os.environ.get("SPARSVM_DATA"):
    REAL["leukemia"] = _leukemia


# ---------------------------------------------------------------- judgement


def assert_proven(problem, solution, tol):
    """The solution is optimal to ``tol`` by its certificate, recomputed here the naive way."""
    assert solution.status == "optimal", (solution.status, solution.n_iter, solution.relative_gap)
    assert solution.gap <= max(tol * abs(solution.objective), solution.floor)
    objective = oracles.objective(problem, solution.coef, solution.intercept)
    assert abs(solution.objective - objective) <= solution.floor + 1e-12 * abs(objective)
    found = naive.violations(problem, solution.dual)
    assert found["sign"] == 0.0
    # A linear term may bring the slope to the edge of the dual ball, reached within rounding.
    limits = {"mass": 1e-13, "intercept": 2e-14, "free features": 4e-14, "penalty": 1e-9}
    if problem.penalty.is_norm:
        limits["penalty"] += naive.rounding_of_entries(problem, solution.dual)
    assert all(found[name] <= limit for name, limit in limits.items()), found
    value = naive.dual_value(problem, solution.dual)
    assert solution.dual_objective <= value + 1e-13 * (1.0 + abs(value))


def assert_agrees(problem, solution, tol, oracle=None):
    """The oracle's optimum lies in the certified interval, which is as short as ``tol`` asks."""
    assert solution.status == "optimal", (solution.status, solution.n_iter, solution.relative_gap)
    oracle = oracles.solve(problem) if oracle is None else oracle
    # Oracles claim more than they reach: a point feasible beyond doubt was found 4e-8 below one.
    slack = oracle.accuracy + 1e-7 * abs(oracle.value) + solution.floor
    assert solution.dual_objective <= oracle.value + slack
    assert oracle.value - slack <= solution.objective
    assert solution.objective <= oracle.value + tol * abs(oracle.value) + slack
