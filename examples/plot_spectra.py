"""
Which part of a spectrum to measure
===================================

A spectrometer gives 400 intensities, and neighbouring ones say nearly the same. A cheap instrument
would measure a few windows of the spectrum only. So a window of ten channels is a group: the
penalty ``l1/l2`` over groups uses all of a window or nothing of it.

Four substances differ by a peak each, on a background that varies from sample to sample.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm import SparseSVCCV
from sparsvm.penalties import GroupL2

rng = np.random.default_rng(2)
channels = np.arange(400)
peaks = [65, 148, 156, 305]  # two of them close together


def spectra(n):
    """Return spectra with a peak for each substance, a random background, and noise."""
    y = rng.integers(4, size=n)
    height = rng.uniform(0.5, 1.5, size=(n, 1))
    signal = height * np.exp(-(((channels - np.take(peaks, y)[:, None]) / 6.0) ** 2))
    slope, level = rng.normal(size=(2, n, 1))
    bumps = rng.normal(size=(n, 1)) * np.exp(-(((channels - 230) / 40.0) ** 2))
    background = level + slope * channels / 400 + 2 * bumps
    return signal + background + 0.6 * rng.normal(size=(n, 400)), y


X, y = spectra(160)
X_test, y_test = spectra(2000)

# %%
# Groups of ten consecutive channels against single channels.

windows = SparseSVCCV(penalty=GroupL2(groups=10), n_alphas=25, rule="1se").fit(X, y)
single = SparseSVCCV(penalty="l1/l2", n_alphas=25, rule="1se").fit(X, y)
for name, model in (("windows", windows), ("single channels", single)):
    used = np.unique(model.selected_features_ // 10)
    accuracy = model.score(X_test, y_test)
    print(
        f"{name:15s} accuracy {accuracy:.3f}, {len(model.selected_features_):3d} channels "
        f"in {len(used):2d} windows"
    )

# %%
# All peaks are in windows that are used. So are a few stretches beside them, which tell how high
# the background is; most of the spectrum need not be measured.

figure, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"]
for k, colour in enumerate(colours):
    ax.plot(channels, X[y == k].mean(axis=0), color=colour, label=f"substance {k}, mean")
for j, window in enumerate(windows.selected_groups_):
    label = "windows in use" if j == 0 else None
    ax.axvspan(10 * window - 0.5, 10 * window + 9.5, color="0.85", zorder=0, label=label)
ax.set(xlabel="channel", ylabel="intensity", xlim=(0, 399))
ax.legend(frameon=False, fontsize="small")
figure.set_label(
    "Mean spectra of four substances; shaded windows are in use, at all peaks and elsewhere"
)
plt.show()
