"""
Would other samples have selected the same features?
====================================================

A selection is an estimate, too. ``StabilitySelection`` repeats it on random halves of the samples
and keeps the features that most of the halves agree on, with a bound on how many of them are there
by chance.

Here we know the truth: sixty columns of noise are added to the thirteen measurements of the wines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVC, StabilitySelection
from sparsvm.plots import StabilityDisplay

wine = load_wine()
rng = np.random.default_rng(0)
X = np.hstack([StandardScaler().fit_transform(wine.data), rng.normal(size=(178, 60))])
names = [*wine.feature_names, *(f"noise {j}" for j in range(60))]

# %%
# A single fit at a small alpha uses many of the columns of noise: each helps a little on these
# very samples.

single = SparseSVC(penalty="l1/l2", alpha=0.02).fit(X, wine.target)
noise = int((single.selected_features_ >= 13).sum())
print(f"one fit: {len(single.selected_features_)} features, {noise} of them noise")

# %%
# What half of the samples say again and again is another matter.

stable = StabilitySelection(
    SparseSVC(penalty="l1/l2"), n_resamples=40, threshold=0.8, random_state=0
).fit(X, wine.target)
chosen = stable.selected_features_
print(f"stable: {len(chosen)} features, {int((chosen >= 13).sum())} of them noise")
for name, bound in stable.error_bounds().items():
    print(f"expected number by chance at most {bound:.2f} ({name})")

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
StabilityDisplay.from_estimator(stable, feature_names=names, ax=ax)
figure.set_label(
    "How often each feature was selected: measurements of the wines above the threshold, "
    "columns of noise below it"
)
plt.show()
