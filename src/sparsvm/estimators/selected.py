"""Which features, groups and weights a fitted model uses, by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sparsvm._typing import Array, Ints
from sparsvm.estimators.documented import Documented
from sparsvm.numerics.columns import columns_in_use
from sparsvm.numerics.sparse_format import checked_coefficients
from sparsvm.penalties import PENALTIES, Penalty

_LIBRARIES = ("pandas", "polars")


class SelectedFeatures(Documented):
    """Give fitted linear models their features, groups and weights by name.

    Everything is read from ``coef_`` when it is asked for, so that an edited ``coef_`` counts.
    """

    coef_: Any
    classes_: Array
    n_features_in_: int
    latent_coef_: Any

    @property
    def selected_features_(self) -> Ints:
        """Indices of the features that any class uses."""
        return used_columns(checked_coefficients(self.coef_))

    @property
    def selected_feature_names_(self) -> Array:
        """Names of the features that any class uses; ``x0``, ``x1``, … where X had none."""
        return _feature_names(self)[self.selected_features_]

    @property
    def selected_groups_(self) -> Array:
        """Labels of the groups of the penalty with any weight that is not zero.

        Groups given as a block size or as lists of members are numbered from 0. Without groups
        each feature is one by itself, with its name, or its index where X had no names.
        """
        coef, _, labels = self._grouped_coefficients()
        used = dict.fromkeys(labels[j] for j in used_columns(coef))
        return _column(list(used))

    def coef_frame(self, library: str | None = None) -> Any:
        """Return the weights that are not zero as a tidy table, one row each.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            Whose frame to return; None takes the first of the two that is installed.

        Returns
        -------
        DataFrame
            The columns are "feature" (name), "class" (label; with two classes that of the second,
            whose score the weights make), "weight" and "group" (as in ``selected_groups_``), in
            the order of features, then classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sparsvm import SparseSVC
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = SparseSVC(alpha=0.2, tol=1e-8).fit(X, y)
        >>> model.coef_frame().round(2)
                     feature  class  weight              group
        0  petal length (cm)      0   -0.30  petal length (cm)
        1  petal length (cm)      2    0.42  petal length (cm)
        """
        made = _frame_library(library)
        coef, columns, labels = self._grouped_coefficients()
        entries = sp.coo_array(coef)
        kept = np.flatnonzero(entries.data)
        rows, places = entries.row[kept], entries.col[kept]
        order = np.lexsort((rows, places, columns[places]))
        rows, places = rows[order], places[order]
        classes = self.classes_ if coef.shape[0] == len(self.classes_) else self.classes_[1:]
        return made.DataFrame(
            {
                "feature": _feature_names(self)[columns[places]].astype(str).astype(object),
                "class": _column(classes[rows].tolist()),
                "weight": entries.data[kept][order],
                "group": _column([labels[j] for j in places]),
            }
        )

    def _grouped_coefficients(self) -> tuple[Any, Ints, list[Any]]:
        """Return weights, and the feature and the label of the group of each of their columns."""
        check_is_fitted(self, "coef_")
        coef = checked_coefficients(self.coef_)
        names = getattr(self, "feature_names_in_", None)
        penalty = getattr(self, "penalty_", getattr(self, "penalty", None))
        if isinstance(penalty, str) and penalty in PENALTIES:
            penalty = PENALTIES[penalty]()
        labels = None
        if isinstance(penalty, Penalty):
            labels = penalty.group_labels(self.n_features_in_, names)
            latent = penalty.latent(self.n_features_in_, names)
            if latent is not None:
                if "latent_coef_" not in vars(self):
                    raise AttributeError(
                        "The groups overlap, and this model does not know its parts by groups. "
                        "Fit a SparseSVC at its alpha."
                    )
                return self.latent_coef_, latent[0].astype(np.intp), labels or []
        if labels is None:
            labels = list(range(self.n_features_in_)) if names is None else list(names)
        return coef, np.arange(self.n_features_in_), labels


def used_columns(coef: Any) -> Ints:
    """Return the columns with an entry that is not zero, of an array or a CSR matrix."""
    if sp.issparse(coef):
        return np.unique(coef.indices[coef.data != 0]).astype(np.intp)
    return columns_in_use(coef)


def _feature_names(model: Any) -> Array:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(model.n_features_in_)]
    return np.asarray(names, dtype=object)


def _column(values: list[Any]) -> Array:
    """Return values as an array; as strings where they are of several types, or no scalars."""
    kinds = {type(value) for value in values}
    if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
        values = [str(value) for value in values]
    return np.array(values, dtype=object if values and isinstance(values[0], str) else None)


def _frame_library(name: str | None) -> Any:
    if name is not None and name not in _LIBRARIES:
        raise ValueError(f"library must be 'pandas', 'polars' or None; got {name!r}.")
    for each in _LIBRARIES if name is None else (name,):
        try:
            return import_module(each)
        except ImportError:
            continue
    wanted = name or "pandas or polars"
    raise ImportError(f"coef_frame needs {wanted}. Install it, or read coef_.")
