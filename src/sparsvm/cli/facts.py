"""What is worth telling about a fitted model."""

from __future__ import annotations

from typing import Any

# Features in a summary.
SUMMARY_FEATURES = 5


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a fitted model is, as values for JSON."""
    result = getattr(model, "result_", None)
    gap = getattr(model, "dual_gap_", getattr(model, "margin_gap_", float("nan")))
    names = getattr(model, "feature_names_in_", None)
    used = model.selected_features_
    return {
        "class": type(model).__name__,
        "loss": _name(model, "loss"),
        "penalty": _name(model, "penalty"),
        "alpha": getattr(model, "alpha_", None),
        "classes": model.classes_,
        "features": int(model.n_features_in_),
        "selected": [str(names[j]) if names is not None else f"x{j}" for j in used],
        "nonzeros": int((model.coef_ != 0).sum()),
        "objective": getattr(model, "objective_", None),
        "dual_gap": float(gap),
        "converged": True if result is None else result.status in ("optimal", "settled"),
        "cv_score": getattr(model, "best_score_", None),
    }


def _name(model: Any, part: str) -> str | None:
    value = getattr(model, f"{part}_", getattr(model, part, None))
    return value if value is None or isinstance(value, str) else value.name


def model_lines(model: Any, facts: dict[str, Any], X: Any = None) -> list[tuple[str, str]]:
    """Return the same for people."""
    selected = facts["selected"]
    more = (
        f", and {len(selected) - SUMMARY_FEATURES} more" if len(selected) > SUMMARY_FEATURES else ""
    )
    strongest = ", ".join(row["feature"] for row in features_of(model, X)[:SUMMARY_FEATURES])
    lines = [("model", _what(facts)), ("classes", ", ".join(map(str, facts["classes"])))]
    if "samples" in facts:
        lines.append(("samples", f"{facts['samples']}"))
    used = f"{len(selected)} of {facts['features']}"
    lines.append(("features", f"{used}: {strongest}{more}" if selected else used))
    if facts["cv_score"] is not None:
        lines.append(("score", f"{facts['cv_score']:.4g}, mean of the folds"))
    if "test_accuracy" in facts:
        samples = facts["test_samples"]
        lines.append(
            ("accuracy", f"{100 * facts['test_accuracy']:.1f} % of {samples} test samples")
        )
    lines.append(("proof", _proof(facts)))
    if "seconds" in facts:
        lines.append(("time", f"{facts['seconds']:.2f} s"))
    if facts.get("files"):
        lines.append(("files", ", ".join(facts["files"])))
    return lines


def _what(facts: dict[str, Any]) -> str:
    parts = [facts["class"]]
    if facts["loss"] is not None:
        parts.append(f"{facts['loss']} with {facts['penalty']}")
    if facts["alpha"] is not None:
        parts.append(f"alpha = {facts['alpha']:.4g}")
    return ", ".join(parts)


def _proof(facts: dict[str, Any]) -> str:
    gap = facts["dual_gap"]
    if gap != gap:
        return "a critical point; the problem is not convex"
    state = "" if facts["converged"] else "; the tolerance was NOT reached"
    return f"within {100 * gap:.2g} % of the optimum{state}"


def features_of(model: Any, X: Any = None) -> list[dict[str, Any]]:
    """Return the features in use, strongest first; with X by weight times standard deviation."""
    import numpy as np

    from sparsvm.numerics.sparse_format import dense_coefficients
    from sparsvm.reporting.subject import deviations

    used = model.selected_features_
    weights = np.asarray(dense_coefficients(model.coef_), dtype=np.float64)[:, used]
    sizes = np.linalg.norm(weights, axis=0)
    if X is not None:
        sizes = sizes * deviations(X[:, used])
    names = getattr(model, "feature_names_in_", None)
    return [
        {
            "feature": str(names[used[j]]) if names is not None else f"x{used[j]}",
            "position": int(used[j]),
            "size": float(sizes[j]),
            "weights": weights[:, j].tolist(),
        }
        for j in np.argsort(-sizes, kind="stable")
    ]
