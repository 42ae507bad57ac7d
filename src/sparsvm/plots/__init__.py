"""Pictures of fitted models, in the manner of scikit-learn's displays.

Each display has a class method that computes what it shows, and a method ``plot`` that draws it,
into ``ax`` if given. They need matplotlib (``pip install "sparsvm[plots]"``), which is imported
when something is drawn and not before.
"""

from sparsvm.plots.convergence import ConvergenceDisplay
from sparsvm.plots.margin import MarginDisplay
from sparsvm.plots.path import PathDisplay
from sparsvm.plots.pattern import SparsityPatternDisplay
from sparsvm.plots.selection import SelectionDisplay
from sparsvm.plots.stability import StabilityDisplay

__all__ = [
    "ConvergenceDisplay",
    "MarginDisplay",
    "PathDisplay",
    "SelectionDisplay",
    "SparsityPatternDisplay",
    "StabilityDisplay",
]
