"""
Choosing alpha, and the one-standard-error rule
===============================================

The strength ``alpha`` decides how many features a model uses. ``SparseSVCCV`` follows the whole
path of certified models in each fold and scores every one on the samples left out.

Scores of a cross-validation have an error themselves, so that the best of a hundred is partly luck.
The rule of one standard error takes the sparsest model that is within one standard error of the
best: often fewer features, at an accuracy that the data can hardly tell from the best.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVCCV
from sparsvm.plots import PathDisplay, SelectionDisplay

data = load_breast_cancer(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
settings = {"loss": "logistic", "penalty": "l1", "n_alphas": 40}
best = SparseSVCCV(rule="best", **settings).fit(X, data.target)
sparser = SparseSVCCV(rule="1se", **settings).fit(X, data.target)
for name, model in (("best", best), ("1se", sparser)):
    print(
        f"{name:4s} alpha {model.alpha_:.4f}, {len(model.selected_features_):2d} features, "
        f"cross-validated accuracy {model.best_score_:.3f}"
    )

# %%
# On the left, accuracy against the number of features, with bars of one standard error. On the
# right, the weights along the path: from the left, where all are zero, features come in one by one.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
SelectionDisplay.from_estimator(sparser, ax=left)
PathDisplay.from_estimator(sparser, ax=right, n_labels=5)
figure.set_label(
    "Left: accuracy against the number of features with standard errors; right: weights "
    "along the path"
)
plt.show()

# %%
# What the sparser model uses, by name. The two rules may also agree: with the hinge instead of the
# logistic loss both take 8 features here.

print(*sparser.selected_feature_names_, sep="\n")
