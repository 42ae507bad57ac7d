"""From a training set, a loss and a penalty to a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats, Labels
from sparsvm.data.design import make_design
from sparsvm.data.training_set import TrainingSet
from sparsvm.losses import Logistic, Loss
from sparsvm.numerics.rounding import EPS
from sparsvm.parameters import LARGEST_NUMBER
from sparsvm.penalties import Penalty
from sparsvm.penalties.terms import PenaltyTerms
from sparsvm.problem.problem import DesignLike, Problem
from sparsvm.problem.restriction import columns_of

# The rounding of a mean of n numbers, in their largest one and roots of n.
MEAN_ROUNDING = 8.0 * EPS


def regularised_problem(
    data: TrainingSet, loss: Loss, penalty: Penalty, alpha: float, fit_intercept: bool
) -> Problem:
    """Return the problem of a training set."""
    n_classes = data.classes.size
    n_outputs = 1 if n_classes == 2 else n_classes
    mass = data.mass
    cost = loss.cost_matrix(data.labels.size, data.labels)[
        np.ix_(data.label_numbers, data.label_numbers)
    ]
    require_margin(loss, cost, data.margin_scale)
    design, names, columns = data.design, data.feature_names, None
    latent = penalty.latent(design.d, names)
    if latent is not None:
        columns, penalty = latent
        design, names = make_design(columns_of(design, columns)), None
    deviation = None
    if penalty.needs_column_std:
        deviation = column_std(design, mass)
    return Problem(
        design=design,
        y=data.y,
        mass=mass,
        cost=cost,
        margin_scale=data.margin_scale,
        n_classes=n_classes,
        alpha=alpha,
        loss=loss,
        penalty=penalty.resolve(design.d, n_outputs, deviation, names),
        fit_intercept=fit_intercept,
        columns=columns,
    )


def problem_on(
    X: Any,
    y: Labels,
    mass: Floats,
    margin: Floats | None,
    *,
    loss: Loss,
    cost: Floats,
    penalty: PenaltyTerms,
    alpha: float,
    fit_intercept: bool,
) -> Problem:
    """Return the problem of samples that are already checked; ``mass`` need not sum to 1.

    Part of the samples of a problem, with their masses in the whole, make its share of the loss.
    """
    return Problem(
        design=make_design(X),
        y=np.asarray(y, dtype=np.int32),
        mass=mass,
        cost=cost,
        n_classes=cost.shape[0],
        alpha=alpha,
        loss=loss,
        penalty=penalty,
        fit_intercept=fit_intercept,
        margin_scale=margin,
    )


def default_alpha(total: float, parameter: str = "alpha") -> float:
    """Return 1 / (sum of the weights), which ``parameter=None`` stands for."""
    if not 1.0 / LARGEST_NUMBER <= total <= LARGEST_NUMBER:
        raise ValueError(
            f"The weights sum to {total:g}, so that {parameter}=None would mean "
            f"alpha=1/{total:g}. Give {parameter}, or multiply the weights by a constant."
        )
    return 1.0 / total


def require_margin(loss: Loss, cost: Floats, margin_scale: Floats | None) -> None:
    """Refuse margins that leave nothing to learn or overflow, and sample margins without effect."""
    factor = 1.0 if margin_scale is None else float(margin_scale.max())
    largest = float(cost.max()) * factor
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"The largest margin is {largest:.3g}, but beyond {LARGEST_NUMBER:g} its products may "
            "overflow. Divide all margins by a constant."
        )
    if isinstance(loss, Logistic):
        if margin_scale is not None and not cost.any():
            raise ValueError(
                "sample_margin multiplies the margin of the loss, which is 0 for loss='logistic'. "
                "Use Logistic(margin=1.0), or leave sample_margin out."
            )
        return
    if largest == 0.0:
        raise ValueError(
            "Every margin is zero, so that a model of zeros has no loss and nothing is learned. "
            "Give the loss or sample_margin a positive margin."
        )
    if largest < 1.0 / LARGEST_NUMBER:
        raise ValueError(
            f"The largest margin is {largest:.3g}, but below {1.0 / LARGEST_NUMBER:g} losses may "
            "vanish in rounding. Multiply all margins by a constant."
        )


def column_std(design: DesignLike, mass: Floats) -> Floats:
    """Return the standard deviation of each column, weighted by mass, for ``weights="scale"``.

    A column that is constant up to the rounding of its mean gets exactly 0.
    """
    _, variance, _, largest = design.column_stats(mass)
    std = np.sqrt(np.asarray(variance, dtype=np.float64))
    return beyond_rounding(std, np.asarray(largest), mass.size)


def beyond_rounding(std: Floats, largest: Floats, n: int) -> Floats:
    """Return deviations of n numbers with these largest ones, 0 where rounding explains them."""
    return np.where(std > MEAN_ROUNDING * np.sqrt(n) * largest, std, 0.0)
