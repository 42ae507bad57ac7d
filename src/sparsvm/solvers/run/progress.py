"""Progress lines of a running solver."""

from __future__ import annotations

from collections.abc import Callable

from sparsvm.problem.solution import Control, relative

Callback = Callable[[int, float, float, float, int], None]


def progress(name: str, control: Control) -> Callback | None:
    """Return the callback that prints one line per report, or None unless ``verbose``.

    The gap is printed relative to the objective, as ``tol`` is.
    """
    if not control.verbose:
        return None

    def report(iteration: int, seconds: float, objective: float, gap: float, nonzeros: int) -> None:
        print(
            f"{name}: iteration {iteration:>6d}  {seconds:8.2f} s  objective {objective:.8g}  "
            f"relative gap {relative(gap, objective):.2e}  non-zeros {nonzeros}",
            flush=True,
        )

    return report
