"""The losses against formulas written out sample by sample."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from sparsvm.losses import (
    LOSSES,
    Hinge,
    Logistic,
    OvrSquaredHinge,
    Ramp,
    SquaredHinge,
    as_loss,
)

SIZES = st.tuples(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10**6))


def draw(sizes, loss=None, scale=3.0):
    n_classes, n, seed = sizes
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n).astype(np.int32)
    scores = scale * rng.standard_normal((n, n_classes))
    if n_classes == 2:
        scores[:, 0] = 0.0
    if loss == "ovr_squared_hinge":
        return scores, y, np.repeat(rng.exponential(size=(n, 1)), n_classes, axis=1)
    margins = rng.exponential(size=(n_classes, n_classes))[y]
    margins[np.arange(n), y] = 0.0
    return scores, y, margins


def by_loops(loss, scores, y, margins):
    values = []
    for S, true, m in zip(scores, y, margins, strict=True):
        others = [k for k in range(S.size) if k != true]
        gaps = [m[k] + S[k] - S[true] for k in others]
        if loss.name == "hinge":
            values.append(max(0.0, max(gaps)))
        elif loss.name == "squared_hinge":
            values.append(sum(max(0.0, gap) ** 2 for gap in gaps))
        elif loss.name == "logistic":
            values.append(np.log(1.0 + sum(np.exp(gap) for gap in gaps)))
        elif loss.name == "ramp":
            mu = loss.mu
            rise = max(0.0, max(mu * m[k] + S[k] - S[true] for k in others))
            cut = max(0.0, max(-(mu**2) * m[k] + S[k] - S[true] for k in others))
            values.append((rise - cut) / mu)
        elif S.size == 2:
            sign = 1.0 if true == 1 else -1.0
            values.append(max(0.0, m[0] - sign * (S[1] - S[0])) ** 2)
        else:
            signs = [1.0 if k == true else -1.0 for k in range(S.size)]
            values.append(sum(max(0.0, m[0] - t * s) ** 2 for t, s in zip(signs, S, strict=True)))
    return np.array(values)


@pytest.mark.parametrize("name", LOSSES)
@given(sizes=SIZES)
def test_value_equals_the_formula(name, sizes):
    loss, data = as_loss(name), draw(sizes, name)
    np.testing.assert_allclose(loss.value(*data), by_loops(loss, *data), rtol=1e-12, atol=1e-13)


@given(sizes=SIZES, mu=st.floats(0.05, 1.0))
def test_ramp_is_bounded_and_equals_the_formula(sizes, mu):
    loss, (scores, y, margins) = Ramp(mu=mu), draw(sizes, scale=10.0)
    values = loss.value(scores, y, margins)
    np.testing.assert_allclose(values, by_loops(loss, scores, y, margins), rtol=1e-10, atol=1e-10)
    assert np.all(values >= 0.0)
    assert np.all(values <= (1.0 + mu) * margins.max(axis=1) * (1.0 + 1e-9) + 1e-9)


@pytest.mark.parametrize("name", [name for name, cls in LOSSES.items() if cls.smooth])
@given(sizes=SIZES)
def test_gradient_equals_finite_differences(name, sizes):
    loss, (scores, y, margins) = as_loss(name), draw(sizes, name)
    gradient = loss.gradient(scores, y, margins)
    step = 1e-6
    for k in range(scores.shape[1]):
        move = np.zeros_like(scores)
        move[:, k] = step
        above, below = loss.value(scores + move, y, margins), loss.value(scores - move, y, margins)
        np.testing.assert_allclose(gradient[:, k], (above - below) / (2 * step), atol=2e-4)


SMOOTH = [name for name, cls in LOSSES.items() if cls.smooth]


@pytest.mark.parametrize("name", SMOOTH)
@given(sizes=SIZES)
def test_hessian_product_equals_finite_differences_of_the_gradient(name, sizes):
    loss, (scores, y, margins) = as_loss(name), draw(sizes, name)
    direction = np.random.default_rng(sizes[2]).standard_normal(scores.shape)
    step = 1e-7
    ahead = loss.gradient(scores + step * direction, y, margins)
    behind = loss.gradient(scores - step * direction, y, margins)
    product = loss.hessian_product(scores, y, margins, direction)
    own = scores[np.arange(y.size), y][:, None]
    # The squared losses have kinks where a margin is just kept; a row this close to one is left.
    distances = np.minimum(np.abs(margins + scores - own), np.abs(margins - np.abs(scores)))
    distances[np.arange(y.size), y] = np.abs(margins.max(axis=1) - np.abs(own[:, 0]))
    clear = distances.min(axis=1) > 1e-4
    np.testing.assert_allclose(product[clear], ((ahead - behind) / (2.0 * step))[clear], atol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
@given(sizes=SIZES)
def test_fenchel_young_holds_with_equality_at_the_gradient(name, sizes):
    loss, (scores, y, margins) = as_loss(name), draw(sizes, name)
    values, dual = loss.value(scores, y, margins), loss.gradient(scores, y, margins)
    young = values + loss.conjugate(dual, y, margins) - np.sum(dual * scores, axis=1)
    np.testing.assert_allclose(young, 0.0, atol=1e-10 * (1.0 + np.abs(values).max()))
    other = scores + np.random.default_rng(sizes[2]).standard_normal(scores.shape)
    if scores.shape[1] == 2:
        other[:, 0] = 0.0
    elsewhere = loss.gradient(other, y, margins)
    young = values + loss.conjugate(elsewhere, y, margins) - np.sum(elsewhere * scores, axis=1)
    assert np.all(young >= -1e-10 * (1.0 + values))


@pytest.mark.parametrize("name", SMOOTH)
@given(sizes=SIZES)
def test_dual_entries_are_the_unsigned_derivatives(name, sizes):
    loss, data = as_loss(name), draw(sizes, name)
    scores, y, _ = data
    entries, gradient = loss.dual_entries(*data), loss.gradient(*data)
    assert np.all(entries >= 0.0)
    rows = np.arange(y.size)
    if loss.of_differences or scores.shape[1] == 2:
        assert np.all(entries[rows, y] == 0.0)
        gradient[rows, y] = 0.0
    np.testing.assert_array_equal(entries, np.abs(gradient))


@pytest.mark.parametrize("name", SMOOTH)
def test_conjugates_are_infinite_outside_their_domain(name):
    y, margins = np.array([0], dtype=np.int32), np.array([[0.0, 1.0, 1.0]])
    assert as_loss(name).conjugate(np.array([[0.5, -0.5, 0.0]]), y, margins) == np.inf
    if name != "ovr_squared_hinge":
        assert as_loss(name).conjugate(np.array([[-0.5, 0.6, 0.0]]), y, margins) == np.inf


@given(sizes=SIZES)
def test_hinge_satisfies_fenchel_young_with_equality_at_a_subgradient(sizes):
    scores, y, margins = draw(sizes)
    rng = np.random.default_rng(sizes[2])
    rows = np.arange(y.size)
    simplex = rng.dirichlet(np.ones(scores.shape[1]), y.size)
    dual = simplex.copy()
    dual[rows, y] -= 1.0
    values = Hinge().value(scores, y, margins)
    young = values + Hinge().conjugate(dual, y, margins) - np.sum(dual * scores, axis=1)
    assert np.all(young >= -1e-12)
    active = np.zeros_like(scores)
    active[rows, np.argmax(margins + scores - scores[rows, y][:, None], axis=1)] = 1.0
    active[rows, y] -= 1.0
    young = values + Hinge().conjugate(active, y, margins) - np.sum(active * scores, axis=1)
    np.testing.assert_allclose(young, 0.0, atol=1e-12)


def test_hinge_conjugate_is_infinite_outside_the_simplex():
    y, margins = np.array([0], dtype=np.int32), np.array([[0.0, 1.0]])
    assert Hinge().conjugate(np.array([[-2.0, 2.0]]), y, margins) == np.inf
    assert Hinge().conjugate(np.array([[-0.5, 0.6]]), y, margins) == np.inf
    assert Hinge().conjugate(np.array([[-0.25, 0.25]]), y, margins) == -0.25


def test_logistic_does_not_overflow():
    scores = np.array([[0.0, 1e5], [0.0, -1e5]])
    y, margins = np.zeros(2, dtype=np.int32), np.zeros((2, 2))
    np.testing.assert_allclose(Logistic().value(scores, y, margins), [1e5, 0.0])
    np.testing.assert_allclose(
        Logistic().gradient(scores, y, margins), [[-1.0, 1.0], [0.0, 0.0]], atol=1e-300
    )


def test_binary_losses_are_the_classical_ones():
    s = np.linspace(-3, 3, 13)
    scores, y = np.column_stack([np.zeros(13), s]), np.ones(13, dtype=np.int32)
    margins = Hinge().cost_matrix(2)[y]
    np.testing.assert_array_equal(Hinge().value(scores, y, margins), np.maximum(0, 1 - s))
    np.testing.assert_allclose(
        OvrSquaredHinge().value(scores, y, OvrSquaredHinge().cost_matrix(2)[y]),
        np.maximum(0, 1 - s) ** 2,
    )
    np.testing.assert_allclose(
        Ramp(mu=1.0).value(scores, y, margins), np.minimum(2.0, np.maximum(0, 1 - s))
    )


@pytest.mark.parametrize(
    ("margin", "sentence"),
    [
        (-1.0, "finite and not negative"),
        (float("nan"), "finite and not negative"),
        (np.ones((2, 3)), r"square cost matrix; got an array of shape \(2, 3\)"),
        (np.ones(3), "sample_margin"),
        (np.zeros((2, 2)), "2 x 2 but there are 3 classes"),
        (np.ones((3, 3)), r"zero on its diagonal .* \[1.0, 1.0, 1.0\]"),
        ("wide", "number or a square cost matrix"),
    ],
)
@pytest.mark.parametrize("cls", [Hinge, SquaredHinge, Logistic, Ramp])
def test_bad_margins_are_refused_in_a_sentence(cls, margin, sentence):
    with pytest.raises(ValueError, match=sentence):
        cls(margin=margin).cost_matrix(3)


def test_scalar_margin_becomes_a_cost_matrix_and_a_matrix_is_copied():
    np.testing.assert_array_equal(Hinge(2.0).cost_matrix(3), 2.0 * (1.0 - np.eye(3)))
    given_matrix = 1.0 - np.eye(3)
    result = Hinge(given_matrix).cost_matrix(3)
    result[0, 1] = 7.0
    assert given_matrix[0, 1] == 1.0


@pytest.mark.parametrize("mu", [0.0, -1.0, 1.5, float("nan")])
def test_ramp_refuses_mu_outside_its_range(mu):
    with pytest.raises(ValueError, match=r"mu in \(0, 1\]"):
        Ramp(mu=mu).value(np.zeros((1, 2)), np.zeros(1, dtype=np.int32), np.zeros((1, 2)))


def test_unknown_loss_lists_the_valid_names():
    with pytest.raises(ValueError, match="'hinge', 'squared_hinge', 'logistic'"):
        as_loss("hing")
    with pytest.raises(ValueError, match="is not a loss"):
        as_loss(Hinge)
    ramp = Ramp(mu=0.5)
    assert as_loss(ramp) is ramp


@pytest.mark.parametrize("loss", [Hinge(1.0 - np.eye(3)), Ramp(mu=0.3), OvrSquaredHinge()])
def test_losses_clone_pickle_compare_and_print(loss):
    for copy in (clone(loss), pickle.loads(pickle.dumps(loss))):
        assert copy == loss
        assert hash(copy) == hash(loss)
        assert copy is not loss
        assert repr(copy) == repr(loss)
    assert loss != Logistic()
    assert Hinge(1.0 - np.eye(3)) != Hinge(2.0 - 2.0 * np.eye(3))
