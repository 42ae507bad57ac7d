"""The base class of the penalties: their parameters, and how they are resolved for given data."""

from __future__ import annotations

import copy
import numbers
from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Features as ColumnNumbers
from sparsvm._typing import Floats
from sparsvm.parameters import LARGEST_NUMBER, Parameterised, number
from sparsvm.penalties.custom import CustomNorm, CustomTerms
from sparsvm.penalties.layout import (
    feature_weights,
    group_numbers,
    is_product,
    is_scaled,
    spread_weights,
)
from sparsvm.penalties.names import Features, Names, aligned_groups, aligned_weights, holds_lists
from sparsvm.penalties.terms import L1Terms, PenaltyTerms

_COMMON = """
    weights : None, array, dict, "scale", "sqrt_size", "adaptive" or tuple, default=None
        Factors that multiply the coefficients inside the penalty, one per feature (or one per
        group where there are fewer groups than features; groups count in sorted order of their
        labels). 0 leaves a feature unpenalised; others lie between 1e-50 and 1e50. "scale" takes
        the standard deviation of each column, which is the same as standardising the columns; a
        constant column, whose standard deviation is 0, gets the factor 1 so that it is not left
        unpenalised. "sqrt_size" takes the square root of the number of features in each group, so
        that large groups are not favoured. ``{"age": 0}`` gives factors by feature name or
        position (or by label of ``groups``), others being 1; a pandas series with labels is
        aligned with them.
        ``("scale", {"age": 0})`` multiplies the standard deviations by such factors,
        ``("scale", "sqrt_size")`` by the roots. "adaptive"
        (or ``("adaptive", {"age": 0})``) weighs features by the inverse of their weights in a
        first fit with the penalty l2 and ``alpha=None``, so that strong features are hardly
        shrunk and weak ones fall out earlier (Zou 2006); :class:`~sparsvm.SparseSVC`,
        :func:`~sparsvm.svm_path` and :class:`~sparsvm.SparseSVCCV`, there inside each fold, make
        that fit.
"""
_GROUPED = """
    groups : None, int, one label per feature, dict, or list of lists, default=None
        Each feature by itself, blocks of that many consecutive features (the last may be
        shorter), or arbitrary labels; ``{"age": "person", "sex": "person"}`` gives them by feature
        name or position, and so does a pandas series with labels. ``[["age", "sex"], ["height"]]``
        lists the members of each group. A feature that a dict or such a list leaves out is a group
        by itself. Groups of such a list may share features: then the coefficients are sums of
        parts, one for each group, and the penalty is the least that parts with these sums have
        (the latent group penalty of Jacob, Obozinski and Vert), so that whole groups are selected.
    per_class : bool, default=False
        Whether every class has its own copy of each group; otherwise a group spans all classes.
"""


class Penalty(Parameterised):
    r"""Base class of the penalties, and of a user's own.

    A user's own penalty is a subclass with three methods in NumPy, for coefficients of shape
    (n_outputs, d), n_outputs being 1 for two classes and the number of classes otherwise:

    ``value(W)``
        The penalty: convex, 0 at W = 0 and nowhere less.
    ``prox(W, step)``
        :math:`\arg\min_U \frac12 \|U - W\|^2 + step \cdot value(U)`, an array like W.
    ``dual_norm(G)``
        Of a norm, :math:`\max\,\langle G, W\rangle` over W of value 1. A penalty that is not a norm
        has ``conjugate(G)`` instead, :math:`\sup_W \langle G, W\rangle - value(W)`.

    The certificate is as right as these are. Parameters are arguments of ``__init__``, kept under
    their names. Such a penalty is solved by "fbpd" (hinge) or by "fista", "forward_backward" and
    "sparsa" (smooth losses), of which ``solver="auto"`` takes one.

    Attributes
    ----------
    name : str
        The short name accepted by ``SparseSVC(penalty=...)``, of a built-in penalty.
    convex : bool

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sparsvm import SparseSVC
    >>> from sparsvm.penalties import Penalty
    >>> class SumOfSizes(Penalty):  # l1, once more
    ...     def value(self, W):
    ...         return np.abs(W).sum()
    ...
    ...     def prox(self, W, step):
    ...         return np.sign(W) * np.maximum(np.abs(W) - step, 0.0)
    ...
    ...     def dual_norm(self, G):
    ...         return np.abs(G).max()
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SparseSVC(penalty=SumOfSizes(), alpha=0.1).fit(X, y).dual_gap_ <= 1e-3)
    True
    """

    name: ClassVar[str] = "custom"
    convex: ClassVar[bool] = True

    @property
    def needs_column_std(self) -> bool:
        """Whether :meth:`resolve` needs the standard deviations of the columns."""
        return False

    def aligned(self, d: int, feature_names: Names) -> Penalty:
        """Return it with all that was given by the names of features in the order of columns."""
        return self

    def group_labels(self, d: int, feature_names: Names) -> list[Any] | None:
        """Return the label of the group of each feature; None where there are no groups.

        Where groups overlap, those of the columns of :meth:`latent`.
        """
        return None

    def latent(self, d: int, feature_names: Names) -> tuple[ColumnNumbers, Penalty] | None:
        """Return groups that overlap as disjoint groups of copies; None where none overlap.

        Returns
        -------
        columns : int32 array
            The feature of which each column is a copy: one for every group it belongs to.
        penalty : Penalty
            The penalty of these columns.
        """
        return None

    def resolve(
        self,
        d: int,
        n_outputs: int,
        column_std: Floats | None = None,
        feature_names: Names = None,
    ) -> PenaltyTerms:
        """Spell the penalty out for d features and n_outputs rows of coefficients.

        Parameters
        ----------
        d : int
        n_outputs : int
            1 for two classes, otherwise the number of classes.
        column_std : array of shape (d,), optional
            Standard deviation of each column, needed for ``weights="scale"``.
        feature_names : sequence of d str, optional
            Names of the columns, for weights and groups that are given by names.
        """
        missing = [f"{name}()" for name in ("value", "prox") if not hasattr(self, name)]
        if not (hasattr(self, "dual_norm") or hasattr(self, "conjugate")):
            missing.append("dual_norm() or conjugate()")
        if missing:
            raise ValueError(
                f"The penalty {type(self).__name__} has no {', '.join(missing)}; see "
                "sparsvm.penalties.Penalty for what a penalty needs."
            )
        terms = CustomNorm if hasattr(self, "dual_norm") else CustomTerms
        return terms.of(self, d, n_outputs)


class BuiltInPenalty(Penalty):
    """Base class of the penalties that the core knows: their weights and groups."""

    weights: Any
    groups: Any = None
    per_class: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("    <grouped>", _GROUPED.strip("\n")).replace(
                "    <weights>", _COMMON.strip("\n")
            )

    @property
    def needs_column_std(self) -> bool:
        """Whether :meth:`resolve` needs the standard deviations of the columns."""
        return is_scaled(self.weights)

    @property
    def adaptive(self) -> bool:
        """Whether the weights come from a first fit: "adaptive", or times factors of the user's."""
        named = self.weights[0] if is_product(self.weights) else self.weights
        return isinstance(named, str) and named == "adaptive"

    def adaptive_factors(self, d: int) -> Floats:
        """Return the factors that multiply adaptive weights, one per feature."""
        groups, n_groups = group_numbers(self.groups, d)
        factors = self.weights[1] if is_product(self.weights) else None
        return feature_weights(factors, groups, n_groups, None)

    def aligned(self, d: int, feature_names: Names) -> BuiltInPenalty:
        """Return it with all that was given by the names of features in the order of columns."""
        features = Features(d, feature_names)
        groups = aligned_groups(self.groups, features)
        weights = aligned_weights(self.weights, groups, features)
        if groups is self.groups and weights is self.weights:
            return self
        made = copy.copy(self)
        made.weights = weights
        if groups is not self.groups:
            made.groups = groups
        return made

    def group_labels(self, d: int, feature_names: Names) -> list[Any] | None:
        """Return the label of the group of each feature; None where there are no groups."""
        if self.groups is None:
            return None
        groups = aligned_groups(self.groups, Features(d, feature_names))
        if holds_lists(groups):
            return [number for number, members in enumerate(groups) for _ in members]
        found, _ = group_numbers(groups, d)
        if isinstance(groups, numbers.Integral):
            return list(found.tolist())
        return groups.tolist() if isinstance(groups, np.ndarray) else list(groups)

    def latent(self, d: int, feature_names: Names) -> tuple[ColumnNumbers, Penalty] | None:
        """Return groups that overlap as disjoint groups of copies; None where none overlap."""
        given = self.aligned(d, feature_names)
        if not holds_lists(given.groups):
            return None
        if not self.convex:
            raise ValueError(
                f"{type(self).__name__} takes no groups that overlap; use GroupL2, GroupLinf or "
                "SparseGroup."
            )
        columns = np.concatenate(given.groups).astype(np.int32)
        made = copy.copy(given)
        made.weights = spread_weights(given.weights, columns, d, len(given.groups))
        made.groups = np.repeat(np.arange(len(given.groups)), [len(g) for g in given.groups])
        return columns, made

    def resolve(
        self,
        d: int,
        n_outputs: int,
        column_std: Floats | None = None,
        feature_names: Names = None,
    ) -> PenaltyTerms:
        """Spell the penalty out for d features and n_outputs rows of coefficients.

        Where the parameters make one penalty equal to a simpler one, the simpler kind is
        returned: groups of one coefficient are l1, ``l1_ratio`` 0 or 1 drops a term, and a convex
        penalty without any weight is an l1 penalty without any. Parameters are those of
        :meth:`Penalty.resolve`.
        """
        given = self.aligned(d, feature_names)
        if holds_lists(given.groups):
            raise ValueError(
                "groups overlap, which SparseSVC, SparseSVCCV, ConstrainedSparseSVC and svm_path "
                "take. Here give every feature one group."
            )
        groups, n_groups = group_numbers(given.groups, d)
        if not isinstance(self.per_class, bool | np.bool_ | numbers.Integral):
            raise ValueError(f"per_class must be True or False; got {self.per_class!r}.")
        per_class = bool(self.per_class)
        omega = feature_weights(given.weights, groups, n_groups, column_std)
        terms, ratio = self._terms()
        singletons = n_groups == d and (per_class or n_outputs == 1)
        if (terms.group_order and singletons) or (self.convex and not omega.any()):
            terms, ratio = L1Terms, 1.0
        if terms.separable or not (self.convex or self.groups is not None):
            groups, n_groups, per_class = np.arange(d, dtype=np.int32), d, True
        return terms(
            l1_ratio=ratio,
            groups=groups,
            n_groups=n_groups,
            per_class=per_class,
            omega=omega,
            n_outputs=n_outputs,
            shape=self._shape(),
        )

    def _terms(self) -> tuple[type[PenaltyTerms], float]:
        """Return the class of the resolved penalty and its l1_ratio."""
        raise NotImplementedError

    def _shape(self) -> float:
        """Return the ``shape`` of the resolved penalty."""
        return float("nan")

    def _checked_ratio(self) -> float:
        ratio = getattr(self, "l1_ratio")  # noqa: B009  (only some penalties have it)
        if not 0.0 <= number(ratio) <= 1.0:
            raise ValueError(
                f"{type(self).__name__} needs l1_ratio between 0 and 1; got l1_ratio={ratio!r}."
            )
        return float(ratio)

    def _checked_positive(self, parameter: str) -> float:
        value = getattr(self, parameter)
        if not 1.0 / LARGEST_NUMBER <= number(value) <= LARGEST_NUMBER:
            raise ValueError(
                f"{type(self).__name__} needs a positive, finite {parameter}, between "
                f"{1.0 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}; got {parameter}={value!r}."
            )
        return float(value)
