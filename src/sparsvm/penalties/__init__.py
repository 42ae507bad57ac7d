"""The penalties, as parameterised objects.

Each object knows its parameters only; :meth:`Penalty.resolve` turns it, for data with d features,
into a :class:`~sparsvm.penalties.terms.PenaltyTerms` with groups and weights spelled out.
"""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsvm._typing import Floats
from sparsvm.parameters import LARGEST, Parameterised, number
from sparsvm.penalties.terms import PenaltyTerms

_COMMON = """
    weights : None, array of length d or n_groups, or "scale", default=None
        Factors that multiply the coefficients inside the penalty, one per feature (or one per
        group where there are fewer groups than features; groups count in sorted order of their
        labels). 0 leaves a feature unpenalised; others lie between 1e-50 and 1e50. "scale" takes
        the standard deviation of each column, which is the same as standardising the columns; a
        constant column, whose standard deviation is 0, gets the factor 1 so that it is not left
        unpenalised.
"""
_GROUPED = """
    groups : None, int, or one label per feature, default=None
        Each feature by itself, blocks of that many consecutive features (the last may be
        shorter), or arbitrary labels.
    per_class : bool, default=False
        Whether every class has its own copy of each group; otherwise a group spans all classes.
"""


class Penalty(Parameterised):
    """Base class of the penalties.

    Attributes
    ----------
    name : str
        The short name accepted by ``SparseSVC(penalty=...)``.
    convex : bool
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
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
        return isinstance(self.weights, str)

    def resolve(self, d: int, n_outputs: int, column_std: Floats | None = None) -> PenaltyTerms:
        """Spell the penalty out for d features and n_outputs rows of coefficients.

        Where the parameters make one penalty equal to a simpler one, the simpler kind is
        returned: groups of one coefficient are l1, ``l1_ratio`` 0 or 1 drops a term, and a convex
        penalty without any weight is an l1 penalty without any.

        Parameters
        ----------
        d : int
        n_outputs : int
            1 for two classes, otherwise the number of classes.
        column_std : array of shape (d,), optional
            Standard deviation of each column, needed for ``weights="scale"``.
        """
        groups, n_groups = _group_numbers(self.groups, d)
        if not isinstance(self.per_class, bool | np.bool_ | numbers.Integral):
            raise ValueError(f"per_class must be True or False; got {self.per_class!r}.")
        per_class = bool(self.per_class)
        omega = _feature_weights(self.weights, groups, n_groups, column_std)
        kind, ratio = self._kind()
        singletons = n_groups == d and (per_class or n_outputs == 1)
        if kind in ("l1/l2", "l1/linf", "sparse_group") and singletons:
            kind, ratio = "l1", 1.0
        if self.convex and not omega.any():
            kind, ratio = "l1", 1.0
        if kind in ("l1", "l2", "elasticnet") or not (self.convex or self.groups is not None):
            groups, n_groups, per_class = np.arange(d, dtype=np.int32), d, True
        return PenaltyTerms(
            kind=kind,
            l1_ratio=ratio,
            groups=groups,
            n_groups=n_groups,
            per_class=per_class,
            omega=omega,
            n_outputs=n_outputs,
            shape=self._shape(),
        )

    def _kind(self) -> tuple[str, float]:
        """Kind and l1_ratio of the resolved penalty."""
        raise NotImplementedError

    def _shape(self) -> float:
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
        if not 1.0 / LARGEST <= number(value) <= LARGEST:
            raise ValueError(
                f"{type(self).__name__} needs a positive, finite {parameter}, between "
                f"{1.0 / LARGEST:g} and {LARGEST:g}; got {parameter}={value!r}."
            )
        return float(value)


class L1(Penalty):
    r"""Sum of absolute values, :math:`\sum_{kj} |W_{kj}|`: selects single coefficients.

    Parameters
    ----------
    <weights>

    Examples
    --------
    >>> L1().resolve(d=3, n_outputs=1).value([[1.0, -2.0, 0.0]])
    3.0
    """

    name = "l1"

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "l1", 1.0


class L2(Penalty):
    r"""Half the squared Euclidean norm, :math:`\frac12 \sum_{kj} W_{kj}^2`: selects nothing.

    Parameters
    ----------
    <weights>
    """

    name = "l2"

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "l2", 0.0


class ElasticNet(Penalty):
    r"""Mixture :math:`\rho \sum |W_{kj}| + \frac{1-\rho}{2} \sum W_{kj}^2`.

    Parameters
    ----------
    l1_ratio : float between 0 and 1, default=0.5
        The share :math:`\rho` of the sum of absolute values.
    <weights>
    """

    name = "elasticnet"

    def __init__(self, l1_ratio: float = 0.5, weights: Any = None) -> None:
        self.l1_ratio = l1_ratio
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        ratio = self._checked_ratio()
        return {0.0: "l2", 1.0: "l1"}.get(ratio, "elasticnet"), ratio


class GroupL2(Penalty):
    r"""Sum of Euclidean norms of groups, :math:`\sum_g \|W_g\|_2`: selects whole groups.

    Parameters
    ----------
    <grouped>
    <weights>

    Examples
    --------
    >>> GroupL2(groups=2).resolve(d=4, n_outputs=1).value([[3.0, 4.0, 0.0, 1.0]])
    6.0
    """

    name = "l1/l2"

    def __init__(self, groups: Any = None, per_class: bool = False, weights: Any = None) -> None:
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "l1/l2", 0.0


class GroupLinf(Penalty):
    r"""Sum of largest absolute values of groups, :math:`\sum_g \|W_g\|_\infty`.

    Parameters
    ----------
    <grouped>
    <weights>
    """

    name = "l1/linf"

    def __init__(self, groups: Any = None, per_class: bool = False, weights: Any = None) -> None:
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "l1/linf", 0.0


class SparseGroup(Penalty):
    r"""Mixture :math:`\rho \sum |W_{kj}| + (1-\rho) \sum_g \|W_g\|_2`.

    Selects groups, and single coefficients inside them.

    Parameters
    ----------
    l1_ratio : float between 0 and 1, default=0.5
        The share :math:`\rho` of the sum of absolute values.
    <grouped>
    <weights>
    """

    name = "sparse_group"

    def __init__(
        self,
        l1_ratio: float = 0.5,
        groups: Any = None,
        per_class: bool = False,
        weights: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        ratio = self._checked_ratio()
        return {0.0: "l1/l2", 1.0: "l1"}.get(ratio, "sparse_group"), ratio


class L0(Penalty):
    r"""Smooth count of non-zeros, :math:`\sum_g 1 - \exp(-a \|W_g\|_2)`; not convex.

    Parameters
    ----------
    sharpness : float, default=4.0
        The parameter a; the larger, the closer to counting.
    groups : None, int, or one label per feature, default=None
        None counts single coefficients; otherwise groups, as in :class:`GroupL2` (1 makes each
        feature a group).
    per_class : bool, default=False
        Whether every class has its own copy of each group.
    <weights>
    """

    name = "l0"
    convex = False

    def __init__(
        self,
        sharpness: float = 4.0,
        groups: Any = None,
        per_class: bool = False,
        weights: Any = None,
    ) -> None:
        self.sharpness = sharpness
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "l0", 0.0

    def _shape(self) -> float:
        return self._checked_positive("sharpness")


class CappedL1(Penalty):
    r"""Absolute values cut off at a, :math:`\sum_g \min(a, \|W_g\|_2)`; not convex.

    Parameters
    ----------
    cap : float, default=1.0
        The level a from which on a coefficient costs no more.
    groups : None, int, or one label per feature, default=None
        None caps single coefficients; otherwise groups, as in :class:`GroupL2` (1 makes each
        feature a group).
    per_class : bool, default=False
        Whether every class has its own copy of each group.
    <weights>
    """

    name = "capped_l1"
    convex = False

    def __init__(
        self, cap: float = 1.0, groups: Any = None, per_class: bool = False, weights: Any = None
    ) -> None:
        self.cap = cap
        self.groups = groups
        self.per_class = per_class
        self.weights = weights

    def _kind(self) -> tuple[str, float]:
        return "capped_l1", 0.0

    def _shape(self) -> float:
        return self._checked_positive("cap")


PENALTIES: dict[str, type[Penalty]] = {
    cls.name: cls for cls in (L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup, L0, CappedL1)
}


def as_penalty(penalty: str | Penalty) -> Penalty:
    """Turn a short name into the penalty with its default parameters; pass objects through."""
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty in PENALTIES:
        return PENALTIES[penalty]()
    known = ", ".join(repr(name) for name in PENALTIES)
    raise ValueError(
        f"penalty={penalty!r} is not a penalty; pass an object of sparsvm.penalties or one of: "
        f"{known}."
    )


def _group_numbers(groups: Any, d: int) -> tuple[NDArray[np.int32], int]:
    """Number the groups 0, 1, ... in sorted order of their labels."""
    if groups is None:
        return np.arange(d, dtype=np.int32), d
    if isinstance(groups, numbers.Integral) and not isinstance(groups, bool):
        if groups < 1:
            raise ValueError(f"A block size must be at least 1; got groups={groups!r}.")
        size = min(int(groups), max(d, 1))
        return (np.arange(d) // size).astype(np.int32), -(-d // size)
    in_order = hasattr(groups, "__len__") and getattr(groups, "ndim", 1) == 1
    if isinstance(groups, (str, bytes, set, frozenset, dict)) or not in_order:
        raise ValueError(
            f"groups must be None, a block size or one label per feature; got {groups!r}."
        )
    if len(groups) != d:
        raise ValueError(
            f"groups has {len(groups)} labels but the data have {d} features; give one label "
            "per feature."
        )
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    for feature, label in enumerate(labels):
        if not _is_label(label):
            raise ValueError(
                f"groups must hold labels such as numbers or names; that of feature {feature} is "
                f"{label!r}."
            )
    try:
        distinct = sorted(set(labels))
    except TypeError:
        # Labels of mixed types have no order; then the groups count as they first appear.
        distinct = list(dict.fromkeys(labels))
    position = {label: number for number, label in enumerate(distinct)}
    return np.array([position[label] for label in labels], dtype=np.int32), len(distinct)


def _is_label(label: Any) -> bool:
    """Whether it can be compared, and is not missing: neither None nor other than itself."""
    try:
        return label is not None and bool(label == label) and hash(label) is not None
    except (TypeError, ValueError):
        return False


def _feature_weights(
    weights: Any, groups: NDArray[np.int32], n_groups: int, column_std: Floats | None
) -> Floats:
    d = groups.size
    if weights is None:
        return np.ones(d)
    if isinstance(weights, str):
        if weights != "scale":
            raise ValueError(
                f"weights must be None, an array of numbers or 'scale'; got {weights!r}."
            )
        if column_std is None or np.shape(column_std) != (d,):
            raise ValueError(
                f"weights='scale' needs the standard deviation of each of the {d} columns; got "
                f"{'none' if column_std is None else f'an array of shape {np.shape(column_std)}'}."
            )
        std = np.asarray(column_std, dtype=np.float64)
        return np.where(std > 0.0, std, 1.0)
    try:
        omega = np.array(weights, dtype=None if np.iscomplexobj(weights) else np.float64)
    except (TypeError, ValueError, OverflowError):
        omega = np.array(None)
    if omega.dtype != np.float64:
        raise ValueError(f"weights must be None, an array of numbers or 'scale'; got {weights!r}.")
    if omega.ndim != 1 or omega.size not in (d, n_groups):
        raise ValueError(
            f"weights has shape {omega.shape} but there are {d} features in {n_groups} groups; "
            "give one weight per feature or one per group."
        )
    refused = ~(np.isfinite(omega) & (omega >= 0.0))
    if refused.any():
        where = int(np.argmax(refused))
        raise ValueError(
            f"Penalty weights must be finite and not negative; weight {where} is {omega[where]}."
        )
    _require_moderate(omega)
    return omega if omega.size == d else omega[groups]


def _require_moderate(omega: Floats) -> None:
    """Refuse weights so small or large that products with them may vanish or overflow."""
    refused = (omega != 0.0) & ((omega < 1.0 / LARGEST) | (omega > LARGEST))
    if refused.any():
        where = int(np.argmax(refused))
        raise ValueError(
            f"Penalty weights must be 0 or between {1.0 / LARGEST:g} and {LARGEST:g}; weight "
            f"{where} is {omega[where]:g}. Multiply all weights by a constant, or alpha."
        )
