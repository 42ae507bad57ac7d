"""
Sensors as groups, and a covariate that is not penalised
========================================================

Eight sensors deliver five numbers each. Buying fewer sensors is worth something, leaving out single
numbers of one is not, so that a sensor is a group: it is used as a whole or not at all.

The age of a machine is known for free and has to be accounted for, since old machines fail more
often. A weight of 0 leaves it out of the penalty. In the data, sensors 1 and 2 see faults; sensor 6
sees nothing but the age.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsvm import SparseSVC
from sparsvm.penalties import GroupL2

rng = np.random.default_rng(1)
n, sensors, size = 300, 8, 5
age = rng.normal(size=n)
fault = rng.normal(size=(n, 2))
scores = np.column_stack([np.zeros(n), 1.5 * age + 2 * fault[:, 0], 1.5 * age + 2 * fault[:, 1]])
y = np.argmax(scores + 0.3 * rng.normal(size=scores.shape), axis=1)  # 0: none, 1 and 2: faults

signals = rng.normal(size=(n, sensors, size))
signals[:, 1] += fault[:, :1]
signals[:, 2] += fault[:, 1:]
signals[:, 6] = age[:, None] + 0.5 * signals[:, 6]
sensor_columns = signals.reshape(n, sensors * size)
sensor_of = np.repeat(np.arange(sensors), size)

# %%
# One model does not know the age. The other has it as a further column, in a group of its own with
# weight 0.

without = SparseSVC(penalty=GroupL2(groups=sensor_of), alpha=0.2).fit(sensor_columns, y)

X = np.column_stack([sensor_columns, age])
groups = np.append(sensor_of, sensors)
weights = np.append(np.ones(sensors), 0.0)  # one per group
adjusted = SparseSVC(penalty=GroupL2(groups=groups, weights=weights), alpha=0.2).fit(X, y)
print("sensors without the age:", without.selected_groups_)
print("groups with the age (8):", adjusted.selected_groups_)

# %%
# Without the age, sensor 6 is bought to measure the age. With it, only the two sensors that
# see the faults are left.


def sizes(coef):
    blocks = coef[:, : sensors * size].reshape(len(coef), sensors, size)
    return np.sqrt((blocks**2).sum(axis=(0, 2)))


figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), sharey=True, layout="constrained")
cases = [(without, "age unknown"), (adjusted, "age as an unpenalised covariate")]
for ax, (model, title) in zip(axes, cases, strict=True):
    used = sizes(model.coef_)
    colours = ["#0072b2" if sensor in (1, 2) else "#d55e00" for sensor in range(sensors)]
    ax.bar(np.arange(sensors), used, color=colours)
    ax.set(title=title, xlabel="sensor", xticks=range(sensors))
axes[0].set_ylabel("norm of the sensor's weights")
figure.set_label(
    "Norms of the weights of eight sensors: without the age three sensors are used, with it "
    "only the two that see faults"
)
plt.show()

# %%
# The strength matters, as always: at alpha = 0.12 and 0.16 both models select further sensors.
