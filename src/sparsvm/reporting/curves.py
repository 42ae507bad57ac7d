"""What happens at other alphas, and how long everything took."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsvm._typing import Floats, Ints
from sparsvm.numerics.sparse_format import checked_sparse
from sparsvm.reporting.subject import Subject
from sparsvm.reporting.words import count, percent, seconds

# Lines of the path that have a name; further features are in the counts only.
MOST_LINES = 24


def path_of(subject: Subject) -> dict[str, Any] | None:
    """Return the path and the scores of the cross-validation, on one grid of alphas."""
    model, path = subject.model, subject.path
    scored = hasattr(model, "scores_")
    if path is None and not scored:
        return None
    alphas = np.asarray(model.alphas_ if scored else path.alphas, dtype=np.float64)  # type: ignore[union-attr]
    alpha = getattr(model, "alpha_", None)
    chosen = 0 if alpha is None else int(np.argmin(np.abs(np.log(alphas / alpha))))
    out: dict[str, Any] = {"alphas": _rounded(alphas), "chosen": chosen}
    if scored:
        scores = np.asarray(model.scores_, dtype=np.float64)
        out["score_name"] = _score_name(model.scoring)
        out["scores"] = _rounded(scores.mean(axis=1))
        out["errors"] = _rounded(_standard_errors(scores))
        out["selected"] = _rounded(np.asarray(model.n_selected_).mean(axis=1))
    if path is not None:
        lines, names, features = _lines(subject, path.coefs)
        selected, gaps = path.n_selected.tolist(), np.array(path.gaps)
        if alpha is not None and hasattr(model, "dual_gap_"):
            # The reported model itself, which may differ from the path's within the tolerance.
            own = subject.sizes_of(subject.weights[:, features], features)
            lines[chosen] = np.sqrt(np.sum(own**2, axis=0))
            selected[chosen], gaps[chosen] = int(subject.used.size), model.dual_gap_
        out["lines"] = [_rounded(line) for line in lines.T]
        out["names"] = names
        out["selected"], out["gaps"] = selected, _rounded(gaps)
    out["text"] = _words(out)
    return out


def _lines(subject: Subject, coefs: list[Any]) -> tuple[Floats, list[str], Ints]:
    """Return the sizes of the weights of the strongest features at every alpha."""
    coefs = [checked_sparse(coef, "path.coefs", "Follow the path again.") for coef in coefs]
    features = np.unique(np.concatenate([coef.indices for coef in coefs])).astype(np.intp)
    # Column by column, not as dense matrices: a path of 20 classes may use 50000 features.
    norms = [np.sqrt(np.bincount(c.indices, c.data**2, c.shape[1])[features]) for c in coefs]
    sizes = subject.sizes_of(np.array(norms, dtype=np.float64), features)
    order = np.argsort(-sizes.max(axis=0, initial=0.0), kind="stable")[:MOST_LINES]
    kept = features[order]
    return sizes[:, order], [subject.names[j] for j in kept], kept


def _words(path: dict[str, Any]) -> str:
    alphas, selected = path["alphas"], path["selected"]
    text = (
        f"A smaller alpha lets more features in: from {_number(selected[0])} at alpha = "
        f"{alphas[0]:.3g} to {_number(selected[-1])} at {alphas[-1]:.3g}."
    )
    if "scores" in path:
        t = path["chosen"]
        name = path["score_name"]
        text += f" At the alpha that was chosen the mean {name} of the folds is "
        text += (
            f"{percent(path['scores'][t])}" if name == "accuracy" else f"{path['scores'][t]:.4g}"
        )
        text += f", give or take {_error(path['errors'][t], name)} (one standard error)."
    return text


def _error(error: float, name: str) -> str:
    return percent(error) if name == "accuracy" else f"{error:.2g}"


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def _score_name(scoring: Any) -> str:
    if scoring is None:
        return "accuracy"
    return str(scoring).replace("_", " ") if isinstance(scoring, str) else "score"


def _standard_errors(scores: Floats) -> Floats:
    n_folds = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))


def timings(subject: Subject) -> dict[str, Any]:
    """Return how long the fit took, by which solver, and how the gap closed."""
    result = getattr(subject.model, "result_", None)
    rows = []
    if result is not None:
        rows = [
            ("Solver", str(result.solver)),
            ("Iterations", f"{result.n_iter}"),
            ("Time of the fit", seconds(float(result.seconds))),
        ]
    if subject.path is not None:
        rows.append(("Time of the path", seconds(float(np.sum(subject.path.seconds)))))
        rows.append(("Models on the path", f"{len(subject.path.alphas)}"))
    table = getattr(subject.model, "cv_results_", None)
    if table is not None:
        n_folds = subject.model.scores_.shape[1]
        rows.append(("Models in the cross-validation", f"{len(table['params']) * n_folds}"))
        total = float(np.sum(table["mean_fit_time"])) * n_folds
        rows.append(("Time of the cross-validation", seconds(total)))
    out: dict[str, Any] = {"rows": rows}
    if (history := _history(subject.model)) is not None:
        out["history"] = history
    return out


def _history(model: Any) -> dict[str, Any] | None:
    """Return the relative gaps that the solver recorded, where it recorded any."""
    if not hasattr(model, "dual_gap_") or not hasattr(model, "result_"):
        return None
    history = model.result_.history
    seen = (history.gap > 0) & np.isfinite(history.relative_gap)
    if np.count_nonzero(seen) < 2:
        return None
    return {
        "seconds": _rounded(history.seconds[seen]),
        "gaps": _rounded(history.relative_gap[seen]),
        "label": (
            f"How the relative duality gap closed, in {count(int(seen.sum()), 'record')} of "
            f"{model.result_.solver}."
        ),
    }


def _rounded(values: Any) -> list[float]:
    """Return numbers with five digits, which is more than a picture shows, for a small page."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=np.float64).tolist()]
