"""
Wrong labels and the ramp loss
==============================

The hinge grows without bound: a sample with a wrong label, far on the other side, pulls as hard as
it can. The ramp loss stops growing, so that the model gives up on samples that it cannot get right.
It is not convex. The fit starts from the hinge's solution and descends to a critical point; it
proves that it is one, not that no better one exists.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm import SparseSVC

rng = np.random.default_rng(0)
centres = np.array([[0.0, 2.2], [-2.0, -1.2], [2.0, -1.2]])


def samples(n):
    y = rng.integers(3, size=n)
    return centres[y] + rng.normal(size=(n, 2)), y


X, y = samples(240)
X_test, y_test = samples(4000)

# Every fourth sample of class 0 lies far out and is said to be of class 1.
X_bad, y_bad = X.copy(), y.copy()
bad = np.flatnonzero(y == 0)[::4]
X_bad[bad] += [2.0, 4.0]
y_bad[bad] = 1

models = {loss: SparseSVC(loss, "l2", alpha=0.05).fit(X_bad, y_bad) for loss in ("hinge", "ramp")}
for loss, model in models.items():
    print(f"{loss}: accuracy on clean test samples {model.score(X_test, y_test):.3f}")
clean = SparseSVC("hinge", "l2", alpha=0.05).fit(X, y)
print(f"hinge fitted without wrong labels: {clean.score(X_test, y_test):.3f}")

# %%
# Colours are the regions of the classes; crosses are the wrong labels.

colours = ["#0072b2", "#e69f00", "#009e73"]
grid_x, grid_y = np.meshgrid(np.linspace(-6, 8, 300), np.linspace(-5, 12, 300))
points = np.column_stack([grid_x.ravel(), grid_y.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
for ax, (loss, model) in zip(axes, models.items(), strict=True):
    regions = model.predict(points).reshape(grid_x.shape)
    ax.contourf(grid_x, grid_y, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=colours, alpha=0.2)
    for k, colour in enumerate(colours):
        here = y_bad == k
        here[bad] = False
        ax.scatter(*X_bad[here].T, s=14, color=colour, label=f"class {k}")
    ax.scatter(*X_bad[bad].T, s=40, color=colours[1], marker="x", label="wrong label")
    ax.set_title(f"{loss}: {model.score(X_test, y_test):.1%} of clean test samples right")
axes[0].legend(loc="lower left", fontsize="small")
figure.set_label(
    "Regions of three classes by the hinge, which wrong labels have drawn away, and by the "
    "ramp loss, which they have not"
)
plt.show()

# %%
# This setting shows the effect at its largest: with the labels moved less, or fewer of them, the
# ramp mostly gains 0.2 to 2 points. And there are limits. With the wrong labels moved by (3, 6)
# instead of (2, 4), the hinge gives up class 0 altogether, and the descent from there does not find
# it again: both models have 65 %. Compare the two losses by cross-validation before you trust
# either.
