"""Random hostile calls of every native entry: ``python native_fuzz.py seed rounds``.

A process of its own, since what is looked for ends processes. Every round builds a small problem,
then calls entries with arguments of which some are hostile: of another size, type, order or number
of dimensions, empty, negative, huge, vanishing or not numbers; native objects are also driven by
two threads at once, while a third writes to the arrays they were made from. A call may refuse with
one of the exceptions below, or return; a call that goes on must be interruptible: one that is not
ends the process, after the stacks of all threads have been written down.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
import threading
import warnings

import numpy as np
import scipy.sparse as sp
from hostile_arguments import Hostile

from sparsvm import _core

REFUSALS = (ValueError, TypeError, IndexError, MemoryError, RuntimeError, OverflowError)
KINDS = ["l1", "l2", "elasticnet", "l1/l2", "l1/linf", "sparse_group"]
LOSSES = ["squared_hinge", "logistic", "ovr_squared_hinge", "hinge"]
METHODS = ["fista", "forward_backward", "sparsa"]
FORMS = ["regularised", "epigraph", "linear"]
SECONDS_A_CALL = 0.5
SECONDS_OF_GRACE = 30  # for an interrupt to be answered, on a machine with much else to do
# Of arguments that are arrays, and of those that are numbers, in turn. Right arrays with wrong
# numbers reach the loops; wrong arrays are mostly refused at the border.
RATES = [(0.0, 0.0), (0.03, 0.03), (0.08, 0.08), (0.2, 0.2), (0.0, 0.3)]


class Late(Exception):
    """The call was interrupted."""


def interrupt(*_):
    raise Late


class Round:
    """One small problem, and calls of all entries around it."""

    def __init__(self, seed, array_rate, number_rate):
        self.hostile = h = Hostile(seed, array_rate, number_rate)
        rng = h.rng
        self.n, self.d = int(rng.integers(1, 13)), int(rng.integers(0, 9))
        self.K = int(rng.integers(2, 6))
        self.outputs = 1 if self.K == 2 else self.K
        self.y = rng.integers(self.K, size=self.n).astype(np.int32)
        self.groups = np.sort(rng.integers(max(1, self.d), size=self.d)).astype(np.int32)
        self.X = rng.standard_normal((self.n, self.d)) * (rng.random((self.n, self.d)) < 0.6)
        if rng.random() < 0.2:
            self.X = self.X.astype(np.float32)
        self.writable = []
        self.design = self.try_to_make(self.make_design) or _core.Design.dense(self.X)
        self.n, self.d = self.design.n, self.design.d
        if self.n > 100 or self.d > 100 or self.n == 0:
            self.design = _core.Design.dense(np.ones((3, 2)))
            self.n, self.d = 3, 2
        self.y = np.resize(self.y, self.n)
        self.groups = np.resize(self.groups, self.d) if self.groups.size else np.zeros(self.d, "i4")

    @staticmethod
    def try_to_make(make):
        try:
            return make()
        except REFUSALS:
            return None

    def make_design(self):
        h = self.hostile
        rows = h.maybe(h.array(h.rng.integers(self.n, size=h.rng.integers(1, 20))))
        which = h.rng.integers(4)
        if which == 0:
            return _core.Design.dense(h.array(self.X), rows)
        if which == 1:
            return _core.Design.dense(
                h.array(np.asfortranarray(self.X)), rows, h.maybe(h.array(np.ones(self.d)))
            )
        matrix = sp.csr_array(self.X) if which == 2 else sp.csc_array(self.X)
        indices = matrix.indices.astype(np.int32)
        self.writable.append(indices)
        return _core.Design.sparse(
            h.array(matrix.data),
            h.array(indices),
            h.array(matrix.indptr.astype(np.int64)),
            h.count(self.n),
            h.count(self.d),
            which == 3,
            rows,
        )

    def penalty(self):
        h = self.hostile
        omega = h.rng.random(self.d) * (h.rng.random(self.d) < 0.8)
        return {
            "kind": h.name(KINDS),
            "l1_ratio": h.number(0.5),
            "groups": h.array(self.groups),
            "n_groups": h.count(self.d),
            "per_class": h.flag(),
            "omega": h.array(omega if h.flag() else np.ones(self.d)),
        }

    def shared(self):
        h = self.hostile
        cost = h.rng.random((self.K, self.K)) if h.flag() else np.ones((self.K, self.K))
        mass = np.full(self.n, 1.0 / self.n)
        y = self.y.copy()
        self.writable.append(y)
        return {
            "design": self.design,
            "y": h.array(y),
            "mass": h.array(mass),
            "cost": h.array(cost),
            "margin_scale": h.maybe(h.array(np.ones(self.n))),
            "alpha": h.number(float(h.pick([1e-3, 0.1, 1.0]))),
            "intercept": h.flag(),
            "linear_term": h.maybe(h.array(np.zeros((self.d, self.outputs)))),
            **self.penalty(),
        }

    def hinge(self):
        h = self.hostile
        margins = h.maybe(h.array(np.ones((self.n, self.K))))
        return _core.HingeProblem(**self.shared(), margins=margins, offset=h.number(0.0))

    def smooth(self):
        return _core.SmoothProblem(**self.shared(), loss=self.hostile.name(LOSSES))

    def ranking(self):
        h = self.hostile
        sets = h.rng.integers(0, 2, (self.K, self.K)).astype(np.uint8)
        y = self.y.copy()
        self.writable.append(y)
        return _core.RankingProblem(
            design=self.design,
            y=h.array(y),
            sets=h.array(sets),
            factor=h.array(np.ones(self.K)),
            mass=h.array(np.full(self.n, 1.0 / self.n)),
            alpha=h.number(0.1),
            intercept=h.flag(),
            **self.penalty(),
        )

    def weights(self, outputs=None):
        shape = (self.d, self.outputs if outputs is None else outputs)
        return self.hostile.array(self.hostile.rng.standard_normal(shape))

    def intercept(self, outputs=None):
        return self.hostile.array(np.zeros(self.outputs if outputs is None else outputs))

    def dual(self):
        return self.hostile.array(np.full((self.n, self.K), 1.0 / self.K))

    def matrix(self, rows, columns=None):
        columns = int(self.hostile.rng.integers(0, 6)) if columns is None else columns
        return self.hostile.array(self.hostile.rng.standard_normal((rows, columns)))

    def vector(self, size):
        return self.hostile.array(self.hostile.rng.random(size))

    def features(self):
        some = np.flatnonzero(self.hostile.rng.random(self.d) < 0.5).astype(np.int32)
        self.writable.append(some)
        return self.hostile.array(some), some.size

    def design_calls(self, X):
        h = self.hostile
        features, m = self.features()
        first = int(h.rng.integers(0, self.n + 1))
        return {
            "scores": lambda: X.scores(self.matrix(self.d)),
            "scores_subset": lambda: X.scores_subset(features, self.matrix(m)),
            "scores_range": lambda: X.scores_range(
                h.count(first), h.count(self.n), features, self.matrix(m)
            ),
            "transposed": lambda: X.transposed(self.matrix(self.n)),
            "gather_columns": lambda: X.gather_columns(features),
            "column_stats": lambda: X.column_stats(h.maybe(self.vector(self.n))),
            "column_norms": X.column_norms,
            "abs_scores": lambda: X.abs_scores(self.vector(self.d)),
            "largest_weights": lambda: X.largest_weights(self.vector(self.d)),
            "n": lambda: X.n,
            "d": lambda: X.d,
            "layout": lambda: X.layout,
            "is_sparse": lambda: X.is_sparse,
            "dense": self.make_design,
            "sparse": self.make_design,
        }

    def problem_calls(self, p):
        if isinstance(p, _core.HingeProblem):
            return {"difference_norm": lambda: _core.difference_norm(p)}
        common = {
            "curvature_bound": lambda: p.curvature_bound,
            "largest_curvature": lambda: p.largest_curvature,
        }
        if isinstance(p, _core.RankingProblem):
            return common | {
                "slopes": lambda: p.slopes(self.matrix(self.n, self.K)),
                "mean_loss": lambda: p.mean_loss(self.matrix(self.n, self.K)),
            }
        return common

    def pair_hessian(self):
        hessian = _core.PairHessian(self.ranking(), self.matrix(self.n, self.K))
        return hessian, {
            "product": lambda: hessian.product(self.matrix(self.n, self.K)),
            "diagonal": hessian.diagonal,
        }

    def smooth_path(self):
        h = self.hostile
        options = {"tol": h.number(1e-3), "max_iter": h.count(20) % 2**31, "callback": None}
        method = _core.SmoothPath(self.smooth(), column_norms=self.vector(self.d), **options)
        return method, {
            "start": lambda: method.start(self.weights(), self.intercept()),
            "solve": lambda: method.solve(h.number(0.1)),
        }

    def hinge_path(self):
        h = self.hostile
        plan = [float(h.pick([np.inf, 0.0])), 1e9, 1e-3, 0.0, 0.5, 5.0, 30.0]
        sizes = {name: h.number(0.1) for name in ("column_dual_norm", "tol", "reach")}
        flags = {name: h.flag() for name in ("single_precision", "keep_duals")}
        norms, limit = h.array(np.ones(self.d)), h.count(20) % 2**31
        options = {"max_iter": limit, "plan": h.array(np.array(plan)), "callback": None}
        method = _core.HingePath(self.hinge(), column_norms=norms, **sizes, **flags, **options)

        def start():
            worth = {name: h.number(1.0) for name in ("loss", "penalty", "bound")}
            point = {"weights": self.weights(), "intercept": self.intercept(), "dual": self.dual()}
            method.start(h.number(0.1), **point, **worth, zero=h.flag())

        grid = np.geomspace(0.1, 1e-3, 5)
        follow = lambda: method.follow(h.array(grid), h.count(5))  # noqa: E731
        return method, {"start": start, "follow": follow, "last": method.last}

    def sdca(self):
        h = self.hostile
        method = _core.Sdca(
            self.hinge(), relaxation=h.number(1.0), sweeps=h.count(3) % 2**31, callback=None
        )
        return method, {
            "start": lambda: method.start(
                h.maybe(self.weights()), self.intercept(), h.maybe(self.dual())
            ),
            "run": lambda: method.run(h.number(1e-3), h.count(20), h.number(1e9)),
            "outlasted": lambda: method.outlasted,
            "give_point": method.give_point,
            "give_mean_dual": method.give_mean_dual,
            "point": method.point,
            "values": method.values,
            "sweeps": lambda: method.sweeps,
            "history": method.history,
        }

    def newton(self):
        h = self.hostile
        method = _core.MultiplierNewton(self.hinge(), rms=self.vector(self.d))

        def solve():
            numbers = [h.number(1.0) for _ in range(4)]
            return method.solve(*numbers, h.count(5), h.number(1.0), h.count(100))

        return method, {
            "start": lambda: method.start(self.weights(), self.intercept(), self.dual()),
            "solve": solve,
            "begin": lambda: method.begin(h.number(1.0)),
            "advance": lambda: method.advance(
                h.number(1.0), tol=0.1, left=h.count(5), direct=9, max_work=h.number(1e9)
            ),
            "settle": lambda: method.settle(h.number(1.0), h.number(1.0)),
            "point": method.point,
        }

    def fbpd(self):
        h = self.hostile
        method = _core.Fbpd(
            self.hinge(),
            tau=h.number(0.1),
            sigma=h.number(0.1),
            form=h.name(FORMS),
            eta=h.number(0.5),
            penalty=None,
        )
        return method, {
            "start": lambda: method.start(self.weights(), self.intercept(), self.dual()),
            "run": lambda: method.run(h.count(20), h.number(-1.0)),
            "settled": lambda: method.settled,
            "steps": lambda: method.steps,
            "slack": lambda: method.slack,
            "last": method.last,
            "mean": method.mean,
            "forget": method.forget,
        }

    def hsdm(self):
        h = self.hostile
        options = [h.number(value) for value in (1.0, 0.5, 1.0, 0.6, 10.0)]
        weight = h.array(np.ones(self.n))
        classes = h.count(self.K) % 2**40
        method = _core.Hsdm(self.matrix(self.n), h.array(self.y), weight, classes, *options)
        return method, {
            "run": lambda: method.run(h.count(5)),
            "point": method.point,
            "dual": method.dual,
            "iteration": lambda: method.iteration,
            "t": lambda: method.t,
            "change": lambda: method.change,
            "ball_active": lambda: method.ball_active,
        }

    def smooth_calls(self, method, outputs=None):
        h = self.hostile
        return {
            "start": lambda: method.start(self.weights(outputs), self.intercept(outputs)),
            "run": lambda: method.run(h.count(20), h.number(-1.0)),
            "settled": lambda: method.settled,
            "last": method.last,
        }

    def first_order(self, ranking=False):
        h = self.hostile
        method = (_core.RankingFirstOrder if ranking else _core.FirstOrder)(
            self.ranking() if ranking else self.smooth(),
            method=h.name(METHODS),
            line_search=h.flag(),
            L=h.number(1.0),
            eta=h.number(2.0),
            memory=h.count(5),
            sigma=h.number(0.01),
            smallest=h.number(1e-30),
            largest=h.number(1e30),
            penalty=None,
        )
        return method, self.smooth_calls(method, self.K if ranking else None)

    def bcd(self, ranking=False):
        h = self.hostile
        method = (_core.RankingBcd if ranking else _core.Bcd)(
            self.ranking() if ranking else self.smooth(),
            line_search=h.flag(),
            randomised=h.flag(),
            sigma=h.number(0.01),
            omega=h.number(0.5),
            epsilon=h.number(1e-12),
            largest_violation=h.flag(),
            row_norms=h.flag(),
            shrinking=h.flag(),
            seed=h.count(0) % 2**64,
        )
        return method, {
            **self.smooth_calls(method, self.K if ranking else None),
            "violation": lambda: method.violation,
            "searches": lambda: method.searches,
        }

    def fobos(self):
        h = self.hostile
        samples = h.array(np.arange(self.n))
        method = _core.Fobos(
            self.smooth(), samples=samples, eta0=h.number(0.1), lazy=h.flag(), seed=0
        )
        return method, self.smooth_calls(method)

    def packed(self):
        matrix = self.matrix(self.n)
        method = _core.PackedEntries(matrix)
        out = self.hostile.array(np.empty(np.shape(matrix)))
        return method, {"unpack": lambda: method.unpack(out), "bytes": lambda: method.bytes}

    def function_calls(self):
        h, n, K = self.hostile, self.n, self.K
        bound = {
            "scale": h.number(1.0),
            "error": h.array(np.zeros(self.outputs)),
            "column_norms": self.vector(self.d),
        }
        penalty = self.penalty()
        few = {name: penalty[name] for name in ("kind", "l1_ratio", "per_class")}
        Y, V = self.matrix(n, self.outputs), self.matrix(n, K)

        def interior_point():
            start = [h.maybe(self.dual()), h.maybe(self.weights()), h.maybe(self.intercept())]
            if h.flag():
                start = [None] * 3
            return _core.interior_point(
                self.hinge(),
                **dict(zip(("dual", "weights", "intercept"), start, strict=True)),
                tol=h.number(1e-4),
                max_iter=h.count(30) % 2**31,
                across_features=h.flag(),
                inside=h.flag(),
                residual=h.number(1e-8),
                callback=None,
            )

        def block_newton():
            return _core.block_newton(
                self.smooth(),
                weights=self.weights(),
                warm=h.flag(),
                start_intercept=h.maybe(self.intercept()),
                tol=h.number(1e-4),
                max_iter=h.count(30) % 2**31,
                max_work=h.number(1e9),
                continuation=h.flag(),
                callback=None,
            )

        def stop_after():
            # What it sets would end the other calls.
            _core.stop_after(h.number(1.0), h.flag())
            _core.stop_after(np.inf, False)

        def hold_stop():
            _core.hold_stop(h.flag())
            _core.hold_stop(False)

        return {
            "hold_stop": hold_stop,
            "stop_after": stop_after,
            "stopping": _core.stopping,
            "is_canonical": lambda: _core.is_canonical(
                h.array(self.groups), h.array(np.array([0, self.d])), h.count(self.d)
            ),
            "give_back_memory": _core.give_back_memory,
            "zeros": lambda: _core.zeros(h.count(n), h.count(K)),
            "feature_norms": lambda: _core.feature_norms(
                self.design, Y, **bound, **few, omega=penalty["omega"]
            ),
            "largest_dual_norm": lambda: _core.largest_dual_norm(
                self.design, Y, **bound, **penalty
            ),
            "class_sums": lambda: _core.class_sums(V, h.array(self.y)),
            "penalty_value": lambda: _core.penalty_value(
                self.weights(), penalty["groups"], penalty["omega"], **few
            ),
            "interior_point": interior_point,
            "block_newton": block_newton,
            "project_simplex": lambda: _core.project_simplex(V, self.vector(n)),
            "project_l1_ball": lambda: _core.project_l1_ball(V, self.vector(n)),
            "prox_group_l2": lambda: _core.prox_group_l2(
                V, self.vector(n), h.maybe(h.array(np.ones((n, K))))
            ),
            "prox_group_linf": lambda: _core.prox_group_linf(
                V, self.vector(n), h.maybe(h.array(np.ones((n, K))))
            ),
            "prox_hinge": lambda: _core.prox_hinge(V, self.matrix(n, K), self.vector(n)),
            "project_epigraph": lambda: _core.project_epigraph(
                V, self.matrix(n, K), self.vector(n)
            ),
            "prox_penalty": lambda: _core.prox_penalty(self.weights(), h.number(0.1), **penalty),
            "operator_norm": lambda: _core.operator_norm(self.design, h.flag(), h.flag()),
            "difference_norm": lambda: _core.difference_norm(self.hinge()),
        }

    def made(self):
        """Yield every kind of native object with calls of its members; refused ones are None."""
        yield _core.Design, (self.design, self.design_calls(self.design))
        for kind, make in (
            (_core.HingeProblem, lambda: (p := self.hinge(), self.problem_calls(p))),
            (_core.SmoothProblem, lambda: (p := self.smooth(), self.problem_calls(p))),
            (_core.RankingProblem, lambda: (p := self.ranking(), self.problem_calls(p))),
            (_core.PairHessian, self.pair_hessian),
            (_core.SmoothPath, self.smooth_path),
            (_core.HingePath, self.hinge_path),
            (_core.RankingFirstOrder, lambda: self.first_order(ranking=True)),
            (_core.RankingBcd, lambda: self.bcd(ranking=True)),
            (_core.Sdca, self.sdca),
            (_core.MultiplierNewton, self.newton),
            (_core.Fbpd, self.fbpd),
            (_core.Hsdm, self.hsdm),
            (_core.FirstOrder, self.first_order),
            (_core.Bcd, self.bcd),
            (_core.Fobos, self.fobos),
            (_core.PackedEntries, self.packed),
        ):
            yield kind, self.try_to_make(make)


def attempt(call):
    """Call, with a limit of time; what is no refusal is raised."""
    faulthandler.dump_traceback_later(SECONDS_A_CALL + SECONDS_OF_GRACE, exit=True)
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS_A_CALL)
        with contextlib.suppress(*REFUSALS):
            call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        pass


def shuffled(rng, calls):
    calls = list(calls.values())
    return [calls[i] for i in rng.permutation(len(calls))]


def play(seed, called):
    """Call every entry around one problem; ``called`` gathers the names of those reached."""
    around = Round(seed, *RATES[seed % len(RATES)])
    rng = around.hostile.rng
    functions = around.function_calls()
    called |= set(functions)
    for call in shuffled(rng, functions):
        attempt(call)
    for kind, made in around.made():
        if made is None:
            continue
        called |= {f"{kind.__name__}.{name}" for name in made[1]} | {kind.__name__}
        if rng.random() < 0.5 and "start" in made[1]:
            attempt(made[1]["start"])
        for call in [*shuffled(rng, made[1]), *shuffled(rng, made[1])]:
            attempt(call)
        if rng.random() < 0.2:
            together(rng, made[1], list(around.writable))


def together(rng, calls, writable):
    """Call from two threads at once while a third writes into the arrays of integers."""
    stop = threading.Event()
    odd: list[BaseException] = []

    def drive(order):
        for call in order:
            try:
                call()
            except REFUSALS:
                pass
            except BaseException as error:
                odd.append(error)

    def spoil():
        other = np.random.default_rng(0)
        while not stop.is_set():
            for array in writable:
                if array.flags.writeable:
                    array[...] = other.integers(-(2**31), 2**31 - 1, array.shape)

    # Long calls are for the thread that has the timer.
    quick = {name: call for name, call in calls.items() if name not in ("run", "solve")}
    threads = [threading.Thread(target=drive, args=(shuffled(rng, quick),)) for _ in range(2)]
    kept = [array.copy() for array in writable]
    spoiler = threading.Thread(target=spoil)
    for thread in (spoiler, *threads):
        thread.start()
    for call in shuffled(rng, calls):
        attempt(call)
    for thread in threads:
        thread.join()
    stop.set()
    spoiler.join()
    for array, before in zip(writable, kept, strict=True):
        array[...] = before
    if odd:
        raise odd[0]


def entries():
    """Return the names of everything that one can call in the native module."""
    names = set()
    for name, entry in vars(_core).items():
        exception = isinstance(entry, type) and issubclass(entry, BaseException)
        if name.startswith("_") or exception:
            continue
        names.add(name)
        if isinstance(entry, type):
            names |= {f"{name}.{member}" for member in vars(entry) if not member.startswith("_")}
    return names


def main(seed, rounds):
    faulthandler.enable()
    warnings.simplefilter("ignore")  # casts of NaN
    signal.signal(signal.SIGALRM, interrupt)
    called: set[str] = set()
    for number in range(seed, seed + rounds):
        print(number, end=" ", flush=True)  # the last one is where a process ended
        play(number, called)
    missing = entries() - called
    if missing:
        raise SystemExit(f"Never called, add them here: {', '.join(sorted(missing))}.")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
