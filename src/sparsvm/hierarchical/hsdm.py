"""The hybrid steepest descent method of Nakayama, Yamagishi and Yamada, as a reference."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sparsvm import _core
from sparsvm._typing import Floats
from sparsvm.data.warn import warn
from sparsvm.hierarchical.bounds import Proof, difference_norms, sample_hinges
from sparsvm.hierarchical.reduction import MOST_VALUES
from sparsvm.hierarchical.result import HierarchicalSolution
from sparsvm.parameters import Parameterised, number
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History
from sparsvm.solvers.run.options import check_at_least_one
from sparsvm.solvers.run.progress import progress

# Iterations before which nothing counts as settled.
FEWEST_ITERATIONS = 1000
# Iterations between records: at least so many, and this part of those that passed, so that records
# cost next to nothing.
EVERY, EVERY_PART = 50, 8
# Records in the last half of the iterations that say whether it is settled.
FEWEST_RECORDS = 4


class HSDM(Parameterised):
    r"""Hybrid steepest descent over the fixed points of a splitting operator (their Theorem 1).

    The classifiers of least hinge are the fixed points of the Douglas-Rachford operator
    :math:`(2\,\mathrm{prox}_f - I)(2 P_N - I)`, f being the hinge of copies u of the score
    differences :math:`A p` and N the graph :math:`u = A p`. That operator, averaged, is composed
    with the projections on :math:`\omega_{rt} = w_r - w_t`, on the cones
    :math:`\|\omega_{rt}\| \le t` and on a ball; after each application t is lowered by
    :math:`\lambda_0 / n^{decay}`. The limit is a solution of the hierarchical problem, approached
    slowly: the error is about proportional to the last step. Features should be of order 1.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the hinge in its proximity operator, 1 in the paper. A small one approaches the
        least hinge slowly, a large one the largest margin.
    relaxation : float, default=0.5
        Share of the Douglas-Rachford operator in the average, between 0 and 1.
    step : float, default=10.0
        :math:`\lambda_0`, in units of :math:`\|w_r - w_t\|`.
    decay : float, default=0.75
        Exponent of the steps, above 0 and at most 1, so that they vanish but their sum does not
        converge.
    radius : float, default=1e6
        Radius of the ball for the coefficients, which must contain a solution; there is a warning
        if the ball cuts the last iterate.
    max_iter : int, default=200_000
        Largest number of iterations.
    change : float, default=1e-4
        The method stops when, over the last half of its iterations, the mean hinge (in units of
        the margin) and the largest norm (in units of itself) stayed within a range of this size.
        The status then is "settled": nothing is proved, but on small problems with features of
        order 1 the margin has been found within 1e-3 of the largest. 0 makes all iterations.

    Notes
    -----
    Two slips of the paper are set right: the sign of its :math:`A_{D,i}`, and the radius, which
    cannot be known beforehand, is a parameter.
    """

    name: ClassVar[str] = "hsdm"

    def __init__(
        self,
        gamma: float = 1.0,
        relaxation: float = 0.5,
        step: float = 10.0,
        decay: float = 0.75,
        radius: float = 1e6,
        max_iter: int = 200_000,
        change: float = 1e-4,
    ) -> None:
        self.gamma = gamma
        self.relaxation = relaxation
        self.step = step
        self.decay = decay
        self.radius = radius
        self.max_iter = max_iter
        self.change = change

    def solve(self, problem: Problem, control: Control) -> HierarchicalSolution:
        """Iterate, and certify what can be: the hinge, but not the margin."""
        self._check_options()
        begin = time.perf_counter()
        values, basis = _samples(problem)
        method = _core.Hsdm(
            x=values,
            y=problem.y,
            weight=problem.mass * problem.n,
            classes=problem.n_classes,
            gamma=float(self.gamma),
            relaxation=float(self.relaxation),
            step=float(self.step),
            decay=float(self.decay),
            radius=float(self.radius),
        )
        records: list[tuple[int, float, float, float, int]] = []
        of_samples: list[tuple[int, Floats]] = []
        report, stopped = progress(self.name, control), False
        while True:
            method.run(
                min(max(EVERY, method.iteration // EVERY_PART), self.max_iter - method.iteration)
            )
            coef, intercept = _lifted(problem, method.point(), basis)
            hinges = sample_hinges(problem, coef, intercept)
            hinge = float(np.sum(problem.mass * hinges))
            norm = float(difference_norms(coef, problem.n_classes).max())
            seconds = time.perf_counter() - begin
            records.append((method.iteration, seconds, hinge, norm, int(np.count_nonzero(coef))))
            of_samples = [(at, seen) for at, seen in of_samples if 2 * at >= method.iteration] + [
                (method.iteration, hinges)
            ]
            settled = _settled(records, float(self.change))
            if report is not None:
                # No gap is known on the way.
                nonzeros = records[-1][-1]
                stopped = report(
                    method.iteration,
                    seconds,
                    hinge,
                    np.nan,
                    nonzeros,
                    partial(_both, coef, intercept),
                )
            if settled or stopped or method.iteration >= self.max_iter:
                break
        if method.ball_active:
            warn(
                f"The ball of radius {float(self.radius):g} cuts the solution of hsdm, which is "
                "therefore not that of the problem. Raise the radius, or scale the features.",
                UserWarning,
            )
        dual = np.asarray(method.dual()) / (float(self.gamma) * problem.n)
        return HierarchicalSolution.certify(
            problem,
            coef,
            intercept,
            Proof(dual),
            tol=control.tol,
            n_iter=method.iteration,
            seconds=time.perf_counter() - begin,
            solver=self.name,
            history=_history(records),
            status_if_not="settled" if settled else ("stopped" if stopped else "max_iter"),
            resolution=_resolution(of_samples),
        )

    def _check_options(self) -> None:
        for name in ("gamma", "step", "radius"):
            if not 0.0 < number(getattr(self, name)) < np.inf:
                raise ValueError(
                    f"{name} must be positive and finite, but is {getattr(self, name)!r}."
                )
        if not 0.0 < number(self.relaxation) < 1.0:
            raise ValueError(f"relaxation must be between 0 and 1, but is {self.relaxation!r}.")
        if not 0.0 < number(self.decay) <= 1.0:
            raise ValueError(f"decay must be above 0 and at most 1, but is {self.decay!r}.")
        check_at_least_one(self, "max_iter")
        if not 0.0 <= number(self.change) < 1.0:
            raise ValueError(f"change must be at least 0 and below 1, but is {self.change!r}.")


def _both(coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    return coef, intercept


def _settled(records: list[tuple[int, float, float, float, int]], change: float) -> bool:
    """Whether hinge and norm stayed within a range of that size over the last half.

    The steps vanish so slowly that from one iteration to the next nothing ever seems to change.
    """
    done = records[-1][0]
    last = [record for record in records if 2 * record[0] >= done]
    if done < FEWEST_ITERATIONS or len(last) < FEWEST_RECORDS:
        return False
    hinges, norms = [record[2] for record in last], [record[3] for record in last]
    return max(hinges) - min(hinges) < change and max(norms) - min(norms) < change * max(norms)


def _resolution(of_samples: list[tuple[int, Floats]]) -> float:
    """Return the most that the hinge of a sample moved over the last half of the iterations.

    On halves of iris that was 1.1 to 5 times what was still missing in the end.
    """
    if len(of_samples) < 2:
        return 0.0
    hinges = np.stack([seen for _, seen in of_samples])
    return float(np.ptp(hinges, axis=0).max())


def _samples(problem: Problem) -> tuple[Floats, Floats | None]:
    """Return the samples, rotated into their span where features outnumber them.

    From zero, the iterates stay in that span, so that a rotation changes none of them.
    """
    n, d, K = problem.n, problem.d, problem.n_classes
    width = min(n, d) + 1
    entries = max(n * d, n * K, (K + K * (K - 1) // 2) * width * width)
    if entries > MOST_VALUES:
        raise ValueError(
            f"{n} distinct samples with {d} features and {K} classes are too many for hsdm, whose "
            f"factors would have {entries} entries (at most {MOST_VALUES}). Use "
            "SparseSVC(penalty='l2') with a small alpha, or fewer samples or features."
        )
    values = np.asarray(problem.design.gather_columns(np.arange(d, dtype=np.int32)))
    if d <= n:
        return np.ascontiguousarray(values), None
    basis, triangle = np.linalg.qr(values.T)
    return np.ascontiguousarray(triangle.T), basis


def _lifted(problem: Problem, point: Any, basis: Floats | None) -> tuple[Floats, Floats]:
    """Return coefficients and intercepts with the mean over the classes taken off."""
    weights, intercept = point[:, :-1], point[:, -1]
    coef = np.ascontiguousarray(weights if basis is None else weights @ basis.T)
    if problem.n_classes == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef - coef.mean(axis=0), intercept - intercept.mean()


def _history(records: list[tuple[int, float, float, float, int]]) -> History:
    iteration, seconds, hinge, norm, nonzeros = zip(*records, strict=True)
    return History(
        iteration=np.array(iteration, dtype=np.int64),
        seconds=np.array(seconds),
        objective=np.array(hinge),
        gap=np.array(norm),
        nonzeros=np.array(nonzeros, dtype=np.int64),
    )
