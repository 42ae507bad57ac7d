"""What a model file may hold: the classes it may name, and the types of labels."""

from __future__ import annotations

from typing import Any

from sparsvm.budget import CONSTRAINED_SOLVERS
from sparsvm.budget.problem import ConstrainedSolution
from sparsvm.estimators import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC
from sparsvm.estimators.cv import SparseSVCCV
from sparsvm.estimators.label_ranker import SparseLabelRanker
from sparsvm.estimators.label_ranker_cv import SparseLabelRankerCV
from sparsvm.estimators.selector import SparseSelector
from sparsvm.estimators.stability import StabilitySelection
from sparsvm.hierarchical import SOLVERS as HIERARCHICAL_SOLVERS
from sparsvm.hierarchical import HierarchicalSolution
from sparsvm.losses import LOSSES
from sparsvm.penalties import PENALTIES
from sparsvm.problem.solution import History, Solution
from sparsvm.solvers import SOLVERS, Chain, Stage

# What a file may name. An estimator is added by a line here.
ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        SparseSVC,
        SparseSVCCV,
        ConstrainedSparseSVC,
        MaxMarginSVC,
        SparseLabelRanker,
        SparseLabelRankerCV,
        SparseSelector,
        StabilitySelection,
    )
}
OBJECTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *LOSSES.values(),
        *PENALTIES.values(),
        *SOLVERS.values(),
        *CONSTRAINED_SOLVERS.values(),
        *HIERARCHICAL_SOLVERS.values(),
        Chain,
        Stage,
    )
}
RESULTS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Solution, ConstrainedSolution, HierarchicalSolution)
}
# What a result does not take into a file: the model's own arrays, and how they were found.
SHARED_FIELDS = ("coef", "intercept")
DROPPED_FIELDS: dict[str, Any] = {"dual": None, "proof": None, "history": History.empty()}
# Values of a certificate that came after the first version of the format, for files without them.
LATER: dict[str, Any] = {"local_minimum": None, "resolution": 0.0}
# An array of more bytes is not written as a sparse one, so that no small file claims more memory.
LARGEST_EXPANSION = 2**30
# Bytes of a character in an array of strings.
CHARACTER = 4
SCALARS = (str, int, float, bool)
# The types of labels, but for strings of a fixed length, and what each holds.
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    "object": SCALARS,
    "bool": (bool,),
    "float32": (float,),
    "float64": (float,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class NotSaved:
    """Stands, in a loaded model, for a parameter that files cannot hold.

    Predictions do not need it; fitting again asks for it, with a message that shows this text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<not saved: {self.text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotSaved) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)
