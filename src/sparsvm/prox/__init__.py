r"""Proximal operators and projections: NumPy in, NumPy out.

The operator of a function f is

.. math:: \operatorname{prox}_f(v) = \arg\min_w \tfrac12 \|w - v\|^2 + f(w),

and the projection on a set is that of its indicator. The solvers of this package call the same
compiled kernels. Every function but :func:`prox_penalty` takes one vector, or a matrix whose rows
are treated one by one; the other arguments are then numbers, or arrays with one entry a row. The
results are new float64 arrays. A NaN in a vector comes out as NaN.
"""

from sparsvm.prox.operators import prox_group_l2, prox_group_linf, prox_hinge, prox_penalty
from sparsvm.prox.projections import project_epigraph, project_l1_ball, project_simplex

__all__ = [
    "project_epigraph",
    "project_l1_ball",
    "project_simplex",
    "prox_group_l2",
    "prox_group_linf",
    "prox_hinge",
    "prox_penalty",
]
