"""
Pipelines and probabilities
===========================

Scores of the hinge are not probabilities, and ``predict_proba`` refuses to pretend. There are two
ways to have them: the logistic loss, or a calibration of the scores on samples left out.

Both are ordinary scikit-learn: a pipeline that scales the columns and fits the classifier, inside
``CalibratedClassifierCV`` where needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsvm import SparseSVC

rng = np.random.default_rng(0)
truth = np.r_[1.5, -1.0, 0.8, np.zeros(27)]


def samples(n):
    """Thirty columns in different units, three of which matter."""
    X = rng.normal(size=(n, 30))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ truth))
    return X * np.linspace(0.1, 10, 30), y.astype(int)


X, y = samples(500)
X_test, y_test = samples(10000)
hinge = make_pipeline(StandardScaler(), SparseSVC("hinge", "l1", alpha=0.03))
logistic = make_pipeline(StandardScaler(), SparseSVC("logistic", "l1", alpha=0.01))
models = {
    "logistic loss": logistic.fit(X, y),
    "hinge, calibrated": CalibratedClassifierCV(hinge, cv=5).fit(X, y),
}

# %%
# A curve near the diagonal means: of the samples given a probability of 70 %, about 70 % are of
# class 1. Both models are close to it.

figure, ax = plt.subplots(figsize=(5.5, 4.8), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="perfect")
for (name, model), marker in zip(models.items(), "os", strict=True):
    probabilities = model.predict_proba(X_test)[:, 1]
    share, given = calibration_curve(y_test, probabilities, n_bins=10)
    ax.plot(given, share, marker=marker, label=name)
    accuracy = model.score(X_test, y_test)
    print(f"{name}: log-loss {log_loss(y_test, probabilities):.3f}, accuracy {accuracy:.3f}")
ax.set(xlabel="probability given", ylabel="share of class 1 among them", aspect="equal")
ax.legend(frameon=False)
figure.set_label(
    "The share of class 1 against the probability given: both curves are close to the diagonal"
)
plt.show()

# %%
# The columns in use are those of the classifier in the pipeline. The three that matter are among
# them, with others by chance: the strength that predicts well selects too many. A larger ``alpha``
# or ``StabilitySelection`` leaves fewer.

print("columns:", logistic[-1].selected_features_)
