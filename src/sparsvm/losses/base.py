"""The base classes of the losses, and what their formulas share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsvm._typing import Array, Bools, Floats, Labels
from sparsvm.numerics.rows import of_class, row_max, row_sum
from sparsvm.parameters import Parameterised, only_counts

# Settings.
# How far beyond a kink of the loss a sample still counts as a support vector.
SLOPE = 1e-2
# Signs and row sums of dual variables of mass 1 are judged to this, some thousand roundings.
ROUNDING = 1e-12


class Loss(Parameterised):
    """Base class of the losses.

    Attributes
    ----------
    name : str
        The short name accepted by ``SparseSVC(loss=...)``.
    convex, smooth : bool
        Traits that decide which solvers apply.
    of_differences : bool
        Whether only differences of scores matter, so that the intercepts are determined up to a
        common constant.
    within_masses : bool
        Whether the dual variables of a sample lie in a simplex of its mass.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsvm.losses import Hinge
    >>> loss = Hinge()
    >>> margins = loss.cost_matrix(3)[[0, 2]]  # of a sample of class 0 and one of class 2
    >>> loss.value(np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 3.0]]), np.array([0, 2]), margins)
    array([0.5, 0. ])
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    of_differences: ClassVar[bool] = True
    within_masses: ClassVar[bool] = False

    def value(self, scores: Floats, y: Labels, margins: Floats) -> Floats:
        """Return the loss of every sample, shape (n,)."""
        raise NotImplementedError

    def on_slope(self, scores: Floats, y: Labels, margins: Floats) -> Bools:
        """Say for every sample whether its loss changes with its scores, shape (n,).

        These are the support vectors; scores within ``SLOPE`` of a kink count as on the slope.
        """
        raise NotImplementedError

    def cost_matrix(self, n_classes: int, labels: Array | None = None) -> Floats:
        """Return the margins as a K x K matrix, row = true class, zero on the diagonal.

        A scalar margin m gives ``m (1 - I)``; a frame whose rows and columns are labelled is
        aligned with the sorted ``labels`` of the classes, where they are given.
        """
        margin = getattr(self, "margin", 1.0)
        return _read_costs(margin if labels is None else _aligned(margin, labels), n_classes)


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


def differences(scores: Floats, y: Labels) -> Floats:
    """Delta: the scores less those of the true classes."""
    return np.asarray(scores - of_class(scores, y)[:, None])


def largest_off_class(values: Floats, y: Labels) -> Floats:
    """Largest value of each row among the classes that are not its own."""
    off = np.array(values)
    off[np.arange(y.size), y] = -np.inf
    return row_max(off)


def balance_rows(off_class: Floats, y: Labels) -> Floats:
    """Give the true class minus the sum of the others: derivatives of score differences."""
    rows = np.arange(y.size)
    off_class[rows, y] = 0.0
    off_class[rows, y] = -row_sum(off_class)
    return off_class


def off_class_entries(dual: Floats, y: Labels) -> tuple[Floats, Bools]:
    """Entries off the true class (0 on it), and whether each row sums to zero."""
    balanced = np.abs(dual.sum(axis=1)) <= ROUNDING * (1.0 + np.abs(dual).sum(axis=1))
    entries = np.array(dual, dtype=np.float64)
    entries[np.arange(y.size), y] = 0.0
    return entries, balanced


def _aligned(margin: Any, labels: Array) -> Any:
    """Return a labelled cost matrix in the order of the labels, and anything else as it is.

    Labels that y lacks are left out, so that the costs of all classes serve any part of the data.
    Where only the columns have labels (as in polars) the rows are in their order.
    """
    columns = getattr(margin, "columns", None)
    if columns is None or not hasattr(margin, "to_numpy"):
        return margin
    known = labels.tolist()
    of_columns, of_rows = list(columns), getattr(margin, "index", None)
    if only_counts(columns) and (of_rows is None or only_counts(of_rows)):
        return margin.to_numpy()
    if of_rows is None or (only_counts(of_rows) and set(of_rows) != set(known)):
        of_rows = of_columns
    for name, found in (("columns", of_columns), ("rows", list(of_rows))):
        missing = [label for label in known if label not in found]
        if missing or len(set(found)) < len(found):
            what = f"none for the label {missing[0]!r}" if missing else "the same label twice"
            raise ValueError(
                f"The {name} of the cost matrix are labelled, with {what}. Label rows and columns "
                "by the classes, or give an array (to_numpy()) in sorted order of the labels of y."
            )
    rows = [list(of_rows).index(label) for label in known]
    return margin.to_numpy()[np.ix_(rows, [of_columns.index(label) for label in known])]


def _read_costs(margin: Any, n_classes: int) -> Floats:
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
