"""Paths on a Dask cluster."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sparsvm._typing import ClassWeight, LossName, PenaltyName, SolverName
from sparsvm.dask.collections import partitions
from sparsvm.dask.engine import Cluster
from sparsvm.estimators.sparse_svc import SparseSVC as OnOneMachine
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.losses import Loss
from sparsvm.partitioned.path import path_of
from sparsvm.penalties import Penalty
from sparsvm.solvers import Solver


def svm_path(
    X: Any,
    y: Any = None,
    *,
    loss: LossName | Loss = "hinge",
    penalty: PenaltyName | Penalty = "l1",
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    max_features: int | None = None,
    fit_intercept: bool = True,
    class_weight: ClassWeight = None,
    sample_weight: Any = None,
    sample_margin: Any = None,
    solver: SolverName | Solver = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
    client: Any = None,
) -> SVMPath:
    """Solve for many alphas on a Dask cluster, each from the one before.

    Parameters
    ----------
    X, y, sample_weight, sample_margin
        As for :meth:`sparsvm.dask.SparseSVC.fit`.
    loss, penalty, alphas, n_alphas, eps, max_features, fit_intercept, class_weight, solver, tol, \
max_iter, random_state, verbose
        As for :func:`sparsvm.partitioned.svm_path`.
    client : distributed.Client, optional
        The current client by default.

    Returns
    -------
    SVMPath
        Its models are ordinary ones, for data in memory.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from sparsvm.dask import svm_path  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> path = svm_path(X, y, n_alphas=20)  # X, y: Dask arrays  # doctest: +SKIP
    >>> path.n_selected  # doctest: +SKIP
    """
    model = OnOneMachine(
        loss,
        penalty,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        verbose=verbose,
    )
    with Cluster.of(client) as engine:
        parts = partitions(engine, X, y, sample_weight, sample_margin)
        return path_of(engine, parts, model, alphas, n_alphas, eps, max_features)
