"""Paths where loss or penalty is not convex: every point is critical, and none worse than a fit."""

import numpy as np
import pandas as pd
import pytest

from sparsvm import SparseSVC, SparseSVCCV, alpha_max, svm_path
from sparsvm.losses import Hinge, Ramp, SquaredHinge
from sparsvm.penalties import L0, L1, L2, CappedL1

MODELS = [
    (Ramp(), L1()),
    (Ramp(mu=0.5), L2()),
    (Hinge(), L0()),
    (Hinge(), CappedL1(cap=0.5)),
    (SquaredHinge(), L0()),
    (Ramp(), CappedL1()),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 15))
    X[:, :3] += 1.5 * np.eye(3)[y]
    return X, y


@pytest.mark.filterwarnings("ignore:Every weight is zero", "ignore:Class 1 is predicted for no")
@pytest.mark.parametrize(("loss", "penalty"), MODELS, ids=str)
def test_points_are_critical_and_not_worse_than_separate_fits(data, loss, penalty):
    X, y = data
    path = svm_path(X, y, loss=loss, penalty=penalty, n_alphas=6, eps=0.1, tol=1e-4)
    assert path.converged
    assert np.all(path.gaps <= 1e-4)
    for t in range(len(path)):
        alone = SparseSVC(loss, penalty, alpha=path.alphas[t], tol=1e-4).fit(X, y)
        assert path.objectives[t] <= alone.objective_ * (1.0 + 1e-3)
    assert np.isnan(path[-1].dual_gap_)
    assert path.score(X, y)[-1] > 0.6
    if not isinstance(penalty, L2):
        assert path.n_selected[0] == 0 < path.n_selected[-1]


def test_a_path_ends_where_no_minimiser_exists_and_an_alpha_asked_for_is_refused(data):
    """Scaled up, a model that separates the classes loses the logistic loss, and l0 is bounded."""
    X, y = data
    X = X + 3.0 * np.eye(3, 15)[y]
    with pytest.warns(UserWarning, match=r"The path ends at alpha=.*there is no minimiser") as told:
        path = svm_path(X, y, loss="logistic", penalty="l0", n_alphas=30)
    assert told[0].filename == __file__
    assert 1 < len(path) < 30
    assert path.converged
    with pytest.raises(ValueError, match="there is no minimiser"):
        svm_path(X, y, loss="logistic", penalty="l0", alphas=[1.0, 1e-3 * path.alphas[-1]])


@pytest.mark.parametrize(
    ("loss", "penalty", "grid"),
    [
        ("ramp", "l1", {"loss__mu": [0.5, 1.0]}),
        ("hinge", "l0", {"penalty__sharpness": [2.0, 5.0]}),
        ("hinge", "capped_l1", {"penalty__cap": [0.3, 1.0]}),
    ],
)
def test_parameters_of_models_that_are_not_convex_are_cross_validated(data, loss, penalty, grid):
    X, y = data
    model = SparseSVCCV(loss, penalty, param_grid=grid, n_alphas=4, eps=0.1, cv=3).fit(X, y)
    assert len(pd.DataFrame(model.cv_results_)) == 8
    name = next(iter(grid))
    assert model.best_params_[name] in grid[name]
    assert model.best_score_ > 0.5
    assert np.isnan(model.dual_gap_)
    assert model.result_.criticality <= 1e-3 * model.objective_
    t = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    assert model.objective_ <= model.path_.objectives[t] * (1.0 + 1e-6)


def test_alpha_max_still_needs_a_convex_problem(data):
    with pytest.raises(ValueError, match="convex"):
        alpha_max(*data, loss="ramp")


def test_a_path_exists_where_the_tangent_at_zero_has_no_loss():
    # Beyond the flat part of a narrow ramp the minority costs a constant: nothing is left to gain
    # from weights in the tangent problem, whose alpha_max is 0.
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(25), np.ones(15)]
    X = rng.standard_normal((40, 3)) + y[:, None]
    path = svm_path(X, y, loss=Ramp(mu=0.5), penalty="l1", n_alphas=3)
    assert np.all(np.isfinite(path.alphas))
    assert path.alphas[0] == pytest.approx(alpha_max(X, y, penalty="l1"), rel=0.05)
