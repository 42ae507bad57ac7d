"""Second-order cone programs, solved by Clarabel."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsvm._typing import Floats

# Constraints: a matrix, a vector, and the kind of cone that the vector less the product is in.
Block = tuple[Any, Floats, str]
# Told the number of every iteration and its primal and dual objectives; true ends the work.
Look = Callable[[int, float, float], bool]

# Settings. Clarabel's own bound on the ratio that tells an infeasible program, at the most; and the
# seconds between two checks for signals.
RATIO, CHECK_SECONDS = 1e-6, 0.1


@dataclass(frozen=True, eq=False)
class ConeSolution:
    """A point with its multipliers, block by block of the constraints."""

    x: Floats
    slack: list[Floats]
    dual: list[Floats]
    iterations: int


def solve_cone_program(
    linear: Floats,
    blocks: list[Block],
    *,
    quadratic: Any = None,
    tol: float = 1e-10,
    max_iter: int | None = None,
    look: Look | None = None,
) -> ConeSolution:
    r"""Minimise :math:`\tfrac12 x^\top P x + q^\top x` subject to :math:`b - A x \in` cones.

    Parameters
    ----------
    linear : array of shape (m,)
        q.
    blocks : list of (A, b, kind)
        Constraints; `kind` is "nonnegative" or "second_order".
    quadratic : matrix of shape (m, m), optional
        P, zero by default.
    tol : float
        Aim for relative gap and residuals. What is reached is for the caller's own certificate
        to say, so that a solution of lesser accuracy is returned all the same.
    max_iter : int, optional
        Limit of iterations; by default Clarabel's own, 200.
    look : callable, optional
        Called at every iteration, by the thread that called.
    """
    # Loading it takes longer than most problems, and few fits need it.
    import clarabel

    m = linear.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if max_iter is not None:
        settings.max_iter = max_iter
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.tol_ktratio = min(tol, RATIO)
    # One thread: Clarabel's own factorisation, 2 to 4 times faster here than its parallel one.
    settings.direct_solve_method = "qdldl"
    settings.max_threads = 1
    kinds = {
        "nonnegative": clarabel.NonnegativeConeT,
        "second_order": clarabel.SecondOrderConeT,
    }
    P = sp.csc_matrix((m, m)) if quadratic is None else sp.triu(quadratic, format="csc")
    matrix = sp.vstack([sp.csr_matrix(A) for A, _, _ in blocks], format="csc")
    bound = np.concatenate([b for _, b, _ in blocks])
    cones = [kinds[kind](b.size) for _, b, kind in blocks if b.size]
    found = _interruptible(
        clarabel.DefaultSolver(sp.csc_matrix(P), linear, matrix, bound, cones, settings), look
    )
    cuts = np.cumsum([b.size for _, b, _ in blocks])[:-1]
    return ConeSolution(
        x=np.array(found.x),
        slack=np.split(np.array(found.s), cuts),
        dual=np.split(np.array(found.z), cuts),
        iterations=int(found.iterations),
    )


def _interruptible(solver: Any, look: Look | None) -> Any:
    """Run a solver in a thread of its own, so that Ctrl-C is answered while it works.

    Clarabel does not look for signals, and an exception raised in its callback is lost; what the
    callback returns ends the work at the next iteration. It waits there for the answer of ``look``.
    """
    outcome: list[Any] = []
    errors: list[BaseException] = []
    stopped = False
    reached: queue.SimpleQueue[tuple[int, float, float] | None] = queue.SimpleQueue()
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.append(solver.solve())
        except BaseException as error:
            errors.append(error)
        finally:
            reached.put(None)

    def told(info: Any) -> bool:
        if look is None or stopped:
            return stopped
        reached.put((info.iterations, info.cost_primal, info.cost_dual))
        return answers.get()

    solver.set_termination_callback(told)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            try:
                at = reached.get(timeout=CHECK_SECONDS)
            except queue.Empty:
                continue
            if at is None or look is None:
                break
            stopped = look(*at)
            answers.put(stopped)
    except BaseException:
        stopped = True
        answers.put(True)
        raise
    if errors:
        raise errors[0]
    return outcome[0]
