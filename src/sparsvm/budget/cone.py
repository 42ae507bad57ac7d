r"""The constrained problem as one cone program, for what the search cannot solve.

The regularised problems of the search become hard where a column is millions of times larger than
the others of its l1/linf group: its weights cost nothing as long as they stay below those of the
group, they drift, and scores of :math:`10^7` whose differences count lose their last digits. With
every column scaled to size 1 and all samples at once, small problems of that kind are easy.
"""

from __future__ import annotations

import numpy as np

from sparsvm._typing import Floats
from sparsvm.budget.problem import ConstrainedProblem
from sparsvm.certificate.dual_slope import with_slope_on_edge
from sparsvm.certificate.gap import repaired_dual
from sparsvm.numerics.cone_program import Block
from sparsvm.problem.solution import Start
from sparsvm.solvers.cone_model import MOST_ENTRIES, ConeModel, cone_entries

# Settings: what the cone solver, accurate to 1e-11, cannot tell from a group of zeros, relative to
# the largest, and from a weight on the bound of its group.
ZERO_GROUP = 1e-9
INNER_SHARE = 1e-6


def fits_cone_program(problem: ConstrainedProblem) -> bool:
    """Whether the problem is small enough to be written out."""
    return cone_entries(problem.regularised) <= MOST_ENTRIES


def by_cone_program(problem: ConstrainedProblem) -> Start:
    """Solve the whole problem at once; how well is for the caller's certificate to say."""
    model = ConeModel(problem.regularised, problem.margins, slacks=problem.eta > 0.0)
    found = model.solve(model.penalty_costs(), _budget(problem, model))
    entries = _without_inner_slopes(problem, model, found.dual, found.coef)
    return Start(found.coef, found.intercept, problem.filled(entries))


def _budget(problem: ConstrainedProblem, model: ConeModel) -> list[Block]:
    """Slacks that are not negative, with a mean of at most eta."""
    if not model.slacks:
        return []
    n, mass = problem.regularised.n, problem.regularised.mass
    columns = np.arange(model.at.xi.start, model.at.xi.stop)
    mean = model.matrix(mass, np.zeros(n, dtype=np.intp), columns, 1)
    return [model.no_negative_slacks(), (mean, np.array([problem.eta]), "nonnegative")]


def _without_inner_slopes(
    problem: ConstrainedProblem, model: ConeModel, entries: Floats, coef: Floats
) -> Floats:
    """Let the slopes of weights strictly inside their l1/linf group vanish, as they should.

    What the cone solver leaves of them, 1e-15 of a column of 1e6, counts in the dual norm.
    """
    data = problem.regularised
    if data.penalty.group_order != np.inf:
        return entries
    sizes = np.abs(coef * data.penalty.omega).ravel()
    largest = np.zeros(int(model.groups.max()) + 1)
    np.maximum.at(largest, model.groups, sizes)
    # Groups of zeros have slopes.
    largest[largest <= ZERO_GROUP * largest.max()] = 0.0
    inside = (sizes < (1.0 - INNER_SHARE) * largest[model.groups]).reshape(coef.shape)
    for _ in range(2):
        # Balancing comes first, which would undo what is repaired; twice, because the first
        # change leaves a rounding error of its size.
        entries = repaired_dual(data, problem.filled(entries))
        G = data.transposed(data.signed_dual(entries)) / data.alpha
        changed = with_slope_on_edge(data, entries, inside, G)
        entries = entries if changed is None else changed
    return entries
