"""The losses, as parameterised objects with plain NumPy formulas, one file a formula.

Every loss is a function of the scores of one sample, with ``Delta_ik = S_ik - S_{i,y_i}``. The
methods work on all samples at once: ``scores`` and ``margins`` are (n, K), ``y`` holds class
numbers. With two classes the first column of ``scores`` is zero (class 0 is the reference).
"""

from __future__ import annotations

from sparsvm.losses.base import Loss, SmoothLoss
from sparsvm.losses.hinge import Hinge
from sparsvm.losses.logistic import Logistic
from sparsvm.losses.ovr_squared_hinge import OvrSquaredHinge
from sparsvm.losses.ramp import Ramp
from sparsvm.losses.squared_hinge import SquaredHinge
from sparsvm.parameters import quoted

__all__ = [
    "LOSSES",
    "Hinge",
    "Logistic",
    "Loss",
    "OvrSquaredHinge",
    "Ramp",
    "SmoothLoss",
    "SquaredHinge",
    "as_loss",
]

LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in (Hinge, SquaredHinge, Logistic, OvrSquaredHinge, Ramp)
}


def as_loss(loss: str | Loss) -> Loss:
    """Turn a short name into the loss with its default parameters; pass objects through.

    Examples
    --------
    >>> from sparsvm.losses import as_loss
    >>> as_loss("squared_hinge")
    SquaredHinge()
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise ValueError(
        f"loss={loss!r} is not a loss; pass an object of sparsvm.losses or one of: "
        f"{quoted(LOSSES)}."
    )
