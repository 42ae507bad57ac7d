"""
Several labels a sample
=======================

A photograph may show a beach, a dog and a sunset. ``SparseLabelRanker`` learns scores that put the
labels of a sample above all others, from a few features for all labels together;
``decision_function`` ranks, and ``predict`` cuts each ranking at a threshold that depends on the
sample.

The usual alternative is a classifier for each label, which knows nothing of the other labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sparsvm import SparseLabelRanker

X, Y = make_multilabel_classification(
    1200, n_features=40, n_classes=8, n_labels=3, length=60, random_state=3
)
rng = np.random.default_rng(0)
X = StandardScaler().fit_transform(np.hstack([X, rng.poisson(2.0, size=(len(X), 160))]))
some = Y.any(axis=1)  # a sample without labels says nothing about their order
X_train, X_test, Y_train, Y_test = train_test_split(X[some], Y[some], random_state=0)

# %%
# Both are fitted along a path, from few features to many. The last 160 columns are noise.

ranked, separate = [], []
for alpha in np.geomspace(2.5, 0.1, 10):
    model = SparseLabelRanker(penalty="l1/l2", alpha=alpha).fit(X_train, Y_train)
    loss = label_ranking_loss(Y_test, model.decision_function(X_test))
    f1 = f1_score(Y_test, model.predict(X_test), average="samples", zero_division=0)
    ranked.append((len(model.selected_features_), loss, f1))
for C in np.geomspace(0.002, 0.05, 10):
    model = OneVsRestClassifier(LinearSVC(penalty="l1", dual=False, C=C)).fit(X_train, Y_train)
    used = np.any([single.coef_[0] != 0 for single in model.estimators_], axis=0)
    loss = label_ranking_loss(Y_test, model.decision_function(X_test))
    f1 = f1_score(Y_test, model.predict(X_test), average="samples", zero_division=0)
    separate.append((int(used.sum()), loss, f1))

# %%
# On the left the share of pairs of labels in the wrong order, on the right how well the sets of
# labels agree.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
curves = [("label ranker, l1/l2", ranked, "o-"), ("one classifier a label, l1", separate, "s--")]
for name, curve, style in curves:
    features, losses, scores = np.array(curve).T
    axes[0].plot(features, losses, style, label=name)
    axes[1].plot(features, scores, style, label=name)
axes[0].set(xlabel="features used", ylabel="ranking loss")
axes[1].set(xlabel="features used", ylabel="F1 of the label sets")
axes[0].legend(frameon=False)
figure.set_label(
    "Ranking loss and F1 of the label sets against the number of features, for the label "
    "ranker and for one classifier a label"
)
plt.show()

best = min(ranked, key=lambda point: point[1])
print(f"label ranker at its best: ranking loss {best[1]:.3f} with {best[0]} features")
best = min(separate, key=lambda point: point[1])
print(f"one classifier a label:   ranking loss {best[1]:.3f} with {best[0]} features")
