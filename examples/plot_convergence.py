"""
How fast the gap closes
=======================

Every solver is measured by the same certificate: the duality gap, a proven bound on what is
missing. Here are the primal-dual method of Chierchia et al. (``fbpd``), and two of the solvers
behind ``solver="auto"`` (``sdca`` and ``interior_point``), on one problem: the exact multiclass
hinge with ``l1/l2``. The seconds are those of the machine that built this page.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sparsvm import SparseSVC
from sparsvm.plots import ConvergenceDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:200] / 16.0, y[:200]
models = {
    name: SparseSVC(penalty="l1/l2", alpha=0.03, solver=name, tol=1e-4, random_state=0).fit(X, y)
    for name in ("fbpd", "sdca", "interior_point")
}
for name, model in models.items():
    print(f"{name}: {model.n_iter_} iterations, gap {model.dual_gap_:.1e}")

# %%
# All of them end at the same objective, each with its own proof.

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ConvergenceDisplay.from_estimators(models, ax=ax)
plt.show()

for name, model in models.items():
    print(f"{name}: objective {model.objective_:.6f}")
