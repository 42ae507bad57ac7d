"""
The words that tell four topics apart
=====================================

Documents have thousands of words and a class is told by few of them. With ``l1`` each class has its
own short list, and a signed weight for every word on it; the data stay sparse from the vectoriser
to the prediction.

The documents here are generated, so that the page can be built without downloads: each has common
words, words of its topic, and many words that mean nothing. With a folder of data sets,
``sparsvm.datasets.load_banking77`` and ``load_20newsgroups`` give real ones for the same lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from sparsvm import SparseSVCCV

topics = {
    "space": "orbit launch rocket moon satellite shuttle telescope planet",
    "medicine": "patient doctor disease treatment symptom dose clinic infection",
    "hockey": "goal season team league playoff coach puck goalie",
    "graphics": "image pixel polygon colour format viewer render window",
}
common = ["the", "a", "of", "and", "to", "in", "is", "that", "it", "for", "on", "was", "with", "as"]
rare = [f"word{j}" for j in range(3000)]
frequency = 1 / np.arange(1, 9) / np.sum(1 / np.arange(1, 9))  # Zipf's law
rng = np.random.default_rng(0)


def document(topic):
    """Return common words, rare ones, and a few, or none, of the topic and of another one."""
    words = [*rng.choice(common, 35), *rng.choice(rare, 20)]
    for of, mean in ((topic, 2.5), (rng.choice(list(topics)), 1.0)):
        words += [*rng.choice(topics[of].split(), rng.poisson(mean), p=frequency)]
    return " ".join(words)


y = rng.choice(list(topics), 1200)
texts = [document(topic) for topic in y]
train, test, y_train, y_test = train_test_split(texts, y, test_size=0.5, random_state=0)
words = TfidfVectorizer()
X_train, X_test = words.fit_transform(train), words.transform(test)
print(f"{X_train.shape[0]} documents, {X_train.shape[1]} words, {X_train.nnz} non-zeros")

# %%
# Cross-validation along a path chooses ``alpha``.

model = SparseSVCCV(penalty="l1", n_alphas=20, rule="1se").fit(X_train, y_train)
names = words.get_feature_names_out()
print(f"accuracy {model.score(X_test, y_test):.3f} with {len(model.selected_features_)} words,")
meaningless = np.isin(names[model.selected_features_], [*common, *rare])
print(f"{int(meaningless.sum())} of which mean nothing")

# %%
# The strongest words of each class. A negative weight speaks against the class.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.8), layout="constrained")
for ax, topic, weights in zip(axes, model.classes_, model.coef_, strict=True):
    strongest = np.argsort(-np.abs(weights))[:8][::-1]
    strongest = strongest[weights[strongest] != 0.0]
    colours = np.where(weights[strongest] > 0.0, "#0072b2", "#d55e00")
    ax.barh(names[strongest], weights[strongest], color=colours)
    ax.set_title(f"{topic}: {np.count_nonzero(weights)} words")
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.set_xlabel("weight")
figure.set_label("Bars of the strongest words of each of four topics and their weights")
plt.show()
