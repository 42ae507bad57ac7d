"""
The pixels that a digit needs
=============================

A linear classifier of images has one weight per pixel and class, which is a picture itself. The
penalty decides how it looks: ``l1`` gives each digit pixels of its own, ``l1/l2`` chooses pixels
for all digits together, and the ordinary support vector machine uses them all.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sparsvm import SparseSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16.0, y, train_size=600, stratify=y, random_state=0
)
alphas = {"l1": 0.01, "l1/l2": 0.03, "l2": 0.01}
models = {
    penalty: SparseSVC(penalty=penalty, alpha=alpha).fit(X_train, y_train)
    for penalty, alpha in alphas.items()
}
for penalty, model in models.items():
    print(
        f"{penalty:6s} test accuracy {model.score(X_test, y_test):.3f}, "
        f"{len(model.selected_features_)} pixels, {np.count_nonzero(model.coef_)} weights, "
        f"gap {model.dual_gap_:.0e}"
    )

# %%
# Blue pixels speak for a digit, red ones against it, and grey ones have a weight of exactly zero.

figure, axes = plt.subplots(3, 10, figsize=(9.5, 3.6), layout="constrained")
for row, (penalty, model) in zip(axes, models.items(), strict=True):
    largest = np.abs(model.coef_).max()
    colours = plt.get_cmap("RdBu").with_extremes(bad="0.85")
    for digit, ax in enumerate(row):
        weights = np.ma.masked_equal(model.coef_[digit].reshape(8, 8), 0.0)
        ax.imshow(weights, cmap=colours, vmin=-largest, vmax=largest)
        ax.set(xticks=[], yticks=[])
        if row is axes[0]:
            ax.set_title(str(digit))
    row[0].set_ylabel(penalty)
figure.set_label(
    "Weights of ten digits as pictures: few pixels for each digit with l1, the same pixels "
    "for all with l1/l2, all pixels with l2"
)
plt.show()

# %%
# With ``l1/l2`` the grey pixels are the same in all ten pictures: they need not be measured. With
# ``l1`` each picture has its own, and fewer weights in all.
