"""The constrained form: the least penalty within a budget of the loss."""

from sparsvm.budget.fbpd_budget import FBPDEpigraph, FBPDLinear
from sparsvm.budget.registry import CONSTRAINED_SOLVERS
from sparsvm.budget.search import BudgetSearch

__all__ = ["CONSTRAINED_SOLVERS", "BudgetSearch", "FBPDEpigraph", "FBPDLinear"]
