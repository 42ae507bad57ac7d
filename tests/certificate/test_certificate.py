"""The certificate brackets the optimum, whatever dual it is given.

On each problem an independent solver finds the optimum. The bound promised: with the oracle's
dual the relative gap is at most 1e-6 on at least 97 % of the problems (oracles solve badly scaled
problems less accurately than that), and never is the optimum outside [dual, primal].
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import hinge_cases
import problems
from reference import certificate as naive
from reference import oracles
from sparsvm.certificate import balance as balancing
from sparsvm.certificate.balance import balance
from sparsvm.certificate.certify import certified, certify
from sparsvm.certificate.dual_slope import largest_slope, slope
from sparsvm.certificate.gap import repaired_dual
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Ramp
from sparsvm.penalties import L1, L2, CappedL1, GroupL2, GroupLinf, as_penalty
from sparsvm.problem.linearise import tangent
from sparsvm.problem.problem import Problem
from sparsvm.problem.solution import Control, History

PER_FAMILY = 24
EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def solved():
    return [(name, problem, oracles.solve(problem)) for name, problem in problems.cases(PER_FAMILY)]


def simplex(problem, rng, concentration=1.0):
    rows = rng.gamma(concentration, size=(problem.n, problem.n_classes)) + 1e-300
    return problem.mass[:, None] * rows / rows.sum(axis=1, keepdims=True)


def random_simplex(problem, oracle, rng):
    return simplex(problem, rng)


def random_sparse(problem, oracle, rng):
    return simplex(problem, rng, concentration=0.05)


def perturbed(problem, oracle, rng):
    noise = 10.0 ** rng.uniform(-8, -1)
    return oracle.dual + noise * problem.mass[:, None] * rng.standard_normal(oracle.dual.shape)


def damaged_entries(problem, oracle, rng):
    return oracle.dual * (rng.random(oracle.dual.shape) < 0.7)


def all_mass_off_class(problem, oracle, rng):
    dual = np.repeat(problem.mass[:, None], problem.n_classes, axis=1)
    dual[np.arange(problem.n), problem.y] = 0.0
    return dual


def zero_entries(problem, oracle, rng):
    dual = np.zeros((problem.n, problem.n_classes))
    dual[np.arange(problem.n), problem.y] = problem.mass
    return dual


def one_way_entries(problem, oracle, rng):
    """Entries only from lower to higher classes: nothing can balance them."""
    return problem.mass[:, None] * (np.arange(problem.n_classes) > problem.y[:, None])


def disconnected_entries(problem, oracle, rng):
    """Entries between classes 0 and 1 both ways, and one way out of class 2."""
    classes = np.arange(problem.n_classes)
    pair = (problem.y[:, None] < 2) & (classes < 2)
    return problem.mass[:, None] * (pair | ((problem.y[:, None] == 2) & (classes == 0)))


def wild_sizes(problem, oracle, rng):
    return 10.0 ** rng.uniform(-200, 100, oracle.dual.shape)


def not_numbers(problem, oracle, rng):
    dual = np.array(oracle.dual)
    dual[rng.random(dual.shape) < 0.3] = np.nan
    dual[rng.random(dual.shape) < 0.1] = np.inf
    dual[rng.random(dual.shape) < 0.1] = -1.0
    return dual


GUESSES = (
    random_simplex,
    random_sparse,
    perturbed,
    damaged_entries,
    all_mass_off_class,
    zero_entries,
    one_way_entries,
    disconnected_entries,
    wild_sizes,
    not_numbers,
)


def assert_brackets(name, problem, oracle, proof):
    # The oracle's point is feasible, so its objective is an upper bound beyond doubt, and the
    # value it reports is within its accuracy of the optimum.
    above = oracles.objective(problem, oracle.coef, oracle.intercept)
    slack = problem.floor(oracle.coef, oracle.intercept)
    assert proof.dual_objective <= above + slack, name
    assert proof.dual_objective <= oracle.value + 1e-7 * abs(oracle.value) + oracle.accuracy, name
    assert proof.objective >= oracle.value - 1e-7 * abs(oracle.value) - oracle.accuracy, name


def test_oracle_dual_gives_a_small_gap(solved):
    wide = []
    for name, problem, oracle in solved:
        proof = certify(problem, oracle.coef, oracle.intercept, oracle.dual)
        assert_brackets(name, problem, oracle, proof)
        expected = oracles.objective(problem, oracle.coef, oracle.intercept)
        assert proof.objective == pytest.approx(expected, rel=1e-12, abs=proof.floor), name
        # Where the optimum is zero there is no relative gap; the oracle's own accuracy counts.
        if proof.gap > 1e-6 * abs(proof.objective) + 1e-9:
            wide.append((name, proof.relative_gap))
    assert len(wide) <= 0.03 * len(solved), wide


@pytest.mark.parametrize("guess", GUESSES, ids=lambda guess: guess.__name__)
def test_optimum_lies_between_dual_and_primal(solved, guess):
    rng = np.random.default_rng(0)
    for name, problem, oracle in solved:
        shift = 10.0 ** rng.uniform(-6, 0)
        W = oracle.coef * (1.0 + shift * rng.standard_normal(oracle.coef.shape))
        b = oracle.intercept + problem.fit_intercept * shift * rng.standard_normal(
            oracle.intercept.shape
        )
        proof = certify(problem, W, b, guess(problem, oracle, rng))
        assert_brackets(name, problem, oracle, proof)
        assert proof.gap == max(proof.objective - proof.dual_objective, 0.0)


@pytest.mark.parametrize("guess", GUESSES, ids=lambda guess: guess.__name__)
def test_repaired_dual_is_feasible_and_worth_its_bound(solved, guess):
    rng = np.random.default_rng(1)
    for name, problem, oracle in solved[::3]:
        proof = certify(problem, oracle.coef, oracle.intercept, guess(problem, oracle, rng))
        found = naive.violations(problem, proof.dual)
        with_term = problem.linear_term is not None
        # A linear term on the edge of the dual ball passes within the rounding of G.
        edge = 1e-9 if with_term else 4.0 * EPS
        assert found["sign"] == 0.0, name
        assert found["mass"] <= 1e-13, name
        assert found["intercept"] <= 64.0 * EPS, name
        assert found["free features"] <= 128.0 * EPS, name
        assert found["penalty"] <= edge, name
        value = naive.dual_value(problem, proof.dual)
        scale = 1.0 + abs(value)
        assert proof.dual_objective <= value + 1e-13 * scale, name
        # Rounding up must not cost more than rounding.
        assert proof.dual_objective >= value - 1e-9 * scale, name


def test_feasible_optimal_dual_survives_the_repair_unchanged(solved):
    for name, problem, oracle in solved[::3]:
        first = certify(problem, oracle.coef, oracle.intercept, oracle.dual)
        again = certify(problem, oracle.coef, oracle.intercept, first.dual)
        assert again.dual_objective >= first.dual_objective - 1e-9 * abs(first.objective), name


def test_any_entries_between_all_classes_give_a_positive_bound(solved):
    rng = np.random.default_rng(2)
    for name, problem, _ in solved:
        # Unpenalised features may make every flow impossible, a linear term the bound negative.
        if (
            problem.penalty.free.size
            or problem.linear_term is not None
            or not problem.margins().any()
        ):
            continue
        W, b = np.zeros((problem.n_outputs, problem.d)), np.zeros(problem.n_outputs)
        assert certify(problem, W, b, simplex(problem, rng)).dual_objective > 0.0, name


def test_entries_out_of_a_class_that_gets_none_do_not_spoil_the_others():
    for seed in range(20):
        problem = problems.make(seed, problems.plain, penalty="l1")
        if problem.n_classes == 2:
            continue
        entries = disconnected_entries(problem, None, None)
        entries[np.arange(problem.n), problem.y] = 0.0
        balanced = balance(problem, entries)
        assert np.all(balanced[problem.y >= 2] == 0.0)
        assert balanced[problem.y < 2].sum() > 0.0


def test_balance_by_classes_and_by_columns_agree():
    # A constant unpenalised feature demands exactly what the intercept demands.
    rng = np.random.default_rng(3)
    with_intercept = problems.make(5, problems.plain, penalty="l1")
    X = np.hstack([oracles.dense(with_intercept), np.ones((with_intercept.n, 1))])
    weights = np.append(np.ones(with_intercept.d), 0.0)
    terms = L1(weights=weights).resolve(X.shape[1], with_intercept.n_outputs)
    by_column = Problem(
        design=make_design(X),
        y=with_intercept.y,
        mass=with_intercept.mass,
        cost=with_intercept.cost,
        n_classes=with_intercept.n_classes,
        alpha=with_intercept.alpha,
        loss=Hinge(),
        penalty=terms,
        fit_intercept=False,
    )
    entries = simplex(with_intercept, rng)
    entries[np.arange(with_intercept.n), with_intercept.y] = 0.0
    np.testing.assert_allclose(
        balance(by_column, entries), balance(with_intercept, entries), rtol=1e-9, atol=1e-18
    )


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_balance_reaches_rounding_from_entries_of_very_different_size(n_classes):
    rng = np.random.default_rng(n_classes)
    n = 30 * n_classes
    X, y = rng.standard_normal((n, 4)), np.repeat(np.arange(n_classes), 30).astype(np.int32)
    problem = problem_of(X, y)
    classes = 10.0 ** rng.uniform(-5, 0, (n_classes, n_classes))
    entries = problem.mass[:, None] * classes[y] * rng.random((n, n_classes))
    entries[np.arange(n), y] = 0.0
    balanced = balance(problem, entries)
    assert balanced.sum() > 1e-7
    assert np.abs(problem.signed_dual(balanced).sum(axis=0)).max() <= 64.0 * EPS


def problem_of(X, y, penalty=None, alpha=0.1, **options):
    n_classes = int(y.max()) + 1
    n_outputs = 1 if n_classes == 2 else n_classes
    return Problem(
        design=make_design(X),
        y=y,
        mass=np.full(y.size, 1.0 / y.size),
        cost=Hinge().cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=alpha,
        loss=options.pop("loss", Hinge()),
        penalty=(penalty or L1()).resolve(X.shape[1], n_outputs),
        **options,
    )


def tiny():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    return problem_of(X, np.array([1, 1, 0, 0], dtype=np.int32))


def test_hand_computed_gap_of_two_opposite_pairs():
    # w = (1, 1), b = 0 classifies with margin exactly 1: the loss is 0, the penalty 2.
    # Y = t on each off-true entry gives G = (-2t, -2t), so t = alpha / 2 and the dual is 4 t.
    problem = tiny()
    dual = np.full((4, 2), 0.125)
    proof = certify(problem, np.array([[1.0, 1.0]]), np.array([0.0]), dual)
    assert proof.objective == pytest.approx(0.2, abs=1e-15)
    assert proof.dual_objective == pytest.approx(0.2, rel=1e-14)
    assert proof.within(1e-12)


def test_no_dual_gives_the_bound_zero():
    proof = certify(tiny(), np.zeros((1, 2)), np.zeros(1), None)
    assert (proof.objective, proof.dual_objective, proof.gap) == (1.0, 0.0, 1.0)


def test_gap_of_zero_margins_is_zero():
    problem = problem_of(np.ones((4, 1)), np.array([0, 1, 2, 0], dtype=np.int32))
    problem = Problem(**{**vars(problem), "cost": np.zeros((3, 3))})
    proof = certify(problem, np.zeros((3, 1)), np.zeros(3), None)
    assert (proof.objective, proof.gap, proof.relative_gap) == (0.0, 0.0, 0.0)


def test_infeasible_linear_term_has_no_bound():
    problem = problem_of(
        np.eye(3), np.array([0, 1, 1], dtype=np.int32), linear_term=np.array([[0.0, 1.5, 0.0]])
    )
    proof = certify(problem, np.zeros((1, 3)), np.zeros(1), np.full((3, 2), 0.1))
    assert proof.dual_objective == -np.inf
    assert not proof.within(1e-4)


def test_certificate_of_problems_that_are_not_convex_is_the_gap_of_their_tangent():
    W = np.eye(3) / 2.0
    for changes in ({"loss": Ramp(mu=0.5)}, {"penalty": CappedL1()}):
        problem = problem_of(np.eye(3), np.array([0, 1, 2], dtype=np.int32), **changes)
        proof = certify(problem, W, np.zeros(3), None)
        assert np.isnan([proof.gap, proof.relative_gap, proof.dual_objective]).all()
        touching = tangent(problem, W, np.zeros(3))
        gap = certify(touching.problem, W, np.zeros(3), None).gap
        assert proof.criticality == gap / touching.scale > 0.0
        assert not proof.within(1e-4)


def test_dual_of_the_wrong_shape_names_both_sizes():
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*4 samples and 2 classes"):
        repaired_dual(tiny(), np.zeros((2, 2)))


def test_solution_is_optimal_exactly_when_the_gap_meets_the_tolerance():
    problem = tiny()
    dual = np.full((4, 2), 0.125)
    for scale, status in ((1.0, "optimal"), (1.2, "stalled")):
        solution = certified(
            problem,
            scale * np.array([[1.0, 1.0]]),
            np.array([0.0]),
            dual,
            tol=Control().tol,
            n_iter=3,
            seconds=0.1,
            history=History.empty(),
            solver="by hand",
            status_if_not="stalled",
        )
        assert solution.status == status
        assert solution.converged == (status == "optimal")
        assert solution.gap == solution.objective - solution.dual_objective


def test_repeating_a_sample_equals_doubling_its_weight():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((9, 3)), (np.arange(9) % 3).astype(np.int32)
    repeated = problem_of(np.vstack([X, X[:1]]), np.append(y, y[0]), L2())
    mass = np.ones(9)
    mass[0] = 2.0
    weighted = Problem(**{**vars(problem_of(X, y, L2())), "mass": mass / 10.0})
    W, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
    assert weighted.objective(W, b) == pytest.approx(repeated.objective(W, b), rel=1e-14)
    dual = simplex(weighted, rng)
    split = np.vstack([dual, dual[:1] / 2.0])
    split[0] /= 2.0
    assert certify(weighted, W, b, dual).dual_objective == pytest.approx(
        certify(repeated, W, b, split).dual_objective, rel=1e-12
    )


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "sparse_group"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_sparse_data_certified_by_blocks_of_features_have_the_slope_of_dense_data(
    penalty, n_classes
):
    rng = np.random.default_rng(n_classes)
    d = 150_000  # more than one block, also for two classes
    X = np.zeros((30, d))
    X[:, rng.integers(0, d, 41)] = rng.standard_normal((30, 41)) * (rng.random((30, 41)) < 0.3)
    y = rng.integers(0, n_classes, 30).astype(np.int32)
    outputs = 1 if n_classes == 2 else n_classes
    certificates, slopes = [], []
    W = np.zeros((outputs, d))
    for data in (X, csr_array(X)):
        problem = Problem(
            design=make_design(data),
            y=y,
            mass=np.full(30, 1.0 / 30.0),
            cost=Hinge().cost_matrix(n_classes),
            n_classes=n_classes,
            alpha=0.02,
            loss=Hinge(),
            penalty=as_penalty(penalty).resolve(d, outputs, None),
        )
        dual = simplex(problem, np.random.default_rng(0))
        slopes.append(largest_slope(problem, repaired_dual(problem, dual)))
        certificates.append(certify(problem, W, np.zeros(outputs), dual))
    dense, sparse = certificates
    assert 0.0 < dense.dual_objective < dense.objective
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-11)
    assert dense.dual_objective * (1 - 1e-11) <= sparse.dual_objective < sparse.objective
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-12)
    assert sparse.floor == pytest.approx(dense.floor, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_blocks_and_reuse_of_the_dual_change_nothing(loss, monkeypatch):
    rng = np.random.default_rng(5)
    for seed, family in enumerate(problems.FAMILIES):
        problem = problems.make(seed, family, loss=loss)
        W = rng.standard_normal((problem.n_outputs, problem.d))
        b = rng.standard_normal(problem.n_outputs) * problem.fit_intercept
        dual = simplex(problem, rng)
        given = dual.copy()
        whole = certify(problem, W, b, dual)
        np.testing.assert_array_equal(dual, given)
        again = certify(problem, W, b, dual.copy(), overwrite_dual=True)
        assert (again.objective, again.dual_objective) == (whole.objective, whole.dual_objective)
        np.testing.assert_array_equal(again.dual, whole.dual)
        with monkeypatch.context() as small:
            small.setattr("sparsvm.numerics.rows.BLOCK", 7)
            blocks = certify(problem, W, b, dual)
        assert blocks.objective == pytest.approx(whole.objective, rel=1e-13)
        assert blocks.dual_objective == pytest.approx(whole.dual_objective, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(blocks.dual, whole.dual, rtol=1e-9, atol=1e-15)


def test_slopes_are_taken_of_entries_that_are_left_as_they_were():
    problem = problems.make(2, problems.sparse_rows, "l1")
    entries = repaired_dual(problem, simplex(problem, np.random.default_rng(0)))
    before = entries.copy()
    G, error = slope(problem, before)
    assert largest_slope(problem, entries) == pytest.approx(
        problem.penalty.dual_norm(np.abs(G) + error), rel=1e-13
    )
    np.testing.assert_array_equal(entries, before)


@pytest.mark.parametrize("kind", ["l1", "l1/l2", "l1/linf"])
def test_a_rare_feature_beyond_the_dual_ball_costs_its_samples_only(kind):
    """Of sparse samples those without the feature keep their share of the bound."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random((60, 40)) < 0.15, rng.random((60, 40)), 0.0)
    X[:, 0] = 0.0
    X[:2, 0] = 10.0
    y = (np.arange(60) % 3).astype(np.int32)
    penalty = as_penalty(kind).resolve(40, 3, None)

    def with_alpha(alpha, form):
        return Problem(
            design=make_design(form),
            y=y,
            mass=np.full(60, 1 / 60),
            cost=Hinge().cost_matrix(3),
            n_classes=3,
            alpha=alpha,
            loss=Hinge(),
            penalty=penalty,
        )

    zero, dual = (np.zeros((3, 40)), np.zeros(3)), np.full((60, 3), 1 / 180)
    slopes = penalty.group_dual_norms(
        np.asarray(with_alpha(1.0, X).transposed(with_alpha(1.0, X).signed_dual(dual)))
    )
    norms = np.asarray(penalty.spread(slopes)).max(axis=0)
    assert norms[0] > 1.05 * norms[1:].max()
    alpha = float(norms[1:].max())
    rare, all_scaled = with_alpha(alpha, csr_array(X)), with_alpha(alpha, X)
    optimum = oracles.solve(all_scaled).value
    better = certify(rare, *zero, dual).dual_objective
    worse = certify(all_scaled, *zero, dual).dual_objective
    assert worse < 0.97 * better
    assert better <= optimum * (1 + 1e-9)


GROUPED = [
    L1,
    GroupL2,
    GroupLinf,
    functools.partial(GroupL2, groups=3),
    functools.partial(GroupLinf, groups=4, per_class=True),
]


@pytest.mark.native
@pytest.mark.parametrize("scale", [1.0, 1e152])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("penalty", GROUPED)
def test_the_slope_of_dense_data_is_that_of_numpy(penalty, n_classes, scale):
    """Also where the squares of the slope overflow."""
    rng = np.random.default_rng(n_classes)
    n, d = 9, 23
    weights = rng.uniform(0.5, 2.0, d)
    weights[[0, 7]] = 0.0
    problem = Problem(
        design=make_design(scale * rng.standard_normal((n, d))),
        y=rng.integers(0, n_classes, n).astype(np.int32),
        mass=np.full(n, 1.0 / n),
        cost=Hinge().cost_matrix(n_classes),
        n_classes=n_classes,
        alpha=1e-3,
        loss=Hinge(),
        penalty=penalty(weights=weights).resolve(d, 1 if n_classes == 2 else n_classes, None),
    )
    entries = rng.uniform(size=(n, n_classes))
    G, error = slope(problem, entries)
    expected = problem.penalty.dual_norm(np.abs(G) + error)
    assert np.isfinite(expected)
    assert largest_slope(problem, entries) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("complete", [True, False])
def test_nearly_balanced_entries_take_one_step(monkeypatch, complete):
    """Also where some classes exchange nothing, as long as all are connected by others."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 25)
    entries = rng.exponential(size=(100, 4)) * 10.0 ** rng.uniform(-6, 0, size=4)
    entries[np.arange(100), y] = 0.0
    if not complete:
        entries[np.arange(100), (y + 2) % 4] = 0.0
    entries /= entries.sum()
    balanced = balancing._balance_pairs(y, entries.copy(), None, True, True)
    moved = balanced * (1.0 + 1e-9 * rng.standard_normal(balanced.shape))
    with monkeypatch.context() as patch:
        patch.delattr(balancing, "_minimise")
        once = balancing._balance_pairs(y, moved.copy(), None, True, True)
        np.testing.assert_allclose(once, balanced, rtol=1e-7)
        with pytest.raises(NameError):
            balancing._balance_pairs(y, entries.copy(), None, True, True)
    sums = np.array([once[y == k].sum() - once[:, k].sum() for k in range(4)])
    assert np.abs(sums).max() <= balancing.TOLERANCE


@pytest.mark.parametrize("seed", range(10))
def test_traces_of_entries_across_a_linear_term_on_the_edge_cost_nothing(seed):
    rng = np.random.default_rng(seed)
    X, y = hinge_cases.gaussian(seed, 24, 3, 3)
    problem = hinge_cases.build(X, y, L1(), share=0.5)
    linear_term = np.zeros((3, 3))
    linear_term[2] = rng.choice([-1.0, 1.0], 3)
    problem = replace(problem, linear_term=linear_term)
    entries = np.zeros((24, 3))
    entries[y == 0, 1] = entries[y == 1, 0] = 0.1 / 24
    zero = np.zeros((3, 3)), np.zeros(3)
    clean = certify(problem, *zero, entries)
    entries[y != 2, 2] = 1e-13 * rng.random(np.count_nonzero(y != 2))
    entries[y == 2, :2] = 1e-13 * rng.random((np.count_nonzero(y == 2), 2))
    assert clean.dual_objective > 0.0
    assert certify(problem, *zero, entries).dual_objective >= clean.dual_objective * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_traces_do_not_keep_other_entries_from_being_put_on_the_edge(seed):
    """Two classes of the same samples: their slopes are 0, on the edge of every linear term."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((12, 30))
    X, y = (
        np.vstack([half, half, rng.standard_normal((8, 30))]),
        np.repeat([0, 1, 0, 1], [12, 12, 4, 4]),
    )
    problem = hinge_cases.build(X, y, L1(), share=1e-6)
    problem = replace(problem, linear_term=np.sign(rng.standard_normal((1, 30))))
    entries = np.zeros((32, 2))
    entries[np.arange(24), 1 - y[:24]] = problem.mass[:24]
    zero = np.zeros((1, 30)), np.zeros(1)
    clean = certify(problem, *zero, entries)
    assert clean.dual_objective == pytest.approx(0.75)
    entries *= 1.0 - 1e-12 * rng.random((32, 1))
    entries[np.arange(24, 32), 1 - y[24:]] = 1e-13 * rng.random(8)
    assert certify(problem, *zero, entries).dual_objective >= clean.dual_objective * (1 - 1e-9)
