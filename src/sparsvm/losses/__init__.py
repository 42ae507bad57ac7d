"""The losses, as parameterised objects with plain NumPy formulas.

Every loss is a function of the scores of one sample, with ``Delta_ik = S_ik - S_{i,y_i}``. The
methods work on all samples at once: ``scores`` and ``margins`` are (n, K), ``y`` holds class
numbers. With two classes the first column of ``scores`` is zero (class 0 is the reference).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from sparsvm._typing import Floats, Labels
from sparsvm.numerics.rows import of_class, row_max, row_sum
from sparsvm.parameters import Parameterised, number

# How far beyond a kink of the loss a sample still counts as a support vector.
SLOPE = 1e-2


class Loss(Parameterised):
    """Base class of the losses.

    Attributes
    ----------
    name : str
        The short name accepted by ``SparseSVC(loss=...)``.
    convex, smooth : bool
        Traits that decide which solvers apply.
    uses_margin : bool
        Whether the loss has a margin at all (the one-vs-rest loss does not).
    of_differences : bool
        Whether only differences of scores matter, so that the intercepts are determined up to a
        common constant.
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    uses_margin: ClassVar[bool] = True
    of_differences: ClassVar[bool] = True

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the loss of every sample, shape (n,)."""
        raise NotImplementedError

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        """Say for every sample whether its loss changes with its scores, shape (n,).

        These are the support vectors; scores within ``SLOPE`` of a kink count as on the slope.
        """
        raise NotImplementedError

    def cost_matrix(self, n_classes: int) -> Floats:
        """Return the margins as a K x K matrix, row = true class, zero on the diagonal.

        A scalar margin m gives ``m (1 - I)``.
        """
        return _cost_matrix(getattr(self, "margin", 1.0), n_classes)


class SmoothLoss(Loss):
    """Base class of the losses with a derivative: first and second order formulas, conjugate."""

    smooth = True

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the derivative with respect to the scores, shape (n, K)."""
        raise NotImplementedError

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        r"""Return :math:`H_i u_i` for every row :math:`u_i` of ``direction``, shape (n, K).

        :math:`H_i` is the second derivative of the loss of sample i in its K scores; where the
        squared losses have a kink in the gradient, the generalised one that takes the kink as
        inactive.
        """
        raise NotImplementedError

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        r"""Return :math:`\sup_S \langle \tilde Y_i, S \rangle - \ell(y_i, S)`, shape (n,).

        ``dual`` is (n, K), in units of mass 1; signs and row sums are judged to 1e-12.
        """
        raise NotImplementedError

    def dual_entries(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the dual variables at the scores, in units of mass 1 (see ``Solution.dual``).

        The derivatives off the true class, which are not negative, and 0 on it.
        """
        entries = self.gradient(scores, y, margins)
        entries[np.arange(y.size), y] = 0.0
        return entries


class Hinge(Loss):
    r"""Multiclass hinge loss of Crammer and Singer.

    .. math:: \ell(y, S) = \max_k \bigl(m_{yk} + S_k - S_y\bigr), \qquad m_{yy} = 0.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=1.0
        One margin for every pair of classes, or a cost matrix whose row is the true class and
        whose diagonal is zero. Per-sample margins are given to ``fit`` as ``sample_margin`` and
        multiply it.

    Examples
    --------
    >>> Hinge()
    Hinge()
    >>> Hinge(margin=2.0).cost_matrix(2)
    array([[0., 2.],
           [2., 0.]])
    """

    name = "hinge"

    def __init__(self, margin: Any = 1.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return row_max(margins + _differences(scores, y))

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        return np.asarray(_largest_off_class(margins + _differences(scores, y), y) > -SLOPE)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        r"""Return the conjugate of every sample's loss at ``dual``, shape (n,).

        With :math:`Y_i = \tilde Y_i + e_{y_i}` the conjugate is
        :math:`-\sum_k m_{y_i k} Y_{ik}` where :math:`Y_i` lies in the unit simplex and infinite
        elsewhere; membership is judged to 1e-12.
        """
        simplex = np.array(dual, dtype=np.float64)
        simplex[np.arange(y.size), y] += 1.0
        inside = (simplex.min(axis=1) >= -1e-12) & (np.abs(simplex.sum(axis=1) - 1.0) <= 1e-12)
        return np.where(inside, -np.sum(simplex * margins, axis=1), np.inf)


class SquaredHinge(SmoothLoss):
    r"""Squared multiclass hinge, :math:`\sum_{k \ne y} \max(0, m_{yk} + \Delta_k)^2`.

    With :math:`h_k = \max(0, m_{yk} + \Delta_k)` and :math:`a_k = [h_k > 0]` for k off the true
    class, the derivative is :math:`2 h_k` (minus their sum on the true class), the second
    derivative takes u to :math:`2 a_k (u_k - u_y)` (likewise), and the conjugate at
    :math:`\tilde Y` is :math:`\sum_{k \ne y} \tilde Y_k^2 / 4 - m_{yk} \tilde Y_k`.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=1.0
        As for :class:`Hinge`.
    """

    name = "squared_hinge"

    def __init__(self, margin: Any = 1.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return np.asarray(np.sum(self._violations(scores, y, margins) ** 2, axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return _balance_rows(2.0 * self._violations(scores, y, margins), y)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        active = self._violations(scores, y, margins) > 0.0
        return _balance_rows(np.where(active, 2.0 * _differences(direction, y), 0.0), y)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        flows, balanced = _flows(dual, y)
        inside = balanced & (flows.min(axis=1) >= -1e-12)
        return np.where(inside, np.sum(flows * (flows / 4.0 - margins), axis=1), np.inf)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        return np.asarray(_largest_off_class(margins + _differences(scores, y), y) > -SLOPE)

    @staticmethod
    def _violations(scores: Floats, y: Labels, margins: Floats) -> Floats:
        violations = np.maximum(0.0, margins + _differences(scores, y))
        violations[np.arange(y.size), y] = 0.0
        return violations


class Logistic(SmoothLoss):
    r"""Multinomial logistic loss, :math:`\log(1 + \sum_{k \ne y} \exp(m_{yk} + \Delta_k))`.

    With :math:`q_k` proportional to :math:`\exp(m_{yk} + \Delta_k)` and summing to 1, the
    derivative is :math:`q - e_y`, the second derivative takes u to
    :math:`q \circ (u - q^\top u)`, and the conjugate at :math:`\tilde Y = Y - e_y` is
    :math:`\sum_k Y_k \log Y_k - m_{yk} Y_k` for Y in the unit simplex.

    Parameters
    ----------
    margin : float or array of shape (K, K), default=0.0
        Zero gives multinomial logistic regression; otherwise as for :class:`Hinge`.
    """

    name = "logistic"

    def __init__(self, margin: Any = 0.0) -> None:
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(margins + _differences(scores, y), axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        return _balance_rows(self._probabilities(scores, y, margins), y)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        probabilities = self._probabilities(scores, y, margins)
        means = np.sum(probabilities * direction, axis=1, keepdims=True)
        return np.asarray(probabilities * (direction - means))

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        flows, balanced = _flows(dual, y)
        rest = 1.0 - flows.sum(axis=1)
        inside = balanced & (flows.min(axis=1) >= -1e-12) & (rest >= -1e-12)
        flows, rest = np.maximum(flows, 0.0), np.maximum(rest, 0.0)
        values = np.sum(xlogy(flows, flows) - margins * flows, axis=1) + xlogy(rest, rest)
        return np.where(inside, values, np.inf)

    @staticmethod
    def _probabilities(scores: Floats, y: Labels, margins: Floats) -> Floats:
        exponents = margins + _differences(scores, y)
        exponents -= exponents.max(axis=1, keepdims=True)
        probabilities = np.exp(exponents)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return np.asarray(probabilities)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        return np.ones(y.size, dtype=bool)


class OvrSquaredHinge(SmoothLoss):
    r"""One-vs-rest squared hinge, :math:`\sum_k \max(0, 1 - t_k S_k)^2` with :math:`t = \pm 1`.

    With two classes there is one score S (the difference of the two) and one term. With
    :math:`h_k = \max(0, 1 - t_k S_k)` the derivative is :math:`-2 t_k h_k`, the second derivative
    is diagonal, 2 where :math:`h_k > 0`, and the conjugate at :math:`\tilde Y_k = -t_k z_k` is
    :math:`\sum_k z_k^2/4 - z_k` for :math:`z \ge 0`.
    """

    name = "ovr_squared_hinge"
    uses_margin = False
    of_differences = False

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return np.asarray(np.sum(np.maximum(0.0, 1.0 - signs * outputs) ** 2, axis=1))

    def gradient(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        signs, outputs = self._outputs(scores, y)
        return self._all_scores(-2.0 * signs * np.maximum(0.0, 1.0 - signs * outputs), scores)

    def hessian_product(
        self, scores: Floats, y: Labels, margins: Floats, direction: Floats
    ) -> Floats:
        signs, outputs = self._outputs(scores, y)
        _, along = self._outputs(direction, y)
        return self._all_scores(np.where(signs * outputs < 1.0, 2.0 * along, 0.0), scores)

    def conjugate(self, dual: Floats, y: Labels, margins: Floats) -> Floats:
        if dual.shape[1] == 2:
            sizes, inside = _flows(dual, y)
        else:
            signs, _ = self._outputs(dual, y)
            sizes, inside = -signs * dual, np.ones(y.size, dtype=bool)
        inside &= sizes.min(axis=1) >= -1e-12
        return np.where(inside, np.sum(sizes * (sizes / 4.0 - 1.0), axis=1), np.inf)

    def dual_entries(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the absolute derivatives; for two classes, 0 on the true class."""
        entries = np.abs(self.gradient(scores, y, margins))
        if scores.shape[1] == 2:
            entries[np.arange(y.size), y] = 0.0
        return np.asarray(entries)

    @staticmethod
    def _all_scores(outputs: Floats, scores: Floats) -> Floats:
        """Derivatives in the one difference of two classes become those in both scores."""
        if scores.shape[1] == 2:
            return np.hstack([-outputs, outputs])
        return np.asarray(outputs)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        signs, outputs = self._outputs(scores, y)
        return np.asarray(np.any(signs * outputs < 1.0 + SLOPE, axis=1))

    @staticmethod
    def _outputs(scores: Floats, y: Labels) -> tuple[Floats, Floats]:
        if scores.shape[1] == 2:
            return np.where(y == 1, 1.0, -1.0)[:, None], scores[:, 1:] - scores[:, :1]
        return np.where(np.arange(scores.shape[1]) == y[:, None], 1.0, -1.0), scores


class Ramp(Loss):
    r"""Ramp loss: a difference of two hinges, bounded, so that outliers lose their pull.

    .. math::
        \tfrac1\mu \Bigl[\max_k(\mu m_{yk} + \Delta_k)
        - \max\bigl(0, \max_{k \ne y}(-\mu^2 m_{yk} + \Delta_k)\bigr)\Bigr]

    Parameters
    ----------
    mu : float in (0, 1], default=1.0
        Width of the ramp; the loss is bounded by ``(1 + mu) m``.
    margin : float or array of shape (K, K), default=1.0
        As for :class:`Hinge`.
    """

    name = "ramp"
    convex = False

    def __init__(self, mu: float = 1.0, margin: Any = 1.0) -> None:
        self.mu = mu
        self.margin = margin

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        mu = self.checked_mu()
        differences = _differences(scores, y)
        # Both margins vanish on the true class, so its entry supplies the max with zero.
        convex = row_max(mu * margins + differences)
        concave = row_max(-(mu**2) * margins + differences)
        return np.asarray((convex - concave) / mu)

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> NDArray[np.bool_]:
        mu, differences = self.checked_mu(), _differences(scores, y)
        right = _largest_off_class(mu * margins + differences, y) < -SLOPE
        given_up = _largest_off_class(-(mu**2) * margins + differences, y) > SLOPE
        return np.asarray(~(right | given_up))

    def cost_matrix(self, n_classes: int) -> Floats:
        self.checked_mu()
        return super().cost_matrix(n_classes)

    def checked_mu(self) -> float:
        """Return mu; a ValueError if it is not a number in (0, 1]."""
        if 0.0 < number(self.mu) <= 1.0:
            return float(self.mu)
        raise ValueError(f"Ramp needs mu in (0, 1]; got mu={self.mu!r}.")

    def majorant(self, scores: Floats, y: Labels, margins: Floats) -> tuple[Labels, Floats, Floats]:
        r"""Return the hinge that touches the loss at ``scores`` and lies above it elsewhere.

        The second maximum of the loss is convex; where its runner-up class k is above 0, it is
        replaced by its tangent :math:`-\mu^2 m_{yk} + \Delta_k`. What remains is

        .. math:: \tfrac1\mu \max_l \bigl(\mu m_{yl} - \mu m_{yk} + S_l - S_k\bigr)
            + (1 + \mu)\, m_{yk},

        a hinge of class k: the sample is given up and takes the label of its runner-up. With two
        classes its margin is :math:`-\mu m`. On the kink, which is hit exactly by models of
        zeros, the tangent 0 is taken; 1e-8 of the margin beyond it still counts as on it.

        Returns
        -------
        labels : (n,), margins : (n, K), constants : (n,)
            The loss is at most ``hinge(labels, margins) / mu + constants``.
        """
        mu, rows = self.checked_mu(), np.arange(y.size)
        concave = -(mu**2) * margins + _differences(scores, y)
        concave[rows, y] = 0.0
        runner_up = concave.argmax(axis=1)
        given_up = concave[rows, runner_up] > 1e-8 * mu**2 * margins[rows, runner_up]
        labels = np.where(given_up, runner_up, y).astype(np.int32)
        forgone = np.where(given_up, margins[rows, labels], 0.0)
        shifted = mu * (margins - forgone[:, None])
        shifted[rows, labels] = 0.0
        return labels, shifted, (1.0 + mu) * forgone


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in (Hinge, SquaredHinge, Logistic, OvrSquaredHinge, Ramp)
}


def as_loss(loss: str | Loss) -> Loss:
    """Turn a short name into the loss with its default parameters; pass objects through."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    known = ", ".join(repr(name) for name in LOSSES)
    raise ValueError(
        f"loss={loss!r} is not a loss; pass an object of sparsvm.losses or one of: {known}."
    )


def _differences(scores: Floats, y: Labels) -> Floats:
    return np.asarray(scores - of_class(scores, y)[:, None])


def _largest_off_class(values: Floats, y: Labels) -> Floats:
    """Largest value of each row among the classes that are not its own."""
    off = np.array(values)
    off[np.arange(y.size), y] = -np.inf
    return row_max(off)


def _balance_rows(off_class: Floats, y: Labels) -> Floats:
    """Give the true class minus the sum of the others: derivatives of score differences."""
    rows = np.arange(y.size)
    off_class[rows, y] = 0.0
    off_class[rows, y] = -row_sum(off_class)
    return off_class


def _flows(dual: Floats, y: Labels) -> tuple[Floats, NDArray[np.bool_]]:
    """Entries off the true class (0 on it), and whether each row sums to zero."""
    balanced = np.abs(dual.sum(axis=1)) <= 1e-12 * (1.0 + np.abs(dual).sum(axis=1))
    flows = np.array(dual, dtype=np.float64)
    flows[np.arange(y.size), y] = 0.0
    return flows, balanced


def _cost_matrix(margin: Any, n_classes: int) -> Floats:
    try:
        costs = np.asarray(margin, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"The margin must be a number or a square cost matrix of numbers; got {margin!r}."
        ) from error
    if costs.ndim == 0:
        costs = np.full((n_classes, n_classes), float(costs))
        np.fill_diagonal(costs, 0.0)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1]:
        raise ValueError(
            f"The margin must be a number or a square cost matrix; got an array of shape "
            f"{costs.shape}. One margin per sample is given to fit as sample_margin."
        )
    if costs.shape[0] != n_classes:
        raise ValueError(
            f"The cost matrix is {costs.shape[0]} x {costs.shape[1]} but there are {n_classes} "
            "classes; give one row and one column per class, in sorted order of the labels."
        )
    if not np.all(np.isfinite(costs)) or np.any(costs < 0.0):
        raise ValueError(f"Margins must be finite and not negative; got {margin!r}.")
    if np.any(np.diagonal(costs) != 0.0):
        raise ValueError(
            "The cost matrix must be zero on its diagonal (the cost of a right answer); got "
            f"the diagonal {np.diagonal(costs).tolist()}."
        )
    return np.array(costs)
