"""The hierarchical problem: the largest smallest margin among classifiers of least hinge."""

from sparsvm.hierarchical.hsdm import HSDM
from sparsvm.hierarchical.registry import SOLVERS, as_hierarchical_solver
from sparsvm.hierarchical.result import HierarchicalSolution
from sparsvm.hierarchical.staged import Staged

__all__ = ["HSDM", "SOLVERS", "HierarchicalSolution", "Staged", "as_hierarchical_solver"]
