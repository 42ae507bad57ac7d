"""The conversions of docs/problem.md: our fits minimise the papers' objectives as printed.

The papers' problems are written out with one weight vector per class, also for two classes, and
solved by Clarabel. Nothing here calls the package's own objective.
"""

from __future__ import annotations

from itertools import combinations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from sparsvm import ConstrainedSparseSVC, SparseSVC
from sparsvm.losses import Ramp
from sparsvm.penalties import L0, L1, L2, CappedL1, ElasticNet, GroupL2, GroupLinf, SparseGroup

N, D = 24, 4
TWO_AND_THREE = pytest.mark.parametrize("K", [2, 3])


def data(K):
    """Overlapping classes, so that losses and penalties both count."""
    rng = np.random.default_rng(K)
    y = np.arange(N) % K
    X = rng.normal(size=(N, D)) + 0.6 * rng.normal(size=(K, D))[y]
    return X, y


class Paper:
    """A paper's problem in K weight vectors, K intercepts, slacks and bounds on norms."""

    def __init__(self, X, y, K, *, intercept, pairs):
        self.X, self.y, self.K, self.intercept = X, y, K, intercept
        self.n, self.d = X.shape
        # One slack per sample (hinge), or one per pair of sample and wrong class (squared hinge).
        self.pairs = [(i, k) for i in range(self.n) for k in range(K) if k != y[i]]
        self.slack_of = list(range(len(self.pairs))) if pairs else [i for i, _ in self.pairs]
        self.n_slacks = len(self.pairs) if pairs else self.n
        self.first_b = K * self.d
        self.first_slack = self.first_b + K
        self.size = self.first_slack + self.n_slacks
        self.quadratic = {}
        self.linear = {}
        self.rows, self.bounds, self.cones = [], [], []
        for (i, k), slack in zip(self.pairs, self.slack_of, strict=True):
            # 1 + S_k - S_y - slack <= 0
            row = {self.first_slack + slack: -1.0}
            for j in range(self.d):
                row[k * self.d + j] = X[i, j]
                row[y[i] * self.d + j] = -X[i, j]
            if intercept:
                row[self.first_b + k], row[self.first_b + y[i]] = 1.0, -1.0
            self.add([row], [-1.0], clarabel.NonnegativeConeT)
        for slack in range(self.n_slacks):
            self.add([{self.first_slack + slack: -1.0}], [0.0], clarabel.NonnegativeConeT)
        if not intercept:
            for k in range(K):
                self.add([{self.first_b + k: 1.0}], [0.0], clarabel.ZeroConeT)

    def add(self, rows, bounds, cone):
        self.rows += rows
        self.bounds += bounds
        self.cones.append(cone(len(rows)))

    def loss(self, factor, squared=False):
        for slack in range(self.first_slack, self.first_slack + self.n_slacks):
            (self.quadratic if squared else self.linear)[slack] = factor * (1 + squared)

    def budget(self, eta):
        row = {self.first_slack + slack: 1.0 for slack in range(self.n_slacks)}
        self.add([row], [eta], clarabel.NonnegativeConeT)

    def squares(self, factor):
        """Factor times the sum of all squared weights."""
        for w in range(self.K * self.d):
            self.quadratic[w] = 2.0 * factor

    def norms(self, factor, groups, p):
        """Factor times the sum of the p-norms (2 or inf) of the groups of weights."""
        for group in groups:
            t, self.size = self.size, self.size + 1
            self.linear[t] = factor
            if p == 2:
                rows = [{t: -1.0}, *({w: -1.0} for w in group)]
                self.add(rows, [0.0] * len(rows), clarabel.SecondOrderConeT)
            else:
                rows = [{w: sign, t: -1.0} for w in group for sign in (1.0, -1.0)]
                self.add(rows, [0.0] * len(rows), clarabel.NonnegativeConeT)

    def minimum(self, extra=None):
        P = sp.lil_array((self.size, self.size))
        for at, value in self.quadratic.items():
            P[at, at] = value
        if extra is not None:
            P[: extra.shape[0], : extra.shape[0]] = extra
        q = np.zeros(self.size)
        for at, value in self.linear.items():
            q[at] = value
        entries = [(v, r, c) for r, row in enumerate(self.rows) for c, v in row.items()]
        values, at_row, at_column = zip(*entries, strict=True)
        A = sp.csc_array((values, (at_row, at_column)), shape=(len(self.rows), self.size))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(sp.triu(P)),
            q,
            sp.csc_matrix(A),
            np.array(self.bounds),
            self.cones,
            settings,
        )
        return solver.solve().obj_val

    def singles(self):
        return [[w] for w in range(self.K * self.d)]

    def blocks(self, size):
        """Blocks of consecutive features in each class (Chierchia et al.)."""
        return [
            list(range(k * self.d + first, k * self.d + first + size))
            for k in range(self.K)
            for first in range(0, self.d, size)
        ]

    def features(self):
        """One group for each feature, across the classes (Blondel et al.)."""
        return [[k * self.d + j for k in range(self.K)] for j in range(self.d)]


def vectors(model):
    """One weight vector and intercept per class; two classes share theirs in opposite halves."""
    W, b = model.coef_, model.intercept_
    return (np.vstack([-W, W]) / 2.0, np.append(-b, b) / 2.0) if len(W) == 1 else (W, b)


def hinges(X, y, W, b):
    S = X @ W.T + b
    margins = 1.0 + S - S[np.arange(y.size), y][:, None]
    margins[np.arange(y.size), y] = 0.0
    return margins


def fitted(X, y, penalty, alpha, *, loss="hinge", **options):
    return SparseSVC(loss, penalty, alpha=alpha, tol=1e-9, **options).fit(X, y)


def norm_sum(W, groups, p):
    return sum(np.linalg.norm(W.ravel()[group], p) for group in groups)


ALPHA, ETA = 0.06, 0.8


# ------------------------------------------------------------------ Chierchia et al. 2015


def check(found, optimum, wrong=None):
    """Our model attains the paper's optimum; at another strength it would not."""
    assert found == pytest.approx(optimum, rel=1e-6)
    if wrong is not None:
        assert wrong[0] != pytest.approx(wrong[1], rel=1e-4)


@TWO_AND_THREE
def test_squared_norm_of_chierchia_has_lambda_2_over_n_alpha_and_half_of_it_for_two_classes(K):
    X, y = data(K)
    W, b = vectors(fitted(X, y, L2(), ALPHA))
    hinge, squares = hinges(X, y, W, b).max(axis=1).sum(), (W**2).sum()
    right, other = 2.0 / (N * ALPHA), 1.0 / (N * ALPHA)
    if K == 2:
        right, other = other, right
    totals = {}
    for lam in (right, other):
        paper = Paper(X, y, K, intercept=True, pairs=False)
        paper.squares(1.0)
        paper.loss(lam)
        totals[lam] = squares + lam * hinge, paper.minimum()
    check(*totals[right], wrong=totals[other])


@TWO_AND_THREE
@pytest.mark.parametrize(
    ("penalty", "groups", "p"),
    [
        (L1(), "singles", np.inf),
        (GroupL2(groups=2, per_class=True), "blocks", 2),
        (GroupLinf(groups=2, per_class=True), "blocks", np.inf),
    ],
)
def test_norms_of_chierchia_have_lambda_1_over_n_alpha(K, penalty, groups, p):
    X, y = data(K)
    W, b = vectors(fitted(X, y, penalty, ALPHA))
    lam = 1.0 / (N * ALPHA)
    paper = Paper(X, y, K, intercept=True, pairs=False)
    members = paper.blocks(2) if groups == "blocks" else paper.singles()
    paper.norms(1.0, members, p)
    paper.loss(lam)
    found = norm_sum(W, members, p) + lam * hinges(X, y, W, b).max(axis=1).sum()
    check(found, paper.minimum())


@TWO_AND_THREE
def test_budget_of_chierchia_is_n_eta(K):
    X, y = data(K)
    model = ConstrainedSparseSVC(eta=ETA, tol=1e-9).fit(X, y)
    W, b = vectors(model)
    paper = Paper(X, y, K, intercept=True, pairs=False)
    paper.norms(1.0, paper.singles(), np.inf)
    paper.budget(N * ETA)
    check(np.abs(W).sum(), paper.minimum())
    assert hinges(X, y, W, b).max(axis=1).sum() <= N * ETA * (1 + 1e-9)


# ------------------------------------------------------------------ Blondel et al. 2013


@TWO_AND_THREE
def test_rows_of_blondel_have_lambda_alpha_and_root_two_of_it_for_two_classes(K):
    X, y = data(K)
    W, b = vectors(fitted(X, y, GroupL2(), ALPHA, loss="squared_hinge", fit_intercept=False))
    loss = (np.maximum(hinges(X, y, W, b), 0.0) ** 2).sum() / N
    right, other = (np.sqrt(2.0) * ALPHA, ALPHA) if K == 2 else (ALPHA, np.sqrt(2.0) * ALPHA)
    totals = {}
    for lam in (right, other):
        paper = Paper(X, y, K, intercept=False, pairs=True)
        paper.norms(lam, paper.features(), 2)
        paper.loss(1.0 / N, squared=True)
        totals[lam] = loss + lam * norm_sum(W, paper.features(), 2), paper.minimum()
    check(*totals[right], wrong=totals[other])


@pytest.mark.parametrize(
    ("penalty", "factor"),
    [(GroupLinf(), 2.0), (SparseGroup(l1_ratio=0.3), 1.0 / (0.3 + 0.7 / np.sqrt(2.0)))],
)
def test_other_joint_rows_of_two_classes_have_a_factor_of_their_own(penalty, factor):
    X, y = data(2)
    W, b = vectors(fitted(X, y, penalty, ALPHA))
    lam = factor * ALPHA
    paper = Paper(X, y, 2, intercept=True, pairs=False)
    paper.loss(1.0 / N)
    found = hinges(X, y, W, b).max(axis=1).mean()
    if isinstance(penalty, GroupLinf):
        parts = [(1.0, paper.features(), np.inf)]
    else:
        parts = [(0.3, paper.singles(), np.inf), (0.7, paper.features(), 2)]
    for share, members, p in parts:
        paper.norms(lam * share, members, p)
        found += lam * share * norm_sum(W, members, p)
    check(found, paper.minimum())


# ------------------------------------------------------------------ Nakayama et al. 2020


@TWO_AND_THREE
@pytest.mark.parametrize("intercept", [False, True])
def test_naive_relaxation_of_nakayama_has_C_K_over_n_alpha_but_1_for_two(K, intercept):
    X, y = data(K)
    W, b = vectors(fitted(X, y, L2(), ALPHA, fit_intercept=intercept))
    C = (1.0 if K == 2 else K) / (N * ALPHA)
    paper = Paper(X, y, K, intercept=intercept, pairs=False)
    paper.loss(C)
    # 1/2 sum_{r<t} |w_r - w_t|^2 = 1/2 <W, (K I - 1 1') W>
    pairs = np.kron(K * np.eye(K) - np.ones((K, K)), np.eye(D))
    squares = sum(((W[r] - W[t]) ** 2).sum() for r, t in combinations(range(K), 2))
    found = 0.5 * squares + C * hinges(X, y, W, b).max(axis=1).sum()
    check(found, paper.minimum(extra=pairs))


# ------------------------------------------------------------------ Ong and Le Thi 2013


def test_hinge_of_ong_has_lambda_n_alpha_and_half_of_it_for_the_squared_norm():
    X, y = data(2)
    t = 2.0 * y - 1.0
    for penalty, lam in ((L1(), N * ALPHA), (L2(), N * ALPHA / 2.0)):
        model = fitted(X, y, penalty, ALPHA)
        w, b = model.coef_[0], model.intercept_[0]
        hinge = np.maximum(0.0, 1.0 - t * (X @ w + b)).sum()
        # Class 0 pinned to zero: the binary machine itself.
        paper = Paper(X, y, 2, intercept=True, pairs=False)
        for at in [*range(D), paper.first_b]:
            paper.add([{at: 1.0}], [0.0], clarabel.ZeroConeT)
        paper.loss(1.0)
        if isinstance(penalty, L1):
            paper.norms(lam, paper.singles(), np.inf)
            found = hinge + lam * np.abs(w).sum()
        else:
            paper.squares(lam)
            found = hinge + lam * (w**2).sum()
        check(found, paper.minimum())


@pytest.mark.parametrize("penalty", [L0(sharpness=3.0), CappedL1(cap=0.4)])
def test_objective_of_ong_is_n_times_ours_at_lambda_over_n(penalty):
    X, y = data(2)
    t, mu = 2.0 * y - 1.0, 0.7
    lam = N * ALPHA
    model = SparseSVC(Ramp(mu=mu), penalty, alpha=lam / N).fit(X, y)
    w = model.coef_[0]
    z = t * (X @ w + model.intercept_[0])
    # (2), by cases
    ramp = np.where(z < -(mu**2), 1.0 + mu, np.where(z > mu, 0.0, 1.0 - z / mu))
    smooth = isinstance(penalty, L0)
    size = 1.0 - np.exp(-3.0 * np.abs(w)) if smooth else np.minimum(0.4, np.abs(w))
    assert np.count_nonzero(w) > 0
    assert ramp.sum() + lam * size.sum() == pytest.approx(N * model.objective_, rel=1e-12)


# ------------------------------------------------------------------ other packages


def same(model, other, tol=2e-4):
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(other.coef_, model.coef_, atol=tol * scale)
    if model.fit_intercept:
        np.testing.assert_allclose(
            other.intercept_ - other.intercept_.mean() * (len(model.intercept_) > 1),
            model.intercept_,
            atol=tol * max(scale, 1.0),
        )


def test_C_of_SVC_is_1_over_n_alpha():
    X, y = data(2)
    other = SVC(kernel="linear", C=1.0 / (N * ALPHA), tol=1e-9).fit(X, y)
    same(fitted(X, y, L2(), ALPHA), other)


@TWO_AND_THREE
def test_C_of_crammer_singer_is_1_over_n_alpha_and_half_of_it_for_two_classes(K):
    X, y = data(K)
    model = fitted(X, y, L2(), ALPHA, fit_intercept=False)
    C = 1.0 / (N * ALPHA) / (2.0 if K == 2 else 1.0)
    other = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-10, max_iter=10**6
    )
    same(model, other.fit(X, y))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@TWO_AND_THREE
def test_C_of_one_vs_rest_LinearSVC_is_1_over_n_alpha(K, penalty):
    X, y = data(K)
    model = fitted(X, y, penalty, ALPHA, loss="ovr_squared_hinge", fit_intercept=False)
    other = LinearSVC(
        penalty=penalty,
        dual=False,
        fit_intercept=False,
        C=1.0 / (N * ALPHA),
        tol=1e-10,
        max_iter=10**6,
    )
    same(model, other.fit(X, y))


@TWO_AND_THREE
def test_C_of_LogisticRegression_is_1_over_n_alpha(K):
    X, y = data(K)
    other = LogisticRegression(C=1.0 / (N * ALPHA), tol=1e-12, max_iter=10**4).fit(X, y)
    same(fitted(X, y, L2(), ALPHA, loss="logistic"), other)


@TWO_AND_THREE
def test_lambda_of_glmnet_is_alpha(K):
    """Its objective, as documented: minus the mean log-likelihood and the elastic net."""
    X, y = data(K)
    rho = 0.4
    model = fitted(X, y, ElasticNet(l1_ratio=rho), ALPHA, loss="logistic")
    W, b = model.coef_, model.intercept_
    S = X @ W.T + b
    S = np.hstack([np.zeros((N, 1)), S]) if K == 2 else S
    likelihood = S[np.arange(N), y] - np.log(np.exp(S).sum(axis=1))
    net = rho * np.abs(W).sum() + (1.0 - rho) / 2.0 * (W**2).sum()
    assert -likelihood.mean() + ALPHA * net == pytest.approx(model.objective_, rel=1e-12)
