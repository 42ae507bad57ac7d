"""000 Figs 1 and 2: errors and zero weights against alpha for a few training samples per class."""

from __future__ import annotations

import time

from harness import (
    SURE,
    Experiment,
    distinct,
    markdown_table,
    pick,
    plain_log,
    standard_error,
    subplots,
    values,
    verdict,
)

# isort: split

import numpy as np
from scipy import sparse

from sparsvm import svm_path
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.plots.style import COLOURS, DASHES

LOSSES = {
    "hinge": Hinge(),
    "square": SquaredHinge(),
    "logit": Logistic(margin=1.0),
    "one-vs-all": OvrSquaredHinge(),
}


def path_rows(X, y, X_test, y_test, loss, penalty, alphas, steps=1):
    """Test error and share of zero weights at every alpha, and the seconds of the whole path.

    The papers' lambda is 1 / alpha for a sum over n samples: our alpha is theirs over n. From one
    alpha to the next the path goes in so many ``steps``.
    """
    began = time.process_time()
    at = np.linspace(0.0, len(alphas) - 1.0, steps * (len(alphas) - 1) + 1)
    strengths = np.exp(np.interp(at, np.arange(len(alphas)), np.log(alphas))) / len(y)
    path = svm_path(X, y, loss=LOSSES[loss], penalty=penalty, alphas=strengths)
    seconds = time.process_time() - began
    shown = range(0, len(strengths), steps)
    coefs = [path.coefs[at] for at in shown]
    errors = _errors(coefs, np.asarray(path.intercepts)[shown], path.classes, X_test, y_test)
    return [
        {
            "alpha": float(alpha),
            "error": error,
            "zeros": float(1.0 - coef.nnz / np.prod(coef.shape)),
            "gap": float(path.gaps[at]),
            "seconds": seconds / len(alphas),
        }
        for alpha, error, coef, at in zip(alphas, errors, coefs, shown, strict=True)
    ]


def _errors(coefs, intercepts, classes, X, y):
    """Share of wrong predictions of every model, in one pass over X, which may be a large file."""
    stacked = sparse.vstack(coefs, format="csr")
    used = np.unique(stacked.indices)
    weights = stacked[:, used].toarray().T.astype(X.dtype)
    wrong = np.zeros(len(coefs))
    for start in range(0, X.shape[0], 500):
        part = X[start : start + 500]
        part = part if used.size == X.shape[1] else part[:, used]
        scores = np.asarray(part @ weights).reshape(part.shape[0], len(wrong), -1)
        predicted = classes[(scores + intercepts).argmax(axis=2)]
        wrong += np.count_nonzero(predicted != y[start : start + 500, None], axis=0)
    return (wrong / X.shape[0]).tolist()


def _mean(rows, key, **wanted):
    """Mean over the draws at each alpha."""
    chosen = pick(rows, **wanted)
    alphas = sorted({row["alpha"] for row in chosen})
    return alphas, [float(np.mean(values(chosen, key, alpha=alpha))) for alpha in alphas]


def _best_at(errors):
    """The largest alpha (the last) whose error is within a tenth of a point of the least."""
    return int(np.flatnonzero(np.array(errors) <= min(errors) + 1e-3)[-1])


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
            best = _best_at(errors)
            for ax, line in zip(row_of_axes, (errors, zeros), strict=True):
                ax.semilogx(alphas, 100.0 * np.array(line), dash, color=colour, label=loss)
                ax.plot(alphas[best], 100.0 * line[best], "o", color=colour)
        row_of_axes[0].set_yscale("log")  # the losses differ little where they are good
        plain_log(row_of_axes[0].yaxis)
        row_of_axes[0].set_ylabel(f"{size} per class\ntest error in %")
        row_of_axes[1].set_ylabel("zero weights in %")
    for ax in axes[-1]:
        ax.set_xlabel("alpha (the paper's 1/lambda)")
    axes[0, 0].legend(frameon=False)
    return figure


def _best(rows, size, loss):
    """The alpha of the best mean error, the errors of the draws there, the share of zeros."""
    alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
    if not alphas:
        return None
    best = _best_at(errors)
    wanted = {"per_class": size, "loss": loss, "alpha": alphas[best]}
    return (
        alphas[best],
        np.array(values(rows, "error", **wanted)),
        _mean(rows, "zeros", **wanted)[1][0],
    )


def _lost(rows, size, loss):
    """Points of error lost where alpha is up to ten times too small, and too large."""
    alphas, errors = _mean(rows, "error", per_class=size, loss=loss)
    best = _best_at(errors)
    ratios = np.array(alphas) / alphas[best]
    below = (ratios <= 1.0) & (ratios >= 0.099)
    above = (ratios >= 1.0) & (ratios <= 10.1)
    return tuple(
        100 * float(np.max(np.array(errors)[side]) - errors[best]) for side in (below, above)
    )


def complete(rows):
    """The draws in which every loss was run, so that losses are compared on the same samples."""
    done = {}
    for row in rows:
        done.setdefault((row["per_class"], row["draw"]), set()).add(row["loss"])
    return [row for row in rows if set(LOSSES) <= done[row["per_class"], row["draw"]]]


def _with_deviation(errors, shown="{:.2f}"):
    mean = shown.format(100 * errors.mean())
    if errors.size < 2:
        return mean
    return f"{mean} ± {100 * standard_error(errors):.2f}"


def _above_hinge(rows, size, errors):
    """Points above the hinge, draw by draw, each loss at its best alpha."""
    hinge = _best(rows, size, "hinge")
    if hinge is None or hinge[1].size != errors.size:
        return ""
    return _with_deviation(errors - hinge[1], "{:+.2f}")


def table(rows, published=None):
    """Least mean error of each loss with its standard error, and where it is."""
    lines = []
    for size in distinct(rows, "per_class"):
        for loss in LOSSES:
            found = _best(rows, size, loss)
            if found is None:
                continue
            alpha, errors, zeros = found
            alphas = _mean(rows, "error", per_class=size, loss=loss)[0]
            edge = " (least tried)" if alpha == min(alphas) else ""
            seconds = float(np.mean(values(rows, "seconds", per_class=size, loss=loss)))
            paper = (published or {}).get((size, loss))
            lines.append(
                (
                    size,
                    loss,
                    errors.size,
                    _with_deviation(errors),
                    "" if loss == "hinge" else _above_hinge(rows, size, errors),
                    *(() if published is None else ("" if paper is None else f"{paper:.2f}",)),
                    "{:.1f}, {:.1f}".format(*_lost(rows, size, loss)),
                    f"{100 * zeros:.1f}",
                    f"{alpha:.3g}{edge}",
                    f"{seconds:.2f}",
                )
            )
    header = (
        "per class",
        "loss",
        "draws",
        "best mean error in %",
        "above the hinge, by draw",
        *(() if published is None else ("published",)),
        "points lost at alpha / 10, · 10",
        "zeros in %",
        "alpha",
        "seconds a point",
    )
    return markdown_table(header, lines)


def _judged(rows, others, key, better, shown):
    """Compare the hinge with other losses at every size by ``key(best)``."""
    true, told = [], []
    for size in distinct(rows, "per_class"):
        found = {loss: _best(rows, size, loss) for loss in ("hinge", *others)}
        if any(each is None for each in found.values()):
            continue
        numbers = {loss: key(each) for loss, each in found.items()}
        true.append(all(better(numbers["hinge"], numbers[loss]) for loss in others))
        told.append(
            f"{size} per class: " + ", ".join(f"{k} {shown(v)}" for k, v in numbers.items())
        )
    if not true:
        return "not testable here", "a loss was not run"
    return ("confirmed" if all(true) else "refuted"), "; ".join(told)


def hinge_is_best(others):
    """Judge: the hinge errs less at every size, and at one of them by more than chance."""
    return lambda rows: _hinge_is_best(rows, others)


def _hinge_is_best(rows, others):
    told, better, ahead = [], [], dict.fromkeys(others, False)
    for size in distinct(rows, "per_class"):
        found = {loss: _best(rows, size, loss) for loss in ("hinge", *others)}
        if any(each is None for each in found.values()):
            continue
        hinge, shown = found["hinge"][1], []
        for loss in others:
            each = found[loss][1] - hinge
            mean, doubt = each.mean(), SURE * standard_error(each)
            ahead[loss] |= bool(mean > doubt)
            better.append(True if mean > 0.0 else False if mean < -doubt else None)
            shown.append(f"{loss} {_with_deviation(each, '{:+.2f}')}")
        told.append(f"{size} per class, {hinge.size} draws: " + ", ".join(shown))
    if not told:
        return "not testable here", "a loss was not run"
    better += [True if found else None for found in ahead.values()]
    return verdict(better), "points above the hinge, draw by draw, " + "; ".join(told)


def hinge_is_sparsest(rows):
    """Judge: zeros at each loss's best alpha."""
    others = [loss for loss in LOSSES if loss != "hinge"]
    return _judged(
        rows, others, lambda best: best[2], lambda a, b: a >= b, lambda z: f"{100 * z:.1f} %"
    )


def hinge_is_as_sparse(rows):
    """Judge: zeros of hinge and square at their best alphas differ by less than a point."""
    return _judged(
        rows,
        ("square",),
        lambda best: best[2],
        lambda a, b: abs(a - b) < 0.01,
        lambda z: f"{100 * z:.1f} %",
    )


def hinge_is_flattest(rows):
    """Judge: the hinge loses least where alpha is up to ten times too small or too large."""
    true, told = [], []
    for size in distinct(rows, "per_class"):
        if any(_best(rows, size, loss) is None for loss in ("hinge", "square")):
            continue
        ours, square = (_lost(rows, size, loss) for loss in ("hinge", "square"))
        true.append(max(ours) <= max(square))
        told.append(
            "{}: hinge {:.1f} and {:.1f}, square {:.1f} and {:.1f}".format(size, *ours, *square)
        )
    if not true:
        return "not testable here", "needs hinge and square"
    return ("confirmed" if all(true) else "refuted"), (
        "points lost at alpha / 10 and alpha · 10, by samples per class, " + "; ".join(told)
    )


def experiment(item, title, sizes, draws, measure, protocol, claims, published=None, more=()):
    """Return the experiment of one of the two figures; ``more`` are cells that it tells itself."""

    def cells(quick):
        if quick:
            return [{"per_class": sizes[0], "draw": 0, "loss": loss} for loss in LOSSES]
        # What is cheap comes first, so that a short run has several draws of the small sizes.
        pairs = [(size, draw) for size in sizes for draw in range(draws)]
        pairs.sort(key=lambda pair: pair[0] ** 2 * (pair[1] + 1))
        return list(more) + [
            {"per_class": size, "draw": draw, "loss": loss}
            for size, draw in pairs
            for loss in LOSSES
        ]

    return Experiment(
        item=item,
        title=title,
        cells=cells,
        measure=measure,
        tell=lambda rows: f"{protocol(rows)}\n\n{table(complete(rows), published)}",
        draw=lambda rows: draw(complete(rows)),
        claims=tuple(
            (claim, lambda rows, judge=judge: judge(complete(rows))) for claim, judge in claims
        ),
        alternative="Test error and share of zero weights against alpha for four losses",
    )
