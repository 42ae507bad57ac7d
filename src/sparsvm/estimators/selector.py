"""A transformer that keeps the features of a sparse model."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Bools, Ints
from sparsvm.certificate.finalise import inner_tolerance, tolerance
from sparsvm.data.inputs import fit_context
from sparsvm.data.training_set import unchanged_on_error
from sparsvm.data.warn import warn
from sparsvm.estimators.documented import Documented
from sparsvm.estimators.sparse_svc import SparseSVC
from sparsvm.estimators.svm_path import SVMPath
from sparsvm.path.grid import grid_below
from sparsvm.path.svm_path import first_steps, follow
from sparsvm.solvers import blas_threads

if TYPE_CHECKING:
    from typing_extensions import Self

# Alphas between the first feature and the model asked for, where there is a limit of features.
_STEPS = 100
# How often, and in how many steps, the last of them are divided where several features enter at
# once, and the tolerance that tells their models apart: with the usual one the model of zeros is
# good enough until several features are in.
_CLOSER, _STEPS_CLOSER = 3, 10
_SHARP_TOL = 1e-6


class SparseSelector(SelectorMixin, MetaEstimatorMixin, Documented):
    """Keep exactly the features that a sparse model uses.

    :class:`~sklearn.feature_selection.SelectFromModel` compares weights with a threshold, which
    for most penalties is their mean: it drops features that the model uses. This one asks the
    model.

    Parameters
    ----------
    estimator : estimator
        Has ``selected_features_`` after ``fit``, as every estimator of sparsvm; it is cloned.
    max_features : int or None, default=None
        The largest number of features. A :class:`~sparsvm.SparseSVC` that would use more is
        replaced by the last model of its path, from ``alpha_max`` downwards, that uses at most
        so many; a :class:`~sparsvm.SparseSVCCV` is given it as its own parameter, and chooses among
        such models. Other estimators take none.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; ``transform`` keeps its ``selected_features_``.
    selected_features_ : ndarray
        Indices of the features kept.
    selected_feature_names_ : ndarray
        Their names; ``x0``, ``x1``, … where X had none.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsvm import SparseSelector, SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = SparseSelector(SparseSVC(penalty="l1/l2", alpha=0.05))
    >>> model = make_pipeline(selector, KNeighborsClassifier()).fit(X, y)
    >>> model[0].get_feature_names_out()
    array(['x2', 'x3'], dtype=object)
    >>> SparseSelector(SparseSVC(), max_features=1).fit_transform(X, y).shape
    (150, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimator": [HasMethods("fit")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, estimator: Any, max_features: int | None = None) -> None:
        self.estimator = estimator
        self.max_features = max_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit the model whose features are kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        **fit_params
            Passed to the ``fit`` of the estimator, such as ``sample_weight``; with metadata
            routing enabled, what it requests.

        Returns
        -------
        self
            The fitted transformer.
        """
        if _routing_enabled():
            fit_params = dict(process_routing(self, "fit", **fit_params).estimator.fit)
        model = clone(self.estimator)
        with unchanged_on_error(self):
            if self.max_features is not None and not isinstance(model, SparseSVC):
                model = _limited(model, self.max_features)
            model.fit(X, y, **fit_params)
            used = model.selected_features_.size
            if self.max_features is not None and used > self.max_features:
                model = _smaller(model, self.max_features, X, y, fit_params)
            self.estimator_ = model
            self.n_features_in_ = model.n_features_in_
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        return self

    @property
    def selected_features_(self) -> Ints:
        """Indices of the features kept."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.selected_features_)

    @property
    def selected_feature_names_(self) -> Array:
        """Names of the features kept; ``x0``, ``x1``, … where X had none."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.get_feature_names_out())

    def _get_support_mask(self) -> Bools:
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_features_] = True
        return mask

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the estimator.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)


def _limited(model: Any, max_features: int) -> Any:
    if "max_features" not in model.get_params(deep=False):
        raise ValueError(
            f"max_features needs an estimator that follows a path, SparseSVC or SparseSVCCV, but "
            f"{type(model).__name__} was given. Leave max_features out, or use one of these."
        )
    return model.set_params(max_features=max_features)


def _smaller(model: SparseSVC, max_features: int, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Return the last model of the path to ``model`` with at most so many features."""
    if not isinstance(model, SparseSVC):
        raise ValueError(
            f"{type(model).__name__} uses {model.selected_features_.size} features, more than "
            f"max_features={max_features}."
        )
    given = {"sample_weight": None, "sample_margin": None, **params}
    with blas_threads(model._threads()):
        data = model._read(X, y, given["sample_weight"], given["sample_margin"])
        problem = model._convex_problem(data)
        tol = tolerance(min(model.tol, _SHARP_TOL), data.dtype)
        control = replace(model._control(data.dtype), tol=inner_tolerance(tol, data.dtype))
        steps, grid = first_steps(problem, model.solver, control, None, 2, 0.5)
        grid = grid_below(float(grid[0]), _STEPS, min(model.alpha_ / grid[0], 0.5))
        points = follow(data, steps, grid, tol, max_features=max_features)
        # Several features may enter between two alphas: look closer for the last model before.
        for _ in range(_CLOSER):
            n = len(points)
            if n in (0, grid.size) or points.n_selected[-1] == max_features:
                break
            grid = np.geomspace(grid[n - 1], grid[n], _STEPS_CLOSER)
            points = follow(data, steps, grid, tol, max_features=max_features) or points
    if not len(points):
        raise ValueError(
            f"No model of the path uses at most max_features={max_features} features: "
            f"{type(model).__name__} with penalty={model.penalty!r} leaves more of them "
            "unpenalised, or none at zero. Raise max_features, or use another penalty."
        )
    if points.n_selected[-1] == 0:
        warn(
            f"No feature is selected: several enter the path of {type(model).__name__} at once, "
            f"more than max_features={max_features}. Raise max_features, or use a smooth loss, "
            "whose features enter one by one.",
            UserWarning,
        )
    return SVMPath.of(points, model, data)[-1]
