r"""Primal-dual interior point for smooth losses with a sparse penalty.

For a working set of features, with :math:`w = \omega \circ W` and the loss :math:`f` of the data,

.. math::
    \min_{w, b} \; f(w, b) + \tfrac{q}{2} \|w\|^2 + \sum_g a_g\, t_g, \qquad
    \|w_g\|_\infty \le t_g \;\text{ or }\; \|w_g\|_2 \le t_g ,

where a single coefficient is a group of l1. Each step linearises the gradient of the loss and the
perturbed complementarity of the cones (Nesterov-Todd scaling for the second-order ones), eliminates
the bounds t, and factors one matrix of the size of the coefficients: Hessian of the loss plus a
diagonal and a rank-one term for every group. Kinks, ties and columns of any scale cost nothing,
which is what Newton steps from face to face stumble over; every step is dear, though.
"""

from sparsvm.solvers.smooth_interior_point.working_set import (
    predicted_work,
    solve_smooth,
    unsupported_smooth,
)

__all__ = ["predicted_work", "solve_smooth", "unsupported_smooth"]
