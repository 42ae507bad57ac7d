"""
Which measurements tell three wines apart?
==========================================

Thirteen measurements were made of 178 wines from three growers. How many of them are needed, and
which?

The penalty ``l1/l2`` makes one group of each measurement across the three growers, so that a
measurement is used for all of them or not made at all. ``weights="scale"`` acts as if the columns
had been standardised, without touching them: proline is around 750 and hue around 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from sparsvm import SparseSVC
from sparsvm.penalties import GroupL2

wine = load_wine(as_frame=True)
model = SparseSVC(penalty=GroupL2(weights="scale"), alpha=0.3).fit(wine.data, wine.target)

print("measurements:", ", ".join(model.selected_feature_names_))
print(f"training accuracy: {model.score(wine.data, wine.target):.3f}")
print(f"objective proven to be within {model.dual_gap_:.1e} of the optimum")

# %%
# Weights of columns in different units cannot be compared. Times the standard deviation of their
# columns they can: a bar is how far the score of a grower moves when a measurement moves by one
# standard deviation. The measurements without bars have weights of exactly zero.

effects = model.coef_ * wine.data.std(axis=0).to_numpy()
order = np.argsort(np.abs(effects).sum(axis=0))
rows = np.arange(len(order))

figure, ax = plt.subplots(figsize=(7.5, 5), layout="constrained")
for k, colour in enumerate(["#0072b2", "#e69f00", "#009e73"]):
    ax.barh(
        rows + 0.27 * (1 - k), effects[k, order], height=0.27, color=colour, label=f"grower {k}"
    )
ax.set_yticks(rows, [wine.feature_names[j] for j in order])
ax.axvline(0, color="black", linewidth=0.8)
ax.set_xlabel("effect of one standard deviation on the score")
ax.set_title(f"{len(model.selected_features_)} of {wine.data.shape[1]} measurements are used")
ax.legend(frameon=False)
figure.set_label(
    "Bars of the effect of each measurement on the scores of three growers; seven of "
    "thirteen measurements have bars"
)
plt.show()

# %%
# Proline and alcohol speak for grower 0 and against grower 1, few flavanoids and much colour for
# grower 2. At a larger ``alpha`` fewer measurements remain.

for alpha in (0.05, 0.1, 0.3, 0.5):
    fewer = SparseSVC(penalty=GroupL2(weights="scale"), alpha=alpha).fit(wine.data, wine.target)
    used, accuracy = len(fewer.selected_features_), fewer.score(wine.data, wine.target)
    print(f"alpha {alpha}: {used} measurements, accuracy {accuracy:.3f}")
