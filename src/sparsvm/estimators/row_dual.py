"""The dual variables of a fit, in the user's rows."""

from __future__ import annotations

from typing import Any

from sparsvm._typing import Floats
from sparsvm.data.training_set import RowShares


class RowDual:
    """Give fitted estimators ``dual_``, made from ``result_.dual`` when it is asked for."""

    result_: Any
    _row_shares: RowShares

    @property
    def dual_(self) -> Floats:
        """Dual variables behind the lower bound, shape (n_samples, n_classes), in X's rows."""
        known = vars(self)
        dual = getattr(known.get("result_"), "dual", None)
        if dual is None or "_row_shares" not in known:
            raise AttributeError(
                f"This {type(self).__name__} has no dual_: it is not fitted, or its dual variables "
                "were dropped."
            )
        return self._row_shares.spread(dual)
