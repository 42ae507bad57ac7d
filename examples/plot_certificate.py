"""
A proof, drawn
==============

How can a program know that no model is better than the one it has found? It finds a number that no
model can be below. This page draws where that number comes from, for two classes and the hinge.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVC

# %%
# The hinge of a sample is bent. A straight line below it, ``u * (1 - lead)`` with a share ``u``
# between 0 and 1, is a lower bound on it, whatever the lead is. A share for each sample gives a
# lower bound on the mean hinge of all models at once; if the shares are such that the penalty makes
# up for the part that depends on the weights, what remains is a number: no model is below it.
#
# A solver looks for good weights and for good shares at the same time. The best weights and the
# best shares give the same number.

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SparseSVC(penalty="l1", alpha=0.02, tol=1e-4, solver="fbpd").fit(X, y)
history = model.result_.history
iterations, objectives = history.iteration, history.objective
bounds = objectives * (1 - history.relative_gap)
print(f"objective {model.objective_:.6f}, proven to be within {model.dual_gap_:.0e} of the optimum")

# %%
# On the right, the primal-dual method of Chierchia et al.: the distance of the two curves is the
# duality gap, and it is known while the optimum is not.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
lead = np.linspace(-1.5, 2.5, 200)
left.plot(lead, np.maximum(0, 1 - lead), color="black", linewidth=2.5, label="hinge")
for share, style in ((0.25, "-."), (0.5, "--"), (1.0, ":")):
    left.plot(lead, share * (1 - lead), style, label=f"{share:g} (1 - lead)")
left.set(xlabel="lead of the true class", ylabel="loss of one sample", ylim=(-1, 2.5))
left.legend(frameon=False)
right.plot(iterations, objectives, "-", label="objective: some model is this good")
right.plot(iterations, bounds, "--", label="lower bound: no model is better")
shown = objectives[iterations >= 10]
low = bounds[iterations >= 10]
right.set(xscale="log", xlabel="iterations", ylabel="mean hinge + penalty")
right.set(ylim=(max(0, np.nanmin(low) - 0.02), 1.1 * shown.max()))
right.legend(frameon=False)
figure.set_label(
    "Left: the hinge with three straight lines below it. Right: the objective falls and the lower "
    "bound rises until they meet"
)
plt.show()

# %%
# :func:`sparsvm.certify` finds shares for the weights of any other library, too.
