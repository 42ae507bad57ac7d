"""Every solver by its name: a callback sees its coefficients on the way, and may end the run."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from sparsvm import ConstrainedSparseSVC, MaxMarginSVC, SparseSVC
from sparsvm.budget import CONSTRAINED_SOLVERS
from sparsvm.hierarchical import SOLVERS as HIERARCHICAL_SOLVERS
from sparsvm.solvers import SOLVERS, Observed

ALPHA = 0.3
BY_LOSS = {
    "hinge": "auto interior_point sdca newton cutting_plane cone_program fbpd fobos",
    "squared_hinge": "auto interior_point block_newton fista forward_backward sparsa bcd fobos",
    "ramp": "auto dca",
}
CASES = [(name, loss) for loss, names in BY_LOSS.items() for name in names.split()]


@pytest.fixture(scope="module")
def overlapping():
    return make_classification(
        120, 30, n_informative=8, n_classes=3, flip_y=0.2, class_sep=0.5, random_state=0
    )


class Watch:
    """Keeps reports with their points, and answers true at the call of that number."""

    def __init__(self, last=np.inf):
        self.last, self.seen, self.points = last, [], []

    def __call__(self, progress):
        self.seen.append(progress)
        self.points.append(progress.coefficients())
        return len(self.seen) == self.last


def check(make, X, y):
    """Fit with a callback that looks and with one that ends the run; return the ended model."""
    look, stop = Watch(), Watch(last=2)
    with warnings.catch_warnings():
        # fobos ends with its passes.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = make(look).fit(X, y)
    assert len(look.seen) > 1
    for coef, intercept in look.points:
        assert coef.shape == fitted.coef_.shape and intercept.shape == fitted.intercept_.shape
        assert np.isfinite(coef).all() and np.isfinite(intercept).all()
    assert any(not np.array_equal(coef, look.points[-1][0]) for coef, _ in look.points)
    for before, after in pairwise(look.seen):
        # With eta=None a second run follows one that sets the budget.
        assert after.seconds >= before.seconds or after.iteration <= before.iteration
    with pytest.warns(ConvergenceWarning, match="stopped"):
        ended = make(stop).fit(X, y)
    assert len(stop.seen) == 2  # it is not asked again
    assert ended.result_.status == "stopped"
    assert ended.predict(X).shape == y.shape
    return ended


def test_no_solver_is_left_out():
    assert {name for name, _ in CASES} == {"auto", *SOLVERS}


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_a_callback_sees_and_ends_every_solver(overlapping, name, loss):
    # The penalty that all take.
    def make(callback):
        options = {"solver": Observed(name, callback), "random_state": 0, "tol": 1e-9}
        return SparseSVC(loss, "l2", alpha=ALPHA, **options)

    ended = check(make, *overlapping)
    if loss != "ramp":
        exact = SparseSVC(loss, "l2", alpha=ALPHA, tol=1e-8).fit(*overlapping)
        assert ended.result_.dual_objective <= exact.objective_ * (1.0 + 1e-9)
        assert ended.objective_ >= exact.result_.dual_objective * (1.0 - 1e-9)
        assert ended.result_.gap > 0.0


@pytest.mark.parametrize("eta", [0.9, None])
@pytest.mark.parametrize("name", CONSTRAINED_SOLVERS)
def test_a_callback_sees_and_ends_every_solver_of_a_budget(overlapping, name, eta):
    def make(callback):
        return ConstrainedSparseSVC(eta, "l1", tol=1e-2, solver=Observed(name, callback))

    ended = check(make, *overlapping)
    exact = ConstrainedSparseSVC(ended.eta_, "l1", tol=1e-6).fit(*overlapping)
    least = np.abs(exact.coef_).sum()
    assert ended.result_.dual_objective <= least


@pytest.mark.parametrize("features", [[1, 3], [0, 1]])
@pytest.mark.parametrize("name", HIERARCHICAL_SOLVERS)
def test_a_callback_sees_and_ends_every_solver_of_the_largest_margin(name, features):
    X, y = load_iris(return_X_y=True)
    X = X[:, features]
    exact = MaxMarginSVC().fit(X, y)
    ended = check(lambda callback: MaxMarginSVC(solver=Observed(name, callback)), X, y)
    found = ended.result_
    assert found.hinge_bound <= exact.result_.hinge <= found.hinge + exact.result_.floor
    assert found.norm_bound == 0.0  # and no claim about the margin


@pytest.mark.parametrize("separable", [True, False])
def test_the_stages_of_the_largest_margin_may_each_be_the_last(separable):
    X, y = load_iris(return_X_y=True)
    y = np.where(y == 2, 1, y) if separable else y
    exact = MaxMarginSVC().fit(X, y)
    look = Watch()
    MaxMarginSVC(solver=Observed("staged", look)).fit(X, y)
    hinges = [progress.objective for progress in look.seen]
    assert hinges[0] == pytest.approx(1.0)  # zeros
    assert exact.separable_ == separable
    for last in range(1, len(hinges) + 1):
        if last < len(hinges) and hinges[last] == hinges[last - 1]:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MaxMarginSVC(solver=Observed("staged", Watch(last))).fit(X, y)
        ended = model.result_
        assert ended.hinge == hinges[last - 1]
        assert ended.hinge_bound <= exact.result_.hinge + exact.result_.floor
        assert ended.norm_bound <= exact.result_.norm * (1.0 + 1e-9)
        assert ended.status == "optimal" or ended.hinge_gap > ended.floor or ended.norm_gap > 1e-6


def test_the_cone_program_shows_the_point_at_which_it_would_end(overlapping):
    fifth = Watch(last=5)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        model = SparseSVC("hinge", "l2", alpha=ALPHA, solver=Observed("cone_program", fifth))
        model.fit(*overlapping)
    coef, _ = fifth.points[-1]
    np.testing.assert_allclose(coef - coef.mean(axis=0), model.coef_, rtol=1e-9, atol=1e-12)
