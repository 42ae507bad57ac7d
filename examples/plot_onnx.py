"""
Serving a model without Python
==============================

``to_onnx`` writes a fitted classifier, or a pipeline that ends with one, as an ONNX graph. Programs
in C++, Java or JavaScript run it without this package. The graph reads only the features in use, so
that a sparse model of wide data is a small file and a fast one.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sparsvm import SparseSVC, to_onnx

X, y = load_digits(return_X_y=True)
X_train, y_train, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]
pipeline = make_pipeline(MaxAbsScaler(), SparseSVC("logistic", "l1/l2", alpha=0.01))
pipeline.fit(X_train, y_train)
print(f"{len(pipeline[-1].selected_features_)} of 64 pixels are used")

graph = to_onnx(pipeline, dtype=np.float32)
session = onnxruntime.InferenceSession(graph.SerializeToString())
print("inputs: ", [(value.name, value.shape) for value in session.get_inputs()])
print("outputs:", [(value.name, value.shape) for value in session.get_outputs()])
print(f"size:    {graph.ByteSize()} bytes")

# %%
# It predicts the same, in single precision here; ``dtype=np.float64`` keeps every digit.

label, probabilities = session.run(None, {"X": X_test.astype(np.float32)})
print("labels that differ:", int((label != pipeline.predict(X_test)).sum()))
print(f"largest difference: {np.abs(probabilities - pipeline.predict_proba(X_test)).max():.1e}")

# %%
# A request is one sample. The time of one prediction, on the machine that built this page:


def microseconds(call, repetitions=200):
    """Return the times of single calls."""
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - began))
    return np.array(times)


one = X_test[:1]
one_single = one.astype(np.float32)
times = {
    "pipeline.predict": microseconds(lambda: pipeline.predict(one)),
    "onnxruntime": microseconds(lambda: session.run(["label"], {"X": one_single})),
}
for name, values in times.items():
    print(f"{name:17s} median {np.median(values):6.0f} µs")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.boxplot(
    list(times.values()), orientation="horizontal", showfliers=False, tick_labels=list(times)
)
ax.set(xscale="log", xlabel="microseconds for one sample")
figure.set_label(
    "Box plots of the time of one prediction: onnxruntime takes a fraction of the pipeline's"
)
plt.show()
