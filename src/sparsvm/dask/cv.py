"""Cross-validation on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sparsvm._typing import ClassWeight, LossName, PenaltyName, SolverName
from sparsvm.dask.collections import partitions
from sparsvm.dask.engine import Cluster
from sparsvm.dask.lazy import LazyPredictions
from sparsvm.data.inputs import fit_context
from sparsvm.losses import Loss
from sparsvm.partitioned.cv import SparseSVCCV as OverPartitions
from sparsvm.penalties import Penalty
from sparsvm.solvers import Solver

if TYPE_CHECKING:
    from typing_extensions import Self


class SparseSVCCV(LazyPredictions, OverPartitions):
    """Sparse classifier on a Dask cluster whose alpha is chosen by cross-validation.

    Rows stay where they are; a fold is a mask.

    Parameters
    ----------
    loss, penalty, alphas, n_alphas, eps, max_features, cv, rule, fit_intercept, class_weight, \
solver, tol, max_iter, random_state, verbose
        As for :class:`sparsvm.partitioned.SparseSVCCV`.
    client : distributed.Client, optional
        The current client by default.

    Attributes
    ----------
    client_ : distributed.Client
        The client that was used; it is left out when the model is pickled.

    See Also
    --------
    sparsvm.partitioned.SparseSVCCV : the other attributes.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from sparsvm.dask import SparseSVCCV  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> model = SparseSVCCV(penalty="l1/l2").fit(X, y)  # X, y: Dask arrays  # doctest: +SKIP
    >>> model.alpha_, model.selected_features_  # doctest: +SKIP
    """

    def __init__(
        self,
        loss: LossName | Loss = "hinge",
        penalty: PenaltyName | Penalty = "l1",
        *,
        alphas: Any = None,
        n_alphas: int = 20,
        eps: float = 1e-3,
        max_features: int | None = None,
        cv: int | None = None,
        rule: Literal["best", "1se"] = "best",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        solver: SolverName | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        client: Any = None,
    ) -> None:
        super().__init__(
            loss,
            penalty,
            alphas=alphas,
            n_alphas=n_alphas,
            eps=eps,
            max_features=max_features,
            cv=cv,
            rule=rule,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.client = client

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_margin: Any = None
    ) -> Self:
        """Choose alpha by cross-validation; if it fails, nothing is left on the cluster.

        Parameters
        ----------
        X, y, sample_weight, sample_margin
            As for :meth:`sparsvm.dask.SparseSVC.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with Cluster.of(self.client) as engine:
            self._fit_parts(engine, partitions(engine, X, y, sample_weight, sample_margin))
            self.client_ = engine.client
        return self
