"""000 Figs 1 and 2: errors and zero weights against alpha for a few training samples per class."""

from __future__ import annotations

import time

from harness import Experiment, distinct, markdown_table, pick, subplots, values

# isort: split

import numpy as np

from sparsvm import svm_path
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.plots.style import COLOURS, DASHES

LOSSES = {
    "hinge": Hinge(),
    "square": SquaredHinge(),
    "logit": Logistic(margin=1.0),
    "one-vs-all": OvrSquaredHinge(),
}


def path_rows(X, y, X_test, y_test, loss, penalty, alphas):
    """Test error and share of zero weights at every alpha, and the seconds of the whole path.

    The papers' lambda is 1 / alpha for a sum over n samples: our alpha is theirs over n.
    """
    began = time.process_time()
    path = svm_path(X, y, loss=LOSSES[loss], penalty=penalty, alphas=np.divide(alphas, len(y)))
    seconds = time.process_time() - began
    rows = []
    for at, coef in enumerate(path.coefs):
        used = np.unique(coef.indices)
        scores = X_test[:, used] @ coef[:, used].toarray().T + path.intercepts[at]
        wrong = np.mean(path.classes[np.asarray(scores).argmax(axis=1)] != y_test)
        rows.append(
            {
                "alpha": float(path.alphas[at] * len(y)),
                "error": float(wrong),
                "zeros": 1.0 - coef.nnz / np.prod(coef.shape),
                "gap": float(path.gaps[at]),
                "seconds": seconds / len(alphas),
            }
        )
    return rows


def _mean(rows, key, **wanted):
    """Mean over the draws at each alpha."""
    chosen = pick(rows, **wanted)
    alphas = sorted({row["alpha"] for row in chosen})
    return alphas, [float(np.mean(values(chosen, key, alpha=alpha))) for alpha in alphas]


def draw(rows):
    """Errors on the left, zeros on the right, one row for each size; a circle at the best alpha."""
    sizes = distinct(rows, "per_class")
    figure, axes = subplots(len(sizes), 2, (10, 3.1 * len(sizes)))
    for row_of_axes, size in zip(axes, sizes, strict=True):
        for loss, colour, dash in zip(LOSSES, COLOURS, DASHES, strict=False):
            alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
            if not alphas:
                continue
            _, zeros = _mean(rows, "zeros", per_class=size, loss=loss)
            best = int(np.argmin(errors))
            for ax, line in zip(row_of_axes, (errors, zeros), strict=True):
                ax.semilogx(alphas, 100.0 * np.array(line), dash, color=colour, label=loss)
                ax.plot(alphas[best], 100.0 * line[best], "o", color=colour)
        row_of_axes[0].set_ylabel(f"{size} per class\ntest error in %")
        row_of_axes[1].set_ylabel("zero weights in %")
    for ax in axes[-1]:
        ax.set_xlabel("alpha (the paper's 1/lambda)")
    axes[0, 0].legend(frameon=False)
    return figure


def table(rows):
    """Best mean error of each loss, and how much is lost when alpha is ten times off."""
    lines = []
    for size in distinct(rows, "per_class"):
        for loss in LOSSES:
            alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
            if not alphas:
                continue
            _, zeros = _mean(rows, "zeros", per_class=size, loss=loss)
            best = int(np.argmin(errors))
            draws = len(set(values(rows, "draw", per_class=size, loss=loss)))
            finals = [
                min(values(rows, "error", per_class=size, loss=loss, draw=d))
                for d in set(values(rows, "draw", per_class=size, loss=loss))
            ]
            spread = float(np.std(finals) / max(1, draws - 1) ** 0.5)
            near = [e for a, e in zip(alphas, errors, strict=True) if 0.1 <= a / alphas[best] <= 10]
            seconds = float(np.mean(values(rows, "seconds", per_class=size, loss=loss)))
            lines.append(
                (
                    size,
                    loss,
                    draws,
                    f"{100 * errors[best]:.2f} ± {100 * spread:.2f}",
                    f"{100 * (max(near) - errors[best]):.2f}",
                    f"{100 * zeros[best]:.1f}",
                    f"{alphas[best]:.3g}",
                    f"{seconds:.2f}",
                )
            )
    header = (
        "per class",
        "loss",
        "draws",
        "least mean error in %",
        "more if alpha is 10 times off",
        "zeros in %",
        "alpha",
        "seconds a point",
    )
    return markdown_table(header, lines)


def hinge_is_best(rows):
    """Judge: in how many sizes the hinge has the least mean error."""
    won, told = 0, []
    sizes = distinct(rows, "per_class")
    for size in sizes:
        least = {
            loss: min(_mean(rows, "error", per_class=size, loss=loss)[1], default=1.0)
            for loss in LOSSES
        }
        others = min(error for loss, error in least.items() if loss != "hinge")
        won += least["hinge"] <= others
        told.append(
            f"{size} per class: hinge {100 * least['hinge']:.2f} %, best other {100 * others:.2f} %"
        )
    return ("confirmed" if won == len(sizes) else "refuted"), "; ".join(told)


def hinge_is_flattest(rows):
    """Judge: the hinge loses least where alpha is chosen ten times too large or small."""
    won, told = 0, []
    sizes = distinct(rows, "per_class")
    for size in sizes:
        lost = {}
        for loss in ("hinge", "square"):
            alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
            if not alphas:
                return "not testable here", "needs hinge and square"
            best = int(np.argmin(errors))
            near = [e for a, e in zip(alphas, errors, strict=True) if 0.1 <= a / alphas[best] <= 10]
            lost[loss] = max(near) - errors[best]
        won += lost["hinge"] <= lost["square"]
        told.append(
            f"{size} per class: hinge +{100 * lost['hinge']:.1f}, square "
            f"+{100 * lost['square']:.1f} points"
        )
    return ("confirmed" if won == len(sizes) else "refuted"), "; ".join(told)


def hinge_is_sparsest(rows):
    """Judge: zeros at each loss's best alpha."""
    won, told = 0, []
    sizes = distinct(rows, "per_class")
    for size in sizes:
        zeros = {}
        for loss in LOSSES:
            alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
            if alphas:
                zeros[loss] = _mean(rows, "zeros", per_class=size, loss=loss)[1][
                    int(np.argmin(errors))
                ]
        won += zeros["hinge"] >= max(zeros.values()) - 1e-12
        shown = ", ".join(f"{loss} {100 * share:.1f}" for loss, share in zeros.items())
        told.append(f"{size} per class: {shown} %")
    return ("confirmed" if won == len(sizes) else "refuted"), "; ".join(told)


def experiment(item, title, sizes, draws, measure, protocol, claims):
    """Return the experiment of one of the two figures."""

    def cells(quick):
        if quick:
            return [{"per_class": sizes[0], "draw": 0, "loss": loss} for loss in LOSSES]
        return [
            {"per_class": size, "draw": draw, "loss": loss}
            for draw in range(draws)
            for size in sizes
            for loss in LOSSES
        ]

    return Experiment(
        item=item,
        title=title,
        cells=cells,
        measure=measure,
        tell=lambda rows: f"{protocol}\n\n{table(rows)}",
        draw=draw,
        claims=claims,
        alternative="Test error and share of zero weights against alpha for four losses",
    )
