"""The classifier on a Dask cluster."""

from __future__ import annotations

from typing import Any

from sparsvm._typing import ClassWeight, LossName, PenaltyName
from sparsvm.dask.collections import partitions
from sparsvm.dask.engine import Cluster
from sparsvm.data.inputs import fit_context
from sparsvm.losses import Loss
from sparsvm.partitioned.estimator import SparseSVC as OverPartitions
from sparsvm.penalties import Penalty


class SparseSVC(OverPartitions):
    """Sparse support vector classifier on a Dask cluster, certified over all the data.

    Objective and parameters are those of :class:`sparsvm.SparseSVC`. Rows stay on the workers;
    the driver is sent weighted means of them and the few that decide
    (:class:`sparsvm.partitioned.SparseSVC` says how). Everything is a task with recorded inputs, so
    that a lost worker's part is computed again.

    Parameters
    ----------
    loss, penalty, alpha, fit_intercept, class_weight, solver, tol, max_iter, warm_start, \
random_state, verbose
        As for :class:`sparsvm.partitioned.SparseSVC`.
    n_jobs : None
        Not used: the cluster says how many partitions are worked on.
    client : distributed.Client, optional
        The current client by default.

    Attributes
    ----------
    client_ : distributed.Client
        The client that was used; it is left out when the model is pickled.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> from sparsvm.dask import SparseSVC  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> model = SparseSVC(penalty="l1/l2").fit(X, y)  # X, y: Dask arrays  # doctest: +SKIP
    >>> labels = model.predict(X)  # lazy  # doctest: +SKIP
    """

    def __init__(
        self,
        loss: LossName | Loss = "hinge",
        penalty: PenaltyName | Penalty = "l1",
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool | int = False,
        client: Any = None,
    ) -> None:
        super().__init__(
            loss,
            penalty,
            alpha=alpha,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.client = client

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_margin: Any = None
    ) -> SparseSVC:
        """Fit the model; if it fails or is interrupted, nothing is left on the cluster.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features), or a list of partitions
            Blocks may be dense or scipy CSR matrices and of unknown size. A list holds delayed
            or plain tuples ``(X, y)``, ``(X, y, sample_weight)`` and so on.
        y, sample_weight, sample_margin : Dask array or series, optional
            Divided like X.

        Returns
        -------
        self
            The fitted estimator.
        """
        client = _current(self.client)
        engine = Cluster(client)
        try:
            parts = partitions(engine, X, y, sample_weight, sample_margin)
            self._fit_parts(engine, parts)
        finally:
            engine.close()
        self.client_ = client
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the scores; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("decision_function", X, outputs=len(self.classes_))

    def predict(self, X: Any) -> Any:
        """Return the labels; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("predict", X, outputs=1)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the logistic loss; lazy where X is a Dask collection.

        Parameters
        ----------
        X : Dask array or frame, or what :class:`sparsvm.SparseSVC` takes
        """
        return self._by_blocks("predict_proba", X, outputs=len(self.classes_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, computed on the cluster where X is a Dask collection.

        Parameters
        ----------
        X, y, sample_weight : Dask collections, or what :class:`sparsvm.SparseSVC` takes
        """
        if not hasattr(X, "to_delayed"):
            return float(self.to_local().score(X, y, sample_weight))
        engine = Cluster(_current(self.client))
        try:
            parts = partitions(engine, X, y, sample_weight)
            model = engine.submit(_same, self.to_local())
            pairs = engine.gather([engine.submit(_right, model, part) for part in parts])
        finally:
            engine.close()
        return float(sum(right for right, _ in pairs) / sum(total for _, total in pairs))

    def _by_blocks(self, method: str, X: Any, outputs: int) -> Any:
        local = self.to_local()
        if not hasattr(X, "to_delayed"):
            return getattr(local, method)(X)
        import dask.array as da

        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array()
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        wide = method == "predict_proba" or (method == "decision_function" and outputs > 2)
        dtype = local.classes_.dtype if method == "predict" else local.coef_.dtype
        return da.map_blocks(  # type: ignore[no-untyped-call]
            _applied,
            X,
            method,
            local,
            dtype=dtype,
            chunks=(X.chunks[0], (outputs,)) if wide else (X.chunks[0],),
            drop_axis=None if wide else 1,
        )

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("client_", None)
        state["client"] = None
        return state


def _current(client: Any) -> Any:
    if client is not None:
        return client
    from distributed import default_client

    try:
        return default_client()  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise ValueError(
            "No Dask client was found: start one with distributed.Client(), or pass client=..."
        ) from error


def _same(value: Any) -> Any:
    return value


def _applied(X: Any, method: str, local: Any) -> Any:
    return getattr(local, method)(X) if X.shape[0] else getattr(local, method)(X[:0])


def _right(model: Any, rows: Any) -> tuple[float, float]:
    if rows.X.shape[0] == 0:
        return 0.0, 0.0
    import numpy as np

    weight = np.ones(rows.X.shape[0]) if rows.sample_weight is None else rows.sample_weight
    return float(np.sum(weight * (model.predict(rows.X) == np.asarray(rows.y)))), float(
        np.sum(weight)
    )
