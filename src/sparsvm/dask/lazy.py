"""Predictions on Dask collections."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array
from sparsvm.dask.collections import partitions
from sparsvm.dask.engine import Cluster
from sparsvm.estimators.sparse_svc import LogisticOnly

# Names of columns that an error lists.
LIST_LENGTH = 10


class LazyPredictions:
    """What classifiers on a cluster share: lazy methods, and a client that is not pickled."""

    client: Any
    classes_: Array
    n_features_in_: int
    to_local: Any

    def decision_function(self, X: Any) -> Any:
        """Return the scores; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("decision_function", X)

    def predict(self, X: Any) -> Any:
        """Return the labels; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("predict", X)

    @LogisticOnly
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the logistic loss; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("predict_proba", X)

    @LogisticOnly
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("predict_log_proba", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, computed on the cluster where X is a Dask collection.

        Parameters
        ----------
        X, y, sample_weight : Dask collections, or what :class:`sparsvm.SparseSVC` takes
        """
        if not hasattr(X, "to_delayed"):
            return float(self.to_local().score(X, y, sample_weight))
        with Cluster.of(self.client) as engine:
            parts = partitions(engine, X, y, sample_weight)
            model = engine.broadcast(self.to_local())
            pairs = engine.gather([engine.submit(_right, model, part) for part in parts])
        return float(sum(right for right, _ in pairs) / sum(total for _, total in pairs))

    def _by_blocks(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        local = self.to_local()
        if not hasattr(X, "to_delayed"):
            return getattr(local, method)(X)
        import dask.array as da

        if hasattr(X, "to_dask_array"):
            # Names are compared here, since blocks are arrays without any.
            known, found = getattr(local, "feature_names_in_", None), list(X.columns)
            if known is not None and found != known.tolist():
                raise ValueError(
                    f"The columns of the frame are {found[:LIST_LENGTH]}, but the model was fitted "
                    f"on {known.tolist()[:LIST_LENGTH]}, in that order. Select those columns."
                )
            X = X.to_dask_array()
        local.__dict__.pop("feature_names_in_", None)
        width = X.shape[1] if X.ndim > 1 else 0
        if not (width == self.n_features_in_ or np.isnan(width)):  # nan: not known
            raise ValueError(
                f"The model was fitted on {self.n_features_in_} features; got an array of shape "
                f"{X.shape}."
            )
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        outputs = len(local.classes_)
        wide = method.endswith("proba") or (method == "decision_function" and outputs > 2)
        dtype = local.classes_.dtype if method == "predict" else local.coef_.dtype
        return da.map_blocks(  # type: ignore[no-untyped-call]
            _applied,
            X,
            method,
            local,
            (outputs,) if wide else (),
            dtype=dtype,
            chunks=(X.chunks[0], (outputs,)) if wide else (X.chunks[0],),
            drop_axis=None if wide else 1,
        )

    def __sklearn_clone__(self) -> Any:
        # A client cannot be copied: the clone has the same one.
        own = self.client is None
        made = super().__sklearn_clone__() if own else clone(copy(self))  # type: ignore[misc]
        made.client = self.client
        return made

    def __getstate__(self) -> Any:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("client_", None)
        state["client"] = None
        return state


def _applied(X: Any, method: str, local: Any, shape: tuple[int, ...]) -> Any:
    if X.shape[0] == 0:
        kind = local.classes_.dtype if method == "predict" else local.coef_.dtype
        return np.zeros((0, *shape), dtype=kind)
    return getattr(local, method)(X)


def _right(model: Any, rows: Any) -> tuple[float, float]:
    if rows.X.shape[0] == 0:
        return 0.0, 0.0
    weight = np.ones(rows.X.shape[0]) if rows.sample_weight is None else rows.sample_weight
    return float(np.sum(weight * (model.predict(rows.X) == np.asarray(rows.y)))), float(
        np.sum(weight)
    )
