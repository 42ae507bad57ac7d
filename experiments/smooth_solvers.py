"""Objective and non-zero rows against time, for the solvers that Blondel et al. compare (Figs 2-4).

Multiclass squared hinge with l1/l2 on rows, no intercept, on News20 (tf-idf) or MNIST, from zero:

    python experiments/smooth_solvers.py --data news20 --alpha 1e-3 --seconds 10

writes one picture and prints, for each solver, the seconds of processor time to relative distances
1e-1, 1e-2 and 1e-3 from the best objective known (by block_newton). Each solver runs in chunks;
looking at its iterate is not counted. The choice of the first step of fobos is not counted either,
as in the paper.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from sparsvm.data.design import make_design
from sparsvm.datasets import load_20newsgroups, load_mnist
from sparsvm.losses import SquaredHinge
from sparsvm.penalties import GroupL2
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control
from sparsvm.solvers import BCD, FISTA, FOBOS, SpaRSA, as_solver
from sparsvm.solvers.papers.fobos import choose_step

TARGETS = (1e-1, 1e-2, 1e-3)


def problem_of(data, alpha):
    if data == "mnist":
        X, labels = load_mnist(return_X_y=True)
        X = np.ascontiguousarray(X, dtype=np.float64) / 255.0
    else:
        X, labels = load_20newsgroups(return_X_y=True)
    classes, y = np.unique(labels, return_inverse=True)
    loss = SquaredHinge()
    return Problem(
        design=make_design(X),
        y=y.astype(np.int32),
        mass=np.full(y.size, 1.0 / y.size),
        cost=loss.cost_matrix(classes.size),
        n_classes=classes.size,
        alpha=alpha,
        loss=loss,
        penalty=GroupL2().resolve(X.shape[1], classes.size),
        fit_intercept=False,
    )


def methods(problem):
    """Name, native method and iterations per chunk."""
    step = choose_step(problem, np.random.RandomState(0))
    return [
        ("BCD (LS)", lambda: BCD()._method(problem, 0), 1),
        ("BCD (CST)", lambda: BCD(step="CST")._method(problem, 0), 1),
        ("FISTA (LS)", lambda: FISTA()._method(problem), 5),
        ("FISTA (CST)", lambda: FISTA(step="CST")._method(problem), 5),
        ("SpaRSA", lambda: SpaRSA()._method(problem), 5),
        (
            f"FOBOS ($\\eta_0$ = {step:g})",
            lambda: FOBOS(eta0=step)._method(problem, np.random.RandomState(0)),
            1,
        ),
    ]


def trace(problem, make, chunk, seconds):
    """Rows of (seconds, objective, non-zero rows)."""
    began = time.process_time()
    method = make()
    spent, rows = time.process_time() - began, []
    while spent < seconds:
        began = time.process_time()
        method.run(chunk)
        spent += time.process_time() - began
        weights, intercept = method.last()[:2]
        used = int(np.count_nonzero(np.any(weights != 0.0, axis=1)))
        rows.append((spent, problem.objective(weights.T, intercept), used))
    return np.array(rows)


def reached(curve, best, target):
    """Seconds to the relative distance, or None."""
    near = np.flatnonzero(curve[:, 1] <= best * (1.0 + target))
    return None if near.size == 0 else float(curve[near[0], 0])


def draw(curves, best, share, title, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, curve in curves.items():
        left.loglog(curve[:, 0], np.maximum(curve[:, 1] / best - 1.0, 1e-9), label=name)
        right.loglog(curve[:, 0], curve[:, 2])
    right.axhline(share, color="0.6", linestyle=":", linewidth=1.0)
    left.set(xlabel="seconds", ylabel="(F − F*) / F*", title=title)
    right.set(xlabel="seconds", ylabel="non-zero rows", title="features in use (dotted: optimum)")
    left.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        # Labels of the minor ticks of a single decade would overlap.
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=("news20", "mnist"), default="news20")
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("smooth_solvers.png"))
    options = parser.parse_args()
    problem = problem_of(options.data, options.alpha)
    optimum = as_solver("block_newton").solve(problem, None, Control(tol=1e-6))
    best = optimum.objective
    used = int(np.count_nonzero(np.any(optimum.coef != 0.0, axis=0)))
    print(f"optimum {best:.8g} (gap {optimum.relative_gap:.1e}), {used} rows")
    curves = {}
    for name, make, chunk in methods(problem):
        curves[name] = trace(problem, make, chunk, options.seconds)
        best = min(best, float(curves[name][:, 1].min()))
    print(f"{'solver':24s}" + "".join(f"{target:>10.0e}" for target in TARGETS) + "      rows")
    for name, curve in curves.items():
        times = [reached(curve, best, target) for target in TARGETS]
        shown = "".join(f"{'-' if t is None else format(t, '.2f'):>10s}" for t in times)
        print(f"{name:24s}{shown}{int(curve[-1, 2]):>10d}")
    draw(curves, best, used, f"{options.data}, alpha = {options.alpha:g}", options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
