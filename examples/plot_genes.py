"""
Few patients, thousands of genes
================================

Three kinds of leukaemia, told apart by the expressions of a handful of genes out of 7129. Where the
environment variable ``SPARSVM_DATA`` names a folder with the data of Golub et al. (1999), this page
uses them; otherwise it generates an array of the same shape, in which genes come in correlated
modules and four of the modules differ between the classes.

``l1/l2`` selects genes for all classes together: what is not selected need not be measured.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm import SparseSVCCV
from sparsvm.datasets import load_leukemia
from sparsvm.penalties import GroupL2


def generated(n, rng, modules=713, size=10):
    """Return ``n`` arrays of ``modules * size`` genes, and the kinds of leukaemia."""
    y = rng.choice(["ALL-B", "ALL-T", "AML"], n, p=[0.5, 0.2, 0.3])
    activity = rng.normal(size=(n, modules))
    for module, kind in enumerate(["ALL-B", "ALL-T", "AML", "AML"]):
        activity[:, module] += 2.5 * (y == kind)
    X = np.repeat(activity, size, axis=1) + rng.normal(size=(n, modules * size))
    return X, y, np.array([f"M{j // size}.{j % size}" for j in range(modules * size)])


try:
    train, test = load_leukemia(subset="train"), load_leukemia(subset="test")
    X, y, genes = train.data, train.target, train.feature_names
    X_test, y_test = test.data, test.target
except FileNotFoundError:
    rng = np.random.default_rng(0)
    X, y, genes = generated(38, rng)
    X_test, y_test, _ = generated(34, rng)
print(f"{X.shape[0]} patients, {X.shape[1]} genes")

# %%
# ``weights="scale"`` penalises as if every gene had been standardised. Among the models within one
# standard error of the best, the rule takes the one with the fewest genes.

model = SparseSVCCV(penalty=GroupL2(weights="scale"), n_alphas=30, rule="1se").fit(X, y)
used = model.selected_features_
print(f"{len(used)} genes, {int((model.predict(X_test) != y_test).sum())} errors on test samples")
print(f"proven relative distance from the optimum: {model.dual_gap_:.1e}")

# %%
# The genes in use, in all the patients of the training set, sorted by class. Each column is centred
# and scaled.

order = np.argsort(y, kind="stable")
strongest = used[np.argsort(-np.linalg.norm(model.coef_[:, used], axis=0) * X[:, used].std(axis=0))]
shown = strongest[:25]
values = (X[np.ix_(order, shown)] - X[:, shown].mean(axis=0)) / X[:, shown].std(axis=0)
figure, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
picture = ax.imshow(values, cmap="PuOr_r", vmin=-3, vmax=3, aspect="auto")
ax.set_xticks(range(len(shown)), [str(name) for name in genes[shown]], rotation=90, fontsize=7)
edges = np.flatnonzero(y[order][1:] != y[order][:-1]) + 0.5
for edge in edges:
    ax.axhline(edge, color="black", linewidth=1.2)
middles = (np.r_[-0.5, edges] + np.r_[edges, len(y) - 0.5]) / 2
ax.set_yticks(middles, model.classes_)
figure.colorbar(picture, label="expression, standardised")
figure.set_label(
    "Expressions of the selected genes in the patients, sorted by kind of leukaemia: blocks "
    "of high and low values"
)
plt.show()

# %%
# A list of genes is an estimate: :doc:`plot_stability` asks whether other patients would have given
# the same one.
