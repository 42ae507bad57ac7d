"""
The losses and the penalties, drawn
===================================

What a loss charges for a score, which weights have the same penalty, and what a penalty charges for
one weight, in the smallest cases that show the difference: two classes, two weights.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm.losses import Hinge, Logistic, Ramp, SquaredHinge
from sparsvm.penalties import L0, L1, L2, CappedL1, ElasticNet, GroupL2, GroupLinf, SparseGroup

# %%
# **Losses** against the lead of the true class over the other one. All but the logistic loss are
# zero from a lead of 1 on: samples beyond their margin have no say. The squared hinge charges
# outliers most, the hinge in proportion, the ramp loss nothing more from some point on.

lead = np.linspace(-3, 3, 601)
scores = np.column_stack([np.zeros_like(lead), lead])
labels = np.ones(len(lead), dtype=int)
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
losses = [
    (Hinge(), "hinge", "-"),
    (SquaredHinge(), "squared_hinge", "--"),
    (Logistic(), "logistic", "-."),
    (Ramp(0.8), "ramp, mu = 0.8", ":"),
]
for loss, name, style in losses:
    values = loss.value(scores, labels, loss.cost_matrix(2)[labels])
    ax.plot(lead, values, style, linewidth=2, label=name)
ax.set(xlabel="lead of the true class", ylabel="loss", ylim=(0, 5))
ax.legend(frameon=False)
figure.set_label(
    "Four losses against the lead of the true class: the hinge is zero from a lead of one "
    "on and grows in proportion below"
)
plt.show()

# %%
# **Penalties of two weights.** The curves are the pairs of weights of equal penalty. A corner is
# where weights are exactly zero (on an axis), or exactly equal (the diagonal): optima like to sit
# in corners.

grid = np.linspace(-1.3, 1.3, 131)
first, second = np.meshgrid(grid, grid)
pairs = np.stack([first.ravel(), second.ravel()])
penalties = [
    (L1(), "l1"),
    (ElasticNet(0.5), "elasticnet"),
    (GroupL2(), "l1/l2, one feature\nin two classes"),
    (GroupLinf(), "l1/linf, one feature\nin two classes"),
    (SparseGroup(0.5), "sparse_group"),
]
figure, axes = plt.subplots(1, 5, figsize=(12, 3), sharey=True, layout="constrained")
for ax, (penalty, name) in zip(axes, penalties, strict=True):
    resolved = penalty.resolve(1, 2)  # one feature, two classes
    values = [resolved.value(pair[:, None]) for pair in pairs.T]
    unit = resolved.value(np.array([[1.0], [0.0]]))
    ax.contour(first, second, np.reshape(values, first.shape), levels=[unit], colors="#0072b2")
    ax.axhline(0, color="0.8", linewidth=0.8)
    ax.axvline(0, color="0.8", linewidth=0.8)
    ax.set(title=name, aspect="equal", xlabel="first weight")
axes[0].set_ylabel("second weight")
figure.set_label(
    "Pairs of weights of equal penalty: l1 has corners on the axes, l1/l2 is a circle, "
    "l1/linf a square"
)
plt.show()

# %%
# **Penalties of one weight.** ``l1`` charges every further step alike, also for weights that are
# large already; ``l2`` charges next to nothing for small weights, and so leaves them in the model.
# ``l0`` and ``capped_l1`` charge for being there, and hardly more for being large. They are not
# convex: a straight line between two points of the curve may run below it.

weight = np.linspace(-2, 2, 401)
figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
shapes = [
    (L1(), "l1", "-"),
    (L2(), "l2", "--"),
    (L0(sharpness=4.0), "l0, sharpness = 4", "-."),
    (CappedL1(cap=0.6), "capped_l1, cap = 0.6", ":"),
]
for penalty, name, style in shapes:
    resolved = penalty.resolve(1, 1)
    values = [resolved.value(np.array([[each]])) for each in weight]
    ax.plot(weight, values, style, linewidth=2, label=name)
ax.set(xlabel="a weight", ylabel="penalty", ylim=(0, 2))
ax.legend(frameon=False, loc="upper center")
figure.set_label(
    "Four penalties of one weight: l1 grows in proportion, l2 is flat at zero, l0 and capped l1 "
    "rise steeply and then stay level"
)
plt.show()
