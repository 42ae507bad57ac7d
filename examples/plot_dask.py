"""
The same model on a cluster
===========================

``sparsvm.dask.SparseSVC`` fits Dask arrays and frames where they are. The objective is that of
``sparsvm.SparseSVC`` and so is the certificate, which is over all the rows: a model from a cluster
is as good as one from a single machine, and proves it.

For this page the cluster is two threads on one machine; ``Client("scheduler:8786")`` would be the
only change on a real one.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

import sparsvm
from sparsvm.dask import SparseSVC

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
truth = np.zeros((4, 50))
truth[:, :5] = np.random.default_rng(0).normal(size=(4, 5))
rng = da.random.default_rng(0)
X = rng.normal(size=(60_000, 50), chunks=(7_500, 50))
noise = rng.gumbel(size=(60_000, 4), chunks=(7_500, 4))
y = (X @ truth.T + 0.5 * noise).argmax(axis=1)

model = SparseSVC(penalty="l1/l2", alpha=0.01).fit(X, y)
print(f"columns in use: {model.selected_features_}")
print(f"proven relative distance from the optimum, over all rows: {model.dual_gap_:.1e}")

# %%
# Predictions are lazy Dask arrays, ``to_local`` gives an ordinary model.

print(model.predict(X))
local = model.to_local()
X, y = X.compute(), y.compute()  # small enough here
print(f"accuracy: {local.score(X, y):.3f}")

# %%
# The fit begins with the solution on a sample of the rows and goes on in passes over all of them. A
# pass gives the objective, and what the next step needs. In some passes the dual variables, which
# stay with their rows, are made feasible as well: that gives a lower bound on the objective of all
# models. Here the bound of the last pass is within the tolerance. The grey line is the optimum that
# a single machine finds.

single = sparsvm.SparseSVC(penalty="l1/l2", alpha=0.01, tol=1e-5).fit(X, y)
passes = np.arange(1, len(model.result_.rounds) + 1)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.axhline(single.objective_, color="0.6", label="one machine, to 1e-5")
ax.plot(passes, [one.objective for one in model.result_.rounds], "o-", label="objective")
ax.plot(passes, [one.bound for one in model.result_.rounds], "s--", label="lower bound")
ax.set(xlabel="pass over the data", ylabel="objective", xticks=passes)
ax.legend(frameon=False)
figure.set_label(
    "The objective is close to the optimum from the first pass on, and the lower bound reaches it "
    "in the last pass"
)
plt.show()

client.close()
