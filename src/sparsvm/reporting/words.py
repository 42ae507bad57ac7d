"""What a fit is and what its certificate proves, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm.losses import as_loss
from sparsvm.penalties import as_penalty

# Per cent below which one digit is given, and an exponent. Seconds up to which a duration is given
# in milliseconds (1 s rounded to three digits), and from which in minutes.
ONE_DIGIT, NO_EXPONENT = 0.1, 1e-4
MILLISECONDS, MINUTES = 0.9995, 120.0
LOSSES = {
    "hinge": "the multiclass hinge of Crammer and Singer",
    "squared_hinge": "the squared multiclass hinge",
    "logistic": "the multinomial logistic loss",
    "ovr_squared_hinge": "the squared hinge of one class against the rest",
    "ramp": "a hinge that stops growing, so that outliers lose their pull",
}
PENALTIES = {
    "l1": "an l1 penalty, which selects single weights: each class has its own features",
    "l2": "an l2 penalty, which shrinks weights and selects none",
    "elasticnet": "an elastic net, which selects single weights and shrinks them",
    "l1/l2": "an l1/l2 penalty, which selects whole groups",
    "l1/linf": "an l1/linf penalty, which selects whole groups",
    "sparse_group": "a sparse group penalty, which selects groups and weights inside them",
    "l0": "a smooth count of the weights (l0), which shrinks them hardly",
    "capped_l1": "an l1 penalty that stops growing (capped l1), which shrinks weights hardly",
}


def percent(share: float) -> str:
    """Return a share in per cent, with one digit that tells it from 0 and from 100."""
    if not np.isfinite(share):
        return "unknown"
    value = 100.0 * share
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    if abs(value) < ONE_DIGIT:
        return f"{value:.1g} %" if abs(value) >= NO_EXPONENT else f"{value:.0e} %"
    return f"{value:.1f} %"


def count(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless there is one of it."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun[-1] == "s" else "s")
    return f"{number:,} {noun if number == 1 else plural}".replace(",", "\u202f")


def seconds(duration: float) -> str:
    """Return a duration with two or three digits."""
    if duration < MILLISECONDS:
        return f"{1000 * duration:.3g} ms"
    if duration < MINUTES:
        return f"{duration:.3g} s"
    return f"{duration / 60:.0f} min"


def fitted(model: Any, n_used: int, n_features: int) -> str:
    """Say what was fitted and how its strength was chosen."""
    n_classes = len(model.classes_)
    what = f"A linear classifier of {count(n_classes, 'class')}, which uses {n_used} of " + (
        f"{count(n_features, 'feature')}"
    )
    if not hasattr(model, "penalty"):
        return (
            f"{what}. Among all linear classifiers of least hinge loss it has the largest smallest "
            "margin between two classes. There is nothing to tune."
        )
    loss = as_loss(getattr(model, "loss_", model.loss))
    penalty = as_penalty(getattr(model, "penalty_", model.penalty))
    loss_words = LOSSES.get(loss.name, f"the loss {type(loss).__name__}")
    penalty_words = PENALTIES.get(penalty.name, f"the penalty {type(penalty).__name__}")
    if hasattr(model, "eta_"):
        return (
            f"{what}. It has the least penalty ({penalty_words}) of all models whose mean hinge "
            f"loss is at most {model.eta_:.4g}."
        )
    strength = f"{what}. It minimises {loss_words} with {penalty_words}, at alpha = "
    return f"{strength}{model.alpha_:.4g}{_chosen(model)}."


def _chosen(model: Any) -> str:
    if not hasattr(model, "scores_"):
        return ""
    rule = {"1se": "the largest within one standard error of the best"}.get(model.rule, "the best")
    return (
        f", {rule} of {count(len(model.alphas_), 'value')} in a cross-validation of "
        f"{count(model.scores_.shape[1], 'fold')}"
    )


def certificate(model: Any) -> tuple[str, str, list[str]]:
    """Return a state ("proven", "short", "critical", "none"), a headline and sentences."""
    if hasattr(model, "margin_gap_"):
        return _margin_certificate(model)
    if not np.isfinite(getattr(model, "objective_", np.nan)):
        return "none", "No certificate", ["This model does not say how it was found."]
    if np.isnan(model.dual_gap_):
        return _critical(model, model.result_)
    what = "penalty" if hasattr(model, "eta_") else "objective"
    rivals = "within the budget " if hasattr(model, "eta_") else ""
    lower = model.objective_ - model.dual_gap_ * abs(model.objective_)
    text = [
        f"The {what} of this model is {model.objective_:.6g}. No weights and intercepts "
        f"{rivals}whatsoever have a smaller one than {lower:.6g}: a dual point proves it. Both "
        "numbers were computed afresh, in double precision, from all training samples, when the "
        "solver had stopped.",
        "The proof is about the fit: that this is the model which loss, penalty and strength ask "
        "for. How well it predicts new samples only samples can tell.",
    ]
    # A model of a path has its gap, but no record of the solver.
    result = getattr(model, "result_", None)
    if result.converged if result is not None else model.dual_gap_ <= model.tol:
        return "proven", f"Proven to be within {percent(model.dual_gap_)} of the optimum", text
    missed = (
        f"The solver stopped before the tolerance of {percent(model.tol)} was reached; a "
        "higher max_iter, scaled features or another solver may help."
    )
    headline = f"Not solved to the tolerance: within {percent(model.dual_gap_)} of the optimum"
    return "short", headline, [missed, *text]


def _critical(model: Any, result: Any) -> tuple[str, str, list[str]]:
    share = result.criticality / abs(model.objective_) if model.objective_ else 0.0
    text = [
        "Loss or penalty is not convex, so that no bound on all other models can be computed. What "
        f"is proven is that this is a critical point, to {percent(share)} of its objective "
        f"{model.objective_:.6g}: no small step lowers the tangent problem by more. A better model "
        "elsewhere is possible."
    ]
    if result.converged:
        return "critical", "A critical point, proven; a global optimum is not promised", text
    return "short", "Not yet a critical point: the objective may still fall", text


def _margin_certificate(model: Any) -> tuple[str, str, list[str]]:
    separable = "can be separated" if model.separable_ else "cannot be separated"
    text = [
        f"The training samples {separable} by linear scores. The smallest margin between two "
        f"classes is {model.smallest_margin_:.6g}; no classifier of least hinge loss has one that "
        f"is more than {percent(model.margin_gap_)} larger.",
    ]
    if model.result_.status == "optimal":
        headline = f"Proven: the smallest margin is within {percent(model.margin_gap_)} of the best"
        return "proven", headline, text
    return "short", f"Not proven to the tolerance ({model.result_.status})", text
