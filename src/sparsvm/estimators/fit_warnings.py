"""What to tell users about a fit that is correct but probably not what they want."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparsvm._typing import Array
from sparsvm.certificate.least_norm import without_minimum
from sparsvm.data.warn import warn
from sparsvm.losses import Hinge, Logistic, SquaredHinge
from sparsvm.path.alpha_max import zero_bound
from sparsvm.problem.problem import Problem
from sparsvm.problem.recession import Recession
from sparsvm.problem.solution import Solution
from sparsvm.solvers.base import settled

# Classes or features that a warning names.
LIST_LENGTH = 5


def advise(
    problem: Problem,
    solution: Solution,
    *,
    tol: float,
    direction: Recession | None = None,
    names: Array | None = None,
) -> None:
    """Warn about a fit that did not converge and about a model that is not what it seems."""
    if direction is not None:
        warn(_separated(problem, direction, names), UserWarning)
    if without_minimum(problem, direction):
        pass  # said above
    elif not solution.converged:
        warn(_not_converged(solution, tol), ConvergenceWarning)
    elif solution.relative_gap > tol and not settled(problem, solution, tol):
        warn(_hidden(solution), ConvergenceWarning)
    # Of a run that was ended early zeros say nothing about alpha.
    if not np.any(solution.coef) and solution.status != "stopped":
        warn(_all_zero(problem, solution), UserWarning)


def tell_never_predicted(labels: Array) -> None:
    """Warn about classes that the model predicts for none of the training samples."""
    if labels.size == 0:
        return
    listed = ", ".join(repr(label) for label in labels[:LIST_LENGTH].tolist())
    classes = f"Class {listed} is" if labels.size == 1 else f"Classes {listed} are"
    more = f" and {labels.size - LIST_LENGTH} more" if labels.size > LIST_LENGTH else ""
    warn(
        classes.replace(" are", f"{more} are") + " predicted for no training sample. Choose a "
        "smaller alpha, class_weight='balanced' or another loss.",
        UserWarning,
    )


def remedy(status: str) -> str:
    """Say what to do about a fit that stopped with that status."""
    if status == "stopped":
        return "It was ended early: raise time_limit, or raise tol."
    if status == "max_iter":
        return "Raise max_iter, raise tol, scale the features, or use another solver."
    return "Raise tol, scale the features, pass float64 data, or use another solver."


def _separated(problem: Problem, direction: Recession, names: Array | None) -> str:
    features = direction.features.tolist()
    shown = [repr(str(names[j])) if names is not None else str(j) for j in features[:LIST_LENGTH]]
    listed = ", ".join(shown) + (", …" if len(features) > LIST_LENGTH else "")
    many = len(features) > 1
    subject = f"features {listed} separate" if many else f"feature {listed} separates"
    sizes = "the sizes of their weights say" if many else "the size of its weight says"
    text = f"The unpenalised {subject} classes of the training data, so that {sizes} nothing: "
    if without_minimum(problem, direction):
        text += "the logistic loss tends to zero as weights grow, and no model is optimal. "
    elif isinstance(problem.loss, Logistic):
        text += "the logistic loss falls as weights grow, and tol decides where they end. "
    else:
        text += "larger ones would fit as well. "
        if isinstance(problem.loss, (Hinge, SquaredHinge)):
            text += "Of equally good ones the smallest are taken. "
    return text + "Give a positive penalty weight, which may be small, or leave features out."


def _not_converged(solution: Solution, tol: float) -> str:
    stopped = f"{solution.solver} stopped after {solution.n_iter} iterations ({solution.status})"
    if np.isnan(solution.gap):
        distance = solution.criticality / abs(solution.objective)
        return (
            f"{stopped} with a relative criticality of {distance:.2g}, above tol={tol:g}: the "
            f"objective may still fall by that much and more. {remedy(solution.status)}"
        )
    return (
        f"{stopped} with a relative duality gap of {solution.relative_gap:.2g}, above tol={tol:g}: "
        f"the objective may be that far from the optimum. {remedy(solution.status)}"
    )


def _hidden(solution: Solution) -> str:
    return (
        f"{solution.solver} came to coefficients so large that rounding alone changes the "
        f"objective by up to {solution.floor:.2g}, which hides a relative duality gap of "
        f"{solution.relative_gap:.2g}: the model may be far from optimal. Scale the features, "
        "raise alpha, or give features that are hardly penalised a weight of 0."
    )


def _all_zero(problem: Problem, solution: Solution) -> str:
    text = (
        f"Every weight is zero at alpha={problem.alpha:.4g}: the model predicts the same for all. "
    )
    if not (problem.penalty.built_in or problem.penalty.is_norm):
        return text + "Choose a smaller alpha, or scale the features."
    bound = zero_bound(problem, solution)
    if bound is None:
        return text + "No feature tells the classes apart."
    text += (
        "The largest useful alpha (alpha_max) is smaller, at most about "
        f"{bound:.4g}; choose an alpha well below that, or scale the features."
    )
    if isinstance(problem.loss, Hinge) and problem.n_classes > 2:
        text += (
            " Where more than two classes overlap so much that none has the majority, zero is "
            "the optimum of the hinge at every alpha: use loss='squared_hinge' or 'logistic'."
        )
    return text
