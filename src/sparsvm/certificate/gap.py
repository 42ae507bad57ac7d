r"""The duality gap of a convex problem, from any dual guess.

The dual of the :class:`~sparsvm.problem.Problem` is, with the dual entries F of
:class:`~sparsvm.problem.solution.Solution` and their signed matrix :math:`\tilde Y`,

.. math::
    \max_F \; -\sum_i p_i\, \ell_i^*(\tilde Y_i / p_i) - \alpha\, penalty^*(V - G/\alpha),
    \qquad G_{kj} = \sum_i \tilde Y_{ik} x_{ij},

over :math:`F \ge 0` (rows within the mass :math:`p_i` for the hinge and the logistic loss),
subject to :math:`\sum_i \tilde Y_{ik} = 0` where there is an intercept and
:math:`\sum_i x_{ij} \tilde Y_{ik} = 0` for unpenalised features. The first term is spelled out in
:mod:`sparsvm.certificate.dual_gain`; for the hinge it is :math:`\sum F_{ik} m_{ik}`.

Any dual guess is repaired into a feasible point: :mod:`sparsvm.certificate.balance` restores the
equalities by multiplying entries; one factor brings every row back under its mass where there is a
limit, and the best factor for which the penalty's constraint holds is searched for. Scaling all
entries by one factor keeps the equalities. For smooth losses the natural guess is the derivative of
the loss at the given coefficients, which tends to the dual solution as they tend to the solution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparsvm._typing import Floats
from sparsvm.certificate.balance import balance
from sparsvm.certificate.dual_gain import Gain, gain_of, maximise
from sparsvm.certificate.dual_slope import (
    feature_slopes,
    largest_slope,
    limit,
    pulled_inside,
    slope,
)
from sparsvm.losses import Hinge, SmoothLoss
from sparsvm.numerics.columns import Columns
from sparsvm.numerics.packed import Packed
from sparsvm.numerics.rounding import OTHER_ROUNDINGS, UNIT, UP_FACTOR
from sparsvm.numerics.rows import row_blocks, row_sum
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Certificate

# Settings.
# Dual entries smaller than this, relative to the mass of their sample, may be left out.
TRACE = 1e-10
# Golden sections that leave 1e-13 of an interval.
GOLDEN, SECTIONS = (5.0**0.5 - 1.0) / 2.0, 62
# Samples whose worst slopes differ by less than this share are scaled alike.
SLOPE_RESOLUTION = 1e-6
# Cutting rows and balancing again: at most so often, until rows are within this of their masses,
# and only while the gain grows by a hundredth (where the factor is near 1, by more than rounding).
CUTS = 30
MASS_TOLERANCE = 1e-8
NEAR_ONE = 0.99
CUT_GAIN, CUT_GAIN_NEAR_ONE = 1.01, 1.0 + 1e-9
# The search for the largest feasible factor halves its interval, down to a few roundings.
HALVINGS = 60
NARROWEST_INTERVAL = 1e-14


def duality_gap(
    problem: Problem,
    W: Floats | Columns,
    b: Floats,
    dual: Floats | None,
    overwrite_dual: bool = False,
) -> Certificate:
    """Return the certificate of (W, b), with the lower bound made from ``dual``, maybe in place."""
    if not isinstance(problem.loss, Hinge | SmoothLoss) or not problem.penalty.convex:
        raise ValueError(
            f"A duality gap exists for a convex loss with a convex penalty; got the loss "
            f"{problem.loss.name!r} with the penalty {problem.penalty.kind!r}."
        )
    W = problem.few_columns(W if isinstance(W, Columns) else np.asarray(W, dtype=np.float64))
    b = np.asarray(b, dtype=np.float64)
    # Of arrays of all samples and classes no more than one should be alive at a time.
    if isinstance(problem.loss, SmoothLoss):
        scores = problem.scores(W, b)
        dual = problem.dual_at(scores) if dual is None else dual
        objective, floor = problem.objective_at(scores, W), problem.floor(W, b, scores)
        del scores
    else:
        objective, floor = problem.objective(W, b), problem.floor(W, b)
    entries = repaired_dual(problem, dual, overwrite_dual)
    entries, scale, bound = _best_repair(problem, entries)
    if not bound > zero_dual_bound(problem):
        scale, bound = 0.0, zero_dual_bound(problem)
    bound += problem.offset
    entries *= scale
    return Certificate(objective, bound, floor, _with_true_class(problem, entries))


def _best_repair(problem: Problem, entries: Floats) -> tuple[Floats, float, float]:
    """Return entries that keep the penalty's constraint well, their factor and the value there.

    They may take the place of the given ones.
    """
    scale, bound = best_scale(problem, entries)
    if scale >= 1.0:
        return entries, scale, bound
    if problem.linear_term is not None:
        for inside in _other_repairs(problem, entries):
            inside *= _fitting(inside, problem.mass).min() if problem.loss.within_masses else 1.0
            other = best_scale(problem, inside)
            if other[1] > bound:
                entries, (scale, bound) = inside, other
            if scale >= 1.0:
                return entries, scale, bound
    if (beyond := _beyond(problem, entries)) is not None:
        before = Packed(entries)
        entries = _thinned(problem, entries, beyond)
        other = best_scale(problem, entries)
        if other[1] > bound:
            scale, bound = other
        else:
            entries = before.unpacked(out=entries)
    return entries, scale, bound


def repaired_dual(problem: Problem, dual: Floats | None, overwrite: bool = False) -> Floats:
    """Return entries that satisfy everything but the penalty's constraint.

    For losses of score differences the true class has 0. ``overwrite`` says that the array of
    the dual may hold them.
    """
    n, K = problem.n, problem.n_classes
    if dual is None:
        return np.zeros((n, K))
    entries = (np.asarray if overwrite else np.array)(dual, dtype=np.float64, order="C")
    if entries.shape != (n, K):
        raise ValueError(
            f"The dual has shape {entries.shape} but there are {n} samples and {K} classes."
        )
    if not problem.one_vs_rest:
        entries[np.arange(n), problem.y] = 0.0
    for rows in row_blocks(n, K):
        # Comparisons with NaN are false.
        entries[rows][~((entries[rows] > 0.0) & (entries[rows] < np.inf))] = 0.0
    restricted = problem.fit_intercept or problem.penalty.free.size > 0
    if problem.loss.within_masses:
        entries *= _fitting(entries, problem.mass)[:, None]
        return _balanced_within_masses(problem, entries) if restricted else entries
    # Without a limit on the rows only the ray counts; on it, entries near 1 stay in range.
    entries /= entries.max(initial=0.0) or 1.0
    entries = balance(problem, entries, overwrite=True) if restricted else entries
    peak = gain_of(problem, entries).peak()
    if peak > 0.0:
        entries *= peak
    return entries


def _other_repairs(problem: Problem, entries: Floats) -> Iterator[Floats]:
    """Yield copies of the entries in which what a linear term on the edge spoilt may hold.

    The edge is that of the dual ball.

    Entries next to nothing hinder the other repair, which changes all in relative terms.
    """
    if (inside := pulled_inside(problem, entries)) is not None:
        yield inside
    if (kept := _without_traces(problem, entries)) is not None:
        yield kept
        if (inside := pulled_inside(problem, kept)) is not None:
            yield inside


def _without_traces(problem: Problem, entries: Floats) -> Floats | None:
    """Return the entries without those that are next to nothing; None if there is none.

    Of a class that should have none at all interior points leave some of 1e-13. Where its linear
    term is on the edge of the dual ball their slope lies on either side of it, and the factor that
    repairs this was 0.4.
    """
    traces = (entries > 0.0) & (entries < TRACE * problem.mass[:, None])
    if not traces.any():
        return None
    kept = np.where(traces, 0.0, entries)
    if not (problem.fit_intercept or problem.penalty.free.size > 0):
        return kept
    if problem.loss.within_masses:
        return _balanced_within_masses(problem, kept)
    return balance(problem, kept, overwrite=True)


def _beyond(problem: Problem, entries: Floats) -> Floats | None:
    """Return by how much the worst slope among each sample's features is beyond the dual ball.

    Of sparse samples a single rare feature concerns few, and scaling all of them for its sake may
    cost most of the gap. None where there is nothing to choose between samples.
    """
    hinge = isinstance(problem.loss, Hinge)
    if not hinge or not problem.penalty.is_norm or problem.linear_term is not None:
        return None
    norms = feature_slopes(problem, entries)
    if norms is None:
        return None
    norms -= 1.0
    beyond = np.asarray(problem.design.largest_weights(np.maximum(norms, 0.0, out=norms)))
    if beyond.min(initial=np.inf) >= (1.0 - SLOPE_RESOLUTION) * beyond.max(initial=0.0):
        return None
    return beyond


def _thinned(problem: Problem, entries: Floats, beyond: Floats) -> Floats:
    """Scale down, in place, only the samples that have a feature beyond the dual ball."""
    entries /= (1.0 + beyond)[:, None]
    if problem.fit_intercept or problem.penalty.free.size > 0:
        entries = _balanced_within_masses(problem, entries)
    entries *= _fitting(entries, problem.mass).min()
    return entries


def _balanced_within_masses(problem: Problem, entries: Floats) -> Floats:
    """Balance in place, and scale by the one factor that brings every row under its mass.

    Where that factor is far from 1 (a sample of tiny mass in a class whose entries were far from
    balanced holds all others back), cutting single rows and balancing again does better.
    """
    best, factor, best_gain = None, 1.0, 0.0
    for _ in range(CUTS):
        entries = balance(problem, entries, overwrite=True)
        factors = _fitting(entries, problem.mass)
        smallest = float(factors.min())
        gain = _gain_within_masses(problem, entries, smallest)
        worth = CUT_GAIN_NEAR_ONE if smallest > NEAR_ONE else CUT_GAIN
        worth_it = gain > worth * best_gain
        done = smallest > 1.0 - MASS_TOLERANCE or not worth_it
        if gain > best_gain and done:
            entries *= smallest
            return entries
        if gain > best_gain:
            best, factor, best_gain = Packed(entries), smallest, gain
        if done:
            break
        # Balancing gives about half of a cut back, hence the square.
        entries *= factors[:, None] ** 2
    if best is None:
        entries[:] = 0.0
        return entries
    entries = best.unpacked(out=entries)
    entries *= factor
    return entries


def _gain_within_masses(problem: Problem, entries: Floats, factor: float) -> float:
    """Return the gain at the factor times the entries, which only then fit under the masses.

    Entries against a linear term are worth more than their margins, which may all be zero: there
    the measure is how much of them is left.
    """
    if isinstance(problem.loss, Hinge):
        return factor * float(
            problem.margin_value(entries) if problem.linear_term is None else entries.sum()
        )
    return gain_of(problem, factor * entries).value(1.0)


def _fitting(entries: Floats, mass: Floats) -> Floats:
    """For each row the largest factor up to 1 that keeps its sum within its mass."""
    totals = row_sum(entries)
    factors: Floats = np.ones_like(totals)
    np.divide(mass, totals, out=factors, where=totals > mass)
    return factors


def best_scale(problem: Problem, entries: Floats) -> tuple[float, float]:
    """Return the best factor c >= 0 of the entries, and the dual value at c times the entries."""
    gain = gain_of(problem, entries)
    if problem.penalty.is_norm and problem.linear_term is None:
        # The error of G is added, which rounds the dual norm up.
        norm, top = largest_slope(problem, entries) * limit(problem), gain.peak()
        scale = top if norm * top <= 1.0 else 1.0 / norm
        return scale, gain.value(scale)
    if problem.penalty.quadratic and problem.linear_term is None:
        norms = feature_slopes(problem, entries)
        if norms is not None:
            return _squared_scale(problem, norms, gain)
    G, error = slope(problem, entries)
    if problem.penalty.is_norm:
        scale = _norm_scale(problem, G, error, gain.peak())
        return scale, (-np.inf if scale < 0.0 else gain.value(scale))
    if not problem.penalty.built_in:
        return searched_scale(problem, G, error, gain)
    return conjugate_scale(problem, G, error, gain)


def zero_dual_bound(problem: Problem) -> float:
    """Return the dual value with all mass on the true classes: 0 without a linear term."""
    if problem.linear_term is None:
        built_in = problem.penalty.built_in or problem.penalty.is_norm
        zeros = (problem.n_outputs, problem.d)
        return 0.0 if built_in else -problem.alpha * problem.penalty.conjugate(np.zeros(zeros))
    if problem.penalty.is_norm:
        return 0.0 if problem.penalty.dual_norm(problem.linear_term) <= limit(problem) else -np.inf
    return -problem.alpha * problem.penalty.conjugate(problem.linear_term)


def _norm_scale(problem: Problem, G: Floats, error: Floats, top: float) -> float:
    """Return the largest c up to ``top`` with dual norm of ``V - c G`` at most 1, or -1 if none.

    V often sits on the boundary (a coefficient beyond the cap of capped l1 has slope exactly 1),
    where rounding up would forbid every c > 0; there a violation within the error of G is let
    pass, as for the equalities, since it moves the bound by less than the floor.
    """
    penalty, linear_term = problem.penalty, problem.linear_term
    assert linear_term is not None
    if penalty.is_l1:
        # |V - c G| <= omega, coordinate by coordinate.
        sizes = np.abs(G) - error
        room = penalty.omega * limit(problem) + np.sign(G) * linear_term
        if np.any(penalty.omega * limit(problem) < np.abs(linear_term)):
            return -1.0
        # Dividing by the others could overflow.
        binding = (top * sizes > room) & (penalty.omega > 0.0)
        return float(np.min(room[binding] / sizes[binding], initial=top))

    def excess(c: float) -> float:
        reduced = np.maximum(np.abs(linear_term - c * G) - c * error, 0.0)
        return penalty.dual_norm(reduced) - limit(problem)

    low, high = 0.0, top
    at_low, at_high = excess(low), excess(high)
    if at_low > 0.0:
        return -1.0
    if at_high <= 0.0:
        return top
    # The dual norm is convex in c, so the chord's root is feasible; halving guards progress.
    for _ in range(HALVINGS):
        middle = low + (high - low) * at_low / (at_low - at_high) if at_low < 0.0 else low
        if (at_chord := excess(middle)) <= 0.0:
            low, at_low = middle, at_chord
        middle = 0.5 * (low + high)
        at_middle = excess(middle)
        if at_middle <= 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        if high - low <= NARROWEST_INTERVAL * high:
            break
    return low


def _squared_scale(problem: Problem, norms: Floats, gain: Gain) -> tuple[float, float]:
    r"""Return the c >= 0 that maximises ``gain(c) - alpha c² norms² / 2``, and the value there.

    The norms of the features, errors included, are all that l2 needs of G.
    """
    # The norms themselves are rounded, too.
    rounding = (1.0 + (problem.n_outputs + OTHER_ROUNDINGS) * UNIT) ** 2 * UP_FACTOR
    curvature = problem.alpha * float(np.sum(norms * norms)) * rounding

    def derivatives(c: float) -> tuple[float, float]:
        first, second = gain.derivatives(c)
        return first - c * curvature, second - curvature

    c = maximise(derivatives, gain.limit) if curvature > 0.0 or gain.peak() > 0.0 else 0.0
    return c, gain.value(c) - 0.5 * c * c * curvature


def conjugate_scale(problem: Problem, G: Floats, error: Floats, gain: Gain) -> tuple[float, float]:
    """Return the factor c >= 0 that maximises ``gain(c) - alpha conjugate(V - c G)``.

    The second term is piecewise quadratic, so a safeguarded Newton search on the derivative is
    exact for l2 and takes a few steps for the elastic net.
    """
    penalty, alpha, rho = problem.penalty, problem.alpha, problem.penalty.l1_ratio
    slope = -G * penalty.inverse_omega
    offset = None if problem.linear_term is None else problem.linear_term * penalty.inverse_omega

    def point(c: float) -> Floats:
        return c * slope if offset is None else offset + c * slope

    def derivatives(c: float) -> tuple[float, float]:
        V = point(c)
        excess = V - np.clip(V, -rho, rho)
        active = np.where(excess != 0.0, slope, 0.0)
        first, second = gain.derivatives(c)
        first -= alpha * float(np.vdot(excess, slope)) / (1.0 - rho)
        return first, second - alpha * float(np.vdot(active, active)) / (1.0 - rho)

    c = maximise(derivatives, gain.limit) if np.any(G) or gain.peak() > 0.0 else 0.0
    rounded = (np.abs(point(c)) * penalty.omega + c * error) * limit(problem)
    return c, gain.value(c) - alpha * penalty.conjugate(rounded) * UP_FACTOR


def searched_scale(problem: Problem, G: Floats, error: Floats, gain: Gain) -> tuple[float, float]:
    """Return the factor c >= 0 that maximises ``gain(c) - alpha conjugate(-c G)``, by sections.

    A user's own conjugate has no derivative. It is taken at the slopes with their errors, which
    rounds it up where it grows with every slope.
    """
    G = -(G + np.sign(G) * error)

    def value(c: float) -> float:
        penalty = problem.penalty.conjugate(c * G)
        return gain.value(c) - problem.alpha * penalty * UP_FACTOR

    # The conjugate is least at 0, so beyond the peak nothing is gained.
    low, high = 0.0, gain.peak()
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [value(c) for c in inner]
    tried = [(value(high), high), *zip(values, inner, strict=True)]
    for _ in range(SECTIONS):
        # Where both are infeasible, the maximum is below them.
        if values[0] >= values[1]:
            high = inner[1]
            inner = [high - GOLDEN * (high - low), inner[0]]
            values = [value(inner[0]), values[0]]
            tried.append((values[0], inner[0]))
        else:
            low = inner[0]
            inner = [inner[1], low + GOLDEN * (high - low)]
            values = [values[1], value(inner[1])]
            tried.append((values[1], inner[1]))
    best, c = max(tried)
    return c, best


def _with_true_class(problem: Problem, entries: Floats) -> Floats:
    """Give the rest of each mass to the true class, where rows are limited by their masses."""
    if not problem.loss.within_masses:
        return entries
    rest = np.maximum(problem.mass - row_sum(entries), 0.0)
    entries[np.arange(problem.n), problem.y] = rest
    return entries
