"""A user's own penalty: solved like a built-in one, certified against independent optima."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.isotonic import isotonic_regression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from sparsvm import ConstrainedSparseSVC, SparseSVC, SparseSVCCV, alpha_max, svm_path
from sparsvm.penalties import Penalty

PAGE = Path(__file__).parents[2] / "docs" / "add_a_penalty.md"
SMOOTH = ["fista", "forward_backward", "sparsa"]


class Slope(Penalty):
    """The ordered weighted l1 norm."""

    def __init__(self, spread=1.0):
        self.spread = spread

    def charges(self, count):
        return np.linspace(1.0 + self.spread, 1.0, count)

    def value(self, W):
        return np.sort(np.abs(W), axis=None)[::-1] @ self.charges(W.size)

    def prox(self, W, step):
        sizes = np.abs(W).ravel()
        order = np.argsort(-sizes)
        pooled = isotonic_regression(sizes[order] - step * self.charges(W.size), increasing=False)
        sizes[order] = np.maximum(pooled, 0.0)
        return np.sign(W) * sizes.reshape(W.shape)

    def dual_norm(self, G):
        sums = np.cumsum(np.sort(np.abs(G), axis=None)[::-1])
        return np.max(sums / np.cumsum(self.charges(G.size)))


class OwnL1(Penalty):
    """What is built in, written out; the conjugate in place of the dual norm if asked for."""

    def value(self, W):
        return np.abs(W).sum()

    def prox(self, W, step):
        return np.sign(W) * np.maximum(np.abs(W) - step, 0.0)

    def dual_norm(self, G):
        return np.abs(G).max()


class OwnElasticNet(Penalty):
    """Half l1, half l2: no norm."""

    def value(self, W):
        return 0.5 * np.abs(W).sum() + 0.25 * (W * W).sum()

    def prox(self, W, step):
        return np.sign(W) * np.maximum(np.abs(W) - 0.5 * step, 0.0) / (1.0 + 0.5 * step)

    def conjugate(self, G):
        return (np.maximum(np.abs(G) - 0.5, 0.0) ** 2).sum()


class IndicatorL1(OwnL1):
    """The l1 norm by its conjugate, which is infinite outside the dual ball."""

    dual_norm = property()  # hidden: hasattr is false

    def conjugate(self, G):
        return 0.0 if np.abs(G).max() <= 1.0 else np.inf


class Nuclear(Penalty):
    """The sum of singular values: a norm that asks for signs."""

    def value(self, W):
        return np.linalg.norm(W, "nuc")

    def prox(self, W, step):
        U, s, V = np.linalg.svd(W, full_matrices=False)
        return (U * np.maximum(s - step, 0.0)) @ V

    def dual_norm(self, G):
        return np.linalg.norm(G, 2)


def iris(classes=3):
    X, y = load_iris(return_X_y=True)
    keep = y >= 3 - classes
    return np.ascontiguousarray(scale(X[keep])), y[keep]


def slope_program(X, y, charges, alpha):
    """The optimum of mean hinge + alpha SLOPE by HiGHS.

    SLOPE is the sum over r of (charge r less charge r + 1) times the sum of the r largest |w|,
    which is the least r t + sum_j (|w_j| - t)_+ over t.
    """
    n, d = X.shape
    classes = np.unique(y).size
    outputs = 1 if classes == 2 else classes
    m = outputs * d
    # Variables: w (m), b (outputs), a >= |w| (m), xi (n), then t (m) and s (m x m).
    at = np.cumsum([0, m, outputs, m, n, m, m * m])
    steps = -np.diff(np.append(charges, 0.0))
    cost = np.zeros(at[-1])
    cost[at[3] : at[4]] = 1.0 / n
    cost[at[4] : at[5]] = alpha * steps * np.arange(1, m + 1)
    cost[at[5] :] = alpha * np.repeat(steps, m)
    rows, right = [], []
    for i in range(n):
        for k in range(classes):
            if k == y[i]:
                continue
            row = np.zeros(at[-1])
            for output, sign in ((k, 1.0), (y[i], -1.0)):
                if outputs == 1 and output == 0:
                    continue  # the first of two classes has the score 0
                o = 0 if outputs == 1 else output
                row[o * d : (o + 1) * d] += sign * X[i]
                row[m + o] += sign
            row[at[3] + i] = -1.0
            rows.append(row)
            right.append(-1.0)
    for j in range(m):
        for sign in (1.0, -1.0):
            row = np.zeros(at[-1])
            row[j], row[at[2] + j] = sign, -1.0
            rows.append(row)
            right.append(0.0)
        for r in range(m):
            row = np.zeros(at[-1])
            row[at[2] + j], row[at[4] + r], row[at[5] + r * m + j] = 1.0, -1.0, -1.0
            rows.append(row)
            right.append(0.0)
    free, positive = (None, None), (0.0, None)
    bounds = [free] * (m + outputs) + [positive] * (m + n) + [free] * m + [positive] * (m * m)
    found = linprog(cost, A_ub=sp.csr_array(np.array(rows)), b_ub=right, bounds=bounds)
    assert found.success
    return found.fun


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_slope_reaches_the_optimum_of_highs_and_proves_it(classes, alpha):
    X, y = iris(classes)
    penalty = Slope(spread=2.0)
    count = X.shape[1] * (1 if classes == 2 else classes)
    optimum = slope_program(X, y - y.min(), penalty.charges(count), alpha)
    model = SparseSVC(penalty=penalty, alpha=alpha, tol=1e-4).fit(X, y)
    result = model.result_
    assert result.solver == "fbpd" and result.converged
    assert result.dual_objective <= optimum * (1 + 1e-7)
    assert optimum * (1 - 1e-7) <= result.objective <= optimum * (1 + 1e-4)
    assert result.gap >= result.objective - optimum - 1e-7 * optimum
    assert model.objective_ == pytest.approx(result.objective)


@pytest.mark.parametrize("penalty", [OwnL1(), IndicatorL1()], ids=["dual norm", "conjugate"])
@pytest.mark.parametrize("solver, loss", [("fbpd", "hinge"), *((s, "logistic") for s in SMOOTH)])
def test_an_own_l1_norm_gives_the_built_in_solution(penalty, solver, loss):
    X, y = iris()
    options = {"loss": loss, "solver": solver, "alpha": 0.03, "tol": 1e-4}
    built_in = SparseSVC(penalty="l1", **options).fit(X, y)
    own = SparseSVC(penalty=penalty, **options).fit(X, y)
    assert own.n_iter_ == built_in.n_iter_
    np.testing.assert_allclose(own.coef_, built_in.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.intercept_, built_in.intercept_, rtol=1e-9, atol=1e-12)
    assert own.objective_ == pytest.approx(built_in.objective_, rel=1e-12)
    assert own.dual_gap_ == pytest.approx(built_in.dual_gap_, abs=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "ovr_squared_hinge"])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_own_penalty_that_is_no_norm_is_certified_by_its_conjugate(loss, sparse):
    X, y = iris()
    X = sp.csr_array(X) if sparse else X
    reference = SparseSVC(loss=loss, penalty="elasticnet", alpha=0.05, tol=1e-8).fit(X, y)
    own = SparseSVC(loss=loss, penalty=OwnElasticNet(), alpha=0.05, tol=1e-4).fit(X, y)
    assert own.result_.converged
    assert own.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    assert own.result_.dual_objective <= reference.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_norm_of_matrices_is_certified_with_the_signs_of_the_slope(loss):
    X, y = iris()
    model = SparseSVC(loss=loss, penalty=Nuclear(), alpha=0.05, tol=1e-4).fit(X, y)
    assert model.result_.converged
    assert np.linalg.matrix_rank(model.coef_, tol=1e-6) < 3


@pytest.mark.parametrize("solver", SMOOTH)
def test_solvers_of_smooth_losses_agree_on_slope(solver):
    X, y = iris()
    options = {"loss": "squared_hinge", "penalty": Slope(), "alpha": 0.05}
    best = SparseSVC(**options, solver="fista", tol=1e-7).fit(X, y)
    model = SparseSVC(**options, solver=solver, tol=1e-4).fit(X, y)
    assert model.result_.converged
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-4)
    assert model.result_.dual_objective <= best.objective_ * (1 + 1e-12)


def test_other_solvers_refuse_it_and_name_those_that_can():
    X, y = iris()
    for solver in ("interior_point", "sdca", "newton", "cone_program", "cutting_plane", "fobos"):
        with pytest.raises(ValueError, match=rf"'{solver}' cannot .* Solvers that can: 'fbpd'\."):
            SparseSVC(penalty=Slope(), solver=solver).fit(X, y)
    for solver in ("block_newton", "bcd", "fobos"):
        able = "'fista', 'forward_backward', 'sparsa'"
        with pytest.raises(ValueError, match=rf"'{solver}' cannot .* Solvers that can: {able}\."):
            SparseSVC(loss="logistic", penalty=Slope(), solver=solver).fit(X, y)
    with pytest.raises(ValueError, match="dca takes the built-in penalties only"):
        SparseSVC(loss="ramp", penalty=Slope()).fit(X, y)


def test_paths_and_budgets_say_why_they_do_not_take_it():
    X, y = iris()
    for call in (svm_path, alpha_max):
        with pytest.raises(ValueError, match="need a built-in penalty"):
            call(X, y, penalty=Slope())
    with pytest.raises(ValueError, match="need a built-in penalty"):
        SparseSVCCV(penalty=Slope()).fit(X, y)
    with pytest.raises(ValueError, match="needs a built-in convex penalty"):
        ConstrainedSparseSVC(penalty=Slope()).fit(X, y)


def test_a_grid_search_reaches_its_parameters():
    X, y = iris()
    grid = {"alpha": [0.01, 0.1], "penalty": [Slope(0.5), Slope(2.0)]}
    search = GridSearchCV(SparseSVC(tol=1e-2), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    model = clone(SparseSVC(penalty=Slope(0.5)))
    assert model.penalty == Slope(0.5) and repr(model.penalty) == "Slope(spread=0.5)"


def test_zero_weights_come_with_the_bound_on_useful_alphas():
    X, y = iris()
    with pytest.warns(UserWarning, match="Every weight is zero at alpha=1000.*at most about"):
        SparseSVC(penalty=Slope(), alpha=1e3).fit(X, y)
    with pytest.warns(UserWarning, match="Choose a smaller alpha"):
        SparseSVC(penalty=OwnElasticNet(), alpha=1e3).fit(X, y)


class Broken(OwnL1):
    """Something wrong with one method."""

    def __init__(self, method, answer):
        self.method = method
        self.answer = answer

    def value(self, W):
        return self.answer if self.method == "value" else super().value(W)

    def prox(self, W, step):
        return self.answer if self.method == "prox" else super().prox(W, step)

    def dual_norm(self, G):
        return self.answer if self.method == "dual_norm" else super().dual_norm(G)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize(
    ("method", "answer", "sentence"),
    [
        ("value", None, r"Broken.value must return a number; got None"),
        ("value", np.nan, r"Broken.value must return a number; got nan"),
        ("prox", None, r"Broken.prox must return finite numbers of shape \(3, 4\)"),
        ("prox", np.zeros((4, 3)), r"Broken.prox must return finite numbers of shape \(3, 4\)"),
        ("prox", np.full((3, 4), np.nan), r"Broken.prox must return finite numbers"),
        ("dual_norm", "much", r"Broken.dual_norm must return a number; got 'much'"),
    ],
)
def test_wrong_answers_are_named(loss, method, answer, sentence):
    X, y = iris()
    with pytest.raises(ValueError, match=sentence):
        SparseSVC(loss=loss, penalty=Broken(method, answer)).fit(X, y)


class Raising(OwnL1):
    """Fails in the middle of a native loop."""

    calls = 0

    def prox(self, W, step):
        Raising.calls += 1
        if Raising.calls == 7:
            raise RuntimeError("the seventh call")
        return super().prox(W, step)


@pytest.mark.parametrize("loss, solver", [("hinge", "fbpd"), *(("logistic", s) for s in SMOOTH)])
def test_an_exception_in_the_prox_reaches_the_caller(loss, solver):
    X, y = iris()
    Raising.calls = 0
    with pytest.raises(RuntimeError, match="the seventh call"):
        SparseSVC(loss=loss, penalty=Raising(), solver=solver).fit(X, y)
    assert Raising.calls == 7
    assert SparseSVC(loss=loss, penalty=OwnL1(), solver=solver).fit(X, y).score(X, y) > 0.9


class Nothing(Penalty):
    """Forgot everything."""


def test_missing_methods_are_listed():
    X, y = iris()
    with pytest.raises(ValueError, match=r"Nothing has no value\(\), prox\(\), dual_norm\(\) or"):
        SparseSVC(penalty=Nothing()).fit(X, y)


def test_what_it_is_given_may_be_changed_and_kept():
    class Careless(OwnL1):
        def prox(self, W, step):
            W[:] = np.sign(W) * np.maximum(np.abs(W) - step, 0.0)
            return W

    X, y = iris()
    careless = SparseSVC(penalty=Careless(), alpha=0.03).fit(X, y)
    np.testing.assert_array_equal(
        careless.coef_, SparseSVC(penalty=OwnL1(), alpha=0.03).fit(X, y).coef_
    )


def test_the_documented_example_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, None, 0)
    assert len(test.examples) >= 10
    report: list[str] = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)
