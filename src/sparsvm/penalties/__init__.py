"""The penalties, as parameterised objects, one file a formula.

Each object knows its parameters only; :meth:`Penalty.resolve` turns it, for data with d features,
into a :class:`~sparsvm.penalties.terms.PenaltyTerms` with groups and weights spelled out.
"""

from __future__ import annotations

from sparsvm.parameters import quoted
from sparsvm.penalties.base import Penalty
from sparsvm.penalties.capped_l1 import CappedL1
from sparsvm.penalties.elastic_net import ElasticNet
from sparsvm.penalties.group import GroupL2, GroupLinf
from sparsvm.penalties.l0 import L0
from sparsvm.penalties.l1 import L1
from sparsvm.penalties.l2 import L2
from sparsvm.penalties.sparse_group import SparseGroup

__all__ = [
    "L0",
    "L1",
    "L2",
    "PENALTIES",
    "CappedL1",
    "ElasticNet",
    "GroupL2",
    "GroupLinf",
    "Penalty",
    "SparseGroup",
    "as_penalty",
]

PENALTIES: dict[str, type[Penalty]] = {
    cls.name: cls for cls in (L1, L2, ElasticNet, GroupL2, GroupLinf, SparseGroup, L0, CappedL1)
}


def as_penalty(penalty: str | Penalty) -> Penalty:
    """Turn a short name into the penalty with its default parameters; pass objects through.

    Examples
    --------
    >>> from sparsvm.penalties import as_penalty
    >>> as_penalty("l1/l2")
    GroupL2()
    """
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty in PENALTIES:
        return PENALTIES[penalty]()
    raise ValueError(
        f"penalty={penalty!r} is not a penalty; pass an object of sparsvm.penalties or one of: "
        f"{quoted(PENALTIES)}."
    )
