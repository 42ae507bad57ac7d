"""
A budget instead of a strength
==============================

What is a good ``alpha``? Its unit is hard to explain. A budget is easier: ``ConstrainedSparseSVC``
takes the model of least penalty whose mean hinge is at most ``eta``, in units of the margin. At
``eta=0`` every sample is right with its full margin; at 1 no weights are needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from sparsvm import ConstrainedSparseSVC, SparseSVC

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
budgets = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
models = [ConstrainedSparseSVC(eta=eta, penalty="l1/l2").fit(X, y) for eta in budgets]
features = [len(model.selected_features_) for model in models]
norms = [np.linalg.norm(model.coef_, axis=0).sum() for model in models]
for eta, used, norm in zip(budgets, features, norms, strict=True):
    print(f"eta {eta:.2f}: {used:2d} features, penalty {norm:.2f}")

# %%
# The tighter the budget, the larger the penalty that it takes, and the more features.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
axes[0].plot(budgets, norms, "o-", color="#0072b2")
axes[0].set(xlabel="budget eta for the mean hinge", ylabel="least penalty", ylim=(0, None))
axes[1].step(budgets, features, "o-", where="mid", color="#d55e00")
axes[1].set(xlabel="budget eta for the mean hinge", ylabel="features in use", ylim=(0, None))
figure.set_label(
    "The least penalty and the number of features in use fall as the budget for the mean "
    "hinge grows"
)
plt.show()

# %%
# Each budget has its strength: ``alpha_`` is the multiplier of the constraint, and ``SparseSVC``
# with it reaches the same mean hinge plus penalty.

model = models[4]
same = SparseSVC(penalty="l1/l2", alpha=model.alpha_).fit(X, y)
print(f"alpha {model.alpha_:.4f}, objective {same.objective_:.4f}")
print(f"budget {budgets[4]} + alpha * penalty = {budgets[4] + model.alpha_ * norms[4]:.4f}")
