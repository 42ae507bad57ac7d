"""000 Table 1: errors and non-zero weights on leukemia, four losses by four penalties."""

from __future__ import annotations

import warnings

from harness import Experiment, distinct, markdown_table, pick, verdict

# isort: split

import numpy as np
from samples import leukemia
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning

from sparsvm import SparseSVCCV, svm_path
from sparsvm.losses import Hinge, Logistic, OvrSquaredHinge, SquaredHinge
from sparsvm.penalties import L1, L2, GroupL2, GroupLinf

BLOCKS = {"groups": 5, "per_class": True}
LOSSES = {
    "hinge": Hinge(),
    "square": SquaredHinge(),
    "logit": Logistic(margin=1.0),
    "one-vs-all": OvrSquaredHinge(),
}
PENALTIES = {
    "l2": L2(),
    "l1": L1(),
    "l1/l2": GroupL2(**BLOCKS),
    "l1/linf": GroupLinf(**BLOCKS),
}
PAPER = {
    "l2": ("1", "2", "1", "2"),
    "l1": ("2 (13+3+10)", "3 (8+3+8)", "3 (18+5+14)", "3 (19+8+15)"),
    "l1/l2": ("0 (95+5+75)", "1 (55+5+45)", "0 (50+5+35)", "1 (70+10+50)"),
    "l1/linf": ("0 (50+5+45)", "0 (35+5+35)", "0 (50+5+40)", "0 (45+5+45)"),
}
GENES = ("as measured", "standardised", "log")
# For l2, which has no alpha_max: from hardly fitted to interpolating in every form of the genes.
L2_ALPHAS = {"as measured": np.logspace(9, 0, 40), "": np.logspace(4, -3, 40)}
ORDERS = 20
WORDS = (
    "With l2 and l1 the hinge has the paper's errors on the genes as measured, and about as many "
    "weights. The 0 errors of the groups are not found on these genes in the order of the file, "
    "nor in any of the random orders, whatever alpha: the exact solutions do not have them. Of "
    "the forms of the data that were tried, logarithms come closest (0 errors in one random "
    "order, 1 in the order of the file), so that the paper's groups or its preprocessing, neither "
    "of which it gives, must differ. Standardised genes suit l1 (0 errors) and not the groups. "
    "Every sparse penalty has fewer errors than l2 on logarithms, l1 on standardised genes too, "
    "and none on the genes as measured."
)


def cells(quick):
    if quick:
        return [
            {"genes": "standardised", "order": "file", "loss": loss, "penalty": penalty}
            for loss, penalty in (("hinge", "l1/l2"), ("logit", "l1"), ("square", "l2"))
        ]
    main = [
        {"genes": genes, "order": "file", "loss": loss, "penalty": penalty}
        for genes in GENES
        for loss in LOSSES
        for penalty in PENALTIES
    ]
    shuffled = [
        {"genes": genes, "order": f"random {seed}", "loss": "hinge", "penalty": penalty}
        for genes in ("as measured", "log")
        for penalty in ("l1/l2", "l1/linf")
        for seed in range(ORDERS)
    ]
    return main + shuffled


def measure(cell, quick):
    X, y, X_test, y_test = leukemia(cell["genes"])
    if cell["order"] != "file":
        order = np.random.default_rng(int(cell["order"].split()[1])).permutation(X.shape[1])
        X, X_test = X[:, order], X_test[:, order]
    loss, penalty = LOSSES[cell["loss"]], PENALTIES[cell["penalty"]]
    number = 10 if quick else 100
    grid = {"n_alphas": number}
    if cell["penalty"] == "l2":
        grid = {"alphas": L2_ALPHAS.get(cell["genes"], L2_ALPHAS[""])[:: 8 if quick else 1]}
    path = svm_path(X, y, loss=loss, penalty=penalty, **grid)
    errors = [_errors(coef, b, path.classes, X_test, y_test) for coef, b in _points(path)]
    best = int(np.argmin(errors))
    row = {
        "errors": errors[best],
        "weights": _weights(path.coefs[best].toarray()),
        "alpha": float(path.alphas[best]),
        "gap": float(path.gaps.max()),
    }
    if cell["order"] == "file":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            chosen = SparseSVCCV(loss, penalty, **grid).fit(X, y)
        row |= {
            "cv_errors": int(np.count_nonzero(chosen.predict(X_test) != y_test)),
            "cv_weights": _weights(chosen.coef_),
            "cv_alpha": float(chosen.alpha_),
        }
    return [row]


def _points(path):
    return zip(path.coefs, path.intercepts, strict=True)


def _errors(coef, intercept, classes, X, y):
    return int(np.count_nonzero(classes[(X @ coef.T + intercept).argmax(axis=1)] != y))


def _weights(coef):
    return "+".join(str(np.count_nonzero(row)) for row in np.asarray(coef))


def tell(rows):
    parts = [
        "38 training and 34 test patients, 7129 genes, groups of five consecutive genes in each "
        "class; errors among the 34, in parentheses the non-zero weights of each class (ALL-B, "
        "ALL-T, AML). *By trial*: the alpha of a path of 100 with the fewest test errors, the "
        "sparsest of equals, which is how the paper chose; *cv*: five-fold cross-validation on "
        "the training patients."
    ]
    for genes in distinct(rows, "genes"):
        table = []
        for penalty in PENALTIES:
            for how, key in (("by trial", ""), ("cv", "cv_")):
                row = [penalty, how]
                for loss in LOSSES:
                    found = pick(rows, genes=genes, order="file", loss=loss, penalty=penalty)
                    row.append(_cell(found, key, penalty))
                table.append(row)
            table.append([penalty, "paper", *PAPER[penalty]])
        parts.append(f"Genes {genes}:")
        parts.append(markdown_table(("penalty", "", *LOSSES), table))
    orders = [row for row in rows if row["order"] != "file"]
    if orders:
        table = []
        for genes in distinct(orders, "genes"):
            for penalty in distinct(orders, "penalty"):
                errors = [row["errors"] for row in pick(orders, genes=genes, penalty=penalty)]
                counts = [errors.count(k) for k in range(max(errors) + 1)]
                table.append((genes, penalty, min(errors), float(np.mean(errors)), counts))
        parts.append(
            "Blocks depend on the order of the genes, which the paper does not give. By trial, "
            f"hinge, {ORDERS} random orders:"
        )
        header = ("genes", "penalty", "fewest errors", "mean", "orders with 0, 1, 2 ... errors")
        parts.append(markdown_table(header, table))
        parts.append(WORDS)
    return "\n\n".join(parts)


def _cell(found, key, penalty):
    if not found:
        return ""
    row = found[0]
    weights = "" if penalty == "l2" else f" ({row[f'{key}weights']})"
    return f"{row[f'{key}errors']}{weights}"


def _sparse_beats_l2(rows):
    counts = {penalty: [0, 0] for penalty in PENALTIES if penalty != "l2"}
    for row in pick(rows, penalty="l2", order="file"):
        for penalty, count in counts.items():
            same = {"genes": row["genes"], "loss": row["loss"]}
            for other in pick(rows, penalty=penalty, order="file", **same):
                count[0] += other["errors"] < row["errors"]
                count[1] += other["errors"] > row["errors"]
    if not any(map(any, counts.values())):
        return "not testable here", "needs all cells"
    told = "; ".join(f"{penalty} {_counted(*count)}" for penalty, count in counts.items())
    found = verdict([_sign(*count) for count in counts.values()])
    return found, f"by trial cells with fewer errors than l2 and with more, all genes: {told}"


def _hinge_beats_square(rows):
    wins, losses = 0, 0
    for row in pick(rows, loss="hinge", order="file"):
        for other in pick(rows, loss="square", genes=row["genes"], penalty=row["penalty"]):
            wins += row["errors"] < other["errors"]
            losses += row["errors"] > other["errors"]
    if wins + losses == 0:
        return "not testable here", "needs all cells"
    found = verdict([_sign(wins, losses)])
    return found, f"by trial better and worse in {_counted(wins, losses)} of the cells"


def _counted(wins, losses):
    """Both numbers, and how likely one so far from half is by chance."""
    return f"{wins} and {losses} (p = {binomtest(wins, max(wins + losses, 1)).pvalue:.2g})"


def _sign(wins, losses):
    """Whether there are more wins; None where chance may have made the difference."""
    if binomtest(wins, max(wins + losses, 1)).pvalue > 0.05:
        return None
    return wins > losses


EXPERIMENT = Experiment(
    item="000 Table 1",
    title="leukemia, four losses by four penalties",
    cells=cells,
    measure=measure,
    tell=tell,
    claims=(
        ("Sparse penalties are more accurate than l2", _sparse_beats_l2),
        ("The hinge is often more accurate than the squared hinge", _hinge_beats_square),
    ),
)

if __name__ == "__main__":
    EXPERIMENT.main()
