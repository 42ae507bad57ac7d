"""Groups that share features: the latent group penalty, exact and certified."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from reference import oracles, smooth
from sparsvm import (
    ConstrainedSparseSVC,
    SparseSVC,
    SparseSVCCV,
    StabilitySelection,
    alpha_max,
    certify,
    load_model,
    save_model,
    svm_path,
)
from sparsvm.data.design import make_design
from sparsvm.losses import Hinge, Logistic
from sparsvm.penalties import L0, GroupL2, GroupLinf, SparseGroup
from sparsvm.problem.problem import Problem

rng = np.random.default_rng(0)
Y = np.arange(48) % 3
X = rng.standard_normal((48, 8))
X[:, 2:4] += Y[:, None]  # the group of features 2, 3 and 4 carries the signal
NAMES = [f"f{j}" for j in range(8)]
GROUPS = [[0, 1, 2], [2, 3, 4], [4, 5]]  # 6 and 7 are groups by themselves
MEMBERS = [*GROUPS, [6], [7]]
BY_NAME = [[NAMES[j] for j in group] for group in GROUPS]


def optimum(loss, kind, alpha, weights=None):
    """The optimal value by an independent solver, parts of groups as features of their own."""
    columns, sizes = np.concatenate(MEMBERS), [len(group) for group in MEMBERS]
    penalty = kind(groups=np.repeat(np.arange(len(MEMBERS)), sizes))
    terms = penalty.resolve(columns.size, 3, None)
    if weights is not None:
        terms = replace(terms, omega=np.repeat(weights, sizes))
    problem = Problem(
        design=make_design(np.ascontiguousarray(X[:, columns])),
        y=Y.astype(np.int32),
        mass=np.full(Y.size, 1.0 / Y.size),
        cost=loss.cost_matrix(3),
        n_classes=3,
        alpha=alpha,
        loss=loss,
        penalty=terms,
        fit_intercept=True,
    )
    found = (smooth if loss.smooth else oracles).solve(problem)
    return oracles.objective(problem, found.coef, found.intercept)


def linear_program(alpha):
    """The optimal value of the hinge with the largest weights of groups, by HiGHS."""
    columns = np.concatenate(MEMBERS)
    m, K, n, G = columns.size, 3, Y.size, len(MEMBERS)
    group = np.repeat(np.arange(G), [len(g) for g in MEMBERS])
    scores = np.kron(np.eye(K), np.column_stack([X[:, columns], np.ones(n)]))  # (K n, K (m + 1))
    scores = scores.reshape(K, n, -1)
    rows = []
    for k in range(K):
        margins = np.hstack([scores[k] - scores[Y, np.arange(n)], -np.eye(n), np.zeros((n, G))])
        rows.append((margins, -(k != Y).astype(float)))
    for k in range(K):
        weights = np.zeros((m, K * (m + 1)))
        weights[np.arange(m), k * (m + 1) + np.arange(m)] = 1.0
        for sign in (1.0, -1.0):
            bound = np.hstack([sign * weights, np.zeros((m, n)), -np.eye(G)[group]])
            rows.append((bound, np.zeros(m)))
    cost = np.concatenate([np.zeros(K * (m + 1)), np.full(n, 1.0 / n), np.full(G, alpha)])
    found = linprog(
        cost,
        A_ub=np.vstack([a for a, _ in rows]),
        b_ub=np.concatenate([b for _, b in rows]),
        bounds=[(None, None)] * (K * (m + 1)) + [(0, None)] * (n + G),
    )
    return found.fun


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_the_optimum_of_a_linear_program_lies_between_the_bounds(alpha):
    best = linear_program(alpha)
    model = SparseSVC(penalty=GroupLinf(GROUPS), alpha=alpha, tol=1e-7).fit(X, Y)
    assert model.result_.dual_objective <= best * (1.0 + 1e-9)
    assert best <= model.objective_ * (1.0 + 1e-9)
    assert model.objective_ <= best * (1.0 + 1e-6)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=["hinge", "logistic"])
@pytest.mark.parametrize("kind", [GroupL2, GroupLinf])
@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_the_optimum_of_an_independent_solver_lies_between_the_bounds(loss, kind, alpha):
    best = optimum(loss, kind, alpha)
    model = SparseSVC(loss, kind(groups=GROUPS), alpha=alpha, tol=1e-6).fit(X, Y)
    slack = 1e-6 * best
    assert model.coef_.shape == (3, 8)
    assert model.result_.dual_objective <= best + slack
    assert best <= model.objective_ + slack
    assert model.objective_ - best <= 1e-5 * best
    # What is predicted is that of the sums, and the sums are those of the parts.
    assert np.array_equal(model.result_.coef, model.coef_)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_roots_of_the_sizes_are_the_weights_of_groups():
    roots = np.sqrt([len(group) for group in MEMBERS])
    best = optimum(Hinge(), GroupL2, 0.05, weights=roots)
    model = SparseSVC(penalty=GroupL2(GROUPS, weights="sqrt_size"), alpha=0.05, tol=1e-6)
    assert model.fit(X, Y).objective_ == pytest.approx(best, rel=1e-5)
    given = SparseSVC(penalty=GroupL2(GROUPS, weights=roots), alpha=0.05, tol=1e-6).fit(X, Y)
    assert given.objective_ == pytest.approx(model.objective_, rel=1e-6)
    apart = GroupL2(groups=3, weights="sqrt_size").resolve(d=8, n_outputs=1)
    assert apart.value(np.ones((1, 8))) == pytest.approx(3 + 3 + 2)
    both = GroupL2(groups=3, weights=("scale", "sqrt_size")).resolve(8, 1, np.full(8, 2.0))
    assert both.value(np.ones((1, 8))) == pytest.approx(2 * (3 + 3 + 2))


def test_the_parts_are_told_by_groups():
    frame = pd.DataFrame(X, columns=NAMES)
    model = SparseSVC(penalty=GroupL2(BY_NAME), alpha=0.15, tol=1e-6).fit(frame, Y)
    table = model.coef_frame()
    sums = table.groupby(["feature", "class"])["weight"].sum()
    for (name, label), weight in sums.items():
        assert weight == pytest.approx(model.coef_[label, NAMES.index(name)], abs=1e-12)
    used = set(model.selected_groups_)
    assert used == set(table["group"]) and 1 in used and len(used) < 5
    # Whole groups, and so unions of them, are selected.
    union = sorted({j for number in used for j in MEMBERS[number]})
    assert model.selected_features_.tolist() == union


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_every_kind_of_data_is_taken_and_its_type_kept(dtype, kind):
    exact = SparseSVC(penalty=GroupL2(GROUPS), alpha=0.1, tol=1e-7).fit(X, Y)
    model = SparseSVC(penalty=GroupL2(GROUPS), alpha=0.1, tol=1e-5).fit(kind(X.astype(dtype)), Y)
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    # The sums of the parts are the coefficients, rounding included: the gap is that of coef_.
    columns, _ = model.penalty.latent(8, None)
    sums = np.zeros((3, 8))
    np.add.at(sums, (slice(None), columns), model.latent_coef_.toarray())
    np.testing.assert_allclose(sums, model.coef_.astype(float), atol=1e-14)


def test_groups_without_overlap_are_what_they_were():
    lists = SparseSVC(penalty=GroupL2([[0, 1], [2, 3, 4]]), alpha=0.1).fit(X, Y)
    labels = SparseSVC(penalty=GroupL2([0, 0, 1, 1, 1, 2, 3, 4]), alpha=0.1).fit(X, Y)
    assert np.array_equal(lists.coef_, labels.coef_)
    assert not hasattr(lists, "latent_coef_")


def test_a_copy_of_every_group_changes_nothing_but_who_has_the_weight():
    once = SparseSVC(penalty=GroupL2([[0, 1, 2], [3, 4]]), alpha=0.1, tol=1e-7).fit(X, Y)
    twice = SparseSVC(penalty=GroupL2([[0, 1, 2], [3, 4], [3, 4]]), alpha=0.1, tol=1e-7).fit(X, Y)
    assert twice.objective_ == pytest.approx(once.objective_, rel=1e-6)
    np.testing.assert_allclose(twice.coef_, once.coef_, atol=1e-2)


@pytest.mark.parametrize("per_class", [False, True])
def test_paths_cross_validation_budgets_and_resamples_take_them(per_class, tmp_path):
    penalty = GroupL2(BY_NAME, per_class=per_class)
    frame = pd.DataFrame(X, columns=NAMES)
    path = svm_path(frame, Y, penalty=penalty, n_alphas=6)
    assert path.coefs[0].shape == (3, 8) and path.gaps.max() <= 1e-3
    assert path.n_selected[0] == 0 and path.n_selected[-1] > 2
    largest = alpha_max(frame, Y, penalty=penalty)  # grids begin within 5 % above it
    assert largest * (1 - 1e-6) <= path.alphas[0] <= 1.05 * largest
    chosen = SparseSVCCV(penalty=penalty, n_alphas=4, cv=3).fit(frame, Y)
    assert chosen.coef_.shape == (3, 8) and chosen.dual_gap_ <= 1e-3
    assert len(chosen.selected_groups_) >= 1
    bounded = ConstrainedSparseSVC(eta=0.6, penalty=penalty).fit(frame, Y)
    assert bounded.coef_.shape == (3, 8) and bounded.dual_gap_ <= 1e-3
    assert bounded.result_.hinge <= 0.6 + 1e-6
    stable = StabilitySelection(SparseSVC(penalty=penalty), n_resamples=2, n_alphas=4)
    assert stable.fit(frame, Y).selection_probabilities_.shape == (8,)
    save_model(chosen, tmp_path / "model")
    same = load_model(tmp_path / "model")
    assert same.coef_frame().equals(chosen.coef_frame())


def test_a_warm_start_begins_at_the_sums():
    model = SparseSVC(penalty=GroupL2(GROUPS), alpha=0.1, warm_start=True, solver="sdca", tol=1e-6)
    first = model.fit(X, Y).n_iter_
    assert model.fit(X, Y).n_iter_ <= first
    assert model.dual_gap_ <= 1e-6


def test_weights_of_features_and_mixtures_are_taken():
    penalty = GroupL2(GROUPS, weights={7: 0.0})
    free = SparseSVC("logistic", penalty, alpha=5.0, tol=1e-6).fit(X, Y)
    assert free.selected_features_.tolist() == [7]
    mixed = SparseSVC(penalty=SparseGroup(0.5, GROUPS, weights="scale"), alpha=0.05).fit(X, Y)
    assert mixed.dual_gap_ <= 1e-3


def test_what_overlapping_groups_cannot_do_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="takes no groups that overlap; use GroupL2"):
        SparseSVC(penalty=L0(groups=GROUPS)).fit(X, Y)
    with pytest.raises(ValueError, match="certify does not take groups that overlap"):
        certify(X, Y, np.zeros((3, 8)), loss="hinge", penalty=GroupL2(GROUPS), alpha=0.1)
    with pytest.raises(ValueError, match="8 features in 5 groups"):
        SparseSVC(penalty=GroupL2(GROUPS, weights=[1.0, 2.0])).fit(X, Y)
    path = svm_path(X, Y, penalty=GroupL2(GROUPS), alphas=[0.1])
    with pytest.raises(AttributeError, match="does not know its parts by groups"):
        path[0].selected_groups_  # noqa: B018
