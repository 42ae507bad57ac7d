"""The penalties: formulas, proximal operators, dual norms, groups and weights."""

import math
import pickle

import numpy as np
import proxop
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV

from reference.certificate import dual_norm as naive_dual_norm
from reference.oracles import group_members, penalty_value
from sparsvm import _core
from sparsvm.penalties import (
    L0,
    L1,
    L2,
    PENALTIES,
    CappedL1,
    ElasticNet,
    GroupL2,
    GroupLinf,
    SparseGroup,
    as_penalty,
)

CONVEX = [name for name, cls in PENALTIES.items() if cls.convex]
NORMS = ["l1", "l1/l2", "l1/linf", "sparse_group"]
SEEDS = st.integers(0, 10**6)


def draw(name, seed, scale=2.0):
    """A resolved penalty with random groups and weights, and a point."""
    rng = np.random.default_rng(seed)
    d, n_outputs = int(rng.integers(1, 9)), int(rng.choice([1, 3, 4]))
    options = {}
    if seed % 2:
        options["weights"] = 10.0 ** rng.uniform(-1, 1, d) * (rng.random(d) < 0.8)
    if name in ("elasticnet", "sparse_group"):
        options["l1_ratio"] = float(rng.uniform(0.05, 0.95))
    if name in ("l1/l2", "l1/linf", "sparse_group"):
        options["groups"] = [None, int(rng.integers(1, 4)), rng.integers(0, 3, d)][rng.integers(3)]
        options["per_class"] = bool(rng.integers(2))
    terms = as_penalty(name).set_params(**options).resolve(d, n_outputs)
    W = scale * rng.standard_normal((n_outputs, d)) * (rng.random((n_outputs, d)) < 0.8)
    return terms, W, rng


@pytest.mark.parametrize("name", CONVEX)
@given(seed=SEEDS)
def test_value_equals_the_formula(name, seed):
    terms, W, _ = draw(name, seed)
    assert terms.value(W) == pytest.approx(penalty_value(terms, W), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("name", list(PENALTIES))
@given(seed=SEEDS, power=st.sampled_from([-200, 0, 150]))
def test_value_at_equals_the_formula_with_zeros_elsewhere(name, seed, power):
    terms, W, rng = draw(name, seed)
    features = np.flatnonzero(rng.random(terms.d) < 0.6).astype(np.int32)
    # Squares of the first power are below the range of doubles, those of the last beyond it.
    W *= 10.0**power if name in NORMS else 1.0
    whole = np.zeros_like(W)
    whole[:, features] = W[:, features]
    scale = 10.0**-power if name in NORMS else 1.0
    expected = (penalty_value if terms.convex else type(terms).value)(terms, whole * scale)
    assert terms.value_at(features, W[:, features]) * scale == pytest.approx(expected, rel=1e-12)


@pytest.mark.native
def test_native_value_names_sizes_that_differ():
    W = np.ones((4, 2))
    good = {"groups": np.zeros(4, dtype=np.int32), "omega": np.ones(4)}
    options = {"kind": "l1/l2", "l1_ratio": 0.0, "per_class": False}
    assert _core.penalty_value(W, **good, **options) == pytest.approx(np.sqrt(8.0))
    for name in good:
        with pytest.raises(ValueError, match=rf"{name} has length 3 .* is 4"):
            _core.penalty_value(W, **{**good, name: good[name][:3]}, **options)
    with pytest.raises(ValueError, match="penalty kind must be one of"):
        _core.penalty_value(W, **good, **{**options, "kind": "l0"})


@pytest.mark.native
def test_class_sums_do_not_add_up_rounding():
    y = np.array([0, 2] * 50_000, dtype=np.int32)
    entries = np.full((y.size, 3), 0.1)
    entries[::20] = 1e10
    totals = np.asarray(_core.class_sums(entries, y))
    assert totals[1].tolist() == [0.0, 0.0, 0.0]
    for z in (0, 2):
        for k in range(3):
            assert totals[z, k] == math.fsum(entries[y == z, k])
    with pytest.raises(ValueError, match=r"y has length 2 .* is 3"):
        _core.class_sums(np.ones((3, 3)), np.zeros(2, dtype=np.int32))
    with pytest.raises(ValueError, match=r"outside 0 \.\. 2"):
        _core.class_sums(np.ones((3, 3)), np.full(3, 3, dtype=np.int32))


@pytest.mark.parametrize("name", NORMS)
@given(seed=SEEDS)
def test_dual_norm_equals_the_naive_one_and_bounds_every_product(name, seed):
    terms, G, rng = draw(name, seed)
    norm = terms.dual_norm(G)
    assert norm == pytest.approx(naive_dual_norm(terms, G), rel=1e-12, abs=1e-300)
    penalised = G * (terms.omega > 0.0)
    for _ in range(5):
        U = rng.standard_normal(G.shape)
        assert abs(np.sum(penalised * U)) <= norm * terms.value(U) * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("name", NORMS)
@given(seed=SEEDS)
def test_dual_norm_is_attained(name, seed):
    # prox(s G) with a step a little below the dual norm of s G leaves only the maximising group:
    # its direction attains the dual norm in the limit.
    terms, G, _ = draw(name, seed)
    norm = terms.dual_norm(G)
    if norm == 0.0:
        return
    U = terms.prox(G, norm * (1.0 - 1e-7)) * (terms.omega > 0.0)
    assert terms.value(U) > 0.0
    assert np.sum(G * U) / terms.value(U) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("name", CONVEX)
@given(seed=SEEDS, step=st.floats(1e-3, 10.0))
def test_prox_satisfies_its_optimality_condition(name, seed, step):
    # U = prox(W) if and only if R = (W - U) / step is a subgradient at U, that is
    # penalty(U) + conjugate(R) = <R, U>, and R vanishes on unpenalised features.
    terms, W, _ = draw(name, seed)
    U = terms.prox(W, step)
    R = (W - U) / step
    np.testing.assert_allclose(R[:, terms.omega == 0.0], 0.0, atol=1e-13)
    young = terms.value(U) - np.sum(R * U)
    if terms.is_norm:
        assert terms.dual_norm(R) <= 1.0 + 1e-10
    else:
        young += terms.conjugate(R)
    assert abs(young) <= 1e-9 * (1.0 + terms.value(U))


@pytest.mark.parametrize("name", CONVEX)
@given(seed=SEEDS)
def test_fenchel_young_inequality(name, seed):
    terms, W, rng = draw(name, seed)
    G = rng.standard_normal(W.shape) * (terms.omega > 0.0)
    if terms.is_norm and terms.dual_norm(G) > 0.0:
        G /= terms.dual_norm(G) * (1.0 + 1e-12)
    assert terms.value(W) + terms.conjugate(G) >= np.sum(G * W) * (1 - 1e-12) - 1e-12


@pytest.mark.parametrize("name", ["l2", "elasticnet"])
@given(seed=SEEDS)
def test_conjugate_is_the_supremum(name, seed):
    terms, W, _ = draw(name, seed)
    G = W * (terms.omega > 0.0)
    if terms.is_norm:  # nothing is penalised, so that G is zero
        assert terms.conjugate(G) == 0.0
        return
    # The maximiser of <G, U> - penalty(U) solves soft(G / omega) = (1 - rho) omega U.
    V = G * terms.inverse_omega
    soft = np.sign(V) * np.maximum(np.abs(V) - terms.l1_ratio, 0.0)
    U = soft / (1.0 - terms.l1_ratio) * terms.inverse_omega
    attained = float(np.sum(G * U)) - terms.value(U)
    assert terms.conjugate(G) == pytest.approx(attained, rel=1e-11, abs=1e-12)


def test_conjugate_of_a_norm_is_the_indicator_of_its_dual_ball():
    terms = L1().resolve(2, 1)
    assert terms.conjugate(np.array([[1.0, -1.0]])) == 0.0
    assert terms.conjugate(np.array([[1.0, -1.1]])) == np.inf


@given(seed=SEEDS, step=st.floats(0.01, 5.0))
def test_prox_agrees_with_proxop(seed, step):
    rng = np.random.default_rng(seed)
    W = 2.0 * rng.standard_normal((3, 6))
    # proxop 1.0.6 takes a group whose entries are all clipped for one that vanishes, and never lets
    # the first vanish: a zero in every group and a large first group make its answer right.
    padded = np.pad(W.T, ((1, 0), (0, 1)))
    padded[0, 0] = 100.0
    expected = {
        "l1": proxop.AbsValue().prox(W, gamma=step),
        "l1/l2": proxop.L21columns().prox(W, gamma=step),
        "l1/linf": proxop.Linf1().prox(padded, gamma=step)[1:, :-1].T,
    }
    for name, reference in expected.items():
        found = as_penalty(name).resolve(6, 3).prox(W, step)
        np.testing.assert_allclose(found, reference, atol=1e-9, err_msg=name)


def test_weighted_prox_agrees_with_a_general_minimiser():
    rng = np.random.default_rng(0)
    W, weights = rng.standard_normal((1, 4)), np.array([0.5, 1.0, 2.0, 0.0])
    for penalty in (GroupL2(groups=4, weights=weights), SparseGroup(groups=4, weights=weights)):
        terms = penalty.resolve(4, 1)
        U = terms.prox(W, 0.3)

        def moreau(x, terms=terms):
            return 0.5 * np.sum((x - W[0]) ** 2) + 0.3 * terms.value(x[None])

        found = minimize(moreau, U[0] + 0.05, method="Nelder-Mead", options={"xatol": 1e-9})
        assert moreau(U[0]) <= found.fun + 1e-12
        assert U[0, 3] == W[0, 3]


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
def test_norms_are_homogeneous_at_extreme_scales(name, scale):
    terms, W, _ = draw(name, 12)
    assert terms.value(scale * W) == pytest.approx(scale * terms.value(W), rel=1e-12)
    assert terms.dual_norm(scale * W) == pytest.approx(scale * terms.dual_norm(W), rel=1e-12)


def test_sparse_group_dual_norm_interpolates_between_l1_and_group():
    rng = np.random.default_rng(5)
    G = rng.standard_normal((3, 6))
    values = [
        SparseGroup(l1_ratio=ratio, groups=2).resolve(6, 3).dual_norm(G)
        for ratio in (0.0, 0.2, 0.5, 0.8, 1.0)
    ]
    assert values[0] == pytest.approx(GroupL2(groups=2).resolve(6, 3).dual_norm(G))
    assert values[-1] == pytest.approx(np.abs(G).max())
    assert values == sorted(values, reverse=True)


def test_nonconvex_values_and_limits():
    W = np.array([[0.0, 0.5, -2.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    coefficients = np.array([0.5, 2.0, 1.0])
    assert L0().resolve(3, 3).value(W) == pytest.approx(np.sum(1 - np.exp(-4 * coefficients)))
    assert CappedL1().resolve(3, 3).value(W) == pytest.approx(0.5 + 1.0 + 1.0)
    rows = CappedL1(cap=10.0, groups=1).resolve(3, 3)
    assert rows.value(W) == pytest.approx(0.5 + np.sqrt(5.0))
    with pytest.raises(ValueError, match="not convex"):
        rows.prox(W, 1.0)
    with pytest.raises(ValueError, match="positive, finite cap"):
        CappedL1(cap=0.0).resolve(3, 3)


# ------------------------------------------------------------------ groups and weights


def test_groups_of_consecutive_features_may_end_in_a_shorter_one():
    terms = GroupL2(groups=2).resolve(5, 1)
    np.testing.assert_array_equal(terms.groups, [0, 0, 1, 1, 2])
    assert terms.n_groups == 3


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["b", "a", "b", "c"], [1, 0, 1, 2]),
        (np.array([30, 10, 30, 20]), [2, 0, 2, 1]),
        ([("x", 1), ("x", 0), ("x", 1), ("y", 0)], [1, 0, 1, 2]),
        (["b", 7, "b", ("x", 1)], [0, 1, 0, 2]),
    ],
)
def test_any_hashable_labels_make_groups(labels, numbers):
    terms = GroupLinf(groups=labels, weights=[1.0, 2.0, 3.0]).resolve(4, 3)
    np.testing.assert_array_equal(terms.groups, numbers)
    np.testing.assert_array_equal(terms.omega, np.array([1.0, 2.0, 3.0])[numbers])


def test_per_class_groups_are_separate_in_every_class():
    W = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0], [0.0, 5.0, 12.0]])
    labels = [0, 0, 1]
    joint = GroupL2(groups=labels).resolve(3, 3)
    single = GroupL2(groups=labels, per_class=True).resolve(3, 3)
    assert joint.value(W) == pytest.approx(np.sqrt(50.0) + np.sqrt(148.0))
    assert single.value(W) == pytest.approx(5.0 + 2.0 + 5.0 + 12.0)
    np.testing.assert_allclose(single.group_norms(W), [[5.0, 0.0], [0.0, 2.0], [5.0, 12.0]])
    assert len(list(group_members(single))) == 6


def test_scale_weights_equal_standardising_and_spare_constant_columns():
    std = np.array([2.0, 0.0, 0.5])
    terms = L1(weights="scale").resolve(3, 1, std)
    np.testing.assert_array_equal(terms.omega, [2.0, 1.0, 0.5])
    assert L1(weights="scale").needs_column_std
    assert not L1().needs_column_std


@pytest.mark.parametrize(
    ("penalty", "kind"),
    [
        (ElasticNet(l1_ratio=1.0), "l1"),
        (ElasticNet(l1_ratio=0.0), "l2"),
        (SparseGroup(l1_ratio=1.0), "l1"),
        (SparseGroup(l1_ratio=0.0), "l1/l2"),
        (GroupL2(per_class=True), "l1"),
        (GroupLinf(groups=1, per_class=True), "l1"),
        (SparseGroup(l1_ratio=0.5), "sparse_group"),
        (GroupL2(groups=2, per_class=True), "l1/l2"),
        (L2(weights=[0.0, 0.0, 0.0, 0.0]), "l1"),
        (ElasticNet(weights=[0.0, 0.0, 0.0, 0.0]), "l1"),
        (L2(weights=[0.0, 0.0, 0.0, 1.0]), "l2"),
    ],
)
def test_penalties_that_coincide_resolve_to_the_simpler_kind(penalty, kind):
    terms = penalty.resolve(4, 3)
    assert terms.kind == kind
    W = np.random.default_rng(0).standard_normal((3, 4))
    assert terms.value(W) == pytest.approx(penalty_value(terms, W))


@pytest.mark.parametrize(
    ("penalty", "sentence"),
    [
        (GroupL2(groups=[0, 1]), "2 labels but the data have 3 features"),
        (GroupL2(groups=0), "block size must be at least 1; got groups=0"),
        (GroupL2(groups="abc"), "None, a block size or one label per feature"),
        (GroupL2(groups=2.5), "None, a block size or one label per feature"),
        (L1(weights=[1.0, 2.0]), r"shape \(2,\) but there are 3 features in 3 groups"),
        (L1(weights=[1.0, -2.0, 1.0]), "not negative; weight 1 is -2.0"),
        (L1(weights=[1.0, 2.0, np.nan]), "not negative; weight 2 is nan"),
        (L1(weights="std"), "'scale' or 'sqrt_size'; got 'std'"),
        (L1(weights="scale"), "standard deviation of each of the 3 columns; got none"),
        (ElasticNet(l1_ratio=1.5), "l1_ratio between 0 and 1; got l1_ratio=1.5"),
        (SparseGroup(l1_ratio=-0.1), "l1_ratio between 0 and 1"),
        (ElasticNet(l1_ratio=float("nan")), "l1_ratio between 0 and 1"),
        (ElasticNet(l1_ratio="half"), "l1_ratio between 0 and 1; got l1_ratio='half'"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(penalty, sentence):
    with pytest.raises(ValueError, match=sentence):
        penalty.resolve(3, 3)


def test_unknown_penalty_lists_the_valid_names():
    with pytest.raises(ValueError, match="'l1', 'l2', 'elasticnet', 'l1/l2'"):
        as_penalty("lasso")
    with pytest.raises(ValueError, match="is not a penalty"):
        as_penalty(L1)


def test_dual_norm_of_a_penalty_that_is_no_norm_is_refused():
    with pytest.raises(ValueError, match="'l2' is not a norm"):
        L2().resolve(2, 1).dual_norm(np.ones((1, 2)))


# ------------------------------------------------------------------ parameter protocol

OBJECTS = [
    L1(),
    L1(weights=np.arange(3.0)),
    L2(weights="scale"),
    ElasticNet(l1_ratio=0.2),
    GroupL2(groups=["a", "b", "a"], per_class=True),
    GroupLinf(groups=np.array([0, 0, 1])),
    SparseGroup(0.3, groups=5),
    L0(sharpness=2.0),
    CappedL1(cap=0.5),
]


@pytest.mark.parametrize("penalty", OBJECTS, ids=repr)
def test_penalties_clone_pickle_compare_and_print(penalty):
    for copy in (clone(penalty), pickle.loads(pickle.dumps(penalty))):
        assert copy == penalty
        assert copy is not penalty
        assert hash(copy) == hash(penalty)
        assert repr(copy) == repr(penalty)
    assert sum(penalty == other for other in OBJECTS) == 1


class Holder(BaseEstimator):
    """The least an estimator needs for a grid over a penalty's parameters."""

    def __init__(self, penalty=None):
        self.penalty = penalty

    def fit(self, X, y):
        return self

    def score(self, X, y):
        return -abs(self.penalty.l1_ratio - 0.7)


def test_grid_search_reaches_the_parameters_of_a_penalty():
    search = GridSearchCV(
        Holder(ElasticNet(weights=np.ones(2))), {"penalty__l1_ratio": [0.1, 0.7, 0.9]}, cv=2
    )
    search.fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert search.best_params_ == {"penalty__l1_ratio": 0.7}
    assert search.best_estimator_.penalty == ElasticNet(0.7, weights=np.ones(2))
    assert set(Holder(GroupL2()).get_params()) == {
        "penalty",
        "penalty__groups",
        "penalty__per_class",
        "penalty__weights",
    }
