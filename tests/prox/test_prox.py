"""The proximal operators against naive references, proxop, and the facts that define them."""

from decimal import Decimal, localcontext

import numpy as np
import proxop
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from reference import prox as naive
from sparsvm import penalties as named_penalties
from sparsvm import prox

pytestmark = pytest.mark.native

EPS = np.finfo(float).eps
SCALES = st.sampled_from([1e-150, 1e-3, 1.0, 1e3, 1e150])
# Small integers make ties and zeros common, which random floats never do.
ENTRIES = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4, allow_subnormal=False))
KINDS = {
    "l1": named_penalties.L1,
    "l2": named_penalties.L2,
    "elasticnet": named_penalties.ElasticNet,
    "l1/l2": named_penalties.GroupL2,
    "l1/linf": named_penalties.GroupLinf,
    "sparse_group": named_penalties.SparseGroup,
}


@st.composite
def vectors(draw):
    return np.array(draw(st.lists(ENTRIES, min_size=1, max_size=9))) * draw(SCALES)


@st.composite
def pairs(draw, scale=SCALES):
    """Two vectors of one length, of sizes that may differ by hundreds of orders."""
    n = draw(st.integers(1, 9))
    entries = st.lists(ENTRIES, min_size=n, max_size=n)
    return np.array(draw(entries)) * draw(scale), np.array(draw(entries)) * draw(scale)


def steps(maximum=5.0):
    return st.tuples(st.floats(0.01, maximum), SCALES).map(lambda pair: pair[0] * pair[1])


def close(got, expected, size):
    """Agreement to a few roundings of numbers as large as `size`."""
    np.testing.assert_allclose(got, expected, rtol=0, atol=64 * EPS * float(size))


def prox_penalty(W, step, kind, l1_ratio, groups, n_groups, per_class, omega):
    """The prox at W of shape (features, outputs), the penalty spelled out as for the references."""
    options = {"weights": omega}
    if kind in ("elasticnet", "sparse_group"):
        options["l1_ratio"] = l1_ratio
    if kind in ("l1/l2", "l1/linf", "sparse_group"):
        options |= {"groups": groups, "per_class": per_class}
    return prox.prox_penalty(W.T, KINDS[kind](**options), step).T


# ---------------------------------------------------------------- against the naive references


@given(vectors(), steps())
def test_simplex_projection_is_exact_at_every_scale(y, mass):
    got = prox.project_simplex(y, mass)
    # The error is relative to the mass, not to y: this is what makes 1e150 work.
    close(got, naive.project_simplex(y, mass), mass)
    assert (got >= 0).all()
    close(got.sum(), mass, mass)


@given(vectors(), steps())
def test_l1_ball_projection_equals_its_reference(v, radius):
    close(prox.project_l1_ball(v, radius), naive.project_l1_ball(v, radius), radius)


@given(vectors(), steps())
def test_group_linf_equals_its_reference(v, step):
    close(prox.prox_group_linf(v, step), naive.prox_group_linf(v, step), np.abs(v).max())


@given(vectors(), steps())
def test_group_l2_equals_its_reference(v, step):
    close(prox.prox_group_l2(v, step), naive.prox_group_l2(v, step), np.abs(v).max())


@st.composite
def weighted(draw):
    """A vector with one weight per entry, some of them zero."""
    n = draw(st.integers(1, 9))
    weights = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0.05, 20))
    v = draw(st.lists(ENTRIES, min_size=n, max_size=n))
    omega = draw(st.lists(weights, min_size=n, max_size=n))
    return np.array(v) * draw(SCALES), np.array(omega) * draw(SCALES)


@given(weighted(), steps())
def test_weighted_group_linf_equals_its_reference(case, step):
    v, omega = case
    got, expected = prox.prox_group_linf(v, step, omega), naive.prox_group_linf(v, step, omega)
    # Weights differing by 400 magnify the rounding of ω|v| by as much in T/ω.
    close(got, expected, 400 * np.abs(v).max())
    assert (got[omega == 0] == v[omega == 0]).all()


@given(weighted(), steps())
def test_weighted_group_l2_equals_its_reference(case, step):
    v, omega = case
    got, expected = prox.prox_group_l2(v, step, omega), naive.prox_group_l2(v, step, omega)
    close(got, expected, 400 * np.abs(v).max())
    assert (got[omega == 0] == v[omega == 0]).all()


@given(pairs(), steps())
def test_hinge_prox_equals_its_reference(case, mass):
    y, margins = case
    size = np.abs(y).max() + np.abs(margins).max() + mass
    close(prox.prox_hinge(y, margins, mass), naive.prox_hinge(y, margins, mass), size)


@given(pairs(), ENTRIES, SCALES)
def test_epigraph_projection_equals_its_reference(case, zeta, scale):
    y, margins = case
    zeta *= scale
    got, theta = prox.project_epigraph(y, zeta, margins)
    expected, expected_theta = naive.project_epigraph(y, margins, zeta)
    size = np.abs(y).max() + np.abs(margins).max() + abs(zeta)
    close(got, expected, size)
    close(theta, expected_theta, size)


@pytest.mark.parametrize("n", [64, 65, 700])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("mass", [1e-9, 1.0, 40.0, 1e9])
def test_large_vectors_take_the_selecting_branch_and_agree(n, ties, mass):
    rng = np.random.default_rng(n)
    v = rng.integers(-3, 4, n).astype(float) if ties else rng.normal(size=n)
    omega = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    close(prox.project_simplex(v, mass), naive.project_simplex(v, mass), 10 * mass)
    close(prox.project_l1_ball(v, mass), naive.project_l1_ball(v, mass), 10 * mass)
    close(prox.prox_group_linf(v, mass), naive.prox_group_linf(v, mass), 10)
    got, expected = prox.prox_group_linf(v, mass, omega), naive.prox_group_linf(v, mass, omega)
    close(got, expected, 100)
    (p, theta), (q, expected_theta) = (
        prox.project_epigraph(v, -mass, np.abs(v)),
        naive.project_epigraph(v, np.abs(v), -mass),
    )
    close(p, q, 10 + mass)
    close(theta, expected_theta, 10 + mass)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 64, 65, 256, 257])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_every_row_is_projected_on_its_own_simplex(size, scale):
    # 35 rows: one batch side by side and some single ones.
    rng = np.random.default_rng(size)
    Y, mass = rng.normal(size=(35, size)), rng.uniform(0.1, 2, 35) * scale
    Y[::3] = rng.integers(-2, 3, (12, size))
    Y *= scale
    Y[1] *= 1e-3
    Y[2, 0] += 1e5 * scale
    mass[[3, 34]] = 0.0
    got = prox.project_simplex(Y, mass)
    for row, p, u in zip(Y, mass, got, strict=True):
        close(u, naive.project_simplex(row, p), p)


def test_a_bad_row_does_not_spoil_its_neighbours():
    for size in (4, 12):
        Y = np.random.default_rng(0).normal(size=(64, size))
        good = prox.project_simplex(Y, np.ones(64))
        Y[5, 2], Y[40, 0] = np.nan, np.inf
        bad = prox.project_simplex(Y, np.ones(64))
        others = np.delete(np.arange(64), [5, 40])
        np.testing.assert_array_equal(bad[others], good[others])
        assert np.isnan(bad[5, 2]) and np.isnan(bad[40, 0])


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 6, 7, 8, 11, 66, 256, 257])
@pytest.mark.parametrize("per_class", [False, True])
def test_many_single_features_are_treated_side_by_side(outputs, per_class):
    rng = np.random.default_rng(outputs)
    W, omega = rng.normal(size=(75, outputs)), rng.choice([0, 0.5, 1, 2], 75)
    W[:40] = rng.integers(-2, 3, (40, outputs))
    terms = {"per_class": per_class, "l1_ratio": 0.4, "n_groups": 75, "omega": omega}
    terms["groups"] = rng.permutation(75).astype(np.int32)
    for kind, alone in [("l1/l2", prox.prox_group_l2), ("l1/linf", prox.prox_group_linf)]:
        for step in (0.05, 1.0, 0.4 * outputs):
            got = prox_penalty(W, step, kind=kind, **terms)
            for row, o, result in zip(W, omega, got, strict=True):
                parts = row[:, None] if per_class else row[None]
                close(result, np.concatenate([alone(part, step * o) for part in parts]), 10)
            assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e-140, 1.0, 1e150, 1e200])
@pytest.mark.parametrize("step", [0.0, 1e-200, 1e-150, 1e-139, 1.0, 1e140, 1e200])
def test_squares_beyond_the_range_of_doubles_do_not_matter_to_single_features(scale, step):
    rng = np.random.default_rng(0)
    W, omega = scale * rng.normal(size=(30, 5)), rng.choice([0, 0.5, 1, 2], 30)
    W[::4] = 0.0
    groups = {"groups": np.arange(30, dtype=np.int32), "n_groups": 30, "per_class": False}
    got = prox_penalty(W, step, kind="l1/l2", l1_ratio=0.0, omega=omega, **groups)
    expected = [prox.prox_group_l2(row, step * o) for row, o in zip(W, omega, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)


@st.composite
def penalties(draw):
    d, outputs, n_groups = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    omega = np.ones(d) if draw(st.booleans()) else rng.choice([0.0, 0.3, 1.0, 2.0], d)
    groups = rng.integers(0, n_groups, d).astype(np.int32)
    groups = np.sort(groups) if draw(st.booleans()) else groups
    ratio = draw(st.sampled_from([0.0, 0.3, 1.0]))
    W = rng.normal(size=(d, outputs)) * draw(SCALES)
    terms = {"l1_ratio": ratio, "groups": groups, "n_groups": n_groups, "omega": omega}
    return W, dict(kind=draw(st.sampled_from(list(KINDS))), per_class=draw(st.booleans()), **terms)


@given(penalties(), steps())
def test_prox_of_every_penalty_equals_its_reference(case, step):
    W, terms = case
    close(
        prox_penalty(W, step, **terms),
        naive.prox_penalty(W, step, **terms),
        10 * np.abs(W).max(),
    )


# ---------------------------------------------------------------- against proxop


# One scale for all that proxop is given: it projects (1e20, 0) on the simplex of mass 1 as
# (5e19, 0), because the mass is lost in its sums. What mixes scales is left to the references.


@given(pairs(scale=st.just(1.0)), st.floats(0.05, 5), SCALES)
def test_agreement_with_proxop(case, step, scale):
    y, margins = scale * case[0], scale * case[1]
    step, size = scale * step, 10 * scale
    close(prox.prox_hinge(y, 0 * y, step), proxop.Max().prox(y, step), size)
    close(prox.project_simplex(y, step), proxop.Simplex(step, axis=1).prox(y[None])[0], size)
    close(prox.prox_hinge(y, margins, step), proxop.Max().prox(y + margins, step) - margins, size)
    W = np.array([y, margins])
    joint = {"l1_ratio": 0.0, "groups": np.arange(2, dtype=np.int32), "n_groups": 2}
    joint |= {"omega": np.ones(2), "per_class": False}
    got = prox_penalty(W, step, kind="l1/l2", **joint)
    # proxop 1.0.6 divides by the norm + 1e-16, which is off by half a percent at 1e-14 (ours is
    # right, see below); but the prox of a norm scales with what it is given.
    unit = scale if scale < 1e-3 else 1.0
    expected = proxop.L21columns().prox(np.ascontiguousarray(W.T / unit), step / unit).T
    close(got, unit * expected, size)
    got = prox_penalty(W, step, kind="l1/linf", **joint)
    # proxop 1.0.6 takes a row whose entries are all clipped for one that vanishes, and never lets
    # the first row vanish: a column of zeros and a large first row make its answer right.
    padded = np.pad(W, ((1, 0), (0, 1)))
    padded[0, 0] = 100.0 * scale
    close(got, proxop.Linf1().prox(padded, step)[1:, :-1], size)


@given(pairs(scale=st.just(1.0)), st.floats(-5, 5), SCALES)
@example(case=(np.array([0.0, 0.0, 3.0]), np.array([0.0, 3.0, 0.0])), zeta=3.0, scale=1e-3)
def test_epigraph_agrees_with_proxop(case, zeta, scale):
    y, margins = scale * case[0], scale * case[1]
    zeta, size = scale * zeta, 10 * scale
    p, theta = prox.project_epigraph(y, zeta, margins)

    def theirs(zeta):
        return proxop.EpiMax(np.array([zeta]), axis=0).prox((y + margins)[:, None])

    q, expected = theirs(zeta)
    # proxop 1.0.6 finds no piece where rounding puts a mean beside the entry that it equals, and
    # answers something else: it projects (0, 3, 3; 3) / 1000, which is in the set, on 2.25 / 1000.
    # A projection never moves farther than its argument, so that such an answer gives itself away.
    assume(abs(theirs(zeta + 1e-9 * size)[1] - expected) <= 2e-9 * size)
    close(theta, expected[0, 0], size)
    close(p, q[:, 0] - margins, size)


@given(pairs(scale=st.just(1.0)), st.floats(0, 5), SCALES)
@example(case=(np.array([0.0, 0.0, 3.0]), np.array([0.0, 3.0, 0.0])), above=0.0, scale=1e-3)
def test_points_of_the_epigraph_are_their_own_projection(case, above, scale):
    y, margins = scale * case[0], scale * case[1]
    zeta = (y + margins).max() + scale * above
    p, theta = prox.project_epigraph(y, zeta, margins)
    close(theta, zeta, 10 * scale)
    close(p, y, 10 * scale)


@pytest.mark.parametrize("scale", [1e-150, 1e-14, 1e-12, 1.0, 1e150])
def test_group_l2_is_right_to_the_last_digits_at_every_scale(scale):
    v, step = scale * np.array([0.3, -1.1, 0.7, 0.0, 2.3]), scale * 0.7
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(entry) for entry in v.tolist()]
        factor = 1 - Decimal(step) / sum(entry * entry for entry in exact).sqrt()
        expected = np.array([float(factor * entry) for entry in exact])
    np.testing.assert_allclose(prox.prox_group_l2(v, step), expected, rtol=4 * EPS, atol=0)


# ---------------------------------------------------------------- what defines a prox


@given(vectors(), steps())
def test_moreau_identity(v, step):
    # v = prox_f(v) + prox_f*(v): the conjugate of a norm is the indicator of its dual ball.
    size = np.abs(v).max()
    close(prox.prox_group_linf(v, step) + prox.project_l1_ball(v, step), v, size)
    dual = v - prox.prox_group_l2(v, step)
    assert np.linalg.norm(dual / step) <= 1 + 16 * EPS * (1 + size / step)
    close(prox.prox_hinge(v, 0 * v, step) + prox.project_simplex(v, step), v, size + step)


def value(W, kind, l1_ratio, groups, n_groups, per_class, omega):
    V = omega[:, None] * W
    columns = V.T[:, :, None] if per_class else V[None]
    blocks = [c[groups == g] for c in columns for g in range(n_groups) if (groups == g).any()]
    l1, l2 = np.abs(V).sum(), (V**2).sum() / 2
    return {
        "l1": l1,
        "l2": l2,
        "elasticnet": l1_ratio * l1 + (1 - l1_ratio) * l2,
        "l1/l2": sum(np.linalg.norm(b) for b in blocks),
        "l1/linf": sum(np.abs(b).max() for b in blocks),
        "sparse_group": l1_ratio * l1 + (1 - l1_ratio) * sum(np.linalg.norm(b) for b in blocks),
    }[kind]


@given(penalties(), st.floats(0.01, 5), st.integers(0, 1000))
def test_the_prox_minimises_its_objective(case, step, seed):
    W, terms = case
    W = W / np.abs(W).max(initial=1e-300)
    P = prox_penalty(W, step, **terms)

    def objective(Z):
        return ((Z - W) ** 2).sum() / 2 + step * value(Z, **terms)

    best = objective(P)
    rng = np.random.default_rng(seed)
    for length in [1e-6, 1e-3, 0.1]:
        assert objective(P + length * rng.normal(size=W.shape)) >= best - 1e-14 * (1 + best)
    assert min(objective(W), objective(0 * W), objective(0.5 * P)) >= best - 1e-14 * (1 + best)


@given(penalties(), st.floats(0.01, 5), st.integers(0, 1000))
def test_every_prox_is_firmly_nonexpansive(case, step, seed):
    W, terms = case
    size = np.abs(W).max(initial=0)
    V = W + size * np.random.default_rng(seed).normal(size=W.shape)
    step *= size if size > 0 else 1.0
    if terms["kind"] in ("l2", "elasticnet"):
        step = 1.0
    P, Q = prox_penalty(W, step, **terms), prox_penalty(V, step, **terms)
    scale = max(np.abs(W).max(), np.abs(V).max(), 1e-300)
    dP, dW = (P - Q) / scale, (W - V) / scale
    assert (dP * dP).sum() <= (dP * dW).sum() + 1e-13


@given(pairs(scale=st.just(1.0)), st.floats(0.05, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_projections_are_firmly_nonexpansive(case, mass, zeta, other):
    y, z = case
    p, q = prox.project_simplex(y, mass), prox.project_simplex(z, mass)
    assert ((p - q) ** 2).sum() <= ((p - q) * (y - z)).sum() + 1e-13
    p, theta = prox.project_epigraph(y, zeta, 0 * y)
    q, eta = prox.project_epigraph(z, other, 0 * z)
    left = ((p - q) ** 2).sum() + (theta - eta) ** 2
    assert left <= ((p - q) * (y - z)).sum() + (theta - eta) * (zeta - other) + 1e-13


# ---------------------------------------------------------------- corners


def test_one_entry():
    one = np.array([-7.0])
    assert prox.project_simplex(one, 2.0) == [2.0]
    assert prox.project_l1_ball(one, 2.0) == [-2.0]
    assert prox.prox_group_linf(one, 2.0) == prox.prox_group_l2(one, 2.0) == [-5.0]
    assert prox.prox_hinge(one, np.zeros(1), 2.0) == [-9.0]


def test_no_entries():
    none = np.empty(0)
    assert prox.project_simplex(none, 1.0).shape == (0,)
    assert prox.prox_group_linf(none, 1.0).shape == prox.prox_group_l2(none, 1.0).shape == (0,)
    assert prox.project_epigraph(none, 3.0, none)[1] == 3.0


def test_zero_step_changes_nothing_and_zero_mass_gives_zero():
    v = np.array([1.0, -2.0, 0.0, 2.0])
    np.testing.assert_array_equal(prox.prox_group_linf(v, 0.0), v)
    np.testing.assert_array_equal(prox.prox_group_l2(v, 0.0), v)
    np.testing.assert_array_equal(prox.project_simplex(v, 0.0), 0 * v)
    np.testing.assert_array_equal(prox.project_l1_ball(v, 0.0), np.zeros(4))


def test_what_is_shrunk_away_is_exactly_zero():
    v = np.array([0.1, -0.2, 0.05])
    for got in [
        prox.prox_group_linf(v, 0.36),
        prox.prox_group_l2(v, 0.24),
        prox.prox_group_linf(v, 0.37, np.array([0.9, 1.0, 1.0])),
        prox.prox_group_l2(v, 0.24, np.array([1.0, 1.0, 1.1])),
    ]:
        assert (got == 0).all() and not np.signbit(got).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 5, 300])
def test_nan_and_infinity_neither_hang_nor_crash(bad, n):
    for position in {0, n // 2, n - 1}:
        v = np.linspace(-1, 1, n)
        v[position] = bad
        omega = np.linspace(0.5, 2, n)
        outputs = [
            prox.project_simplex(v, 1.0),
            prox.project_l1_ball(v, 1.0),
            prox.prox_group_l2(v, 0.1),
            prox.prox_group_linf(v, 0.1),
            prox.prox_group_l2(v, 0.1, omega),
            prox.prox_group_linf(v, 0.1, omega),
            prox.prox_hinge(v, 0 * omega, 1.0),
            prox.project_epigraph(v, 0.0, 0 * omega)[0],
        ]
        assert all(out.shape == (n,) for out in outputs)
        if np.isnan(bad):
            assert all(np.isnan(out[position]) for out in outputs[1:7])


def test_rows_are_treated_one_by_one():
    rng = np.random.default_rng(3)
    V, margins = rng.normal(size=(5, 4)), rng.random((5, 4))
    sizes, weights = rng.random(5), rng.random((5, 4))
    for function in (prox.project_simplex, prox.project_l1_ball):
        expected = [function(v, size) for v, size in zip(V, sizes, strict=True)]
        np.testing.assert_array_equal(function(V, sizes), expected)
        np.testing.assert_array_equal(function(V[:, ::-1], 0.3)[1], function(V[1, ::-1], 0.3))
    for function in (prox.prox_group_l2, prox.prox_group_linf):
        expected = [function(*row) for row in zip(V, sizes, weights, strict=True)]
        np.testing.assert_array_equal(function(V, sizes, weights), expected)
        expected = [function(v, 0.4, weights[0]) for v in V]
        np.testing.assert_array_equal(function(V, 0.4, weights[0]), expected)
    expected = [prox.prox_hinge(*row) for row in zip(V, margins, sizes, strict=True)]
    np.testing.assert_array_equal(prox.prox_hinge(V, margins, sizes), expected)
    P, theta = prox.project_epigraph(V, sizes, margins[0])
    for row, size, p, t in zip(V, sizes, P, theta, strict=True):
        q, s = prox.project_epigraph(row, size, margins[0])
        np.testing.assert_array_equal(p, q)
        assert t == s


def test_any_real_numbers_do_and_the_input_is_left_alone():
    v = np.array([3, -2, 1], dtype=np.int8)
    expected = prox.prox_group_linf([3.0, -2.0, 1.0], 2.0)
    for given_as in (v, v.astype(np.float32), v.tolist(), np.repeat(v, 2)[::2]):
        result = prox.prox_group_linf(given_as, 2)
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.float64
    assert v.tolist() == [3, -2, 1]
    W = np.ones((2, 3))
    assert prox.prox_penalty(W, step=0.0) is not W
    assert prox.prox_penalty(W[0], "l1/l2").shape == (3,)


V3 = np.ones(3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prox.prox_hinge(V3, np.ones(2)), r"margins must be .* shape \(3,\) or \(1, 3\)"),
        (
            lambda: prox.project_simplex(V3, -1.0),
            r"mass\[0\] is -1, but must be finite and not neg",
        ),
        (lambda: prox.project_simplex(np.ones((2, 3)), [1.0, np.nan]), r"mass\[1\] is nan, but"),
        (lambda: prox.project_simplex(np.ones((2, 3)), [1.0, 1.0, 1.0]), r"one entry a row \(2\)"),
        (lambda: prox.project_simplex(5.0), r"y must be a vector, or .* shape \(\)"),
        (lambda: prox.project_l1_ball(np.ones((2, 2, 2))), r"v must be a vector, or .*\(2, 2, 2\)"),
        (lambda: prox.project_l1_ball(V3, np.inf), r"radius\[0\] is inf, but must be finite"),
        (lambda: prox.project_l1_ball(["a"]), "v must be an array of real numbers; got list"),
        (lambda: prox.project_l1_ball(V3 * 1j), "v must be an array of real .* complex128"),
        (lambda: prox.prox_group_l2(V3, 1.0, np.ones(1)), r"weights must be .* shape \(1,\)"),
        (lambda: prox.prox_group_linf(V3, 1.0, -V3), r"weights\[0\] is -1, but must be finite"),
        (lambda: prox.project_epigraph(V3, V3), r"zeta must be a number, or .* \(3,\)"),
        (lambda: prox.prox_penalty(V3, "l3"), "l3"),
        (lambda: prox.prox_penalty(V3, "l0"), "needs a convex penalty, but L0"),
        (lambda: prox.prox_penalty(V3, step=-2), "step is -2, but must be finite and not neg"),
        (lambda: prox.prox_penalty(V3, step=V3), r"step must be a number; got .* \(3,\)"),
        (
            lambda: prox.prox_penalty(V3, named_penalties.L1(weights="scale")),
            "knows no data, which weights='scale' needs",
        ),
        (lambda: prox.prox_penalty(V3, named_penalties.GroupL2([0, 1])), "groups has 2 labels"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
