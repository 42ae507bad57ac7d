"""The algorithms, by name, and the table that chooses among them."""

from __future__ import annotations

from sparsvm.solvers.base import Solver
from sparsvm.solvers.bcd import BCD
from sparsvm.solvers.block_newton import BlockNewton
from sparsvm.solvers.budget_search import BudgetSearch
from sparsvm.solvers.chain import Chain, Stage
from sparsvm.solvers.cone import ConeProgram
from sparsvm.solvers.constrained import CONSTRAINED_SOLVERS
from sparsvm.solvers.cutting_plane import CuttingPlane
from sparsvm.solvers.dca import DCA
from sparsvm.solvers.fbpd import FBPD
from sparsvm.solvers.fbpd_budget import FBPDEpigraph, FBPDLinear
from sparsvm.solvers.first_order import FISTA, ForwardBackward, SpaRSA
from sparsvm.solvers.fobos import FOBOS
from sparsvm.solvers.interior_point import InteriorPoint
from sparsvm.solvers.newton import Newton
from sparsvm.solvers.registry import AUTO, SOLVERS, as_solver, choose, resolve
from sparsvm.solvers.sdca import SDCA
from sparsvm.solvers.threads import blas_threads, thread_count

__all__ = [
    "AUTO",
    "BCD",
    "CONSTRAINED_SOLVERS",
    "DCA",
    "FBPD",
    "FISTA",
    "FOBOS",
    "SDCA",
    "SOLVERS",
    "BlockNewton",
    "BudgetSearch",
    "Chain",
    "ConeProgram",
    "CuttingPlane",
    "FBPDEpigraph",
    "FBPDLinear",
    "ForwardBackward",
    "InteriorPoint",
    "Newton",
    "Solver",
    "SpaRSA",
    "Stage",
    "as_solver",
    "blas_threads",
    "choose",
    "resolve",
    "thread_count",
]
