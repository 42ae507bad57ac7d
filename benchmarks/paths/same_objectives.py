"""Logistic paths of every package that follows them, and ours to each one's objectives.

``python benchmarks/paths/same_objectives.py [NAME ...] [--npz FILE ...]`` prints a Markdown table.
All follow the same 100 alphas down to a hundredth of alpha_max: glmnet (its default threshold, and
1e-9), adelie (l1/l2) and cyanure with several classes and intercepts; glmnet, celer, skglm and
sortedl1 with two classes and l1, without intercepts, since the path of celer has none; each for
``--limit`` seconds. A
path is as far from the optimum as the worst of its objectives, relative to a proven lower bound.
Ours is followed to tolerances of 1e-2 ... 1e-8, and the first whose path is as near counts. Other
packages are left out where they are not installed. Dense columns are standardised, classes of one
sample left out, which glmnet refuses. Processor time of one thread.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import one_thread  # noqa: F401  (before NumPy)

# isort: split

import argparse
import time
import warnings
from functools import cached_property

import numpy as np
import peers
from against_glmnet import DATA, files, load_libraries, objective, of_path, prepared
from sklearn.datasets import load_breast_cancer

from sparsvm import alpha_max, datasets, svm_path

TOLERANCES = 10.0 ** np.arange(-2.0, -8.5, -0.5)
TWO_CLASSES = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "arcene": lambda: datasets.load_arcene(return_X_y=True),
    "dexter": lambda: datasets.load_dexter(return_X_y=True),
    "madelon": lambda: datasets.load_madelon(return_X_y=True),
}


class Problem:
    """Data, penalty and alphas; our paths to all tolerances that were asked for."""

    def __init__(self, X, code, penalty):
        self.X, self.code, self.penalty = X, code, penalty
        self.K = code.max() + 1
        self.options = {"loss": "logistic", "penalty": penalty, "fit_intercept": self.K > 2}
        self.alphas = alpha_max(X, code, **self.options) * np.logspace(0, -2, 100)
        self.paths = {}

    def objectives(self, models):
        """Return the objectives of pairs of weights and intercepts, one pair an alpha."""
        pairs = zip(models, self.alphas, strict=True)
        if self.K > 2:
            return np.array([objective(self.X, self.code, *m, a, self.penalty) for m, a in pairs])
        sign = 2.0 * self.code - 1.0
        return np.array(
            [
                np.logaddexp(0.0, -sign * (self.X @ w.ravel())).mean() + a * np.abs(w).sum()
                for (w, _), a in pairs
            ]
        )

    def ours(self, tol):
        """Return seconds, objectives and proven lower bounds of our path to a tolerance."""
        if tol not in self.paths:
            began = time.process_time()
            path = svm_path(self.X, self.code, alphas=self.alphas, tol=tol, **self.options)
            seconds = time.process_time() - began
            if self.K > 2:
                models = of_path(path, self.K)
            else:
                models = ((coef.toarray(), None) for coef in path.coefs)
            f = self.objectives(models)
            self.paths[tol] = seconds, f, f * (1.0 - path.gaps)
        return self.paths[tol]

    @cached_property
    def bounds(self):
        return self.ours(TOLERANCES[-1])[2]

    def distance(self, f):
        return np.max(f / self.bounds - 1.0)

    def reached(self, distance):
        """Return the first tolerance whose path is as near to the optimum, and its seconds."""
        for tol in TOLERANCES:
            seconds, f, _ = self.ours(tol)
            if self.distance(f) <= distance:
                return tol, seconds
        return None, None

    def peers(self, limit):
        """Yield names and what each package found: seconds, weights, intercepts."""
        X, code, alphas = self.X, self.code, self.alphas
        for name, thresh in (("glmnet", 1e-7), ("glmnet, thresh=1e-9", 1e-9)):
            options = {"alphas": alphas, "thresh": thresh, "binomial": self.K == 2}
            found = peers.glmnet(X, code, self.penalty, limit, **options)
            whole = found is not None and not isinstance(found, peers.Unfinished)
            yield name, (found[0], *found[2:]) if whole else found
        if self.K > 2:
            if self.penalty == "l1/l2":
                yield "adelie", peers.adelie(X, code, alphas)
            yield "cyanure", peers.cyanure(X, code, alphas, self.penalty, limit)
            return
        sign = 2.0 * code - 1.0
        found = {
            "celer": peers.celer(X, sign, alphas),
            "skglm": peers.skglm(X, sign, alphas, limit),
            "sortedl1": peers.sortedl1(X, sign, alphas),
        }
        for name, result in found.items():
            whole = result is not None and not isinstance(result, peers.Unfinished)
            yield name, (*result, np.zeros(alphas.size)) if whole else result


def lines(name, X, code, penalty, limit):
    """Yield the lines of the table for one problem."""
    problem = Problem(X, code, penalty)
    shape = f"{X.shape[0]} × {X.shape[1]}, {problem.K}"
    for peer, found in problem.peers(limit):
        start = f"| {name} | {shape} | {penalty} | {peer} |"
        if found is None:
            continue
        if isinstance(found, peers.Unfinished):
            yield f"{start} > {limit} ({found.computed} % of the alphas) | | | | |"
            continue
        theirs, weights, intercepts = found
        distance = problem.distance(problem.objectives(zip(weights, intercepts, strict=True)))
        tol, seconds = problem.reached(distance)
        cells = ["", "", ""] if tol is None else [f"{tol:.0e}", f"{seconds:.2f}"]
        cells += [] if tol is None else [f"{theirs / seconds:.2f}"]
        yield f"{start} {theirs:.2f} | {distance:.0e} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = DATA | TWO_CLASSES
    parser.add_argument("names", nargs="*", help=f"of {', '.join(data)}; all by default")
    parser.add_argument("--npz", nargs="*", default=[], help="files with arrays X and y")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one package")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of packages that stop before their tolerance
    chosen = {name: data[name] for name in options.names or ([] if options.npz else data)}
    chosen |= files(options.npz)
    load_libraries()
    print(
        "| data | samples × features, classes | penalty | package | its seconds | from the optimum "
        "| our tolerance | our seconds | ratio |\n|" + "---|" * 9
    )
    for name, load in chosen.items():
        X, code = prepared(*load())
        # Two classes have one weight a feature, which is a group of its own.
        for penalty in ("l1", "l1/l2") if code.max() > 1 else ("l1",):
            for line in lines(name, X, code, penalty, options.limit):
                print(line, flush=True)


if __name__ == "__main__":
    main()
