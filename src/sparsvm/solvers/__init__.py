"""The algorithms, by name, and the table that chooses among them."""

from __future__ import annotations

from sparsvm.solvers.auto import AUTO, SOLVERS, as_solver, choose, resolve
from sparsvm.solvers.base import Solver
from sparsvm.solvers.block_newton import BlockNewton
from sparsvm.solvers.chain import Chain, Stage
from sparsvm.solvers.cone_program import ConeProgram
from sparsvm.solvers.dca import DCA
from sparsvm.solvers.interior_point import InteriorPoint
from sparsvm.solvers.newton import Newton
from sparsvm.solvers.observed import Observed
from sparsvm.solvers.papers.bcd import BCD
from sparsvm.solvers.papers.cutting_plane import CuttingPlane
from sparsvm.solvers.papers.fbpd import FBPD
from sparsvm.solvers.papers.first_order import FISTA, ForwardBackward, SpaRSA
from sparsvm.solvers.papers.fobos import FOBOS
from sparsvm.solvers.prox_newton import ProxNewton
from sparsvm.solvers.run.monitor import Progress, solved_within
from sparsvm.solvers.run.threads import blas_threads, thread_count
from sparsvm.solvers.sdca import SDCA

__all__ = [
    "AUTO",
    "BCD",
    "DCA",
    "FBPD",
    "FISTA",
    "FOBOS",
    "SDCA",
    "SOLVERS",
    "BlockNewton",
    "Chain",
    "ConeProgram",
    "CuttingPlane",
    "ForwardBackward",
    "InteriorPoint",
    "Newton",
    "Observed",
    "Progress",
    "ProxNewton",
    "Solver",
    "SpaRSA",
    "Stage",
    "as_solver",
    "blas_threads",
    "choose",
    "resolve",
    "solved_within",
    "thread_count",
]
