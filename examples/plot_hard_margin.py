"""
Margins in the plane
====================

Two models without a strength to choose. ``MaxMarginSVC`` takes, among all classifiers of least
hinge loss, the one whose smallest margin between two classes is largest. ``ConstrainedSparseSVC``
with a budget of ``eta=0`` asks for every margin, too, and takes the least ``l1`` norm that has
them: the sparse hard-margin machine.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC
from sparsvm.plots import MarginDisplay

rng = np.random.default_rng(3)
centres = np.array([[0.0, 3.0], [-3.0, -1.5], [3.0, -1.5]])
y = np.repeat([0, 1, 2], 25)
X = centres[y] + 0.7 * rng.normal(size=(75, 2))

widest = MaxMarginSVC().fit(X, y)
sparse = ConstrainedSparseSVC(eta=0.0, penalty="l1").fit(X, y)

# %%
# A full line is the boundary of two classes, the dashed ones are their margins. Both models have
# all samples outside; the margins on the left are the widest possible.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), sharey=True, layout="constrained")
for ax, (model, name) in zip(
    axes, [(widest, "largest smallest margin"), (sparse, "least l1 norm")], strict=True
):
    display = MarginDisplay.from_estimator(model, X, y, ax=ax, feature_names=["first", "second"])
    weights = np.count_nonzero(model.coef_)
    ax.set_title(f"{name}: margin {display.smallest_margin_:.2f}, {weights} weights")
figure.set_label(
    "Three classes in the plane with their boundaries and margins, by the largest smallest "
    "margin and by the least l1 norm"
)
plt.show()
