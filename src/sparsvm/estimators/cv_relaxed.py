"""The relaxed refit: selected features fitted again with a ridge that the folds choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sparsvm._typing import Array, Floats, Ints
from sparsvm.estimators.cv_folds import FoldResult, Shared, run_fold, whole_path
from sparsvm.estimators.cv_proof import fit_as
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.path.svm_path import first_steps
from sparsvm.penalties import L2, as_penalty

# Strengths of the ridge that are tried: half a decade apart over the grid that l2 has by itself.
_STRENGTHS, _EPS = 7, 1e-3


def relaxed(
    model: SparseSVC,
    shared: Shared,
    selected: Ints,
    splits: list[tuple[Array, Array]],
    folds: list[FoldResult],
    t: int,
) -> tuple[SparseSVC, float]:
    """Return the model refitted on the selected features, and its mean score over the folds.

    Each fold refits the features that its own model selected at point t of its path, so that its
    test samples have no part in the selection.
    """
    d = shared.samples.X.shape[1]
    omega = model._path_problem(shared.samples.training_set(model.class_weight)).penalty.omega
    # Groups that overlap have columns of their own; none of their features is unpenalised.
    penalised = np.ones(d)
    if omega.size == d:
        penalised[omega == 0.0] = 0.0
    sparse, model = model, _ridge(model, penalised[selected])
    part = _columns(shared, selected)
    data = part.samples.training_set(model.class_weight)
    control = model._control(data.dtype)
    problem = model._path_problem(data)
    _, grid = first_steps(problem, model.solver, control, None, _STRENGTHS, _EPS)
    scores = []
    for (train, test), fold in zip(splits, folds, strict=True):
        used = fold.selected[t]
        if used.size == 0:
            scores.append(np.full(grid.size, fold.scores[t]))
            continue
        ridge = _ridge(sparse, penalised[used])
        scores.append(run_fold(_columns(shared, used), ridge, grid, train, test, None).scores)
    means = np.mean(scores, axis=0)
    # The first of equals has the strongest ridge.
    best = int(np.nanargmax(means)) if np.isfinite(means).any() else 0
    whole = whole_path(part, model, grid, grid.size, _EPS, None, None)
    fitted: SparseSVC = clone(model).set_params(alpha=float(grid[best]))
    fit_as(fitted, whole.path[best], whole.proofs[best], data)
    coef = np.zeros((fitted.coef_.shape[0], d), dtype=fitted.coef_.dtype)
    coef[:, selected] = fitted.coef_
    fitted.coef_ = coef
    fitted.result_ = replace(fitted.result_, coef=coef)
    fitted.parameter_fraction_ *= selected.size / d
    return fitted, float(means[best])


def _columns(shared: Shared, features: Ints) -> Shared:
    samples = replace(shared.samples, X=shared.samples.X[:, features], feature_names=None)
    return replace(shared, samples=samples)


def _ridge(model: SparseSVC, penalised: Floats) -> SparseSVC:
    """Return the model with l2, scaled as its penalty is; unpenalised features stay so."""
    scaled = as_penalty(model.penalty).needs_column_std
    weights: Any = ("scale", penalised) if scaled else penalised
    made: SparseSVC = clone(model).set_params(penalty=L2(weights=weights))
    return made
