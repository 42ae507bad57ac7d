"""The classifier on a Dask cluster."""

from __future__ import annotations

from typing import Any

from sparsvm._typing import ClassWeight, LossName, PenaltyName, SolverName
from sparsvm.dask.collections import partitions
from sparsvm.dask.engine import Cluster
from sparsvm.dask.lazy import LazyPredictions
from sparsvm.data.inputs import fit_context
from sparsvm.losses import Loss
from sparsvm.partitioned.estimator import SparseSVC as OverPartitions
from sparsvm.penalties import Penalty
from sparsvm.solvers import Solver


class SparseSVC(LazyPredictions, OverPartitions):
    """Sparse support vector classifier on a Dask cluster, certified over all the data.

    Objective and parameters are those of :class:`sparsvm.SparseSVC`. Rows stay on the workers;
    the driver is sent sums over them, or weighted means and the few rows that decide, or all of
    them where they take at most 256 MB (:class:`sparsvm.partitioned.SparseSVC` says how).
    Everything is a task with recorded inputs, so that a lost worker's part is computed again.

    Parameters
    ----------
    loss, penalty, alpha, fit_intercept, class_weight, solver, tol, max_iter, \
time_limit, warm_start, random_state, verbose
        As for :class:`sparsvm.partitioned.SparseSVC`.
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
        solver: SolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
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
            time_limit=time_limit,
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
            Blocks may be dense or scipy CSR matrices and of unknown size. A list holds tuples
            ``(X, y)``, ``(X, y, sample_weight)`` and so on, of which the whole or the pieces may be
            delayed or futures.
        y, sample_weight, sample_margin : Dask array or series, optional
            Divided like X.

        Returns
        -------
        self
            The fitted estimator.
        """
        with Cluster.of(self.client) as engine:
            self._fit_parts(engine, partitions(engine, X, y, sample_weight, sample_margin))
            self.client_ = engine.client
        return self
