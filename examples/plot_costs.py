"""
When mistakes differ in cost
============================

Sending a healthy person to a second examination costs an hour. Sending a severely ill one home
costs a lot more. A matrix of costs, with a row per true class and a column per predicted one, goes
into the margins of the hinge: the score of the truth must exceed that of another class by the cost
of the mistake, and the loss is then an upper bound on the cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import confusion_matrix

from sparsvm import SparseSVC
from sparsvm.losses import Hinge

names = ["healthy", "mild", "severe"]
costs = np.array([[0, 1, 1], [3, 0, 1], [10, 4, 0]])


def patients(n, seed):
    """Two informative measurements, six of noise, and overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.6, 0.25, 0.15])
    centres = np.array([[0.0, 0.0], [1.2, 0.6], [2.0, 1.8]])
    return np.hstack([centres[y] + rng.normal(size=(n, 2)), rng.normal(size=(n, 6))]), y


X, y = patients(400, seed=0)
X_test, y_test = patients(5000, seed=1)
models = {
    "every mistake alike": SparseSVC("hinge", "l1", alpha=0.02).fit(X, y),
    "mistakes by their cost": SparseSVC(Hinge(margin=costs), "l1", alpha=0.02).fit(X, y),
}

# %%
# The second model sends hardly any severely ill person home. It makes more mistakes, and cheaper
# ones.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.9), layout="constrained")
for ax, (title, model) in zip(axes, models.items(), strict=True):
    counts = confusion_matrix(y_test, model.predict(X_test))
    mean_cost = (counts * costs).sum() / len(y_test)
    shares = counts / counts.sum(axis=1, keepdims=True)
    print(f"{title}: accuracy {model.score(X_test, y_test):.3f}, mean cost {mean_cost:.3f}")
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.5 else "black"
        ax.text(column, row, f"{share:.0%}", ha="center", va="center", color=colour)
    ax.set_xticks(range(3), names)
    ax.set_yticks(range(3), names)
    ax.set(xlabel="predicted", ylabel="true", title=f"{title}\nmean cost {mean_cost:.2f}")
figure.set_label(
    "Two confusion matrices: with costs in the margins hardly any severely ill patient is "
    "predicted healthy"
)
plt.show()
