"""Runs that are monitored: callbacks see them, and what ends them early gets a certified point."""

import signal
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseLabelRanker, SparseSVC, _core
from sparsvm.budget import BudgetSearch, FBPDEpigraph, FBPDLinear
from sparsvm.certificate import certify
from sparsvm.solvers import (
    BCD,
    DCA,
    FBPD,
    FISTA,
    FOBOS,
    SDCA,
    BlockNewton,
    ConeProgram,
    CuttingPlane,
    InteriorPoint,
    Newton,
    Observed,
    SpaRSA,
    prox_newton,
)

HINGE = [(SDCA(), "l1"), (Newton(), "l1"), (InteriorPoint(), "l1/l2"), (FBPD(), "l1")]
HINGE += [(CuttingPlane(), "l2"), (FOBOS(max_iter=20), "l1"), (SDCA(), "l2"), (ConeProgram(), "l1")]
SMOOTH = [(BlockNewton(), "l1"), (FISTA(), "l1"), (SpaRSA(), "l1"), (BCD(), "l1/l2")]
SMOOTH += [(InteriorPoint(), "l1")]
CASES = [("hinge", *case) for case in HINGE] + [("squared_hinge", *case) for case in SMOOTH]
CASES += [("ramp", DCA(), "l1"), ("hinge", "auto", "l1"), ("squared_hinge", "auto", "l1")]


@pytest.fixture(scope="module")
def data():
    return make_classification(
        n_samples=120, n_features=30, n_informative=8, n_classes=3, flip_y=0.2, random_state=0
    )


def named(value):
    return value if isinstance(value, str) else type(value).__name__


def model(loss, solver, penalty, **options):
    # cutting_plane takes rounds in proportion to 1 / alpha.
    alpha = 0.3 if penalty == "l2" else 0.01
    return SparseSVC(loss, penalty, alpha=alpha, solver=solver, random_state=0, **options)


def objective(loss, penalty, X, y, coef, intercept):
    scores = X @ coef.T + intercept
    margins = np.maximum(0.0, 1.0 + scores - scores[np.arange(y.size), y][:, None])
    margins[np.arange(y.size), y] = 0.0
    mean = (margins.max(axis=1) if loss == "hinge" else (margins**2).sum(axis=1)).mean()
    sizes = {"l1": np.abs(coef).sum(), "l2": 0.5 * np.sum(coef**2)}
    sizes["l1/l2"] = np.linalg.norm(coef, axis=0).sum()
    return mean + (0.3 if penalty == "l2" else 0.01) * sizes[penalty]


@pytest.mark.filterwarnings("ignore:fobos stopped")
@pytest.mark.parametrize(("loss", "solver", "penalty"), CASES, ids=named)
def test_a_callback_sees_every_solver_and_changes_nothing(data, loss, solver, penalty):
    seen, points = [], []

    def look(progress):
        seen.append(progress)
        points.append(progress.coefficients())

    observed = model(loss, Observed(solver, look), penalty).fit(*data)
    plain = model(loss, solver, penalty).fit(*data)
    assert seen
    assert all(progress.seconds >= 0.0 and progress.objective > 0.0 for progress in seen)
    assert all(point is None or point[0].shape == observed.coef_.shape for point in points)
    # What it was shown at last has the objective that it was told, and so has the model.
    if loss != "ramp":
        value = objective(loss, penalty, *data, *points[-1])
        assert value == pytest.approx(seen[-1].objective, rel=1e-2)
        assert value == pytest.approx(observed.objective_, rel=1e-2)
    # To ask later is allowed, whatever the answer.
    for progress in seen:
        later = progress.coefficients()
        assert later is None or later[0].shape == observed.coef_.shape
    assert observed.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    # fobos is stochastic and ends with its passes.
    assert observed.result_.converged or named(solver) == "FOBOS"


@pytest.mark.parametrize(("loss", "solver", "penalty"), CASES, ids=named)
def test_a_callback_that_answers_true_ends_the_run_with_a_certified_point(
    data, loss, solver, penalty
):
    exact = model(loss, "auto", penalty, tol=1e-7).fit(*data)
    calls = []

    def stop(progress):
        calls.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="stopped"):
        ended = model(loss, Observed(solver, stop), penalty, tol=1e-9).fit(*data)
    assert len(calls) <= 6
    assert ended.result_.status == "stopped"
    if loss != "ramp":
        assert ended.result_.dual_objective <= exact.objective_ * (1.0 + 1e-9)
        assert ended.objective_ >= exact.result_.dual_objective


@pytest.mark.parametrize(("loss", "solver", "penalty"), CASES, ids=named)
def test_a_time_limit_gives_the_best_certified_point_and_names_its_gap(data, loss, solver, penalty):
    exact = model(loss, "auto", penalty, tol=1e-7).fit(*data)
    with pytest.warns(ConvergenceWarning, match="time_limit") as caught:
        ended = model(loss, solver, penalty, tol=1e-9, time_limit=1e-9).fit(*data)
    assert ended.result_.status == "stopped"
    if loss != "ramp":
        assert any(f"{ended.dual_gap_:.2g}" in str(each.message) for each in caught)
        assert ended.result_.dual_objective <= exact.objective_ * (1.0 + 1e-9)
    assert ended.predict(data[0]).shape == (120,)


def test_a_limit_that_is_long_enough_changes_nothing(data):
    plain = model("hinge", "auto", "l1").fit(*data)
    limited = model("hinge", "auto", "l1", time_limit=1e6, on_interrupt="return").fit(*data)
    np.testing.assert_array_equal(plain.coef_, limited.coef_)
    # And it ends with the fit.
    assert model("hinge", "auto", "l1", tol=1e-5).fit(*data).result_.converged


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(estimator, X, y):
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        return estimator.fit(X, y)
    finally:
        timer.join()


def endless(**options):
    solver = FISTA(max_iter=10**9, stopping="gap")
    # The limit is for the day on which the interrupt does not come.
    return model("squared_hinge", solver, "l1", tol=1e-300, time_limit=60.0, **options)


@pytest.fixture(scope="module")
def slow_data():
    # Columns of very different sizes, on which a gradient method does not arrive.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40)) * np.logspace(-4, 4, 40)
    return X, rng.integers(0, 4, 200)


def test_an_interrupt_returns_what_there_is_where_that_is_asked_for(slow_data, ctrl_c):
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        ended = interrupted(endless(on_interrupt="return"), *slow_data)
    assert ended.result_.status == "stopped"
    assert np.isfinite(ended.dual_gap_)


def test_an_interrupt_raises_otherwise_and_leaves_the_estimator_as_it_was(slow_data, ctrl_c):
    estimator = endless()
    with pytest.raises(KeyboardInterrupt):
        interrupted(estimator, *slow_data)
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize("fails", [False, True])
def test_a_passed_limit_does_not_cut_a_certificate_short(data, monkeypatch, fails):
    gap, held = certify.duality_gap, []

    def noted(*given):
        held.append(_core.hold_stop(True))
        if fails:
            raise ValueError("seen")
        return gap(*given)

    monkeypatch.setattr(certify, "duality_gap", noted)
    if fails:
        with pytest.raises(ValueError, match="seen"):
            model("hinge", SDCA(), "l1").fit(*data)
    else:
        model("hinge", SDCA(), "l1").fit(*data)
    assert held and all(held)
    assert not _core.hold_stop(False)


def test_a_passed_limit_ends_loops_that_have_no_point_unless_it_is_held():
    X, y = make_classification(400, 60, n_informative=9, n_classes=3, random_state=0)
    # One native call that takes many times as long as the pause between two polls.
    solver = FISTA(stopping="change", check_every=20_000, max_iter=20_000)
    long = model("squared_hinge", solver, "l1", tol=1e-15)
    _core.stop_after(0.0, False)
    try:
        with pytest.raises(_core.Stopped):
            long.fit(X, y)
        _core.hold_stop(True)
        with pytest.warns(ConvergenceWarning):
            assert long.fit(X, y).n_iter_ == 20_000
    finally:
        _core.hold_stop(False)
        _core.stop_after(np.inf, False)


def test_callbacks_see_the_interior_point_of_smooth_losses_from_its_first_step(data):
    seen = []
    watch = Observed(InteriorPoint(), lambda p: seen.append((p.iteration, p.coefficients()[0])))
    fitted = model("squared_hinge", watch, "l1").fit(*data)
    assert [iteration for iteration, _ in seen] == list(range(len(seen)))
    assert {coef.shape for _, coef in seen} == {fitted.coef_.shape}


@pytest.mark.parametrize("error", [RuntimeError, TimeoutError])
def test_an_error_in_a_callback_reaches_the_caller(data, error):
    def fail(progress):
        raise error("seen")

    for loss, solver in (("hinge", SDCA()), ("squared_hinge", FISTA()), ("ramp", DCA())):
        with pytest.raises(error, match="seen"):
            model(loss, Observed(solver, fail), "l1").fit(*data)


def test_a_limit_holds_after_another_run_within_it(data):
    def fit_within(progress):
        model("hinge", "auto", "l1", time_limit=1e6).fit(*data)
        assert _core.stop_after(5.0, False)[0] <= 10.0

    limited = model("squared_hinge", Observed(FISTA(), fit_within), "l1", time_limit=10.0)
    limited.fit(*data)
    assert _core.stop_after(np.inf, False) == (np.inf, False)


def test_a_run_in_parts_keeps_to_the_limits_on_its_iterations(data):
    for solver, options in ((BlockNewton(max_iter=3), {}), (BlockNewton(), {"max_iter": 3})):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            ended = model("squared_hinge", solver, "l1", tol=1e-12, time_limit=1e6, **options).fit(
                *data
            )
        assert ended.result_.status == "max_iter"
        assert ended.n_iter_ <= 3


@pytest.mark.parametrize(("loss", "solver"), [("hinge", FBPD()), ("squared_hinge", FISTA())])
def test_a_run_that_is_ended_tells_how_many_iterations_it_did(data, loss, solver):
    seen = []

    def third(progress):
        seen.append(progress.iteration)
        return len(seen) == 3

    with pytest.warns(ConvergenceWarning, match="stopped after"):
        ended = model(loss, Observed(solver, third), "l1", tol=1e-12).fit(*data)
    assert ended.n_iter_ == seen[-1]


def test_label_ranking_is_monitored_too(data):
    X, y = data
    Y = np.column_stack([y == 0, y == 1, y == 2, X[:, 0] > 0.0]).astype(int)
    seen = []
    SparseLabelRanker(alpha=0.1, solver=Observed("auto", seen.append)).fit(X, Y)
    assert seen[-1].coefficients()[0].shape == (4, 30)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        ended = SparseLabelRanker(alpha=0.1, time_limit=1e-9, tol=1e-9).fit(X, Y)
    assert ended.result_.status == "stopped"


def test_a_time_limit_ends_a_ranking_within_one_working_set(data, monkeypatch):
    # A second on this problem was fifteen while only whole working sets asked for the time.
    X, y = data
    Y = np.column_stack([y == 0, y == 1, y == 2, X[:, 0] > 0.0]).astype(int)
    steps = []
    step = prox_newton._Inner.proximal_step

    def slow(inner):
        steps.append(inner)
        time.sleep(0.1)
        step(inner)

    monkeypatch.setattr(prox_newton._Inner, "proximal_step", slow)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        SparseLabelRanker(alpha=1e-4, time_limit=0.1, tol=1e-9).fit(X, Y)
    assert len(steps) == 1


@pytest.mark.parametrize("stopping", ["gap", "change"])
@pytest.mark.parametrize("kind", [FBPDEpigraph, FBPDLinear, BudgetSearch])
def test_callbacks_see_the_solvers_of_a_budget_and_may_end_them(data, kind, stopping):
    options = {} if kind is BudgetSearch else {"stopping": stopping}
    tol = 1e-2 if stopping == "gap" else 1e-4
    make = partial(ConstrainedSparseSVC, 0.7, "l1", tol=tol)
    seen = []
    observed = make(solver=Observed(kind(**options), seen.append))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        observed.fit(*data)
        plain = make(solver=kind(**options)).fit(*data)
    assert len(seen) > 1
    assert seen[-1].coefficients()[0].shape == observed.coef_.shape
    # Bounds that were found on the way enter the factor of the last model: its rounding may differ.
    np.testing.assert_allclose(observed.coef_, plain.coef_, rtol=1e-12)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        ended = make(solver=Observed(kind(**options), lambda progress: True)).fit(*data)
    assert ended.result_.status == "stopped"
    assert ended.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("solver", ["hsdm", "staged"])
def test_callbacks_see_the_solvers_of_the_largest_smallest_margin(solver):
    X, y = load_iris(return_X_y=True)
    seen = []
    model = MaxMarginSVC(solver=Observed(solver, seen.append)).fit(X[:, 1::2], y)
    point = seen[-1].coefficients()
    assert point[0].shape == model.coef_.shape
    assert seen[-1].objective * y.size == pytest.approx(model.hinge_loss_, rel=1e-6)
    if solver == "hsdm":
        with pytest.warns(UserWarning):
            ended = MaxMarginSVC(solver=Observed(solver, lambda progress: True)).fit(X[:, 1::2], y)
        assert ended.result_.status == "stopped"
        assert ended.n_iter_ == seen[0].iteration < model.n_iter_


@pytest.mark.parametrize(
    ("loss", "solver"),
    [("hinge", FBPD(stopping="change")), ("squared_hinge", FISTA(stopping="change"))],
    ids=named,
)
def test_callbacks_see_runs_that_end_by_a_paper_s_rule_on_their_way(data, loss, solver):
    seen = []
    fits = []
    for observed in (Observed(solver, seen.append), solver):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits.append(model(loss, observed, "l1", tol=1e-5).fit(*data))
    assert len(seen) > 4
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].n_iter_ == fits[1].n_iter_
